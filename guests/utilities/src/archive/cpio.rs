//! `cpio`: archives whose members are named on standard input, in the `newc` and `odc` forms.

mod format;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use pattern::Fnmatch;
use sys::stat::{S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG};

use crate::accounts::{self, Accounts};
use crate::files::basename::directory;
use crate::files::mkdir::make_parents;
use crate::files::mode;
use crate::files::touch::set_times;
use crate::options::{self, Given, Needs, No, Spec};
use crate::program::{self, Args, Descriptor, Outcome, Output, bytes, fail, os, set_failure, usage, warn};
use crate::{date, quote};
use format::{Form, Member, Reader};

const SPEC: Spec = Spec {
    short: "itopduvmaLl0nVcBAF:I:O:H:R:D:E:C:",
    long: &[
        ("extract", No, 'i'),
        ("list", No, 't'),
        ("create", No, 'o'),
        ("pass-through", No, 'p'),
        ("make-directories", No, 'd'),
        ("unconditional", No, 'u'),
        ("verbose", No, 'v'),
        ("preserve-modification-time", No, 'm'),
        ("reset-access-time", No, 'a'),
        ("dereference", No, 'L'),
        ("link", No, 'l'),
        ("null", No, '0'),
        ("numeric-uid-gid", No, 'n'),
        ("file", Needs, 'F'),
        ("format", Needs, 'H'),
        ("owner", Needs, 'R'),
        ("directory", Needs, 'D'),
        ("pattern-file", Needs, 'E'),
        ("nonmatching", No, 'f'),
        ("quiet", No, 'q'),
        ("to-stdout", No, 's'),
        ("no-absolute-filenames", No, 'N'),
        ("no-preserve-owner", No, 'P'),
    ],
    help: "-o [OPTION]... < NAMES > ARCHIVE\n  or:  cpio -i [OPTION]... [PATTERN]... < ARCHIVE\n  or:  cpio -p [OPTION]... DIRECTORY < NAMES",
};

/// Members end where a multiple of this begins, and the archive is counted in it.
const BLOCK: u64 = 512;

/// Runs `cpio`.
pub fn main(args: Args) -> Outcome {
    set_failure(2);
    let given = options::parse(args, &SPEC)?;
    let owner = match given.value('R') {
        Some(text) => accounts::owner(text)?,
        None => (None, None),
    };
    let input_file = given.value('F').or(given.value('I')).map(OsString::from);
    let output_file = given.value('F').or(given.value('O')).map(OsString::from);
    let here = |name: OsString| std::path::absolute(&name).map_or(name, PathBuf::into_os_string);
    let (input_file, output_file) = (input_file.map(here), output_file.map(here));
    if let Some(to) = given.value('D') {
        std::env::set_current_dir(to)
            .map_err(|error| fail(format!("cannot change to directory {}: {}", quote::plain(to), sys::message(&error))))?;
    }
    let blocks = if given.has('o') {
        create(&given, owner, output_file.as_ref())?
    } else if given.has('p') {
        let [to] = given.operands.as_slice() else { return Err(usage("You must specify the directory to copy into.")) };
        pass(&given, Path::new(to), owner)?
    } else if given.has('i') || given.has('t') {
        extract(&given, owner, &input_file.unwrap_or_else(|| "-".into()))?
    } else {
        return Err(usage("You must specify one of -oipt options."));
    };
    if !given.has('q') {
        let _ = sys::write_all(2, format!("{} block{}\n", blocks.0, if blocks.0 == 1 { "" } else { "s" }).as_bytes());
    }
    Ok(blocks.1)
}

/// Blocks that went by, and the status.
type Done = Result<(u64, i32), i32>;

/// Returns the names on standard input.
fn names(given: &Given) -> Result<Vec<Vec<u8>>, i32> {
    let text = program::read_all("-".as_ref()).map_err(|error| fail(sys::message(&error)))?;
    let end = if given.has('0') { 0 } else { b'\n' };
    Ok(text.split(|&byte| byte == end).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
}

/// Returns the file called `name` as a member.
fn member(name: &[u8], follow: bool, owner: (Option<u32>, Option<u32>)) -> Result<Member, std::io::Error> {
    let path = PathBuf::from(os(name.to_vec()));
    let stat = sys::stat(&path, follow)?;
    let content = match stat.kind() {
        S_IFREG => program::read_all(path.as_os_str())?,
        S_IFLNK => std::fs::read_link(&path)?.into_os_string().into_encoded_bytes(),
        _ => Vec::new(),
    };
    Ok(Member {
        name: name.to_vec(),
        inode: stat.ino,
        mode: stat.mode,
        uid: owner.0.unwrap_or(stat.uid),
        gid: owner.1.unwrap_or(stat.gid),
        links: stat.nlink,
        time: u32::try_from(stat.mtime / 1_000_000_000).unwrap_or(0),
        content,
    })
}

fn create(given: &Given, owner: (Option<u32>, Option<u32>), to: Option<&OsString>) -> Done {
    let form = match given.value('H').map(bytes) {
        None | Some(b"newc") => Form::New,
        Some(b"crc") => Form::Checked,
        Some(b"odc") => Form::Old,
        Some(other) => {
            return Err(fail(format!("invalid archive format {}; valid formats are:\ncrc newc odc", quote::plain_bytes(other))));
        }
    };
    let mut archive = Vec::new();
    let mut status = 0;
    // All names of one file carry its content once, with the last of them.
    let mut waiting: HashMap<u64, Vec<Member>> = HashMap::new();
    let flush = |links: Vec<Member>, archive: &mut Vec<u8>| {
        let last = links.len().saturating_sub(1);
        for (at, mut member) in links.into_iter().enumerate() {
            if at < last && form != Form::Old {
                member.content.clear();
            }
            member.write(form, archive);
        }
    };
    for name in names(given)? {
        let trimmed = name.strip_prefix(b"./").filter(|rest| !rest.is_empty()).unwrap_or(&name);
        let mut member = match member(&name, given.has('L'), owner) {
            Ok(member) => member,
            Err(error) => {
                warn(format!("{}: Cannot stat: {}", String::from_utf8_lossy(&name), sys::message(&error)));
                status = 2;
                continue;
            }
        };
        member.name = trimmed.to_vec();
        if given.has('v') {
            let _ = sys::write_all(2, &[trimmed, b"\n"].concat());
        }
        if member.links > 1 && member.mode & S_IFMT == S_IFREG {
            let (inode, links) = (member.inode, member.links as usize);
            let list = waiting.entry(inode).or_default();
            list.push(member);
            if list.len() == links {
                flush(waiting.remove(&inode).unwrap_or_default(), &mut archive);
            }
        } else {
            member.write(form, &mut archive);
        }
    }
    let mut left: Vec<Vec<Member>> = waiting.into_values().collect();
    left.sort_by_key(|links| links.first().map(|member| member.inode));
    for links in left {
        flush(links, &mut archive);
    }
    format::end(form, &mut archive);
    let length = archive.len().next_multiple_of(BLOCK as usize);
    archive.resize(length, 0);
    let written = match to {
        Some(to) => Descriptor::create(to).and_then(|mut file| file.write_all(&archive)),
        None => sys::write_all(1, &archive),
    };
    written.map_err(|error| fail(format!("write error: {}", sys::message(&error))))?;
    Ok((length as u64 / BLOCK, status))
}

fn extract(given: &Given, owner: (Option<u32>, Option<u32>), from: &OsString) -> Done {
    let archive = program::read_all(from).map_err(|error| fail(format!("{}: {}", quote::maybe(from), sys::message(&error))))?;
    let mut patterns: Vec<Fnmatch> = given.operands.iter().map(|pattern| Fnmatch::new(bytes(pattern))).collect();
    if let Some(file) = given.value('E') {
        let text = program::read_all(file).map_err(|error| fail(format!("{}: {}", quote::maybe(file), sys::message(&error))))?;
        patterns.extend(text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(Fnmatch::new));
    }
    let listing = given.has('t');
    let names = if given.has('n') { Accounts::none() } else { Accounts::read() };
    let mut out = Output::new();
    let mut writer = Writer::new(given);
    let mut reader = Reader::new(&archive);
    loop {
        let mut member = match reader.next_member() {
            Ok(Some(member)) => member,
            Ok(None) => break,
            Err(trouble) => {
                out.send();
                return Err(fail(trouble));
            }
        };
        let wanted = patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(&member.name));
        if !patterns.is_empty() && wanted == given.has('f') {
            continue;
        }
        member.uid = owner.0.unwrap_or(member.uid);
        member.gid = owner.1.unwrap_or(member.gid);
        match (listing, given.has('v')) {
            (true, true) => list(&member, &names, &mut out),
            (true, false) => out.line(&member.name, b'\n'),
            (false, _) if given.has('s') => out.put(&member.content),
            (false, verbose) => {
                if verbose {
                    let _ = sys::write_all(2, &[&member.name[..], b"\n"].concat());
                }
                writer.put(&member);
            }
        }
    }
    Ok(((reader.position() as u64).div_ceil(BLOCK), writer.finish()))
}

/// Prints a line as `ls -l` does.
fn list(member: &Member, names: &Accounts, out: &mut Output) {
    let time = date::format(b"%b %e %H:%M", i128::from(member.time) * date::SECOND);
    let (user, group) = (names.show_user(member.uid), names.show_group(member.gid));
    let size = member.content.len();
    out.text(format!("{} {:3} {user:<8} {group:<8} {size:8} ", mode::long(member.mode), member.links));
    out.put(&time);
    out.byte(b' ');
    out.put(&member.name);
    if member.mode & S_IFMT == S_IFLNK {
        out.put(b" -> ");
        out.put(&member.content);
    }
    out.byte(b'\n');
}

fn pass(given: &Given, to: &Path, owner: (Option<u32>, Option<u32>)) -> Done {
    let mut writer = Writer::new(given);
    let mut total = 0;
    for name in names(given)? {
        match member(&name, given.has('L'), owner) {
            Ok(mut member) => {
                total += member.content.len() as u64;
                let below = name.iter().position(|&byte| byte != b'/').map_or(&b""[..], |at| &name[at..]);
                let target = to.join(os(below.to_vec()));
                member.name = target.into_os_string().into_encoded_bytes();
                if given.has('v') {
                    let _ = sys::write_all(2, &[&member.name[..], b"\n"].concat());
                }
                writer.put(&member);
            }
            Err(error) => writer.complain(&name, "Cannot stat", &error),
        }
    }
    // Half a block more, as GNU counts what it copies.
    Ok((total.div_ceil(BLOCK), writer.finish()))
}

/// Makes files out of members.
struct Writer {
    make_directories: bool,
    unconditional: bool,
    keep_times: bool,
    links: HashMap<u64, PathBuf>,
    // Set last: what is written into a directory changes its time, and it may not be writable afterwards.
    directories: Vec<(PathBuf, u32, u32)>,
    status: i32,
}

impl Writer {
    fn new(given: &Given) -> Self {
        Self {
            make_directories: given.has('d'),
            unconditional: given.has('u'),
            keep_times: given.has('m'),
            links: HashMap::new(),
            directories: Vec::new(),
            status: 0,
        }
    }

    fn complain(&mut self, name: &[u8], what: &str, error: &std::io::Error) {
        warn(format!("{}: {what}: {}", String::from_utf8_lossy(name), sys::message(error)));
        self.status = 2;
    }

    fn put(&mut self, member: &Member) {
        if let Err(error) = self.try_put(member) {
            self.complain(&member.name, "Cannot open", &error);
        }
    }

    fn try_put(&mut self, member: &Member) -> std::io::Result<()> {
        let path = PathBuf::from(os(member.name.clone()));
        let kind = member.mode & S_IFMT;
        if let Ok(old) = sys::stat(&path, false) {
            if kind == S_IFDIR && old.kind() == S_IFDIR {
                self.directories.push((path, member.mode, member.time));
                return Ok(());
            }
            if !self.unconditional && old.mtime / 1_000_000_000 >= i64::from(member.time) {
                warn(format!("{} not created: newer or same age version exists", String::from_utf8_lossy(&member.name)));
                return Ok(());
            }
            if old.kind() == S_IFDIR { std::fs::remove_dir(&path)? } else { std::fs::remove_file(&path)? }
        }
        let parent = directory(&member.name);
        if self.make_directories && !parent.is_empty() {
            let parent = PathBuf::from(os(parent.to_vec()));
            make_parents(&parent, false, &mut Output::new()).map_err(|(_, error)| error)?;
        }
        match kind {
            S_IFDIR => {
                std::fs::create_dir(&path)?;
                self.directories.push((path, member.mode, member.time));
                return Ok(());
            }
            S_IFLNK => return symlink(&member.content, &path),
            S_IFIFO => sys::mkfifo(&path, 0o666)?,
            _ => self.put_file(member, &path)?,
        }
        sys::chmod(&path, true, member.mode & 0o7777)?;
        if self.keep_times {
            let time = Some(i64::from(member.time) * 1_000_000_000);
            set_times(&path, time, time, true)?;
        }
        Ok(())
    }

    fn put_file(&mut self, member: &Member, path: &Path) -> std::io::Result<()> {
        if member.links > 1 {
            match self.links.get(&member.inode) {
                Some(first) if first != path => std::fs::hard_link(first, path)?,
                Some(_) => {}
                None => drop(self.links.insert(member.inode, path.to_owned())),
            }
            if member.content.is_empty() && path.exists() {
                return Ok(());
            }
        }
        Descriptor::create(path)?.write_all(&member.content)
    }

    fn finish(mut self) -> i32 {
        for (path, mode, time) in std::mem::take(&mut self.directories).into_iter().rev() {
            let time = i64::from(time) * 1_000_000_000;
            let done = sys::chmod(&path, true, mode & 0o7777);
            let done = done.and_then(|()| if self.keep_times { set_times(&path, Some(time), Some(time), true) } else { Ok(()) });
            if let Err(error) = done {
                self.complain(path.as_os_str().as_encoded_bytes(), "Cannot set attributes", &error);
            }
        }
        self.status
    }
}

fn symlink(target: &[u8], path: &Path) -> std::io::Result<()> {
    rustix::fs::symlink(Path::new(&os(target.to_vec())), path).map_err(std::io::Error::from)
}
