//! `chown` and `chgrp`.

use std::path::Path;

use super::chmod::children;
use crate::accounts::{self, Accounts};
use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, fail, missing_operand, warn};
use crate::quote;

const SPEC: Spec = Spec {
    short: "HLPRcfhv",
    long: &[
        ("recursive", No, 'R'),
        ("changes", No, 'c'),
        ("dereference", No, 'D'),
        ("from", Needs, 'F'),
        ("no-dereference", No, 'h'),
        ("no-preserve-root", No, 'n'),
        ("preserve-root", No, 'p'),
        ("quiet", No, 'f'),
        ("silent", No, 'f'),
        ("reference", Needs, 'r'),
        ("verbose", No, 'v'),
    ],
    help: "[OPTION]... [OWNER][:[GROUP]] FILE...",
};

struct Job {
    /// Which links `-R` follows: `H` those named, `L` all, `P` none.
    walk: char,
    names: Accounts,
    user: Option<u32>,
    group: Option<u32>,
    from: (Option<u32>, Option<u32>),
    follow: bool,
    recursive: bool,
    changes: bool,
    verbose: bool,
    silent: bool,
    group_only: bool,
    status: i32,
    out: Output,
}

/// Runs `chown`.
pub fn chown(args: Args) -> Outcome {
    main(args, false)
}

/// Runs `chgrp`.
pub fn chgrp(args: Args) -> Outcome {
    main(args, true)
}

fn main(args: Args, group_only: bool) -> Outcome {
    let mut given = options::parse(args, &SPEC)?;
    let (user, group) = match given.value('r') {
        Some(file) => {
            let stat = sys::stat(Path::new(file), true).map_err(|error| {
                fail(format!("failed to get attributes of {}: {}", quote::always(file), sys::message(&error)))
            })?;
            (if group_only { None } else { Some(stat.uid) }, Some(stat.gid))
        }
        None => {
            if given.operands.len() < 2 {
                return Err(missing_operand(given.operands.last()));
            }
            let word = given.operands.remove(0);
            if group_only {
                let text = word.to_string_lossy();
                let group = if text.is_empty() {
                    None
                } else {
                    Some(
                        Accounts::read()
                            .group_id(&text)
                            .ok_or_else(|| fail(format!("invalid group: {}", quote::plain(&word))))?,
                    )
                };
                (None, group)
            } else {
                accounts::owner(&word)?
            }
        }
    };
    if given.operands.is_empty() {
        return Err(missing_operand(None));
    }
    let from = match given.value('F') {
        Some(word) => accounts::owner(word)?,
        None => (None, None),
    };
    let mut job = Job {
        names: Accounts::read(),
        user,
        group,
        from,
        follow: !given.has('h'),
        recursive: given.has('R'),
        walk: given.options.iter().rev().map(|(letter, _)| *letter).find(|letter| "HLP".contains(*letter)).unwrap_or('P'),
        changes: given.has('c'),
        verbose: given.has('v'),
        silent: given.has('f'),
        group_only,
        status: 0,
        out: Output::new(),
    };
    for file in &given.operands {
        job.change(Path::new(file), true);
    }
    Ok(job.status)
}

impl Job {
    fn change(&mut self, path: &Path, named: bool) {
        let follow = self.follow && (!self.recursive || self.walk == 'L' || named && self.walk == 'H');
        let stat = match sys::stat(path, follow) {
            Ok(stat) => stat,
            Err(error) => {
                self.status = 1;
                if !self.silent {
                    warn(format!(
                        "cannot {} {}: {}",
                        if follow && sys::stat(path, false).is_ok() { "dereference" } else { "access" },
                        quote::always(path),
                        sys::message(&error)
                    ));
                }
                return;
            }
        };
        let matches = self.from.0.is_none_or(|user| user == stat.uid) && self.from.1.is_none_or(|group| group == stat.gid);
        if matches {
            match sys::chown(path, follow, self.user.unwrap_or(u32::MAX), self.group.unwrap_or(u32::MAX)) {
                Ok(()) => self.tell(path, stat.uid, stat.gid),
                Err(error) => {
                    self.status = 1;
                    if !self.silent {
                        let what = if self.user.is_none() { "group" } else { "ownership" };
                        warn(format!("changing {what} of {}: {}", quote::always(path), sys::message(&error)));
                    }
                }
            }
        }
        if self.recursive && stat.kind() == sys::stat::S_IFDIR {
            match children(path) {
                Ok(names) => names.iter().for_each(|child| self.change(child, false)),
                Err(error) => {
                    self.status = 1;
                    if !self.silent {
                        warn(format!("cannot read directory {}: {}", quote::always(path), sys::message(&error)));
                    }
                }
            }
        }
    }

    fn tell(&mut self, path: &Path, uid: u32, gid: u32) {
        let (new_uid, new_gid) = (self.user.unwrap_or(uid), self.group.unwrap_or(gid));
        let changed = (uid, gid) != (new_uid, new_gid);
        if !(self.verbose || (self.changes && changed)) {
            return;
        }
        let both = |uid: u32, gid: u32| match (self.user, self.group) {
            _ if self.group_only => self.names.show_group(gid),
            (Some(_), None) => self.names.show_user(uid),
            (None, Some(_)) => format!(":{}", self.names.show_group(gid)),
            _ => format!("{}:{}", self.names.show_user(uid), self.names.show_group(gid)),
        };
        let what = if self.group_only { "group" } else { "ownership" };
        let name = quote::always(path);
        let line = if changed {
            format!("changed {what} of {name} from {} to {}\n", both(uid, gid), both(new_uid, new_gid))
        } else {
            format!("{what} of {name} retained as {}\n", both(uid, gid))
        };
        self.out.text(line);
    }
}
