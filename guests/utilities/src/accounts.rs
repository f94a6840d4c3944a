//! Accounts of users and groups, as `/etc/passwd` and `/etc/group` have them.

use std::ffi::{OsStr, OsString};

use crate::program::fail;
use crate::quote;

/// Returns a table such as `/etc/passwd`: names and numbers.
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

/// Users and groups that every system has, with the same number for both: known by name beside those of `/etc`.
const SYSTEM: [(&str, u32); 17] = [
    ("root", 0),
    ("daemon", 1),
    ("bin", 2),
    ("sys", 3),
    ("games", 60),
    ("man", 12),
    ("lp", 7),
    ("mail", 8),
    ("news", 9),
    ("uucp", 10),
    ("proxy", 13),
    ("www-data", 33),
    ("backup", 34),
    ("list", 38),
    ("irc", 39),
    ("nogroup", 65534),
    ("nobody", 65534),
];

fn system(name: &str) -> Option<u32> {
    SYSTEM.iter().find(|row| row.0 == name).map(|row| row.1)
}

/// Users and groups by name and number.
#[derive(Debug)]
pub struct Accounts {
    users: Vec<(String, u32, String)>,
    groups: Vec<(String, u32, String)>,
}

impl Accounts {
    /// Reads the names from `/etc`; defaults to root and user.
    pub fn read() -> Self {
        let built_in = [("root", 0), ("user", 1000)];
        Self { users: table("/etc/passwd", &built_in), groups: table("/etc/group", &built_in) }
    }

    /// Returns an empty list: numbers stay numbers.
    pub fn none() -> Self {
        Self { users: Vec::new(), groups: Vec::new() }
    }

    /// Returns the name of a user.
    pub fn user(&self, id: u32) -> Option<&str> {
        self.users.iter().find(|row| row.1 == id).map(|row| row.0.as_str())
    }

    /// Returns the name of a group.
    pub fn group(&self, id: u32) -> Option<&str> {
        self.groups.iter().find(|row| row.1 == id).map(|row| row.0.as_str())
    }

    /// Returns the number of the user with this name.
    pub fn uid(&self, name: &str) -> Option<u32> {
        self.users.iter().find(|row| row.0 == name).map(|row| row.1)
    }

    /// Returns the number of the group with this name.
    pub fn gid(&self, name: &str) -> Option<u32> {
        self.groups.iter().find(|row| row.0 == name).map(|row| row.1).or_else(|| system(name))
    }

    /// Returns the number behind a user's name or number.
    pub fn user_id(&self, name: &str) -> Option<u32> {
        self.uid(name).or_else(|| name.trim_start_matches('+').parse().ok())
    }

    /// Returns the number behind a group's name or number.
    pub fn group_id(&self, name: &str) -> Option<u32> {
        self.gid(name).or_else(|| name.trim_start_matches('+').parse().ok())
    }

    /// Returns the login group of a user.
    pub fn login_group(&self, user: u32) -> Option<u32> {
        let row = self.users.iter().find(|row| row.1 == user)?;
        row.2.split(':').next().and_then(|gid| gid.parse().ok()).or(Some(row.1))
    }

    /// Returns all groups of a user, the login group first.
    pub fn groups_of(&self, user: &str, login: u32) -> Vec<u32> {
        let mut ids = vec![login];
        for (_, id, members) in &self.groups {
            if *id != login && members.split(',').any(|member| member == user) {
                ids.push(*id);
            }
        }
        ids
    }

    /// Returns the user's name, or the number as text.
    pub fn show_user(&self, id: u32) -> String {
        self.user(id).map_or_else(|| id.to_string(), str::to_owned)
    }

    /// Returns the group's name, or the number as text.
    pub fn show_group(&self, id: u32) -> String {
        self.group(id).map_or_else(|| id.to_string(), str::to_owned)
    }
}

/// Returns the number of a user or group in an `OWNER:GROUP` word.
pub fn owner(spec: &OsStr) -> Result<(Option<u32>, Option<u32>), i32> {
    let names = Accounts::read();
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
