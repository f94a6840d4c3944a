//! Prompt strings: PS4 and `${x@P}`.

use crate::bytes;
use crate::shell::{Done, Shell};
use crate::syntax;

impl Shell {
    /// Expands a prompt string: backslash escapes, then what double quotes would expand.
    pub fn expand_prompt(&mut self, text: &str) -> Done<String> {
        let decoded = self.decode_prompt(text);
        if !decoded.contains(['$', '`', '\\']) {
            return Ok(decoded);
        }
        match syntax::parse_word(&decoded, self.syntax_options()) {
            Ok(word) => self.expand_quoted(&word),
            Err(_) => Ok(decoded),
        }
    }

    fn decode_prompt(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '\\' {
                out.push(c);
                continue;
            }
            match chars.next() {
                Some('a') => out.push('\x07'),
                Some('e') => out.push('\x1b'),
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('s') => out.push_str(self.name.rsplit('/').next().unwrap_or_default()),
                Some('u') => out.push_str(&self.get("USER").unwrap_or_else(|| "user".to_owned())),
                Some('h') => {
                    let host = self.get("HOSTNAME").unwrap_or_default();
                    out.push_str(host.split('.').next().unwrap_or_default());
                }
                Some('H') => out.push_str(&self.get("HOSTNAME").unwrap_or_default()),
                Some('w') => out.push_str(&self.short_directory()),
                Some('W') => {
                    let short = self.short_directory();
                    out.push_str(if short == "/" { "/" } else { short.rsplit('/').next().unwrap_or_default() });
                }
                Some('$') => out.push_str(if sys::user_ids()[0] == 0 { "#" } else { "\\$" }),
                Some('v') => out.push_str("5.2"),
                Some('V') => out.push_str("5.2.15"),
                Some('j') => out.push_str(&self.jobs.list.len().to_string()),
                Some('!' | '#') => out.push('1'),
                Some('t') => out.push_str(&crate::builtins::format_time("%H:%M:%S", None)),
                Some('T') => out.push_str(&crate::builtins::format_time("%I:%M:%S", None)),
                Some('@') => out.push_str(&crate::builtins::format_time("%I:%M %p", None)),
                Some('A') => out.push_str(&crate::builtins::format_time("%H:%M", None)),
                Some('d') => out.push_str(&crate::builtins::format_time("%a %b %d", None)),
                Some('[' | ']') => {}
                Some('\\') => out.push_str("\\\\"),
                Some(digit @ '0'..='7') => {
                    let mut code = digit.to_digit(8).unwrap_or_default();
                    for _ in 0..2 {
                        if let Some(next) = chars.peek().and_then(|c| c.to_digit(8)) {
                            code = code * 8 + next;
                            chars.next();
                        }
                    }
                    out.push_str(&bytes::decode(&[(code & 0xff) as u8]));
                }
                Some(other) => {
                    out.push('\\');
                    out.push(other);
                }
                None => out.push('\\'),
            }
        }
        out
    }

    /// The working directory with the home directory as `~`.
    fn short_directory(&mut self) -> String {
        let home = self.get("HOME").unwrap_or_default();
        crate::builtins::abbreviate_home(&self.directory, &home)
    }
}
