//! `id`, `groups`, `whoami` and `logname`: who runs this.

use crate::accounts::Accounts;
use crate::options::{self, No, Spec};
use crate::program::{Args, Outcome, Output, fail};
use crate::quote;

/// Runs `whoami`.
pub fn whoami(args: Args) -> Outcome {
    options::none(args, "[OPTION]...")?;
    let [uid, _] = sys::user_ids();
    let names = Accounts::read();
    let Some(name) = names.user(uid) else { return Err(fail(format!("cannot find name for user ID {uid}"))) };
    Output::new().line(name.as_bytes(), b'\n');
    Ok(0)
}

/// Runs `logname`.
pub fn logname(args: Args) -> Outcome {
    options::none(args, "[OPTION]")?;
    let [uid, _] = sys::user_ids();
    Output::new().line(Accounts::read().show_user(uid).as_bytes(), b'\n');
    Ok(0)
}

/// Runs `groups`.
pub fn groups(args: Args) -> Outcome {
    let given = options::parse(args, &Spec { short: "", long: &[], help: "[OPTION]... [USERNAME]..." })?;
    let names = Accounts::read();
    let mut out = Output::new();
    let list = |user: &str, login| {
        let groups: Vec<String> = names.groups_of(user, login).into_iter().map(|id| names.show_group(id)).collect();
        groups.join(" ")
    };
    if given.operands.is_empty() {
        let [uid, gid] = sys::user_ids();
        out.line(list(&names.show_user(uid), gid).as_bytes(), b'\n');
    }
    let mut status = 0;
    for user in &given.operands {
        match user.to_str().and_then(|name| Some((name, names.uid(name)?))) {
            Some((name, uid)) => out.text(format!("{name} : {}\n", list(name, names.login_group(uid).unwrap_or(uid)))),
            None => status = fail(format!("{}: no such user", quote::plain(user))),
        }
    }
    Ok(status)
}

/// Runs `id`.
pub fn id(args: Args) -> Outcome {
    let spec = Spec {
        short: "agnruzGZ",
        long: &[
            ("group", No, 'g'),
            ("groups", No, 'G'),
            ("name", No, 'n'),
            ("real", No, 'r'),
            ("user", No, 'u'),
            ("zero", No, 'z'),
            ("context", No, 'Z'),
        ],
        help: "[OPTION]... [USER]...",
    };
    let given = options::parse(args, &spec)?;
    let chosen = "ugG".chars().filter(|&letter| given.has(letter)).collect::<Vec<_>>();
    if chosen.len() > 1 {
        return Err(fail("cannot print \"only\" of more than one choice"));
    }
    if given.has('Z') {
        return Err(fail("--context (-Z) works only on an SELinux-enabled kernel"));
    }
    if chosen.is_empty() && (given.has('n') || given.has('r')) {
        return Err(fail("cannot print only names or real IDs in default format"));
    }
    if chosen.is_empty() && given.has('z') {
        return Err(fail("option --zero not permitted in default format"));
    }
    let names = Accounts::read();
    let [uid, gid] = sys::user_ids();
    let mut people: Vec<(u32, u32)> = Vec::new();
    let mut status = 0;
    for user in &given.operands {
        match user.to_str().and_then(|name| names.user_id(name)).filter(|&id| names.user(id).is_some()) {
            Some(id) => people.push((id, names.login_group(id).unwrap_or(id))),
            None => status = fail(format!("{}: no such user", quote::plain(user))),
        }
    }
    if given.operands.is_empty() {
        people.push((uid, gid));
    }
    let mut out = Output::new();
    let end = if given.has('z') { 0 } else { b'\n' };
    for (uid, gid) in people {
        let groups = names.groups_of(&names.show_user(uid), gid);
        let user = |id: u32| if given.has('n') { names.show_user(id) } else { id.to_string() };
        let group = |id: u32| if given.has('n') { names.show_group(id) } else { id.to_string() };
        let text = match chosen.first() {
            Some('u') => user(uid),
            Some('g') => group(gid),
            Some(_) => groups.into_iter().map(group).collect::<Vec<_>>().join(if end == 0 { "\0" } else { " " }),
            None => {
                let named = |id: u32, name: Option<&str>| name.map_or_else(|| id.to_string(), |name| format!("{id}({name})"));
                let list: Vec<String> = groups.iter().map(|&id| named(id, names.group(id))).collect();
                format!("uid={} gid={} groups={}", named(uid, names.user(uid)), named(gid, names.group(gid)), list.join(","))
            }
        };
        out.line(text.as_bytes(), end);
    }
    Ok(status)
}
