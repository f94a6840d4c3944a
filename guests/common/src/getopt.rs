//! Options as GNU's `getopt_long` reads them: bundled letters, abbreviated long names, operands anywhere.
//!
//! Knows nothing of how a program reports an error: messages are text without the program's name.

/// Whether an option takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Never.
    No,
    /// Always.
    Needs,
    /// Only attached: `-xVALUE` or `--name=VALUE`.
    May,
}
pub use Value::{May, Needs, No};

/// One element of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An option by its letter (or the letter that stands for a long name) and its value.
    Opt(char, Option<Vec<u8>>),
    /// An operand.
    Operand(Vec<u8>),
}

/// A long option: its name, whether it takes a value, the letter it is reported as.
pub type Long = (&'static str, Value, char);

/// The options of a program.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Letters as `getopt(3)` writes them: `ab:c::`; a leading `+` stops at the first operand.
    pub short: &'static str,
    /// Long names.
    pub long: &'static [Long],
}

impl Spec {
    /// Reads the arguments after the program's name.
    ///
    /// # Errors
    /// Returns the message about the first option that is unknown, ambiguous or lacks its value.
    pub fn parse(&self, args: &[Vec<u8>]) -> Result<Vec<Item>, String> {
        self.items(args.iter().cloned(), &[]).collect()
    }

    /// Reads the arguments one by one; `more` are long names beside those of the table.
    pub fn items<A: Iterator<Item = Vec<u8>>>(self, args: A, more: &'static [Long]) -> Items<A> {
        Items { spec: self, more, args, bundle: Vec::new(), at: 0, operands_only: false }
    }

    /// Returns whether the option with this letter takes a value; `None` if there is no such option.
    #[must_use]
    pub fn short_value(&self, letter: u8) -> Option<Value> {
        if matches!(letter, b':' | b'+') {
            return None;
        }
        let at = self.short.bytes().position(|known| known == letter)?;
        Some(match self.short.as_bytes().get(at + 1..) {
            Some([b':', b':', ..]) => May,
            Some([b':', ..]) => Needs,
            _ => No,
        })
    }
}

/// The elements of a command line, in order.
#[derive(Debug)]
pub struct Items<A> {
    spec: Spec,
    more: &'static [Long],
    args: A,
    /// The word whose letters are being read, and how far they are.
    bundle: Vec<u8>,
    at: usize,
    operands_only: bool,
}

impl<A: Iterator<Item = Vec<u8>>> Iterator for Items<A> {
    type Item = Result<Item, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at < self.bundle.len() {
            return Some(self.letter());
        }
        let arg = self.args.next()?;
        Some(match arg.as_slice() {
            _ if self.operands_only => Ok(Item::Operand(arg)),
            b"--" => {
                self.operands_only = true;
                return self.args.next().map(|operand| Ok(Item::Operand(operand)));
            }
            [b'-', b'-', long @ ..] => self.long(long),
            [b'-', _, ..] => {
                (self.bundle, self.at) = (arg, 1);
                self.letter()
            }
            _ => {
                self.operands_only = self.spec.short.starts_with('+');
                Ok(Item::Operand(arg))
            }
        })
    }
}

impl<A: Iterator<Item = Vec<u8>>> Items<A> {
    /// Returns the next letter of a bundle, with what follows it or the next argument as its value.
    fn letter(&mut self) -> Result<Item, String> {
        let letter = self.bundle[self.at];
        let Some(value) = self.spec.short_value(letter) else {
            let shown = String::from_utf8_lossy(&self.bundle[self.at..]).chars().next().unwrap_or_default();
            return Err(format!("invalid option -- '{shown}'"));
        };
        self.at += 1;
        let letter = char::from(letter);
        if value == No {
            return Ok(Item::Opt(letter, None));
        }
        let attached = self.bundle.split_off(self.at);
        match (value, attached.is_empty()) {
            (_, false) => Ok(Item::Opt(letter, Some(attached))),
            (Needs, true) => match self.args.next() {
                Some(value) => Ok(Item::Opt(letter, Some(value))),
                None => Err(format!("option requires an argument -- '{letter}'")),
            },
            _ => Ok(Item::Opt(letter, None)),
        }
    }

    fn long(&mut self, text: &[u8]) -> Result<Item, String> {
        let (name, attached) = match text.iter().position(|&byte| byte == b'=') {
            Some(at) => (&text[..at], Some(text[at + 1..].to_vec())),
            None => (text, None),
        };
        let (name, value, letter) = self.named(name, text)?;
        match (value, attached) {
            (No, Some(_)) => Err(format!("option '--{name}' doesn't allow an argument")),
            (Needs, None) => match self.args.next() {
                Some(value) => Ok(Item::Opt(letter, Some(value))),
                None => Err(format!("option '--{name}' requires an argument")),
            },
            (_, attached) => Ok(Item::Opt(letter, attached)),
        }
    }

    /// Returns the option that a name is, or that alone begins with it; `text` is what messages show.
    fn named(&self, name: &[u8], text: &[u8]) -> Result<Long, String> {
        let begun = |long: &&Long| long.0.as_bytes().starts_with(name);
        let candidates: Vec<Long> = self.spec.long.iter().chain(self.more).filter(begun).copied().collect();
        if let Some(exact) = candidates.iter().find(|long| long.0.as_bytes() == name) {
            return Ok(*exact);
        }
        let shown = String::from_utf8_lossy(text);
        match candidates.as_slice() {
            [] => Err(format!("unrecognized option '--{shown}'")),
            [first, rest @ ..] if rest.iter().all(|other| (other.1, other.2) == (first.1, first.2)) => Ok(*first),
            all => {
                let names: String = all.iter().map(|long| format!(" '--{}'", long.0)).collect();
                Err(format!("option '--{shown}' is ambiguous; possibilities:{names}"))
            }
        }
    }
}

/// Returns the arguments as bytes.
#[must_use]
pub fn bytes(args: Vec<std::ffi::OsString>) -> Vec<Vec<u8>> {
    args.into_iter().map(std::ffi::OsString::into_encoded_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: Spec =
        Spec { short: "an:c::", long: &[("all", No, 'a'), ("lines", Needs, 'n'), ("list", No, 'l'), ("color", May, 'c')] };

    fn check(spec: Spec, args: &[&str], expected: &str) {
        let args: Vec<Vec<u8>> = args.iter().map(|arg| arg.as_bytes().to_vec()).collect();
        let shown = |item: &Item| match item {
            Item::Operand(word) => String::from_utf8_lossy(word).into_owned(),
            Item::Opt(letter, None) => format!("-{letter}"),
            Item::Opt(letter, Some(value)) => format!("-{letter}={}", String::from_utf8_lossy(value)),
        };
        let found = match spec.parse(&args) {
            Ok(items) => items.iter().map(shown).collect::<Vec<_>>().join(" "),
            Err(message) => message,
        };
        assert_eq!(found, expected, "{args:?}");
    }

    #[test]
    fn options_and_operands_mix() {
        check(SPEC, &["x", "-an5", "--lin", "7", "y", "--", "-a"], "x -a -n=5 -n=7 y -a");
        check(Spec { short: "+a", ..SPEC }, &["-a", "x", "-a"], "-a x -a");
        check(SPEC, &["-", "-n", "-1"], "- -n=-1");
    }

    #[test]
    fn an_optional_value_is_attached() {
        check(SPEC, &["-c", "1", "-c1", "--color", "--color=2"], "-c 1 -c=1 -c -c=2");
    }

    #[test]
    fn wrong_options_are_reported_as_getopt_does() {
        check(SPEC, &["-q"], "invalid option -- 'q'");
        check(SPEC, &["-:"], "invalid option -- ':'");
        check(SPEC, &["-n"], "option requires an argument -- 'n'");
        check(SPEC, &["--lines"], "option '--lines' requires an argument");
        check(SPEC, &["--all=1"], "option '--all' doesn't allow an argument");
        check(SPEC, &["--quiet=1"], "unrecognized option '--quiet=1'");
        check(SPEC, &["--li"], "option '--li' is ambiguous; possibilities: '--lines' '--list'");
    }
}
