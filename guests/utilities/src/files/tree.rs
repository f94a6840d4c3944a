//! `tree`: directories drawn.

use std::ffi::OsString;
use std::fs;

use common::getopt::{self, Item, Long, Spec, Value};
use common::number;
use pattern::Fnmatch;

use crate::files::mode;
use crate::io::{self, Out};

struct Options {
    all: bool,
    directories_only: bool,
    full_path: bool,
    no_indent: bool,
    classify: bool,
    modes: bool,
    sizes: bool,
    human: bool,
    directories_first: bool,
    reverse: bool,
    prune: bool,
    no_report: bool,
    ascii: bool,
    level: usize,
    include: Vec<Fnmatch>,
    ignore: Vec<Fnmatch>,
}

const LONG: &[Long] = &[
    ("dirsfirst", Value::No, '\u{1}'),
    ("noreport", Value::No, '\u{2}'),
    ("prune", Value::No, '\u{3}'),
    ("charset", Value::Needs, '\u{4}'),
    ("gitignore", Value::No, '\u{5}'),
    ("version", Value::No, '\u{6}'),
];

/// Runs `tree`.
pub fn tree(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let spec = Spec { short: "aAdfiFhpsrtuL:P:I:nNCQDgqvxlo:", long: LONG };
    let items = match spec.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => {
            warn!("tree: {message}");
            return 1;
        }
    };
    let mut options = Options {
        all: false,
        directories_only: false,
        full_path: false,
        no_indent: false,
        classify: false,
        modes: false,
        sizes: false,
        human: false,
        directories_first: false,
        reverse: false,
        prune: false,
        no_report: false,
        ascii: false,
        level: usize::MAX,
        include: Vec::new(),
        ignore: Vec::new(),
    };
    let patterns =
        |value: Option<Vec<u8>>| value.unwrap_or_default().split(|&byte| byte == b'|').map(Fnmatch::new).collect::<Vec<_>>();
    let mut roots = Vec::new();
    for item in items {
        match item {
            Item::Operand(root) => roots.push(root),
            Item::Opt('a', _) => options.all = true,
            Item::Opt('d', _) => options.directories_only = true,
            Item::Opt('f', _) => options.full_path = true,
            Item::Opt('i', _) => options.no_indent = true,
            Item::Opt('F', _) => options.classify = true,
            Item::Opt('p', _) => options.modes = true,
            Item::Opt('s', _) => options.sizes = true,
            Item::Opt('h', _) => (options.sizes, options.human) = (true, true),
            Item::Opt('r', _) => options.reverse = true,
            Item::Opt('\u{1}', _) => options.directories_first = true,
            Item::Opt('\u{2}', _) => options.no_report = true,
            Item::Opt('\u{3}', _) => options.prune = true,
            Item::Opt('\u{4}', value) => options.ascii = value.is_some_and(|value| value.eq_ignore_ascii_case(b"ascii")),
            Item::Opt('L', value) => match value.as_deref().and_then(number::size).filter(|level| *level > 0) {
                Some(level) => options.level = level,
                None => {
                    warn!("tree: Invalid level, must be greater than 0.");
                    return 1;
                }
            },
            Item::Opt('P', value) => options.include = patterns(value),
            Item::Opt('I', value) => options.ignore = patterns(value),
            Item::Opt(..) => {}
        }
    }
    if roots.is_empty() {
        roots.push(b".".to_vec());
    }
    let mut drawing = Drawing { options: &options, out: Out::new("tree", 1), directories: 0, files: 0 };
    let mut status = 0;
    for root in roots {
        drawing.out.put(&root);
        if fs::metadata(io::path(&root)).is_ok_and(|data| data.is_dir()) {
            drawing.out.byte(b'\n');
            let before = (drawing.directories, drawing.files);
            drawing.children(&root, "", 1);
            // The directory itself counts when something was seen in it.
            drawing.directories += usize::from(before != (drawing.directories, drawing.files));
        } else {
            drawing.out.put(b"  [error opening dir]\n");
            status = 2;
        }
    }
    if !options.no_report {
        let plural = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        let mut report = format!("\n{}", plural(drawing.directories, "directory", "directories"));
        if !options.directories_only {
            report.push_str(&format!(", {}", plural(drawing.files, "file", "files")));
        }
        report.push('\n');
        drawing.out.put(report.as_bytes());
    }
    drawing.out.flush();
    status
}

struct Drawing<'a> {
    options: &'a Options,
    out: Out,
    directories: usize,
    files: usize,
}

struct Entry {
    name: Vec<u8>,
    path: Vec<u8>,
    directory: bool,
    link: Option<Vec<u8>>,
}

impl Drawing<'_> {
    fn entries(&self, directory: &[u8], depth: usize) -> Vec<Entry> {
        let options = self.options;
        let matches = |patterns: &[Fnmatch], name: &[u8]| patterns.iter().any(|pattern| pattern.matches(name));
        let mut entries: Vec<Entry> = fs::read_dir(io::path(directory))
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .filter_map(|child| {
                let name = child.file_name().into_encoded_bytes();
                let path = [directory, if directory.ends_with(b"/") { b"" } else { &b"/"[..] }, &name].concat();
                let kind = child.file_type().ok()?;
                let link = kind.is_symlink().then(|| {
                    fs::read_link(io::path(&path)).map_or_else(|_| Vec::new(), |target| io::path_bytes(&target).to_vec())
                });
                let hidden = name.starts_with(b".") && !options.all;
                let unwanted = matches(&options.ignore, &name)
                    || !options.include.is_empty() && !kind.is_dir() && !matches(&options.include, &name)
                    || options.directories_only && !kind.is_dir();
                (!hidden && !unwanted).then_some(Entry { name, path, directory: kind.is_dir(), link })
            })
            .collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        if options.reverse {
            entries.reverse();
        }
        if options.directories_first {
            entries.sort_by_key(|entry| !entry.directory);
        }
        if options.prune && depth < 64 {
            entries.retain(|entry| !entry.directory || !self.entries(&entry.path, depth + 1).is_empty());
        }
        entries
    }

    fn children(&mut self, directory: &[u8], indent: &str, depth: usize) {
        let options = self.options;
        if depth > options.level {
            return;
        }
        let entries = self.entries(directory, depth);
        let count = entries.len();
        for (index, entry) in entries.into_iter().enumerate() {
            let last = index + 1 == count;
            if !options.no_indent {
                let branch = match (options.ascii, last) {
                    (false, false) => "├── ",
                    (false, true) => "└── ",
                    (true, false) => "|-- ",
                    (true, true) => "`-- ",
                };
                self.out.put(indent.as_bytes());
                self.out.put(branch.as_bytes());
            }
            self.details(&entry);
            self.out.put(if options.full_path { &entry.path } else { &entry.name });
            if options.classify && entry.directory {
                self.out.byte(b'/');
            }
            if let Some(target) = &entry.link {
                self.out.put(b" -> ");
                self.out.put(target);
            }
            self.out.byte(b'\n');
            if entry.directory {
                self.directories += 1;
                let more = match (options.ascii, last) {
                    (_, true) => "    ",
                    (false, false) => "│\u{a0}\u{a0} ",
                    (true, false) => "|   ",
                };
                self.children(&entry.path, &format!("{indent}{more}"), depth + 1);
            } else {
                self.files += 1;
            }
        }
    }

    fn details(&mut self, entry: &Entry) {
        let options = self.options;
        if !options.modes && !options.sizes {
            return;
        }
        let stat = sys::stat(&io::path(&entry.path), false).unwrap_or_default();
        let mut parts = Vec::new();
        if options.modes {
            parts.push(mode::long(stat.mode));
        }
        if options.human {
            parts.push(format!("{:>4}", human(stat.size)));
        } else if options.sizes {
            parts.push(format!("{:>11}", stat.size));
        }
        self.out.put(format!("[{}]  ", parts.join(" ")).as_bytes());
    }
}

fn human(size: u64) -> String {
    let mut value = size as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit < 6 {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        return size.to_string();
    }
    let letter = ['B', 'K', 'M', 'G', 'T', 'P', 'E'][unit];
    if value < 10.0 { format!("{value:.1}{letter}") } else { format!("{value:.0}{letter}") }
}
