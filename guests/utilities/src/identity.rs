//! Who and where: the user, the machine and its names.

use std::ffi::{OsStr, OsString};

use crate::options::{self, Needs, No, Spec};
use crate::program::{self, Args, Outcome, Output, fail, usage};
use crate::quote;

/// The machine's name.
pub const HOST: &str = "sandlite";

/// A table such as `/etc/passwd`: names and numbers.
fn table(path: &str, built_in: &[(&str, u32)]) -> Vec<(String, u32, String)> {
    let mut rows: Vec<(String, u32, String)> = Vec::new();
    if let Ok(text) = std::fs::read_to_string(path) {
        for line in text.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            if let [name, _, id, rest @ ..] = fields.as_slice()
                && let Ok(id) = id.parse()
            {
                rows.push(((*name).to_owned(), id, rest.join(":")));
            }
        }
    }
    if rows.is_empty() {
        rows.extend(built_in.iter().map(|(name, id)| ((*name).to_owned(), *id, String::new())));
    }
    rows
}

/// Users and groups by name and number.
pub struct Names {
    users: Vec<(String, u32, String)>,
    groups: Vec<(String, u32, String)>,
}

impl Names {
    /// What `/etc` says, or root and user where it says nothing.
    pub fn load() -> Self {
        let built_in = [("root", 0), ("user", 1000)];
        Self { users: table("/etc/passwd", &built_in), groups: table("/etc/group", &built_in) }
    }

    /// No names: numbers stay numbers.
    pub fn none() -> Self {
        Self { users: Vec::new(), groups: Vec::new() }
    }

    /// The name of a user.
    pub fn user(&self, id: u32) -> Option<&str> {
        self.users.iter().find(|row| row.1 == id).map(|row| row.0.as_str())
    }

    /// The name of a group.
    pub fn group(&self, id: u32) -> Option<&str> {
        self.groups.iter().find(|row| row.1 == id).map(|row| row.0.as_str())
    }

    /// The number behind a user's name or number.
    pub fn user_id(&self, name: &str) -> Option<u32> {
        self.users.iter().find(|row| row.0 == name).map(|row| row.1).or_else(|| name.trim_start_matches('+').parse().ok())
    }

    /// The number behind a group's name or number.
    pub fn group_id(&self, name: &str) -> Option<u32> {
        self.groups.iter().find(|row| row.0 == name).map(|row| row.1).or_else(|| name.trim_start_matches('+').parse().ok())
    }

    /// The login group of a user.
    pub fn login_group(&self, user: u32) -> Option<u32> {
        let row = self.users.iter().find(|row| row.1 == user)?;
        row.2.split(':').next().and_then(|gid| gid.parse().ok()).or(Some(row.1))
    }

    /// All groups of a user, the login group first.
    pub fn groups_of(&self, user: &str, login: u32) -> Vec<u32> {
        let mut ids = vec![login];
        for (_, id, members) in &self.groups {
            if *id != login && members.split(',').any(|member| member == user) {
                ids.push(*id);
            }
        }
        ids
    }

    /// The user's name, or the number as text.
    pub fn show_user(&self, id: u32) -> String {
        self.user(id).map_or_else(|| id.to_string(), str::to_owned)
    }

    /// The group's name, or the number as text.
    pub fn show_group(&self, id: u32) -> String {
        self.group(id).map_or_else(|| id.to_string(), str::to_owned)
    }
}

fn nothing_but_options(args: Args, help: &'static str) -> Result<(), i32> {
    let given = options::parse(args, &Spec { short: "", long: &[], help })?;
    given.operands.first().map_or(Ok(()), |operand| Err(program::extra_operand(operand)))
}

/// `whoami`.
pub fn whoami(args: Args) -> Outcome {
    nothing_but_options(args, "[OPTION]...")?;
    let [uid, _] = sys::user_ids();
    let names = Names::load();
    let Some(name) = names.user(uid) else { return Err(fail(format!("cannot find name for user ID {uid}"))) };
    Output::new().line(name.as_bytes(), b'\n');
    Ok(0)
}

/// `logname`.
pub fn logname(args: Args) -> Outcome {
    nothing_but_options(args, "[OPTION]")?;
    let [uid, _] = sys::user_ids();
    Output::new().line(Names::load().show_user(uid).as_bytes(), b'\n');
    Ok(0)
}

/// `users`: nobody is logged in to a sandbox.
pub fn users(args: Args) -> Outcome {
    let given = options::parse(args, &Spec { short: "", long: &[], help: "[OPTION]... [FILE]" })?;
    given.operands.get(1).map_or(Ok(0), |extra| Err(program::extra_operand(extra)))
}

/// `who`.
pub fn who(args: Args) -> Outcome {
    let spec = Spec {
        short: "abdlmpqrstuwHT",
        long: &[("all", No, 'a'), ("count", No, 'q'), ("heading", No, 'H')],
        help: "[OPTION]... [ FILE | ARG1 ARG2 ]",
    };
    let given = options::parse(args, &spec)?;
    let mut out = Output::new();
    if given.has('H') {
        out.text("NAME     LINE         TIME             COMMENT\n");
    }
    if given.has('q') {
        out.text("\n# users=0\n");
    }
    Ok(0)
}

/// `groups`.
pub fn groups(args: Args) -> Outcome {
    let given = options::parse(args, &Spec { short: "", long: &[], help: "[OPTION]... [USERNAME]..." })?;
    let names = Names::load();
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
        match user.to_str().and_then(|name| names.users.iter().find(|row| row.0 == name)) {
            Some(row) => out.text(format!("{} : {}\n", row.0, list(&row.0, names.login_group(row.1).unwrap_or(row.1)))),
            None => status = fail(format!("{}: no such user", quote::plain(user))),
        }
    }
    Ok(status)
}

/// `id`.
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
    let names = Names::load();
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

/// `uname`.
pub fn uname(args: Args) -> Outcome {
    let spec = Spec {
        short: "asnrvmpio",
        long: &[
            ("all", No, 'a'),
            ("kernel-name", No, 's'),
            ("sysname", No, 's'),
            ("nodename", No, 'n'),
            ("kernel-release", No, 'r'),
            ("release", No, 'r'),
            ("kernel-version", No, 'v'),
            ("machine", No, 'm'),
            ("processor", No, 'p'),
            ("hardware-platform", No, 'i'),
            ("operating-system", No, 'o'),
        ],
        help: "[OPTION]...",
    };
    let given = options::parse(args, &spec)?;
    if let Some(operand) = given.operands.first() {
        return Err(program::extra_operand(operand));
    }
    let all = given.has('a');
    let facts = [
        ('s', "Linux"),
        ('n', HOST),
        ('r', "6.1.0-sandlite"),
        ('v', "#1 SMP PREEMPT_DYNAMIC Sandlite"),
        ('m', "x86_64"),
        ('p', "unknown"),
        ('i', "unknown"),
        ('o', "GNU/Linux"),
    ];
    let chosen: Vec<&str> = facts
        .iter()
        .filter(|(letter, fact)| {
            given.has(*letter) || (all && *fact != "unknown") || (given.options.is_empty() && *letter == 's')
        })
        .map(|(_, fact)| *fact)
        .collect();
    Output::new().line(chosen.join(" ").as_bytes(), b'\n');
    Ok(0)
}

/// `arch`.
pub fn arch(args: Args) -> Outcome {
    nothing_but_options(args, "[OPTION]...")?;
    Output::new().text("x86_64\n");
    Ok(0)
}

/// `hostname`.
pub fn hostname(args: Args) -> Outcome {
    let spec = Spec {
        short: "afsidIA",
        long: &[
            ("short", No, 's'),
            ("fqdn", No, 'f'),
            ("long", No, 'f'),
            ("domain", No, 'd'),
            ("ip-address", No, 'i'),
            ("all-ip-addresses", No, 'I'),
        ],
        help: "[-s|-f|-d|-i]",
    };
    let given = options::parse(args, &spec)?;
    if !given.operands.is_empty() {
        return Err(fail("you must be root to change the host name"));
    }
    let text = if given.has('i') || given.has('I') {
        "127.0.0.1"
    } else if given.has('d') {
        ""
    } else {
        HOST
    };
    Output::new().line(text.as_bytes(), b'\n');
    Ok(0)
}

/// `hostid`.
pub fn hostid(args: Args) -> Outcome {
    nothing_but_options(args, "[OPTION]")?;
    Output::new().text("007f0100\n");
    Ok(0)
}

/// `nproc`: a guest runs on one thread.
pub fn nproc(args: Args) -> Outcome {
    let spec = Spec { short: "", long: &[("all", No, 'a'), ("ignore", Needs, 'i')], help: "[OPTION]..." };
    let given = options::parse(args, &spec)?;
    if let Some(operand) = given.operands.first() {
        return Err(program::extra_operand(operand));
    }
    if let Some(value) = given.value('i')
        && value.to_str().and_then(|text| text.parse::<u64>().ok()).is_none()
    {
        return Err(fail(format!("invalid number: {}", quote::plain(value))));
    }
    Output::new().text("1\n");
    Ok(0)
}

/// `tty`.
pub fn tty(args: Args) -> Outcome {
    program::set_failure(2);
    let spec = Spec { short: "s", long: &[("silent", No, 's'), ("quiet", No, 's')], help: "[OPTION]..." };
    let given = options::parse(args, &spec)?;
    if let Some(operand) = given.operands.first() {
        return Err(program::extra_operand(operand));
    }
    let terminal = sys::is_terminal(0);
    if !given.has('s') {
        Output::new().text(if terminal { "/dev/tty\n" } else { "not a tty\n" });
    }
    Ok(i32::from(!terminal))
}

/// `uptime`: of the sandbox, as far as its clocks tell.
pub fn uptime(args: Args) -> Outcome {
    let spec = Spec { short: "ps", long: &[("pretty", No, 'p'), ("since", No, 's')], help: "[OPTION]..." };
    let given = options::parse(args, &spec)?;
    if let Some(operand) = given.operands.first() {
        return Err(usage(format!("extra operand {}", quote::plain(operand))));
    }
    let now = i64::try_from(sys::now_ns() / 1_000_000_000).unwrap_or(0);
    let mut out = Output::new();
    if given.has('p') {
        out.text("up 0 minutes\n");
    } else if given.has('s') {
        let (date, time) = (now.div_euclid(86400), now.rem_euclid(86400));
        let (year, month, day) = sys::calendar::from_days(date);
        out.text(format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}\n", time / 3600, time / 60 % 60, time % 60));
    } else {
        let time = now.rem_euclid(86400);
        out.text(format!(
            " {:02}:{:02}:{:02} up 0 min,  0 users,  load average: 0.00, 0.00, 0.00\n",
            time / 3600,
            time / 60 % 60,
            time % 60
        ));
    }
    Ok(0)
}

/// The number of a user or group in an `OWNER:GROUP` word.
pub fn owner(spec: &OsStr) -> Result<(Option<u32>, Option<u32>), i32> {
    let names = Names::load();
    let text = spec.to_string_lossy();
    let (user, group) = match text.find([':', '.']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text.as_ref(), None),
    };
    let user = if user.is_empty() {
        None
    } else {
        Some(names.user_id(user).ok_or_else(|| fail(format!("invalid user: {}", quote::plain(OsString::from(text.as_ref())))))?)
    };
    let group = match group {
        None => None,
        Some("") => user.and_then(|user| names.login_group(user)),
        Some(group) => Some(
            names
                .group_id(group)
                .ok_or_else(|| fail(format!("invalid group: {}", quote::plain(OsString::from(text.as_ref())))))?,
        ),
    };
    Ok((user, group))
}
