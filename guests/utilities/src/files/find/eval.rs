//! Tests and actions of `find` on one file.

use std::fs;
use std::io::Write as _;

use common::printf::Sink as _;

use super::parse::{Access, Expr, Options, Time};
use super::printf::{self, Format, Piece};
use super::{Entry, stat};
use crate::command;
use crate::date;
use crate::files::mode;
use crate::io::{self, Out, show};

/// Bytes of arguments collected for one command of `-exec … +`.
const BATCH_BYTES: usize = 128 * 1024;

pub(super) struct Eval<'a> {
    pub options: &'a Options,
    out: Out,
    files: Vec<fs::File>,
    batches: Vec<Vec<Vec<u8>>>,
    pub prune: bool,
    pub quit: bool,
    status: i32,
}

impl<'a> Eval<'a> {
    pub fn new(options: &'a Options) -> Result<Self, String> {
        let mut files = Vec::new();
        for name in &options.files {
            let file = fs::File::create(io::path(name)).map_err(|error| format!("‘{}’: {}", show(name), sys::message(&error)))?;
            files.push(file);
        }
        Ok(Self {
            options,
            out: Out::new("find", 1),
            files,
            batches: vec![Vec::new(); options.execs.len()],
            prune: false,
            quit: false,
            status: 0,
        })
    }

    pub fn complain(&mut self, message: &str) {
        self.out.flush();
        warn!("find: {message}");
        self.status = 1;
    }

    /// Runs what is left and ends.
    pub fn finish(mut self) -> i32 {
        for index in 0..self.batches.len() {
            self.run_batch(index);
        }
        self.out.flush();
        self.status
    }

    fn emit(&mut self, file: Option<usize>, bytes: &[u8]) {
        match file.and_then(|index| self.files.get_mut(index)) {
            Some(file) => {
                let _ = file.write_all(bytes);
            }
            None => self.out.put(bytes),
        }
    }

    pub fn test(&mut self, expr: &Expr, entry: &Entry) -> bool {
        if self.quit {
            return false;
        }
        match expr {
            Expr::And(left, right) => self.test(left, entry) && self.test(right, entry),
            Expr::Or(left, right) => self.test(left, entry) || self.test(right, entry),
            Expr::List(left, right) => {
                self.test(left, entry);
                self.test(right, entry)
            }
            Expr::Not(inner) => !self.test(inner, entry),
            Expr::True => true,
            Expr::False => false,
            Expr::Prune => {
                self.prune = true;
                true
            }
            Expr::Quit => {
                self.quit = true;
                true
            }
            Expr::Delete => self.delete(entry),
            Expr::Print(end, file) => {
                let mut line = entry.path.clone();
                line.push(*end);
                self.emit(*file, &line);
                true
            }
            Expr::Printf(format, file) => {
                let text = self.format(format, entry);
                self.emit(*file, &text);
                true
            }
            Expr::Long(file) => {
                let text = self.long(entry);
                self.emit(*file, &text);
                true
            }
            Expr::Exec(index) => self.exec(*index, entry),
            _ => self.matches(expr, entry),
        }
    }

    fn matches(&self, expr: &Expr, entry: &Entry) -> bool {
        let stat_is = |test: &dyn Fn(&sys::Stat) -> bool| entry.stat().is_some_and(test);
        match expr {
            Expr::Name(pattern) => pattern.matches(entry.name()),
            Expr::Path(pattern) => pattern.matches(&entry.path),
            Expr::LinkName(pattern) => entry.kind == sys::stat::S_IFLNK && pattern.matches(&link_target(entry)),
            Expr::Regex(regex) => regex.is_match(&entry.path),
            Expr::Type(kinds, other_way) => {
                let kind = if *other_way {
                    match stat(&entry.path, !entry.follow) {
                        Ok(stat) => stat.kind(),
                        Err(_) => return false,
                    }
                } else {
                    entry.kind
                };
                kinds.contains(&type_letter(kind))
            }
            Expr::Size(count, unit) => stat_is(&|stat| count.fits(i128::from(stat.size.div_ceil(*unit)))),
            Expr::Age(time, count, unit) => stat_is(&|stat| {
                let mut now = self.options.now;
                if self.options.day_start {
                    const DAY: i128 = 86_400_000_000_000;
                    now = now.div_euclid(DAY) * DAY + DAY;
                }
                let age = now - moment(stat, *time);
                count.fits(age.div_euclid(*unit))
            }),
            Expr::Newer(time, than) => stat_is(&|stat| moment(stat, *time) > *than),
            Expr::Perm(mode, how) => stat_is(&|stat| {
                let bits = stat.mode & 0o7777;
                match how {
                    b'-' => bits & mode == *mode,
                    b'/' => *mode == 0 || bits & mode != 0,
                    _ => bits == *mode,
                }
            }),
            Expr::User(uid) => stat_is(&|stat| stat.uid == *uid),
            Expr::Group(gid) => stat_is(&|stat| stat.gid == *gid),
            Expr::UserId(count) => stat_is(&|stat| count.fits(i128::from(stat.uid))),
            Expr::GroupId(count) => stat_is(&|stat| count.fits(i128::from(stat.gid))),
            Expr::NoUser => stat_is(&|stat| self.options.accounts.user(stat.uid).is_none()),
            Expr::NoGroup => stat_is(&|stat| self.options.accounts.group(stat.gid).is_none()),
            Expr::Links(count) => stat_is(&|stat| count.fits(i128::from(stat.nlink))),
            Expr::Inode(count) => stat_is(&|stat| count.fits(i128::from(stat.ino))),
            Expr::SameFile(dev, ino) => stat_is(&|stat| stat.dev == *dev && stat.ino == *ino),
            Expr::Empty => match entry.kind {
                sys::stat::S_IFREG => stat_is(&|stat| stat.size == 0),
                sys::stat::S_IFDIR => fs::read_dir(io::path(&entry.path)).is_ok_and(|mut children| children.next().is_none()),
                _ => false,
            },
            Expr::Can(access) => {
                let permission = match access {
                    Access::Read => sys::Permission::Read,
                    Access::Write => sys::Permission::Write,
                    Access::Execute => sys::Permission::Execute,
                };
                sys::accessible(&io::path(&entry.path), permission)
            }
            _ => true,
        }
    }

    fn delete(&mut self, entry: &Entry) -> bool {
        if entry.path == b"." {
            return true;
        }
        let path = io::path(&entry.path);
        let result = if entry.kind == sys::stat::S_IFDIR { fs::remove_dir(&path) } else { fs::remove_file(&path) };
        match result {
            Ok(()) => true,
            Err(error) => {
                self.complain(&format!("cannot delete ‘{}’: {}", show(&entry.path), sys::message(&error)));
                false
            }
        }
    }

    fn exec(&mut self, index: usize, entry: &Entry) -> bool {
        let options = self.options;
        let exec = &options.execs[index];
        let path = if exec.in_directory { [b"./", entry.name()].concat() } else { entry.path.clone() };
        if exec.batch && !exec.in_directory {
            self.batches[index].push(path);
            if self.batches[index].iter().map(|arg| arg.len() + 9).sum::<usize>() > BATCH_BYTES {
                self.run_batch(index);
            }
            return true;
        }
        let mut args: Vec<Vec<u8>> = exec.args.iter().map(|arg| fill(arg, &path)).collect();
        if exec.batch {
            args.push(path);
        }
        if exec.ask && !self.confirm(&args) {
            return false;
        }
        let directory = exec.in_directory.then(|| parent(&entry.path));
        let success = self.run(&args, directory.as_deref());
        if exec.batch {
            self.status |= i32::from(!success);
            return true;
        }
        success
    }

    fn confirm(&mut self, args: &[Vec<u8>]) -> bool {
        self.out.flush();
        let shown: Vec<_> = args.iter().map(|arg| show(arg)).collect();
        let _ = sys::write_all(2, format!("< {} > ? ", shown.join(" ")).as_bytes());
        let mut answer = Vec::new();
        let mut byte = [0];
        while matches!(sys::read(0, &mut byte), Ok(1)) && byte[0] != b'\n' {
            answer.push(byte[0]);
        }
        matches!(answer.first(), Some(b'y' | b'Y'))
    }

    fn run_batch(&mut self, index: usize) {
        let files = std::mem::take(&mut self.batches[index]);
        if files.is_empty() {
            return;
        }
        let mut args = self.options.execs[index].args.clone();
        args.extend(files);
        if !self.run(&args, None) {
            self.status = 1;
        }
    }

    fn run(&mut self, args: &[Vec<u8>], directory: Option<&std::path::Path>) -> bool {
        self.out.flush();
        let started = command::spawn(args, Vec::new(), directory);
        match started.and_then(command::wait) {
            Ok(status) => status == sys::WaitStatus::Exited(0),
            Err(error) => {
                warn!("find: ‘{}’: {}", show(&args[0]), sys::message(&error));
                false
            }
        }
    }

    fn long(&self, entry: &Entry) -> Vec<u8> {
        let Some(stat) = entry.stat() else { return Vec::new() };
        let accounts = &self.options.accounts;
        let seconds = stat.mtime.div_euclid(1_000_000_000);
        let now = (self.options.now / 1_000_000_000) as i64;
        let format: &[u8] = if now - seconds < 15_778_476 && seconds <= now { b"%b %e %H:%M" } else { b"%b %e  %Y" };
        let date = date::format(format, stat.mtime.into());
        let mut line = format!(
            "{:9} {:6} {} {:3} {:<8} {:<8} {:8} {} ",
            stat.ino,
            stat.blocks() / 2,
            mode::long(stat.mode),
            stat.nlink,
            accounts.show_user(stat.uid),
            accounts.show_group(stat.gid),
            stat.size,
            String::from_utf8_lossy(&date),
        )
        .into_bytes();
        line.extend_from_slice(&entry.path);
        if stat.kind() == sys::stat::S_IFLNK {
            line.extend_from_slice(b" -> ");
            line.extend_from_slice(&link_target(entry));
        }
        line.push(b'\n');
        line
    }

    fn format(&self, format: &Format, entry: &Entry) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in &format.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Stop => break,
                Piece::Directive { conversion, letter, time } => {
                    let text = self.directive(*letter, *time, entry);
                    let shown = text.get(..conversion.precision.unwrap_or(usize::MAX)).unwrap_or(&text);
                    if conversion.zero && !conversion.left {
                        out.fill(b'0', conversion.width.saturating_sub(shown.len()));
                        out.put(shown);
                    } else {
                        conversion.padded(shown, shown.len(), &mut out);
                    }
                }
            }
        }
        out
    }

    fn directive(&self, letter: u8, time: u8, entry: &Entry) -> Vec<u8> {
        let accounts = &self.options.accounts;
        let default = sys::Stat::default();
        let needs_stat = !b"pfhPHdyl".contains(&letter);
        let stat = if needs_stat { entry.stat().unwrap_or(&default) } else { &default };
        match letter {
            b'p' => entry.path.clone(),
            b'f' => {
                let end = entry.path.iter().rposition(|&byte| byte != b'/').map_or(0, |at| at + 1);
                let start = memchr::memrchr(b'/', &entry.path[..end]).map_or(0, |at| at + 1);
                entry.path[start..].to_vec()
            }
            b'h' => {
                let path = &entry.path;
                match memchr::memrchr(b'/', path) {
                    Some(0) => b"".to_vec(),
                    Some(at) => path[..at].to_vec(),
                    None => b".".to_vec(),
                }
            }
            b'P' => {
                let rest = &entry.path[entry.start..];
                rest.strip_prefix(b"/").unwrap_or(rest).to_vec()
            }
            b'H' => entry.path[..entry.start].to_vec(),
            b'd' => entry.depth.to_string().into_bytes(),
            b's' => stat.size.to_string().into_bytes(),
            b'm' => format!("{:o}", stat.mode & 0o7777).into_bytes(),
            b'M' => mode::long(stat.mode).into_bytes(),
            b'u' => accounts.show_user(stat.uid).into_bytes(),
            b'U' => stat.uid.to_string().into_bytes(),
            b'g' => accounts.show_group(stat.gid).into_bytes(),
            b'G' => stat.gid.to_string().into_bytes(),
            b'y' => vec![type_letter(entry.kind)],
            b'Y' => {
                if entry.kind == sys::stat::S_IFLNK {
                    match sys::stat(&io::path(&entry.path), true) {
                        Ok(stat) => vec![type_letter(stat.kind())],
                        Err(error) if error.raw_os_error() == Some(sys::errno::ELOOP) => b"L".to_vec(),
                        Err(_) => b"N".to_vec(),
                    }
                } else {
                    vec![type_letter(entry.kind)]
                }
            }
            b'l' => {
                if entry.kind == sys::stat::S_IFLNK {
                    link_target(entry)
                } else {
                    Vec::new()
                }
            }
            b'i' => stat.ino.to_string().into_bytes(),
            b'n' => stat.nlink.to_string().into_bytes(),
            b'b' => stat.blocks().to_string().into_bytes(),
            b'k' => (stat.blocks() / 2).to_string().into_bytes(),
            b'D' => stat.dev.to_string().into_bytes(),
            b'S' => b"1".to_vec(),
            b'F' => b"sandlite".to_vec(),
            b't' => printf::ctime(stat.mtime),
            b'a' => printf::ctime(stat.atime),
            b'c' => printf::ctime(stat.ctime),
            b'T' | b'B' => printf::time(time, stat.mtime),
            b'A' => printf::time(time, stat.atime),
            _ => printf::time(time, stat.ctime),
        }
    }
}

fn fill(template: &[u8], path: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = template;
    while let Some(at) = memchr::memmem::find(rest, b"{}") {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(path);
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
    out
}

fn parent(path: &[u8]) -> std::path::PathBuf {
    let full = std::env::current_dir().unwrap_or_else(|_| "/".into()).join(io::path(path));
    full.parent().map_or_else(|| io::path(b"/"), std::path::Path::to_path_buf)
}

fn link_target(entry: &Entry) -> Vec<u8> {
    fs::read_link(io::path(&entry.path)).map_or_else(|_| Vec::new(), |target| io::path_bytes(&target).to_vec())
}

fn type_letter(kind: u32) -> u8 {
    match kind {
        sys::stat::S_IFDIR => b'd',
        sys::stat::S_IFLNK => b'l',
        sys::stat::S_IFCHR => b'c',
        sys::stat::S_IFIFO => b'p',
        0o060_000 => b'b',
        0o140_000 => b's',
        _ => b'f',
    }
}

fn moment(stat: &sys::Stat, time: Time) -> i128 {
    i128::from(match time {
        Time::Access => stat.atime,
        Time::Change => stat.ctime,
        Time::Modify => stat.mtime,
    })
}
