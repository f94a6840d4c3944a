//! Names of users and groups, as `/etc/passwd` and `/etc/group` have them.

use std::collections::HashMap;

/// The accounts of a machine, read once.
#[derive(Debug, Default)]
pub struct Accounts {
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
}

impl Accounts {
    /// Reads the two files; one that is missing has no names.
    #[must_use]
    pub fn read() -> Self {
        Self { users: table(b"/etc/passwd"), groups: table(b"/etc/group") }
    }

    /// The user's name, or the number when there is none.
    #[must_use]
    pub fn user(&self, uid: u32) -> String {
        self.users.get(&uid).cloned().unwrap_or_else(|| uid.to_string())
    }

    /// The group's name, or the number when there is none.
    #[must_use]
    pub fn group(&self, gid: u32) -> String {
        self.groups.get(&gid).cloned().unwrap_or_else(|| gid.to_string())
    }

    /// Whether the user has a name.
    #[must_use]
    pub fn has_user(&self, uid: u32) -> bool {
        self.users.contains_key(&uid)
    }

    /// Whether the group has a name.
    #[must_use]
    pub fn has_group(&self, gid: u32) -> bool {
        self.groups.contains_key(&gid)
    }

    /// The user called `name`.
    #[must_use]
    pub fn uid(&self, name: &str) -> Option<u32> {
        self.users.iter().find(|(_, known)| *known == name).map(|(uid, _)| *uid)
    }

    /// The group called `name`.
    #[must_use]
    pub fn gid(&self, name: &str) -> Option<u32> {
        self.groups.iter().find(|(_, known)| *known == name).map(|(gid, _)| *gid)
    }
}

fn table(file: &[u8]) -> HashMap<u32, String> {
    let text = crate::io::read_all(file).unwrap_or_default();
    let mut names = HashMap::new();
    for line in String::from_utf8_lossy(&text).lines() {
        let mut parts = line.split(':');
        if let (Some(name), Some(Ok(id))) = (parts.next(), parts.nth(1).map(str::parse)) {
            names.entry(id).or_insert_with(|| name.to_string());
        }
    }
    names
}

/// `drwxr-xr-x`.
#[must_use]
pub fn mode_text(mode: u32) -> String {
    let kind = match mode & 0o170_000 {
        0o040_000 => 'd',
        0o120_000 => 'l',
        0o020_000 => 'c',
        0o060_000 => 'b',
        0o010_000 => 'p',
        0o140_000 => 's',
        _ => '-',
    };
    let mut text = String::from(kind);
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (bits & 1 != 0, mode & special != 0) {
            (true, true) => letter,
            (false, true) => letter.to_ascii_uppercase(),
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// A symbolic or octal mode applied to `old`; `None` when it is not one.
#[must_use]
pub fn parse_mode(text: &str, old: u32) -> Option<u32> {
    if !text.is_empty() && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte)) {
        return u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o7777);
    }
    let mut mode = old;
    for clause in text.split(',') {
        let at = clause.find(['+', '-', '='])?;
        let mut who = 0;
        for letter in clause[..at].chars() {
            who |= match letter {
                'u' => 0o4700,
                'g' => 0o2070,
                'o' => 0o1007,
                'a' => 0o7777,
                _ => return None,
            };
        }
        let who = if who == 0 { 0o7777 } else { who };
        let mut rest = clause[at..].chars().peekable();
        while let Some(op) = rest.next() {
            let mut bits = 0;
            while let Some(letter) = rest.next_if(|letter| !['+', '-', '='].contains(letter)) {
                bits |= match letter {
                    'r' => 0o444,
                    'w' => 0o222,
                    'x' => 0o111,
                    'X' if mode & 0o111 != 0 => 0o111,
                    'X' => 0,
                    's' => 0o6000,
                    't' => 0o1000,
                    'u' => (mode >> 6 & 7) * 0o111,
                    'g' => (mode >> 3 & 7) * 0o111,
                    'o' => (mode & 7) * 0o111,
                    _ => return None,
                };
            }
            match op {
                '+' => mode |= bits & who,
                '-' => mode &= !(bits & who),
                '=' => mode = mode & !who | bits & who,
                _ => return None,
            }
        }
    }
    Some(mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_read_as_chmod_reads_them() {
        assert_eq!(parse_mode("644", 0), Some(0o644));
        assert_eq!(parse_mode("u+x,g=r", 0o604), Some(0o744));
        assert_eq!(parse_mode("a-w", 0o666), Some(0o444));
        assert_eq!(parse_mode("q", 0), None);
        assert_eq!(mode_text(0o041_755), "drwxr-xr-t");
    }
}
