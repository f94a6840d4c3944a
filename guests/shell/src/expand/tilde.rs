//! Tilde expansion.

use super::{Segment, Tilde};
use crate::shell::Shell;
use crate::state::assign::is_name;
use crate::state::options::SetOption;

impl Shell {
    /// Expands the tildes of a literal. All but the last piece go to `out`, since expanded homes are quoted.
    pub(super) fn expand_tildes(
        &mut self,
        text: &str,
        tilde: Tilde,
        first: bool,
        followed: bool,
        out: &mut Vec<Segment>,
    ) -> String {
        let mut rest = text;
        let mut colons = tilde == Tilde::Assignment;
        let mut at_start = first;
        if first
            && tilde == Tilde::Word
            && !self.on(SetOption::Posix)
            && let Some((name, _)) = text.split_once('=')
            && is_name(name)
        {
            let (head, tail) = text.split_at(name.len() + 1);
            out.push(Segment::Text { text: head.to_owned(), quoted: false, split: false });
            rest = tail;
            colons = true;
        }
        loop {
            if at_start && rest.starts_with('~') {
                let end = rest.find(|c| c == '/' || colons && c == ':');
                let user = rest.get(1..end.unwrap_or(rest.len())).unwrap_or_default();
                // A prefix that continues into a quoted or expanded part does not count.
                if (end.is_some() || !followed)
                    && let Some(home) = self.home_of(user)
                {
                    out.push(Segment::Text { text: home, quoted: true, split: false });
                    rest = rest.get(end.unwrap_or(rest.len())..).unwrap_or_default();
                }
            }
            if !colons {
                return rest.to_owned();
            }
            let Some(colon) = rest.find(':') else { return rest.to_owned() };
            let (head, tail) = rest.split_at(colon + 1);
            out.push(Segment::Text { text: head.to_owned(), quoted: false, split: false });
            rest = tail;
            at_start = true;
        }
    }

    /// Returns the directory behind `~user`, `~`, `~+`, `~-` and `~2`.
    pub(crate) fn home_of(&mut self, user: &str) -> Option<String> {
        match user {
            "" => Some(self.get("HOME").unwrap_or_else(|| home_in_passwd(None).unwrap_or_else(|| "/".to_owned()))),
            "+" => self.get("PWD"),
            "-" => self.get("OLDPWD"),
            _ => {
                let digits = user.trim_start_matches(['+', '-']);
                if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return self.directory_at(user);
                }
                home_in_passwd(Some(user))
            }
        }
    }

    /// Returns an entry of the directory stack by `+n`, `n` or `-n`.
    pub(crate) fn directory_at(&self, text: &str) -> Option<String> {
        let from_end = text.starts_with('-');
        let number: usize = text.trim_start_matches(['+', '-']).parse().ok()?;
        let count = self.directory_stack.len() + 1;
        let at = if from_end { count.checked_sub(number + 1)? } else { number };
        if at == 0 { Some(self.directory.clone()) } else { self.directory_stack.get(at - 1).cloned() }
    }
}

/// Returns the home of a user (by default this process's own) in `/etc/passwd`.
fn home_in_passwd(user: Option<&str>) -> Option<String> {
    let text = std::fs::read_to_string("/etc/passwd").ok()?;
    let uid = sys::user_ids()[0].to_string();
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let found = match user {
            Some(user) => fields.first() == Some(&user),
            None => fields.get(2) == Some(&uid.as_str()),
        };
        found.then(|| fields.get(5).map(|home| (*home).to_owned())).flatten()
    })
}
