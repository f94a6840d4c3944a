//! `tar`: making, listing and unpacking archives, compressed or not; `header` knows the format.

mod edit;
mod header;
mod pack;
mod rename;
mod unpack;

use std::ffi::OsString;
use std::io::Read;

use common::getopt::{self, Item, Long, Spec, Value};
use common::number;
use pattern::Fnmatch;

use crate::accounts::Accounts;
use crate::archive::compress::Format;
use crate::date;
use crate::files::mode;
use crate::io::{self, Out, show};
use header::Member;

const LONG: &[Long] = &[
    ("append", Value::No, 'r'),
    ("auto-compress", Value::No, 'a'),
    ("bzip2", Value::No, 'j'),
    ("compare", Value::No, 'd'),
    ("create", Value::No, 'c'),
    ("delete", Value::No, '\u{10}'),
    ("dereference", Value::No, 'h'),
    ("diff", Value::No, 'd'),
    ("directory", Value::Needs, 'C'),
    ("exclude", Value::Needs, '\u{1}'),
    ("exclude-from", Value::Needs, 'X'),
    ("extract", Value::No, 'x'),
    ("file", Value::Needs, 'f'),
    ("files-from", Value::Needs, 'T'),
    ("format", Value::Needs, 'H'),
    ("full-time", Value::No, '\u{11}'),
    ("get", Value::No, 'x'),
    ("group", Value::Needs, '\u{a}'),
    ("gunzip", Value::No, 'z'),
    ("gzip", Value::No, 'z'),
    ("keep-old-files", Value::No, 'k'),
    ("list", Value::No, 't'),
    ("mode", Value::Needs, '\u{b}'),
    ("mtime", Value::Needs, '\u{c}'),
    ("no-recursion", Value::No, '\u{4}'),
    ("no-anchored", Value::No, '\u{3}'),
    ("no-same-owner", Value::No, 'o'),
    ("no-same-permissions", Value::No, '\u{3}'),
    ("no-wildcards", Value::No, '\u{12}'),
    ("null", Value::No, '\u{5}'),
    ("numeric-owner", Value::No, '\u{6}'),
    ("one-file-system", Value::No, '\u{3}'),
    ("overwrite", Value::No, '\u{13}'),
    ("owner", Value::Needs, '\u{d}'),
    ("absolute-names", Value::No, 'P'),
    ("preserve-permissions", Value::No, 'p'),
    ("same-permissions", Value::No, 'p'),
    ("remove-files", Value::No, '\u{e}'),
    ("show-stored-names", Value::No, '\u{14}'),
    ("show-transformed-names", Value::No, '\u{14}'),
    ("skip-old-files", Value::No, '\u{15}'),
    ("sort", Value::Needs, '\u{3}'),
    ("strip-components", Value::Needs, '\u{7}'),
    ("to-stdout", Value::No, 'O'),
    ("touch", Value::No, 'm'),
    ("transform", Value::Needs, '\u{f}'),
    ("unlink-first", Value::No, 'U'),
    ("update", Value::No, 'u'),
    ("use-compress-program", Value::Needs, 'I'),
    ("utc", Value::No, '\u{3}'),
    ("verbatim-files-from", Value::No, '\u{3}'),
    ("verbose", Value::No, 'v'),
    ("version", Value::No, '\u{8}'),
    ("wildcards", Value::No, '\u{9}'),
    ("xform", Value::Needs, '\u{f}'),
    ("xz", Value::No, 'J'),
];

const SPEC: Spec = Spec { short: "aAb:cC:df:g:hH:iI:jJkK:lmMN:oOpPrRsStT:uUvV:wWxX:zZ", long: LONG };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Create,
    Append,
    Extract,
    List,
    Compare,
    Delete,
}

/// The options of the command line.
struct Options {
    mode: Option<Mode>,
    file: Vec<u8>,
    format: Option<Format>,
    auto: bool,
    verbose: u8,
    to_stdout: bool,
    keep_old: bool,
    touch: bool,
    absolute: bool,
    dereference: bool,
    preserve: bool,
    recurse: bool,
    numeric: bool,
    wildcards: bool,
    /// Whether the operands of `--exclude` are patterns.
    patterns: bool,
    overwrite: bool,
    skip_old: bool,
    full_time: bool,
    show_changed: bool,
    /// Whether names were given, be it none, with `-T`.
    listed: bool,
    strip: usize,
    exclude: Vec<Vec<u8>>,
    renames: Vec<rename::Rename>,
    /// Attributes of new members that replace those of their files.
    owner: Option<(u32, String)>,
    group: Option<(u32, String)>,
    permissions: Option<String>,
    mtime: Option<i64>,
    remove: bool,
    /// Operands, each with the directory it is relative to.
    operands: Vec<(Vec<u8>, Vec<u8>)>,
    directory: Vec<u8>,
}

/// Runs `tar`.
pub fn tar(args: Vec<OsString>) -> i32 {
    let args = match dashed(&getopt::bytes(args)) {
        Ok(args) => args,
        Err(letter) => return usage(&format!("Old option '{}' requires an argument.", char::from(letter))),
    };
    let items = match SPEC.parse(&args) {
        Ok(items) => items,
        Err(message) => {
            usage(&message);
            return BAD_OPTION;
        }
    };
    let mut options = match configure(items) {
        Ok(options) => options,
        Err(status) => return status,
    };
    let Some(mode) = options.mode else {
        return usage("You must specify one of the '-Acdtrux', '--delete' or '--test-label' options");
    };
    if options.auto && options.format.is_none() && mode == Mode::Create {
        options.format = by_suffix(&options.file);
    }
    match mode {
        Mode::Create | Mode::Append => pack::create(&options, mode == Mode::Append),
        Mode::Extract | Mode::List => unpack::unpack(&options, mode == Mode::List),
        Mode::Compare => edit::compare(&options),
        Mode::Delete => edit::delete(&options),
    }
}

/// Status of an option that there is not: `EX_USAGE`.
const BAD_OPTION: i32 = 64;

fn usage(message: &str) -> i32 {
    warn!("tar: {message}\nTry 'tar --help' or 'tar --usage' for more information.");
    2
}

/// Returns the format that a compressing program writes.
fn by_program(command: &[u8]) -> Result<Format, i32> {
    let word = command.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    let name = word.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    match name {
        b"gzip" | b"pigz" | b"gunzip" | b"zcat" => Ok(Format::Gzip),
        b"bzip2" | b"pbzip2" | b"lbzip2" | b"bunzip2" => Ok(Format::Bzip2),
        b"xz" | b"pixz" | b"unxz" => Ok(Format::Xz),
        _ => {
            warn!(
                "tar ({}): Cannot exec: No such file or directory\ntar: Error is not recoverable: exiting now\n\
                 hint: the sandbox's tar compresses with gzip, bzip2 and xz",
                show(command)
            );
            Err(2)
        }
    }
}

fn by_suffix(file: &[u8]) -> Option<Format> {
    for (suffix, format) in [
        (".gz", Format::Gzip),
        (".tgz", Format::Gzip),
        (".bz2", Format::Bzip2),
        (".tbz2", Format::Bzip2),
        (".xz", Format::Xz),
        (".txz", Format::Xz),
        (".lzma", Format::Lzma),
        (".tlz", Format::Lzma),
    ] {
        if file.ends_with(suffix.as_bytes()) {
            return Some(format);
        }
    }
    None
}

/// Old style (`tar xzf file`) written with dashes.
fn dashed(args: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, u8> {
    let Some(first) = args.get(1).filter(|first| !first.starts_with(b"-") && !first.is_empty()) else {
        return Ok(args.get(1..).unwrap_or_default().to_vec());
    };
    let mut out = Vec::new();
    let mut values = args[2..].iter();
    for &letter in first {
        out.push(vec![b'-', letter]);
        if b"bCfgHIKNTVX".contains(&letter) {
            out.push(values.next().ok_or(letter)?.clone());
        }
    }
    out.extend(values.cloned());
    Ok(out)
}

fn configure(items: Vec<Item>) -> Result<Options, i32> {
    let mut options = Options {
        mode: None,
        file: b"-".to_vec(),
        format: None,
        auto: false,
        verbose: 0,
        to_stdout: false,
        keep_old: false,
        touch: false,
        absolute: false,
        dereference: false,
        preserve: false,
        recurse: true,
        numeric: false,
        wildcards: false,
        patterns: true,
        overwrite: false,
        skip_old: false,
        full_time: false,
        show_changed: false,
        listed: false,
        strip: 0,
        exclude: Vec::new(),
        renames: Vec::new(),
        owner: None,
        group: None,
        permissions: None,
        mtime: None,
        remove: false,
        operands: Vec::new(),
        directory: Vec::new(),
    };
    let mut null = false;
    for item in items {
        let (letter, value) = match item {
            Item::Operand(operand) => {
                options.operands.push((options.directory.clone(), operand));
                continue;
            }
            Item::Opt(letter, value) => (letter, value.unwrap_or_default()),
        };
        let mode = match letter {
            'c' => Some(Mode::Create),
            'r' | 'u' | 'A' => Some(Mode::Append),
            'x' => Some(Mode::Extract),
            't' => Some(Mode::List),
            'd' => Some(Mode::Compare),
            '\u{10}' => Some(Mode::Delete),
            _ => None,
        };
        if let Some(mode) = mode {
            if options.mode.is_some_and(|old| old != mode) {
                return Err(usage("You may not specify more than one '-Acdtrux', '--delete' or  '--test-label' option"));
            }
            options.mode = Some(mode);
            continue;
        }
        match letter {
            'f' => options.file = value,
            'z' => options.format = Some(Format::Gzip),
            'j' => options.format = Some(Format::Bzip2),
            'J' => options.format = Some(Format::Xz),
            'I' => options.format = Some(by_program(&value)?),
            'a' => options.auto = true,
            'v' => options.verbose += 1,
            'O' => options.to_stdout = true,
            'k' => options.keep_old = true,
            'm' => options.touch = true,
            'P' => options.absolute = true,
            'h' => options.dereference = true,
            'p' => options.preserve = true,
            'C' => {
                options.directory = if options.directory.is_empty() || value.starts_with(b"/") {
                    value
                } else {
                    [options.directory.as_slice(), b"/", &value].concat()
                }
            }
            'T' | 'X' => match io::read_all(&value) {
                Ok(text) => {
                    let end = if null { 0 } else { b'\n' };
                    let names = text.split(|&byte| byte == end).filter(|name| !name.is_empty());
                    options.listed |= letter == 'T';
                    if letter == 'X' {
                        options.exclude.extend(names.map(<[u8]>::to_vec));
                    } else {
                        options.operands.extend(names.map(|name| (options.directory.clone(), name.to_vec())));
                    }
                }
                Err(error) => {
                    warn!(
                        "tar: {}: Cannot open: {}\ntar: Error is not recoverable: exiting now",
                        show(&value),
                        sys::message(&error)
                    );
                    return Err(2);
                }
            },
            '\u{1}' => options.exclude.push(value),
            '\u{4}' => options.recurse = false,
            '\u{5}' => null = true,
            '\u{6}' => options.numeric = true,
            '\u{7}' => match number::size(&value) {
                Some(count) => options.strip = count,
                None => return Err(usage(&format!("{}: Invalid number of elements", show(&value)))),
            },
            '\u{8}' => {
                let mut out = Out::new("tar", 2);
                out.put(b"tar (GNU tar) 1.34\n");
                out.flush();
                return Err(0);
            }
            '\u{9}' => (options.wildcards, options.patterns) = (true, true),
            '\u{11}' => options.full_time = true,
            '\u{12}' => (options.wildcards, options.patterns) = (false, false),
            '\u{13}' => options.overwrite = true,
            '\u{14}' => options.show_changed = true,
            '\u{15}' => options.skip_old = true,
            '\u{a}' => options.group = Some(account(&value, |accounts, name| accounts.gid(name), Accounts::show_group)?),
            '\u{d}' => options.owner = Some(account(&value, |accounts, name| accounts.uid(name), Accounts::show_user)?),
            '\u{b}' => {
                let text = show(&value).into_owned();
                if mode::parse(&text, 0).is_none() {
                    return Err(usage("Invalid mode given on option"));
                }
                options.permissions = Some(text);
            }
            '\u{c}' => options.mtime = Some(moment(&value)?),
            '\u{e}' => options.remove = true,
            '\u{f}' => options.renames.extend(rename::parse(&value).map_err(|message| usage(&message))?),
            _ => {}
        }
    }
    Ok(options)
}

/// Returns the number and name of `NAME`, `NAME:NUMBER` or `NUMBER`.
fn account(
    value: &[u8],
    find: impl Fn(&Accounts, &str) -> Option<u32>,
    name_of: impl Fn(&Accounts, u32) -> String,
) -> Result<(u32, String), i32> {
    let text = show(value).into_owned();
    let accounts = Accounts::read();
    if let Some((name, number)) = text.split_once(':')
        && let Ok(number) = number.parse()
    {
        return Ok((number, name.to_string()));
    }
    if let Some(number) = find(&accounts, &text) {
        return Ok((number, text));
    }
    match text.trim_start_matches('+').parse() {
        Ok(number) => Ok((number, name_of(&accounts, number))),
        Err(_) => Err(usage(&format!("‘{text}’: Invalid owner or group name"))),
    }
}

/// Returns the time that `--mtime` names: a date, or the file whose time it is.
fn moment(value: &[u8]) -> Result<i64, i32> {
    if value.starts_with(b"/") || value.starts_with(b".") {
        return sys::stat(&io::path(value), true).map(|stat| stat.mtime.div_euclid(1_000_000_000)).map_err(|error| {
            warn!("tar: {}: Cannot stat: {}", show(value), sys::message(&error));
            2
        });
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_nanos() as i128);
    let found = date::parse(&show(value), now);
    found
        .map(|moment| moment.div_euclid(1_000_000_000) as i64)
        .ok_or_else(|| usage(&format!("Unknown date format ‘{}’", show(value))))
}

impl Options {
    /// Returns the path of an operand as this process sees it.
    fn locate(directory: &[u8], name: &[u8]) -> Vec<u8> {
        if directory.is_empty() || name.starts_with(b"/") { name.to_vec() } else { [directory, b"/", name].concat() }
    }

    fn excluded(&self, name: &[u8]) -> bool {
        let options = pattern::Options { leading_dir: true, ..pattern::Options::default() };
        self.exclude.iter().any(|pattern| {
            let pattern = pattern.strip_suffix(b"/").unwrap_or(pattern);
            if !self.patterns {
                let inside = |name: &[u8]| name.strip_prefix(pattern).is_some_and(|rest| rest.is_empty() || rest[0] == b'/');
                return inside(name) || (0..name.len()).any(|at| name[at] == b'/' && inside(&name[at + 1..]));
            }
            Fnmatch::with(pattern, options).matches_tail(name)
        })
    }
}

/// Returns `-rw-r--r-- user/group size date name`.
fn long_line(member: &Member, options: &Options) -> Vec<u8> {
    let type_bits = match member.kind {
        b'5' => 0o040_000,
        b'2' => 0o120_000,
        b'6' => 0o010_000,
        _ => 0o100_000,
    };
    let mut mode = mode::long(type_bits | member.mode & 0o7777);
    if member.kind == b'1' {
        mode.replace_range(..1, "h");
    }
    let owner = if options.numeric || member.user.is_empty() {
        format!("{}/{}", member.uid, member.gid)
    } else {
        format!("{}/{}", member.user, member.group)
    };
    let size = member.size.to_string();
    let width = 19usize.saturating_sub(owner.len() + 1).max(size.len());
    let date = date::format(
        if options.full_time { b"%Y-%m-%d %H:%M:%S" } else { b"%Y-%m-%d %H:%M" },
        i128::from(member.mtime) * date::SECOND,
    );
    let mut line = format!("{mode} {owner} {size:>width$} ").into_bytes();
    line.extend_from_slice(&date);
    line.push(b' ');
    line.extend_from_slice(&member.name);
    match member.kind {
        b'2' => line.extend_from_slice(&[b" -> ", member.link.as_slice()].concat()),
        b'1' => line.extend_from_slice(&[b" link to ", member.link.as_slice()].concat()),
        _ => {}
    }
    line.push(b'\n');
    line
}

/// Returns the archive's bytes behind whatever compression it has.
fn open(options: &Options) -> Result<Box<dyn Read>, String> {
    let mut input = io::Input::open(&options.file)
        .map_err(|error| format!("{}: Cannot open: {}", show(&options.file), sys::message(&error)))?;
    let mut head = vec![0; 6];
    let mut filled = 0;
    while filled < head.len() {
        match io::read_some(&mut input, &mut head[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) => return Err(format!("{}: Cannot read: {}", show(&options.file), sys::message(&error))),
        }
    }
    head.truncate(filled);
    let detected = Format::detect(&head);
    if let Some(wanted) = options.format
        && detected != Some(wanted)
    {
        let name = match wanted {
            Format::Gzip => "gzip: stdin: not in gzip format",
            Format::Bzip2 => "bzip2: (stdin) is not a bzip2 file.",
            Format::Xz | Format::Lzma => "xz: (stdin): File format not recognized",
        };
        let blank = if wanted == Format::Gzip { "\n" } else { "" };
        warn!("{blank}{name}");
        return Err("Child returned status 1".to_string());
    }
    let whole = std::io::Cursor::new(head).chain(input);
    Ok(match detected {
        Some(format) => format.reader(whole),
        None => Box::new(std::io::BufReader::with_capacity(io::BLOCK, whole)),
    })
}
