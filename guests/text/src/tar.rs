//! `tar`: making, listing and unpacking archives, compressed or not; `header` knows the format.

mod header;
mod rename;
mod unpack;

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};

use crate::accounts::Accounts;
use crate::compress::Format;
use crate::getopt::{self, Item, Long, Spec, Value};
use crate::io::{self, Out, show};
use crate::{glob, warn};
use header::Member;

const LONG: &[Long] = &[
    ("append", Value::No, 'r'),
    ("auto-compress", Value::No, 'a'),
    ("bzip2", Value::No, 'j'),
    ("create", Value::No, 'c'),
    ("dereference", Value::No, 'h'),
    ("directory", Value::Yes, 'C'),
    ("exclude", Value::Yes, '\u{1}'),
    ("exclude-from", Value::Yes, 'X'),
    ("extract", Value::No, 'x'),
    ("file", Value::Yes, 'f'),
    ("files-from", Value::Yes, 'T'),
    ("get", Value::No, 'x'),
    ("group", Value::Yes, '\u{a}'),
    ("gunzip", Value::No, 'z'),
    ("gzip", Value::No, 'z'),
    ("keep-old-files", Value::No, 'k'),
    ("list", Value::No, 't'),
    ("mode", Value::Yes, '\u{b}'),
    ("mtime", Value::Yes, '\u{c}'),
    ("no-recursion", Value::No, '\u{4}'),
    ("no-same-owner", Value::No, 'o'),
    ("no-same-permissions", Value::No, '\u{3}'),
    ("null", Value::No, '\u{5}'),
    ("numeric-owner", Value::No, '\u{6}'),
    ("overwrite", Value::No, '\u{3}'),
    ("owner", Value::Yes, '\u{d}'),
    ("absolute-names", Value::No, 'P'),
    ("preserve-permissions", Value::No, 'p'),
    ("same-permissions", Value::No, 'p'),
    ("remove-files", Value::No, '\u{e}'),
    ("sort", Value::Yes, '\u{3}'),
    ("strip-components", Value::Yes, '\u{7}'),
    ("to-stdout", Value::No, 'O'),
    ("touch", Value::No, 'm'),
    ("transform", Value::Yes, '\u{f}'),
    ("update", Value::No, 'u'),
    ("verbose", Value::No, 'v'),
    ("version", Value::No, '\u{8}'),
    ("wildcards", Value::No, '\u{9}'),
    ("xform", Value::Yes, '\u{f}'),
    ("xz", Value::No, 'J'),
];

const SPEC: Spec = Spec { short: "aAb:cC:f:g:hiI:jJkK:lmMN:oOpPrRsStT:uUvV:wWxX:zZ", long: LONG };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Create,
    Append,
    Extract,
    List,
}

/// What the command line says.
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
    strip: usize,
    exclude: Vec<Vec<u8>>,
    renames: Vec<rename::Rename>,
    /// What new members have instead of what their files have.
    owner: Option<(u32, String)>,
    group: Option<(u32, String)>,
    permissions: Option<String>,
    mtime: Option<i64>,
    remove: bool,
    /// Operands, each with the directory it is relative to.
    operands: Vec<(Vec<u8>, Vec<u8>)>,
    directory: Vec<u8>,
}

/// `tar`.
pub fn tar(args: Vec<OsString>) -> i32 {
    let args = dashed(&getopt::bytes(args));
    let items = match SPEC.parse(&args) {
        Ok(items) => items,
        Err(message) => return usage(&message),
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
        Mode::Create | Mode::Append => create(&options, mode == Mode::Append),
        Mode::Extract | Mode::List => unpack::unpack(&options, mode == Mode::List),
    }
}

fn usage(message: &str) -> i32 {
    warn!("tar: {message}\nTry 'tar --help' or 'tar --usage' for more information.");
    2
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
fn dashed(args: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let Some(first) = args.get(1).filter(|first| !first.starts_with(b"-") && !first.is_empty()) else {
        return args.get(1..).unwrap_or_default().to_vec();
    };
    let mut out = Vec::new();
    let mut values = args[2..].iter();
    for &letter in first {
        out.push(vec![b'-', letter]);
        if b"bCfgIKNTVX".contains(&letter)
            && let Some(value) = values.next()
        {
            out.push(value.clone());
        }
    }
    out.extend(values.cloned());
    out
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
        match letter {
            'c' => options.mode = Some(Mode::Create),
            'r' | 'u' | 'A' => options.mode = Some(Mode::Append),
            'x' => options.mode = Some(Mode::Extract),
            't' => options.mode = Some(Mode::List),
            'f' => options.file = value,
            'z' => options.format = Some(Format::Gzip),
            'j' => options.format = Some(Format::Bzip2),
            'J' => options.format = Some(Format::Xz),
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
                        io::strerror(&error)
                    );
                    return Err(2);
                }
            },
            '\u{1}' => options.exclude.push(value),
            '\u{4}' => options.recurse = false,
            '\u{5}' => null = true,
            '\u{6}' => options.numeric = true,
            '\u{7}' => match getopt::number(&value) {
                Some(count) => options.strip = count,
                None => return Err(usage(&format!("{}: Invalid number of elements", show(&value)))),
            },
            '\u{8}' => {
                let mut out = Out::new("tar", 2);
                out.put(b"tar (GNU tar) 1.34\n");
                out.flush();
                return Err(0);
            }
            '\u{9}' => options.wildcards = true,
            '\u{a}' => options.group = Some(account(&value, |accounts, name| accounts.gid(name), Accounts::group)?),
            '\u{d}' => options.owner = Some(account(&value, |accounts, name| accounts.uid(name), Accounts::user)?),
            '\u{b}' => {
                let text = show(&value).into_owned();
                if crate::accounts::parse_mode(&text, 0).is_none() {
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

/// The number and name of `NAME`, `NAME:NUMBER` or `NUMBER`.
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

/// The time that `--mtime` names: a date, or the file whose time it is.
fn moment(value: &[u8]) -> Result<i64, i32> {
    if value.starts_with(b"/") || value.starts_with(b".") {
        return sys::stat(&io::path(value), true).map(|stat| stat.mtime.div_euclid(1_000_000_000)).map_err(|error| {
            warn!("tar: {}: Cannot stat: {}", show(value), io::strerror(&error));
            2
        });
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_nanos() as i128);
    let found = crate::find::date::parse(&show(value), now);
    found
        .map(|moment| moment.div_euclid(1_000_000_000) as i64)
        .ok_or_else(|| usage(&format!("Unknown date format ‘{}’", show(value))))
}

impl Options {
    /// The path of an operand as this process sees it.
    fn locate(directory: &[u8], name: &[u8]) -> Vec<u8> {
        if directory.is_empty() || name.starts_with(b"/") { name.to_vec() } else { [directory, b"/", name].concat() }
    }

    fn excluded(&self, name: &[u8]) -> bool {
        let options = glob::Options { leading_dir: true, ..glob::Options::default() };
        self.exclude.iter().any(|pattern| {
            let pattern = pattern.strip_suffix(b"/").unwrap_or(pattern);
            glob::matches(pattern, name, options)
                || (0..name.len()).any(|at| name[at] == b'/' && glob::matches(pattern, &name[at + 1..], options))
        })
    }
}

/// `-rw-r--r-- user/group size date name`.
fn long_line(member: &Member, numeric: bool) -> Vec<u8> {
    let type_bits = match member.kind {
        b'5' => 0o040_000,
        b'2' => 0o120_000,
        _ => 0o100_000,
    };
    let mut mode = crate::accounts::mode_text(type_bits | member.mode & 0o7777);
    if member.kind == b'1' {
        mode.replace_range(..1, "h");
    }
    let owner = if numeric || member.user.is_empty() {
        format!("{}/{}", member.uid, member.gid)
    } else {
        format!("{}/{}", member.user, member.group)
    };
    let size = member.size.to_string();
    let width = 19usize.saturating_sub(owner.len() + 1).max(size.len());
    let date = crate::time::strftime(b"%Y-%m-%d %H:%M", member.mtime);
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

struct Writer<'a> {
    options: &'a Options,
    archive: Vec<u8>,
    accounts: Accounts,
    status: i32,
    links: std::collections::HashMap<(u64, u64), Vec<u8>>,
    told_slash: bool,
    /// Where names are listed: standard output unless the archive goes there.
    list: Out,
}

fn create(options: &Options, append: bool) -> i32 {
    if options.operands.is_empty() {
        warn!("tar: Cowardly refusing to create an empty archive\nTry 'tar --help' or 'tar --usage' for more information.");
        return 2;
    }
    let mut archive = Vec::new();
    if append && options.file != b"-" {
        archive = io::read_all(&options.file).unwrap_or_default();
        while archive.len() >= 512 && archive[archive.len() - 512..].iter().all(|&byte| byte == 0) {
            archive.truncate(archive.len() - 512);
        }
    }
    let mut writer = Writer {
        options,
        archive,
        accounts: Accounts::read(),
        status: 0,
        links: std::collections::HashMap::new(),
        told_slash: false,
        list: Out::new("tar", 2),
    };
    for (directory, operand) in &options.operands {
        writer.add(directory, operand);
    }
    const RECORD: usize = 10_240;
    let length = (writer.archive.len() + 1024).div_ceil(RECORD) * RECORD;
    writer.archive.resize(length, 0);
    writer.list.flush();
    let mut packed = Vec::new();
    let bytes = match options.format {
        Some(format) => match format.compress(&mut writer.archive.as_slice(), &mut packed, 6) {
            Ok(()) => &packed,
            Err(_) => return 2,
        },
        None => &writer.archive,
    };
    let written = if options.file == b"-" { sys::write_all(1, bytes) } else { fs::write(io::path(&options.file), bytes) };
    if let Err(error) = written {
        warn!("tar: {}: Cannot open: {}\ntar: Error is not recoverable: exiting now", show(&options.file), io::strerror(&error));
        return 2;
    }
    if writer.status != 0 {
        warn!("tar: Exiting with failure status due to previous errors");
    }
    writer.status
}

impl Writer<'_> {
    fn add(&mut self, directory: &[u8], name: &[u8]) {
        if self.options.excluded(name) {
            return;
        }
        let location = Options::locate(directory, name);
        let path = io::path(&location);
        let stat = match sys::stat(&path, self.options.dereference) {
            Ok(stat) => stat,
            Err(error) => {
                warn!("tar: {}: Cannot stat: {}", show(name), io::strerror(&error));
                self.status = 2;
                return;
            }
        };
        let mut stored = name.to_vec();
        if !self.options.absolute && stored.starts_with(b"/") {
            if !self.told_slash {
                warn!("tar: Removing leading `/' from member names");
                self.told_slash = true;
            }
            let start = stored.iter().position(|&byte| byte != b'/').unwrap_or(stored.len());
            stored.drain(..start);
            if stored.is_empty() {
                stored = b"./".to_vec();
            }
        }
        let mut member = Member {
            name: stored,
            mode: stat.mode & 0o7777,
            uid: stat.uid,
            gid: stat.gid,
            mtime: stat.mtime.div_euclid(1_000_000_000),
            kind: b'0',
            user: self.accounts.user(stat.uid),
            group: self.accounts.group(stat.gid),
            ..Member::default()
        };
        let options = self.options;
        if let Some((uid, user)) = &options.owner {
            (member.uid, member.user) = (*uid, user.clone());
        }
        if let Some((gid, group)) = &options.group {
            (member.gid, member.group) = (*gid, group.clone());
        }
        if let Some(mode) = options.permissions.as_ref().and_then(|text| crate::accounts::parse_mode(text, member.mode)) {
            member.mode = mode;
        }
        member.mtime = options.mtime.unwrap_or(member.mtime);
        if !options.renames.is_empty() {
            member.name = rename::apply(&options.renames, &member.name, false);
        }
        match stat.kind() {
            sys::stat::S_IFDIR => {
                if !member.name.ends_with(b"/") {
                    member.name.push(b'/');
                }
                member.kind = b'5';
                self.put(&member, &[]);
                if self.options.recurse {
                    self.children(directory, name, &path);
                }
                if self.options.remove {
                    let _ = fs::remove_dir(&path);
                }
            }
            sys::stat::S_IFLNK => {
                member.kind = b'2';
                member.link = fs::read_link(&path).map_or_else(|_| Vec::new(), |target| io::path_bytes(&target).to_vec());
                member.link = rename::apply(&self.options.renames, &member.link, true);
                self.put(&member, &[]);
                if self.options.remove {
                    let _ = fs::remove_file(&path);
                }
            }
            sys::stat::S_IFREG => {
                if stat.nlink > 1 {
                    if let Some(first) = self.links.get(&(stat.dev, stat.ino)) {
                        member.kind = b'1';
                        member.link = first.clone();
                        return self.put(&member, &[]);
                    }
                    self.links.insert((stat.dev, stat.ino), member.name.clone());
                }
                match io::read_all(if location == b"-" { b"./-" } else { &location }) {
                    Ok(content) => {
                        member.size = content.len() as u64;
                        self.put(&member, &content);
                        if self.options.remove {
                            let _ = fs::remove_file(&path);
                        }
                    }
                    Err(error) => {
                        warn!("tar: {}: Cannot open: {}", show(name), io::strerror(&error));
                        self.status = 2;
                    }
                }
            }
            _ => {}
        }
    }

    fn children(&mut self, directory: &[u8], name: &[u8], path: &std::path::Path) {
        let Ok(children) = fs::read_dir(path) else { return };
        let mut names: Vec<Vec<u8>> =
            children.filter_map(Result::ok).map(|child| child.file_name().into_encoded_bytes()).collect();
        names.sort();
        for child in names {
            let mut full = name.to_vec();
            if !full.ends_with(b"/") {
                full.push(b'/');
            }
            full.extend_from_slice(&child);
            self.add(directory, &full);
        }
    }

    fn put(&mut self, member: &Member, content: &[u8]) {
        if self.options.verbose > 0 {
            let line = if self.options.verbose > 1 {
                long_line(member, self.options.numeric)
            } else {
                [member.name.as_slice(), b"\n"].concat()
            };
            if self.options.file == b"-" {
                let _ = sys::write_all(2, &line);
            } else {
                let _ = self.list.write_all(&line);
            }
        }
        self.archive.extend_from_slice(&header::encode(member));
        self.archive.extend_from_slice(content);
        header::pad(&mut self.archive);
    }
}

/// The archive's bytes behind whatever compression it has.
fn open(options: &Options) -> Result<Box<dyn Read>, String> {
    let mut input = io::Input::open(&options.file)
        .map_err(|error| format!("{}: Cannot open: {}", show(&options.file), io::strerror(&error)))?;
    let mut head = vec![0; 6];
    let mut filled = 0;
    while filled < head.len() {
        match io::read_some(&mut input, &mut head[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) => return Err(format!("{}: Cannot read: {}", show(&options.file), io::strerror(&error))),
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
