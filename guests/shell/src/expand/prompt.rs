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

    /// Replaces only the backslash escapes.
    pub(crate) fn decode_prompt(&mut self, text: &str) -> String {
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
                Some('s') => out.push_str(if self.on(crate::state::options::SetOption::Posix) { "sh" } else { "bash" }),
                Some('u') => out.push_str(&self.get("USER").unwrap_or_else(|| "user".to_owned())),
                Some('h') => {
                    let host = self.get("HOSTNAME").unwrap_or_default();
                    out.push_str(host.split('.').next().unwrap_or_default());
                }
                Some('H') => out.push_str(&self.get("HOSTNAME").unwrap_or_default()),
                Some('w') => push_plain(&mut out, &self.short_directory()),
                Some('W') => {
                    let short = self.short_directory();
                    push_plain(&mut out, if short == "/" { "/" } else { short.rsplit('/').next().unwrap_or_default() });
                }
                Some('$') => out.push_str(if sys::user_ids()[0] == 0 { "#" } else { "\\$" }),
                Some('v') => out.push_str("5.2"),
                Some('V') => out.push_str("5.2.15"),
                Some('j') => out.push_str(&self.jobs.list.len().to_string()),
                Some('!') => out.push_str(&self.history.number().to_string()),
                Some('#') => out.push_str(&self.command_number.to_string()),
                Some('l') => out.push_str("tty"),
                Some('D') if chars.peek() == Some(&'{') => {
                    chars.next();
                    let format: String = chars.by_ref().take_while(|c| *c != '}').collect();
                    let format = if format.is_empty() { "%X".to_owned() } else { format };
                    out.push_str(&self.format_local_time(&format, None));
                }
                Some('t') => out.push_str(&self.format_local_time("%H:%M:%S", None)),
                Some('T') => out.push_str(&self.format_local_time("%I:%M:%S", None)),
                Some('@') => out.push_str(&self.format_local_time("%I:%M %p", None)),
                Some('A') => out.push_str(&self.format_local_time("%H:%M", None)),
                Some('d') => out.push_str(&self.format_local_time("%a %b %d", None)),
                Some('[' | ']') => {}
                Some('\\') => out.push('\\'),
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

    /// Returns the working directory with the home directory as `~`.
    fn short_directory(&mut self) -> String {
        let home = self.get("HOME").unwrap_or_default();
        crate::builtins::abbreviate_home(&self.directory, &home)
    }
}

/// Adds text that is not expanded again.
fn push_plain(out: &mut String, text: &str) {
    for c in text.chars() {
        if matches!(c, '$' | '`' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
}
