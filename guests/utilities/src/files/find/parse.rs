//! The expression of `find`: tests, actions and operators.

use std::rc::Rc;

use common::number;
use pattern::Fnmatch;
use posix_regex::{Around, Regex, Syntax};

use super::printf::Format;
use crate::accounts::Accounts;
use crate::date;
use crate::files::mode;
use crate::io::{self, show};

type Result<T> = std::result::Result<T, String>;

/// `+n`, `-n`, `n`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Count {
    More(i128),
    Less(i128),
    Exactly(i128),
}

impl Count {
    pub fn fits(self, value: i128) -> bool {
        match self {
            Self::More(than) => value > than,
            Self::Less(than) => value < than,
            Self::Exactly(wanted) => value == wanted,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    Access,
    Change,
    Modify,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    Execute,
}

#[derive(Debug)]
pub(super) struct Exec {
    pub args: Vec<Vec<u8>>,
    pub batch: bool,
    pub in_directory: bool,
    pub ask: bool,
}

#[derive(Debug)]
pub(super) enum Expr {
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    List(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    True,
    False,
    Name(Fnmatch),
    Path(Fnmatch),
    LinkName(Fnmatch),
    Regex(Rc<Regex>),
    Type(Vec<u8>, bool),
    Size(Count, u64),
    Age(Time, Count, i128),
    Newer(Time, i128),
    Perm(u32, u8),
    User(u32),
    Group(u32),
    UserId(Count),
    GroupId(Count),
    NoUser,
    NoGroup,
    Links(Count),
    Inode(Count),
    SameFile(u64, u64),
    Empty,
    Can(Access),
    Prune,
    Quit,
    Delete,
    Print(u8, Option<usize>),
    Printf(Format, Option<usize>),
    Long(Option<usize>),
    Exec(usize),
}

#[derive(Debug)]
pub(super) struct Options {
    pub follow: bool,
    pub follow_operands: bool,
    pub depth_first: bool,
    pub max_depth: usize,
    pub min_depth: usize,
    pub one_device: bool,
    pub now: i128,
    pub day_start: bool,
    pub execs: Vec<Exec>,
    pub files: Vec<Vec<u8>>,
    pub accounts: Accounts,
    extended: Option<bool>,
}

impl Options {
    pub fn new() -> Self {
        Self {
            follow: false,
            follow_operands: false,
            depth_first: false,
            max_depth: usize::MAX,
            min_depth: 0,
            one_device: false,
            now: sys::now_ns(),
            day_start: false,
            execs: Vec::new(),
            files: Vec::new(),
            accounts: Accounts::read(),
            extended: None,
        }
    }
}

pub(super) struct Parser<'a> {
    args: &'a [Vec<u8>],
    at: usize,
    options: &'a mut Options,
    acts: bool,
}

/// Parses everything after the paths.
pub(super) fn parse(args: &[Vec<u8>], options: &mut Options) -> Result<Expr> {
    let mut parser = Parser { args, at: 0, options, acts: false };
    if args.is_empty() {
        return Ok(Expr::Print(b'\n', None));
    }
    let expr = parser.list()?;
    if parser.at < args.len() {
        if args[parser.at] == b")" {
            return Err("you have too many ')'".to_string());
        }
        return Err(format!("paths must precede expression: `{}'", show(&args[parser.at])));
    }
    if parser.acts {
        return Ok(expr);
    }
    Ok(Expr::And(Box::new(expr), Box::new(Expr::Print(b'\n', None))))
}

impl Parser<'_> {
    fn peek(&self) -> Option<&[u8]> {
        self.args.get(self.at).map(Vec::as_slice)
    }

    fn accept(&mut self, words: &[&[u8]]) -> bool {
        let found = self.peek().is_some_and(|word| words.contains(&word));
        self.at += usize::from(found);
        found
    }

    fn operand_follows(&self, operator: &str) -> Result<()> {
        match self.peek() {
            None | Some(b")") => Err(format!("expected an expression after '{operator}'")),
            Some(_) => Ok(()),
        }
    }

    fn list(&mut self) -> Result<Expr> {
        let mut left = self.or()?;
        while self.accept(&[b","]) {
            self.operand_follows(",")?;
            let right = self.or()?;
            left = Expr::List(Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn or(&mut self) -> Result<Expr> {
        let mut left = self.and()?;
        while let Some(word @ (b"-o" | b"-or")) = self.peek() {
            let word = show(word).into_owned();
            self.at += 1;
            self.operand_follows(&word)?;
            let right = self.and()?;
            left = Expr::Or(Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr> {
        let mut left = self.not()?;
        loop {
            match self.peek() {
                None | Some(b"-o" | b"-or" | b"," | b")") => return Ok(left),
                Some(word @ (b"-a" | b"-and")) => {
                    let word = show(word).into_owned();
                    self.at += 1;
                    self.operand_follows(&word)?;
                }
                Some(_) => {}
            }
            let right = self.not()?;
            left = Expr::And(Box::new(left), Box::new(right));
        }
    }

    fn not(&mut self) -> Result<Expr> {
        if let Some(word @ (b"!" | b"-not")) = self.peek() {
            let word = show(word).into_owned();
            self.at += 1;
            self.operand_follows(&word)?;
            return Ok(Expr::Not(Box::new(self.not()?)));
        }
        self.primary()
    }

    fn value(&mut self, name: &str) -> Result<Vec<u8>> {
        match self.args.get(self.at) {
            Some(value) => {
                self.at += 1;
                Ok(value.clone())
            }
            None => Err(format!("missing argument to `{name}'")),
        }
    }

    fn text(&mut self, name: &str) -> Result<String> {
        Ok(show(&self.value(name)?).into_owned())
    }

    fn count(&mut self, name: &str) -> Result<Count> {
        let text = self.text(name)?;
        count(&text).ok_or_else(|| format!("invalid argument `{text}' to `{name}'"))
    }

    fn depth(&mut self, name: &str) -> Result<usize> {
        let text = self.text(name)?;
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(text.parse().unwrap_or(usize::MAX));
        }
        Err(format!("Expected a positive decimal integer argument to {name}, but got ‘{text}’"))
    }

    fn output_file(&mut self, name: &str) -> Result<Option<usize>> {
        let file = self.value(name)?;
        self.options.files.push(file);
        Ok(Some(self.options.files.len() - 1))
    }

    #[expect(clippy::too_many_lines, reason = "one arm per predicate")]
    fn primary(&mut self) -> Result<Expr> {
        let Some(word) = self.peek() else { return Err("missing expression".to_string()) };
        let name = show(word).into_owned();
        self.at += 1;
        if name == "(" {
            if self.peek().is_none() {
                return Err("invalid expression; expected to find a ')' but didn't see one. Perhaps you need an extra predicate after '('".to_string());
            }
            if self.peek() == Some(b")") {
                return Err("invalid expression; empty parentheses are not allowed.".to_string());
            }
            let inner = self.list()?;
            if !self.accept(&[b")"]) {
                return Err("invalid expression; I was expecting to find a ')' somewhere but did not see one.".to_string());
            }
            return Ok(inner);
        }
        let acts = matches!(
            name.as_str(),
            "-print"
                | "-print0"
                | "-printf"
                | "-fprint"
                | "-fprint0"
                | "-fprintf"
                | "-ls"
                | "-fls"
                | "-exec"
                | "-execdir"
                | "-ok"
                | "-okdir"
                | "-delete"
                | "-quit"
        );
        self.acts |= acts && name != "-quit";
        const MINUTE: i128 = 60_000_000_000;
        Ok(match name.as_str() {
            "-name" => Expr::Name(self.glob(&name, false)?),
            "-iname" => Expr::Name(self.glob(&name, true)?),
            "-path" | "-wholename" => Expr::Path(self.glob(&name, false)?),
            "-ipath" | "-iwholename" => Expr::Path(self.glob(&name, true)?),
            "-lname" => Expr::LinkName(self.glob(&name, false)?),
            "-ilname" => Expr::LinkName(self.glob(&name, true)?),
            "-regex" | "-iregex" => self.regex(&name)?,
            "-regextype" => {
                let kind = self.text(&name)?;
                self.options.extended = match kind.as_str() {
                    "findutils-default" | "emacs" => None,
                    "ed" | "grep" | "posix-basic" | "posix-minimal-basic" | "sed" => Some(false),
                    "gnu-awk" | "posix-awk" | "awk" | "posix-egrep" | "egrep" | "posix-extended" => Some(true),
                    _ => {
                        return Err(format!(
                            "Unknown regular expression type ‘{kind}’; valid types are ‘findutils-default’, ‘ed’, ‘emacs’, ‘gnu-awk’, ‘grep’, ‘posix-awk’, ‘awk’, ‘posix-basic’, ‘posix-egrep’, ‘egrep’, ‘posix-extended’, ‘posix-minimal-basic’, ‘sed’."
                        ));
                    }
                };
                Expr::True
            }
            "-type" | "-xtype" => {
                let kinds = self.text(&name)?;
                for kind in kinds.split(',') {
                    if kind.is_empty() {
                        return Err(format!(
                            "Last file type in list argument to {name} is missing, i.e., list is ending on: ','"
                        ));
                    }
                    if kind.len() > 1 {
                        return Err(format!("Must separate multiple arguments to {name} using: ','"));
                    }
                    if !"bcdpflsD".contains(kind) {
                        return Err(format!("Unknown argument to {name}: {kind}"));
                    }
                }
                Expr::Type(kinds.bytes().filter(|byte| *byte != b',').collect(), name == "-xtype")
            }
            "-size" => self.size()?,
            "-empty" => Expr::Empty,
            "-mtime" => Expr::Age(Time::Modify, self.count(&name)?, 1440 * MINUTE),
            "-atime" => Expr::Age(Time::Access, self.count(&name)?, 1440 * MINUTE),
            "-ctime" => Expr::Age(Time::Change, self.count(&name)?, 1440 * MINUTE),
            "-mmin" => Expr::Age(Time::Modify, self.count(&name)?, MINUTE),
            "-amin" => Expr::Age(Time::Access, self.count(&name)?, MINUTE),
            "-cmin" => Expr::Age(Time::Change, self.count(&name)?, MINUTE),
            "-newer" => Expr::Newer(Time::Modify, self.reference(&name, 'm')?),
            "-anewer" => Expr::Newer(Time::Access, self.reference(&name, 'm')?),
            "-cnewer" => Expr::Newer(Time::Change, self.reference(&name, 'm')?),
            "-perm" => self.perm()?,
            "-user" => {
                let user = self.text(&name)?;
                let uid = self.options.accounts.uid(&user).or_else(|| user.parse().ok());
                Expr::User(uid.ok_or_else(|| format!("‘{user}’ is not the name of a known user"))?)
            }
            "-group" => {
                let group = self.text(&name)?;
                let gid = self.options.accounts.gid(&group).or_else(|| group.parse().ok());
                Expr::Group(gid.ok_or_else(|| format!("‘{group}’ is not the name of an existing group"))?)
            }
            "-uid" => Expr::UserId(self.count(&name)?),
            "-gid" => Expr::GroupId(self.count(&name)?),
            "-nouser" => Expr::NoUser,
            "-nogroup" => Expr::NoGroup,
            "-links" => Expr::Links(self.count(&name)?),
            "-inum" => Expr::Inode(self.count(&name)?),
            "-samefile" => {
                let file = self.value(&name)?;
                let stat = sys::stat(&io::path(&file), self.options.follow);
                let stat = stat.map_err(|error| format!("‘{}’: {}", show(&file), sys::message(&error)))?;
                Expr::SameFile(stat.dev, stat.ino)
            }
            "-readable" => Expr::Can(Access::Read),
            "-writable" => Expr::Can(Access::Write),
            "-executable" => Expr::Can(Access::Execute),
            "-true" => Expr::True,
            "-false" => Expr::False,
            "-prune" => Expr::Prune,
            "-quit" => Expr::Quit,
            "-delete" => {
                self.options.depth_first = true;
                Expr::Delete
            }
            "-print" => Expr::Print(b'\n', None),
            "-print0" => Expr::Print(0, None),
            "-fprint" => Expr::Print(b'\n', self.output_file(&name)?),
            "-fprint0" => Expr::Print(0, self.output_file(&name)?),
            "-printf" => Expr::Printf(Format::parse(&self.value(&name)?), None),
            "-fprintf" => {
                let file = self.output_file(&name)?;
                Expr::Printf(Format::parse(&self.value(&name)?), file)
            }
            "-ls" => Expr::Long(None),
            "-fls" => Expr::Long(self.output_file(&name)?),
            "-exec" | "-execdir" | "-ok" | "-okdir" => self.exec(&name)?,
            "-depth" | "-d" => {
                self.options.depth_first = true;
                Expr::True
            }
            "-maxdepth" => {
                self.options.max_depth = self.depth(&name)?;
                Expr::True
            }
            "-mindepth" => {
                self.options.min_depth = self.depth(&name)?;
                Expr::True
            }
            "-xdev" | "-mount" => {
                self.options.one_device = true;
                Expr::True
            }
            "-follow" => {
                self.options.follow = true;
                Expr::True
            }
            "-daystart" => {
                self.options.day_start = true;
                Expr::True
            }
            "-noleaf" | "-ignore_readdir_race" | "-noignore_readdir_race" | "-warn" | "-nowarn" => Expr::True,
            "-o" | "-or" | "-a" | "-and" | "," => {
                return Err(format!("invalid expression; you have used a binary operator '{name}' with nothing before it."));
            }
            ")" => return Err("invalid expression; you have too many ')'".to_string()),
            other => match other.strip_prefix("-newer") {
                Some(kinds) if kinds.len() == 2 => self.newer(&name, kinds)?,
                _ if other.starts_with('-') => return Err(format!("unknown predicate `{other}'")),
                _ => return Err(format!("paths must precede expression: `{other}'")),
            },
        })
    }

    fn newer(&mut self, name: &str, kinds: &str) -> Result<Expr> {
        let mut letters = kinds.chars();
        let time = match letters.next() {
            Some('a') => Time::Access,
            Some('c') => Time::Change,
            Some('m' | 'B') => Time::Modify,
            _ => return Err(format!("unknown predicate `{name}'")),
        };
        let than = letters.next().unwrap_or('m');
        if than == 't' {
            let text = self.text(name)?;
            let moment = date::parse(&text, self.options.now);
            return Ok(Expr::Newer(
                time,
                moment.ok_or_else(|| format!("I cannot figure out how to interpret ‘{text}’ as a date or time"))?,
            ));
        }
        Ok(Expr::Newer(time, self.reference(name, than)?))
    }

    fn reference(&mut self, name: &str, kind: char) -> Result<i128> {
        let file = self.value(name)?;
        let stat = sys::stat(&io::path(&file), true).map_err(|error| format!("‘{}’: {}", show(&file), sys::message(&error)))?;
        Ok(i128::from(match kind {
            'a' => stat.atime,
            'c' => stat.ctime,
            _ => stat.mtime,
        }))
    }

    fn glob(&mut self, name: &str, ignore_case: bool) -> Result<Fnmatch> {
        Ok(Fnmatch::with(&self.value(name)?, pattern::Options { ignore_case, ..pattern::Options::default() }))
    }

    fn regex(&mut self, name: &str) -> Result<Expr> {
        let pattern = self.value(name)?;
        let (pattern, extended) = match self.options.extended {
            Some(extended) => (pattern, extended),
            None => (posix_regex::from_emacs(&pattern), false),
        };
        let utf8 = common::locale::utf8();
        let syntax = Syntax { extended, ignore_case: name == "-iregex", utf8, ..Syntax::default() };
        let regex = Regex::any_of(&[pattern], syntax, Around::Line)?;
        Ok(Expr::Regex(Rc::new(regex)))
    }

    fn size(&mut self) -> Result<Expr> {
        let text = self.text("-size")?;
        let (digits, unit) = match text.chars().last() {
            Some('c') => (&text[..text.len() - 1], 1),
            Some('w') => (&text[..text.len() - 1], 2),
            Some('b') => (&text[..text.len() - 1], 512),
            Some('k') => (&text[..text.len() - 1], 1 << 10),
            Some('M') => (&text[..text.len() - 1], 1 << 20),
            Some('G') => (&text[..text.len() - 1], 1 << 30),
            Some(last) if !last.is_ascii_digit() => return Err(format!("invalid -size type `{last}'")),
            _ => (text.as_str(), 512),
        };
        let count = count(digits).ok_or_else(|| format!("Invalid argument `{text}' to -size"))?;
        Ok(Expr::Size(count, unit))
    }

    fn perm(&mut self) -> Result<Expr> {
        let text = self.text("-perm")?;
        let (how, mode) = match text.chars().next() {
            Some('-') => (b'-', &text[1..]),
            Some('/') => (b'/', &text[1..]),
            _ => (b'=', text.as_str()),
        };
        let mode = mode::parse(mode, 0).ok_or_else(|| format!("invalid mode ‘{text}’"))?;
        Ok(Expr::Perm(mode, how))
    }

    fn exec(&mut self, name: &str) -> Result<Expr> {
        let mut args: Vec<Vec<u8>> = Vec::new();
        loop {
            let Some(arg) = self.args.get(self.at) else { return Err(format!("missing argument to `{name}'")) };
            self.at += 1;
            let plus = arg == b"+" && args.last().is_some_and(|last| last == b"{}");
            if arg == b";" || plus {
                if args.is_empty() {
                    return Err(format!("invalid argument `;' to `{name}'"));
                }
                if plus {
                    args.pop();
                    if args.is_empty() {
                        return Err(format!("invalid argument `+' to `{name}'"));
                    }
                    if args.iter().any(|arg| memchr::memmem::find(arg, b"{}").is_some()) {
                        return Err(format!("Only one instance of {{}} is supported with {name} ... +"));
                    }
                }
                let exec = Exec { args, batch: plus, in_directory: name.ends_with("dir"), ask: name.starts_with("-ok") };
                self.options.execs.push(exec);
                return Ok(Expr::Exec(self.options.execs.len() - 1));
            }
            args.push(arg.clone());
        }
    }
}

fn count(text: &str) -> Option<Count> {
    let digits = text.trim_start_matches(['+', '-']);
    if digits.len() + 1 < text.len() {
        return None;
    }
    let value =
        number::parse::<f64>(digits.as_bytes()).filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))?;
    let value = value as i128;
    Some(match text.as_bytes()[0] {
        b'+' => Count::More(value),
        b'-' => Count::Less(value),
        _ => Count::Exactly(value),
    })
}
