//! `ls`, `dir` and `vdir`: what to list, in which order. How it looks is in `ls/show.rs`.

mod color;
mod show;

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use pattern::Fnmatch;
use sys::Stat;
use sys::stat::{S_IFDIR, S_IFLNK};

use crate::options::{self, Given, May, Needs, No, Spec};
use crate::program::{self, Args, Outcome, bytes, fail, warn};
use crate::quote;
use crate::size::Scale;
use crate::version;

const SPEC: Spec = Spec {
    short: "abcdfghiklmnopqrstuvw:xABCDFGHI:LNQRST:UXZ1",
    long: &[
        ("all", No, 'a'),
        ("almost-all", No, 'A'),
        ("author", No, '\u{10}'),
        ("escape", No, 'b'),
        ("block-size", Needs, '\u{11}'),
        ("ignore-backups", No, 'B'),
        ("color", May, '\u{12}'),
        ("directory", No, 'd'),
        ("dired", No, 'D'),
        ("classify", May, 'F'),
        ("format", Needs, '\u{13}'),
        ("full-time", No, '\u{14}'),
        ("group-directories-first", No, '\u{15}'),
        ("no-group", No, 'G'),
        ("human-readable", No, 'h'),
        ("dereference-command-line", No, 'H'),
        ("dereference-command-line-symlink-to-dir", No, '\u{17}'),
        ("hide", Needs, '\u{18}'),
        ("hyperlink", May, '\u{19}'),
        ("indicator-style", Needs, '\u{1a}'),
        ("inode", No, 'i'),
        ("ignore", Needs, 'I'),
        ("kibibytes", No, 'k'),
        ("dereference", No, 'L'),
        ("numeric-uid-gid", No, 'n'),
        ("literal", No, 'N'),
        ("file-type", No, '\u{1b}'),
        ("hide-control-chars", No, 'q'),
        ("quote-name", No, 'Q'),
        ("quoting-style", Needs, '\u{1d}'),
        ("reverse", No, 'r'),
        ("recursive", No, 'R'),
        ("size", No, 's'),
        ("si", No, '\u{16}'),
        ("show-control-chars", No, '\u{1c}'),
        ("sort", Needs, '\u{1e}'),
        ("time", Needs, '\u{1f}'),
        ("time-style", Needs, '\u{80}'),
        ("tabsize", Needs, 'T'),
        ("width", Needs, 'w'),
        ("context", No, 'Z'),
        ("zero", No, '\u{81}'),
    ],
    help: "[OPTION]... [FILE]...",
};

#[derive(Clone, Copy, PartialEq)]
enum Format {
    Long,
    Single,
    Vertical,
    Across,
    Commas,
}

#[derive(Clone, Copy, PartialEq)]
enum Sort {
    Name,
    None,
    Size,
    Time,
    Version,
    Extension,
    Width,
}

#[derive(Clone, Copy, PartialEq)]
enum Time {
    Modification,
    Access,
    Change,
}

#[derive(Clone, Copy, PartialEq)]
enum Indicator {
    None,
    Slash,
    FileType,
    Classify,
}

#[derive(Clone, Copy, PartialEq)]
enum Quoting {
    Literal,
    Shell,
    ShellAlways,
    ShellEscape,
    ShellEscapeAlways,
    C,
    Escape,
}

struct Settings {
    format: Format,
    sort: Sort,
    time: Time,
    indicator: Indicator,
    quoting: Quoting,
    hide_control: bool,
    all: bool,
    almost_all: bool,
    backups: bool,
    ignore: Vec<Fnmatch>,
    hide: Vec<Fnmatch>,
    directory: bool,
    recursive: bool,
    reverse: bool,
    follow: bool,
    follow_named: bool,
    directories_first: bool,
    owner: bool,
    group: bool,
    author: bool,
    numeric: bool,
    inode: bool,
    blocks: bool,
    /// How file sizes are shown in a long listing.
    file_scale: Scale,
    /// How allocated sizes are shown.
    block_scale: Scale,
    time_style: String,
    width: usize,
    tab: usize,
    color: bool,
    end: u8,
}

/// One thing to list.
struct Entry {
    name: OsString,
    path: PathBuf,
    /// `None` when it could not be looked at, or need not be.
    stat: Option<Stat>,
    /// For links: where to, and what is there.
    target: Option<(OsString, Option<Stat>)>,
}

/// Runs `ls`.
pub fn ls(args: Args) -> Outcome {
    let default = if sys::is_terminal(1) { Format::Vertical } else { Format::Single };
    main(args, default, false)
}

/// Runs `dir`.
pub fn dir(args: Args) -> Outcome {
    main(args, Format::Vertical, true)
}

/// Runs `vdir`.
pub fn vdir(args: Args) -> Outcome {
    main(args, Format::Long, true)
}

fn when(option: &str, value: &OsStr, terminal: bool) -> Result<bool, i32> {
    if value.is_empty() {
        return Ok(true);
    }
    let choices =
        [("always", 0), ("yes", 0), ("force", 0), ("never", 1), ("no", 1), ("none", 1), ("auto", 2), ("tty", 2), ("if-tty", 2)];
    Ok(match options::choose(option, value, &choices)? {
        0 => true,
        1 => false,
        _ => terminal,
    })
}

fn settings(given: &Given, default: Format, escape: bool) -> Result<Settings, i32> {
    let terminal = sys::is_terminal(1);
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|width| *width > 0);
    let mut s = Settings {
        format: default,
        sort: Sort::Name,
        time: Time::Modification,
        indicator: Indicator::None,
        quoting: if escape {
            Quoting::Escape
        } else if terminal {
            Quoting::ShellEscape
        } else {
            Quoting::Literal
        },
        hide_control: terminal && !escape,
        all: false,
        almost_all: false,
        backups: false,
        ignore: Vec::new(),
        hide: Vec::new(),
        directory: false,
        recursive: false,
        reverse: false,
        follow: false,
        follow_named: false,
        directories_first: false,
        owner: true,
        group: true,
        author: false,
        numeric: false,
        inode: false,
        blocks: false,
        file_scale: Scale::Blocks(1),
        block_scale: Scale::Blocks(1024),
        time_style: std::env::var("TIME_STYLE").unwrap_or_default(),
        width: columns.unwrap_or(80),
        tab: 8,
        color: false,
        end: b'\n',
    };
    let mut sorted = false;
    for (letter, value) in &given.options {
        let text = value.to_string_lossy();
        match letter {
            'a' => s.all = true,
            'A' => (s.all, s.almost_all) = (false, true),
            'b' => s.quoting = Quoting::Escape,
            'B' => s.backups = true,
            'c' => s.time = Time::Change,
            'C' => s.format = Format::Vertical,
            'd' => s.directory = true,
            'f' => {
                (s.all, s.sort, sorted) = (true, Sort::None, true);
                if s.format == Format::Long {
                    s.format = if terminal { Format::Vertical } else { Format::Single };
                }
                (s.color, s.blocks) = (false, false);
            }
            'F' => s.indicator = if when("--classify", value, terminal)? { Indicator::Classify } else { s.indicator },
            'g' => (s.format, s.owner) = (Format::Long, false),
            'G' => s.group = false,
            'h' => (s.file_scale, s.block_scale) = (Scale::Human(1024), Scale::Human(1024)),
            'H' => s.follow_named = true,
            'i' => s.inode = true,
            'I' => s.ignore.push(hiding(value)),
            'k' => {}
            'l' => s.format = Format::Long,
            'L' => s.follow = true,
            'm' => s.format = Format::Commas,
            'n' => (s.format, s.numeric) = (Format::Long, true),
            'N' => s.quoting = Quoting::Literal,
            'o' => (s.format, s.group) = (Format::Long, false),
            'p' => s.indicator = Indicator::Slash,
            'q' => s.hide_control = true,
            'Q' => s.quoting = Quoting::C,
            'r' => s.reverse = true,
            'R' => s.recursive = true,
            's' => s.blocks = true,
            'S' => (s.sort, sorted) = (Sort::Size, true),
            't' => (s.sort, sorted) = (Sort::Time, true),
            'u' => s.time = Time::Access,
            'U' => (s.sort, sorted) = (Sort::None, true),
            'v' => (s.sort, sorted) = (Sort::Version, true),
            'x' => s.format = Format::Across,
            'X' => (s.sort, sorted) = (Sort::Extension, true),
            // One per line, unless a long listing already is.
            '1' if s.format != Format::Long => s.format = Format::Single,
            'w' => s.width = text.parse().map_err(|_| fail(format!("invalid line width: {}", quote::plain(value))))?,
            'T' => s.tab = text.parse().map_err(|_| fail(format!("invalid tab size: {}", quote::plain(value))))?,
            '\u{10}' => s.author = true,
            '\u{11}' => {
                let scale =
                    Scale::parse(&text).map_err(|_| fail(format!("invalid --block-size argument {}", quote::plain(value))))?;
                (s.file_scale, s.block_scale) = (scale, scale);
            }
            '\u{12}' => s.color = when("--color", value, terminal)?,
            '\u{13}' => {
                let choices = [
                    ("verbose", Format::Long),
                    ("long", Format::Long),
                    ("commas", Format::Commas),
                    ("horizontal", Format::Across),
                    ("across", Format::Across),
                    ("vertical", Format::Vertical),
                    ("single-column", Format::Single),
                ];
                s.format = options::choose("--format", value, &choices)?;
            }
            '\u{14}' => (s.format, s.time_style) = (Format::Long, "full-iso".into()),
            '\u{15}' => s.directories_first = true,
            '\u{16}' => (s.file_scale, s.block_scale) = (Scale::Human(1000), Scale::Human(1000)),
            '\u{17}' => s.follow_named = true,
            '\u{18}' => s.hide.push(hiding(value)),
            '\u{1a}' => {
                let choices = [
                    ("none", Indicator::None),
                    ("slash", Indicator::Slash),
                    ("file-type", Indicator::FileType),
                    ("classify", Indicator::Classify),
                ];
                s.indicator = options::choose("--indicator-style", value, &choices)?;
            }
            '\u{1b}' => s.indicator = Indicator::FileType,
            '\u{1c}' => s.hide_control = false,
            '\u{1d}' => {
                let choices = [
                    ("literal", Quoting::Literal),
                    ("shell", Quoting::Shell),
                    ("shell-always", Quoting::ShellAlways),
                    ("shell-escape", Quoting::ShellEscape),
                    ("shell-escape-always", Quoting::ShellEscapeAlways),
                    ("c", Quoting::C),
                    ("c-maybe", Quoting::C),
                    ("escape", Quoting::Escape),
                    ("locale", Quoting::C),
                    ("clocale", Quoting::C),
                ];
                s.quoting = options::choose("--quoting-style", value, &choices)?;
            }
            '\u{1e}' => {
                let choices = [
                    ("none", Sort::None),
                    ("time", Sort::Time),
                    ("size", Sort::Size),
                    ("extension", Sort::Extension),
                    ("version", Sort::Version),
                    ("width", Sort::Width),
                ];
                (s.sort, sorted) = (if value == "name" { Sort::Name } else { options::choose("--sort", value, &choices)? }, true);
            }
            '\u{1f}' => {
                let choices = [
                    ("atime", Time::Access),
                    ("access", Time::Access),
                    ("use", Time::Access),
                    ("ctime", Time::Change),
                    ("status", Time::Change),
                    ("mtime", Time::Modification),
                    ("modification", Time::Modification),
                    ("birth", Time::Modification),
                    ("creation", Time::Modification),
                ];
                s.time = options::choose("--time", value, &choices)?;
            }
            '\u{80}' => s.time_style = text.into_owned(),
            '\u{81}' => {
                s.end = 0;
                s.color = false;
                s.quoting = Quoting::Literal;
                s.hide_control = false;
                if s.format != Format::Long {
                    s.format = Format::Single;
                }
            }
            _ => {}
        }
    }
    // `ls -u` alone sorts by the time it would show.
    if !sorted && s.time != Time::Modification && s.format != Format::Long {
        s.sort = Sort::Time;
    }
    if s.format == Format::Long {
        s.time_style = time_style(&s.time_style)?;
    }
    Ok(s)
}

fn time_style(text: &str) -> Result<String, i32> {
    let text = text.strip_prefix("posix-").map_or(text, |_| "locale");
    Ok(match text {
        "" | "locale" => String::new(),
        "full-iso" => "+%Y-%m-%d %H:%M:%S.%N %z".into(),
        "long-iso" => "+%Y-%m-%d %H:%M".into(),
        "iso" => "+%Y-%m-%d \n%m-%d %H:%M".into(),
        text if text.starts_with('+') => text.to_owned(),
        other => {
            warn(format!("invalid argument {} for {}", quote::plain(other), quote::plain("time style")));
            let list = "Valid arguments are:\n  - [posix-]full-iso\n  - [posix-]long-iso\n  - [posix-]iso\n  - [posix-]locale\n  - +FORMAT (e.g., +%H:%M) for a 'date'-style format\n";
            let _ = sys::write_all(2, list.as_bytes());
            program::hint();
            return Err(2);
        }
    })
}

fn main(args: Args, default: Format, escape: bool) -> Outcome {
    program::set_failure(2);
    let given = options::parse(args, &SPEC)?;
    let settings = settings(&given, default, escape)?;
    let mut listing = Listing { show: show::Show::new(&settings), settings, status: 0, first: true };
    listing.run(if given.operands.is_empty() { vec![".".into()] } else { given.operands });
    Ok(listing.status)
}

struct Listing {
    settings: Settings,
    show: show::Show,
    status: i32,
    first: bool,
}

impl Listing {
    fn complain(&mut self, text: String, status: i32) {
        self.show.out.send();
        warn(text);
        self.status = self.status.max(status);
    }

    fn run(&mut self, operands: Vec<OsString>) {
        let several = operands.len() > 1;
        let mut files = Vec::new();
        let mut directories = Vec::new();
        let s = &self.settings;
        // A link to a directory is entered unless the listing is about the link itself.
        let enter_links =
            s.follow || s.follow_named || !(s.format == Format::Long || s.indicator == Indicator::Classify || s.directory);
        for operand in operands {
            let path = PathBuf::from(&operand);
            let own = sys::stat(&path, false);
            let seen = if s.follow || s.follow_named { sys::stat(&path, true).or(own) } else { own };
            match seen {
                Err(error) => {
                    let text = format!("cannot access {}: {}", quote::always(&operand), sys::message(&error));
                    self.show.out.send();
                    warn(text);
                    self.status = 2;
                }
                Ok(stat) => {
                    let through = if stat.kind() == S_IFLNK && enter_links { sys::stat(&path, true).ok() } else { None };
                    let is_directory = stat.kind() == S_IFDIR || through.is_some_and(|stat| stat.kind() == S_IFDIR);
                    let mut entry = Entry { name: operand, path, stat: Some(stat), target: None };
                    if is_directory && !s.directory {
                        entry.stat = through.or(entry.stat);
                        directories.push(entry);
                    } else {
                        look_through(&mut entry);
                        files.push(entry);
                    }
                }
            }
        }
        self.sort(&mut files);
        self.sort(&mut directories);
        if !files.is_empty() {
            self.show.list(&self.settings, &files, false);
            self.first = false;
        }
        let titles = several || self.settings.recursive;
        for directory in directories {
            self.directory(&directory.path, titles, true, &mut Vec::new());
        }
    }

    fn directory(&mut self, path: &Path, title: bool, named: bool, above: &mut Vec<(u64, u64)>) {
        let names = match std::fs::read_dir(path) {
            Ok(entries) => entries.filter_map(Result::ok).map(|entry| entry.file_name()).collect::<Vec<_>>(),
            Err(error) => {
                return self.complain(
                    format!("cannot open directory {}: {}", quote::always(path), sys::message(&error)),
                    if named { 2 } else { 1 },
                );
            }
        };
        if self.settings.recursive
            && let Ok(stat) = sys::stat(path, true)
        {
            if above.contains(&(stat.dev, stat.ino)) {
                return self.complain(format!("{}: not listing already-listed directory", quote::maybe(path.as_os_str())), 2);
            }
            above.push((stat.dev, stat.ino));
        }
        let s = &self.settings;
        let mut entries: Vec<Entry> = Vec::with_capacity(names.len() + 2);
        let dots: &[&str] = if s.all { &[".", ".."] } else { &[] };
        for name in dots.iter().map(OsString::from).chain(names) {
            let text = bytes(&name);
            if !s.all && !s.almost_all && text.starts_with(b".") || s.backups && text.ends_with(b"~") {
                continue;
            }
            let matches = |patterns: &[Fnmatch]| patterns.iter().any(|pattern| pattern.matches(text));
            if matches(&s.ignore) || (!s.all && !s.almost_all && matches(&s.hide)) {
                continue;
            }
            entries.push(Entry { path: path.join(&name), name, stat: None, target: None });
        }
        let needs_stat = s.format == Format::Long
            || s.blocks
            || s.inode
            || s.color
            || s.recursive
            || s.indicator != Indicator::None
            || s.directories_first
            || matches!(s.sort, Sort::Time | Sort::Size);
        if needs_stat {
            let follow = s.follow;
            let mut troubles = Vec::new();
            for entry in &mut entries {
                match sys::stat(&entry.path, follow)
                    .or_else(|error| if follow { sys::stat(&entry.path, false) } else { Err(error) })
                {
                    Ok(stat) => entry.stat = Some(stat),
                    Err(error) => {
                        troubles.push(format!("cannot access {}: {}", quote::always(&entry.path), sys::message(&error)))
                    }
                }
                look_through(entry);
            }
            troubles.into_iter().for_each(|text| self.complain(text, 1));
        }
        self.sort(&mut entries);
        if !std::mem::take(&mut self.first) {
            self.show.out.byte(b'\n');
        }
        if title {
            let text = self.show.quoted(&self.settings, path.as_os_str());
            self.show.out.put(&text);
            self.show.out.put(b":\n");
        }
        self.show.list(&self.settings, &entries, true);
        if self.settings.recursive {
            for entry in entries
                .iter()
                .filter(|entry| entry.stat.is_some_and(|stat| stat.kind() == S_IFDIR) && entry.name != "." && entry.name != "..")
            {
                self.directory(&super::links::join(path, Path::new(&entry.name)), true, false, above);
            }
            above.pop();
        }
    }

    fn sort(&self, entries: &mut [Entry]) {
        let s = &self.settings;
        let name = |a: &Entry, b: &Entry| bytes(&a.name).cmp(bytes(&b.name));
        let time = |entry: &Entry| {
            entry.stat.map_or(0, |stat| match s.time {
                Time::Modification => stat.mtime,
                Time::Access => stat.atime,
                Time::Change => stat.ctime,
            })
        };
        let extension = |entry: &Entry| {
            bytes(&entry.name).iter().rposition(|&byte| byte == b'.').map_or(&b""[..], |at| &bytes(&entry.name)[at..]).to_vec()
        };
        let size = |entry: &Entry| entry.stat.map_or(0, |stat| stat.size);
        let order = |a: &Entry, b: &Entry| -> Ordering {
            match s.sort {
                Sort::None => Ordering::Equal,
                Sort::Name => name(a, b),
                Sort::Size => size(b).cmp(&size(a)).then_with(|| name(a, b)),
                Sort::Time => time(b).cmp(&time(a)).then_with(|| name(a, b)),
                Sort::Version => version::compare(bytes(&a.name), bytes(&b.name)).then_with(|| name(a, b)),
                Sort::Extension => extension(a).cmp(&extension(b)).then_with(|| name(a, b)),
                Sort::Width => a.name.len().cmp(&b.name.len()).then_with(|| name(a, b)),
            }
        };
        entries.sort_by(|a, b| if s.reverse && s.sort != Sort::None { order(b, a) } else { order(a, b) });
        if s.directories_first {
            let is_file = |entry: &Entry| {
                !(entry.stat.is_some_and(|stat| stat.kind() == S_IFDIR)
                    || entry.target.as_ref().and_then(|(_, stat)| *stat).is_some_and(|stat| stat.kind() == S_IFDIR))
            };
            entries.sort_by_key(is_file);
        }
    }
}

fn look_through(entry: &mut Entry) {
    if entry.stat.is_some_and(|stat| stat.kind() == S_IFLNK)
        && let Ok(target) = std::fs::read_link(&entry.path)
    {
        entry.target = Some((target.into_os_string(), sys::stat(&entry.path, true).ok()));
    }
}

/// Returns a pattern of `--ignore` or `--hide`.
fn hiding(pattern: &OsStr) -> Fnmatch {
    Fnmatch::with(bytes(pattern), pattern::Options { period: true, ..pattern::Options::default() })
}
