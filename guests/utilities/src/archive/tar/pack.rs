//! Making archives and adding to them.

use std::fs;
use std::io::Write;

use super::header::{self, Member};
use super::rename::{self, Scope};
use super::{Options, long_line};
use crate::accounts::Accounts;
use crate::files::mode;
use crate::io::{self, Out, show};

struct Writer<'a> {
    options: &'a Options,
    archive: Vec<u8>,
    accounts: Accounts,
    status: i32,
    links: std::collections::HashMap<(u64, u64), Vec<u8>>,
    told_slash: bool,
    /// The name of the current member before `--transform`.
    unchanged: Vec<u8>,
    /// Where names are listed: standard output unless the archive goes there.
    list: Out,
}

pub(super) fn create(options: &Options, append: bool) -> i32 {
    if options.operands.is_empty() && !options.listed {
        warn!("tar: Cowardly refusing to create an empty archive\nTry 'tar --help' or 'tar --usage' for more information.");
        return 2;
    }
    let mut archive = Vec::new();
    if append && options.file != b"-" {
        archive = match io::read_all(&options.file) {
            Ok(archive) => archive,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                warn!(
                    "tar: {}: Cannot read: {}\ntar: Error is not recoverable: exiting now",
                    show(&options.file),
                    sys::message(&error)
                );
                return 2;
            }
        };
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
        unchanged: Vec::new(),
        list: Out::new("tar", 2),
    };
    for (directory, operand) in &options.operands {
        writer.add(directory, operand);
    }
    writer.list.flush();
    let archive = std::mem::take(&mut writer.archive);
    if let Err(status) = finish(options, archive) {
        return status;
    }
    if writer.status != 0 {
        warn!("tar: Exiting with failure status due to previous errors");
    }
    writer.status
}

/// Ends the archive and writes it where it belongs.
pub(super) fn finish(options: &Options, mut archive: Vec<u8>) -> Result<(), i32> {
    const RECORD: usize = 10_240;
    archive.resize((archive.len() + 1024).div_ceil(RECORD) * RECORD, 0);
    let mut packed = Vec::new();
    let bytes = match options.format {
        Some(format) => match format.compress(&mut archive.as_slice(), &mut packed, 6) {
            Ok(()) => &packed,
            Err(_) => return Err(2),
        },
        None => &archive,
    };
    let written = if options.file == b"-" { sys::write_all(1, bytes) } else { fs::write(io::path(&options.file), bytes) };
    written.map_err(|error| {
        warn!("tar: {}: Cannot open: {}\ntar: Error is not recoverable: exiting now", show(&options.file), sys::message(&error));
        2
    })
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
                warn!("tar: {}: Cannot stat: {}", show(name), sys::message(&error));
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
            user: self.accounts.show_user(stat.uid),
            group: self.accounts.show_group(stat.gid),
            ..Member::default()
        };
        let options = self.options;
        if let Some((uid, user)) = &options.owner {
            (member.uid, member.user) = (*uid, user.clone());
        }
        if let Some((gid, group)) = &options.group {
            (member.gid, member.group) = (*gid, group.clone());
        }
        if let Some(mode) = options.permissions.as_ref().and_then(|text| mode::parse(text, member.mode)) {
            member.mode = mode;
        }
        member.mtime = options.mtime.unwrap_or(member.mtime);
        self.unchanged.clone_from(&member.name);
        if !options.renames.is_empty() {
            member.name = rename::apply(&options.renames, &member.name, Scope::Member);
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
                if self.is_known(&stat, &mut member) {
                    return self.put(&member, &[]);
                }
                member.kind = b'2';
                member.link = fs::read_link(&path).map_or_else(|_| Vec::new(), |target| io::path_bytes(&target).to_vec());
                member.link = rename::apply(&self.options.renames, &member.link, Scope::Symlink);
                self.put(&member, &[]);
                if self.options.remove {
                    let _ = fs::remove_file(&path);
                }
            }
            sys::stat::S_IFREG => {
                if self.is_known(&stat, &mut member) {
                    return self.put(&member, &[]);
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
                        warn!("tar: {}: Cannot open: {}", show(name), sys::message(&error));
                        self.status = 2;
                    }
                }
            }
            sys::stat::S_IFIFO => {
                member.kind = b'6';
                self.put(&member, &[]);
            }
            _ => {}
        }
    }

    /// Returns whether the file is in the archive by another name already: then the member becomes a link to that.
    fn is_known(&mut self, stat: &sys::Stat, member: &mut Member) -> bool {
        if stat.nlink < 2 {
            return false;
        }
        if let Some(first) = self.links.get(&(stat.dev, stat.ino)) {
            member.kind = b'1';
            member.link = rename::apply(&self.options.renames, first, Scope::HardLink);
            return true;
        }
        self.links.insert((stat.dev, stat.ino), self.unchanged.clone());
        false
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
            let line =
                if self.options.verbose > 1 { long_line(member, self.options) } else { [member.name.as_slice(), b"\n"].concat() };
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
