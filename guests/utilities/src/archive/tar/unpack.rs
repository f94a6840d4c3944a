//! Listing and unpacking.

use std::fs;
use std::io::Read;

use super::header::{self, Member};
use super::rename::Scope;
use super::{Options, long_line, open};
use crate::files::basename::without_directories;
use crate::io::{self, Out, show};

pub(super) fn unpack(options: &Options, list: bool) -> i32 {
    let archive = match open(options) {
        Ok(archive) => archive,
        Err(message) => {
            warn!("tar: {message}\ntar: Error is not recoverable: exiting now");
            return 2;
        }
    };
    if !options.directory.is_empty() && !list && !fs::metadata(io::path(&options.directory)).is_ok_and(|data| data.is_dir()) {
        warn!(
            "tar: {}: Cannot open: No such file or directory\ntar: Error is not recoverable: exiting now",
            show(&options.directory)
        );
        return 2;
    }
    let mut unpacking = Unpacking {
        options,
        archive,
        out: Out::new("tar", 2),
        status: 0,
        used: vec![false; options.operands.len()],
        directories: Vec::new(),
        told_slash: false,
    };
    let ended = unpacking.members(list);
    unpacking.finish_directories();
    unpacking.out.flush();
    if let Err(message) = ended {
        warn!("tar: {message}");
        unpacking.status = 2;
        if message.starts_with("Unexpected EOF") || message.starts_with("This does not") {
            warn!(
                "tar: {}",
                if message.starts_with("This") {
                    "Exiting with failure status due to previous errors"
                } else {
                    "Error is not recoverable: exiting now"
                }
            );
            return 2;
        }
    }
    for ((_, operand), used) in options.operands.iter().zip(&unpacking.used) {
        if !used {
            warn!("tar: {}: Not found in archive", show(operand));
            unpacking.status = 2;
        }
    }
    if unpacking.status != 0 {
        warn!("tar: Exiting with failure status due to previous errors");
    }
    unpacking.status
}

struct Unpacking<'a> {
    options: &'a Options,
    archive: Box<dyn Read>,
    out: Out,
    status: i32,
    used: Vec<bool>,
    /// Directories whose mode and time are set at the end, when nothing more is put into them.
    directories: Vec<(Vec<u8>, u32, i64)>,
    told_slash: bool,
}

impl Unpacking<'_> {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        let mut filled = 0;
        while filled < buffer.len() {
            match io::read_some(&mut self.archive, &mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(_) => return Err("Unexpected EOF in archive".to_string()),
            }
        }
        Ok(filled)
    }

    fn content(&mut self, size: u64) -> Result<Vec<u8>, String> {
        // More than any archive holds.
        let Ok(length) = usize::try_from(size) else { return Err("Unexpected EOF in archive".to_string()) };
        let padded = size.div_ceil(512).saturating_mul(512);
        let mut bytes = Vec::new();
        let mut left = padded;
        let mut chunk = vec![0; io::BLOCK];
        while left > 0 {
            let most = left.min(chunk.len() as u64) as usize;
            let read = self.fill(&mut chunk[..most])?;
            if read == 0 {
                return Err("Unexpected EOF in archive".to_string());
            }
            bytes.extend_from_slice(&chunk[..read]);
            left -= read as u64;
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    fn members(&mut self, list: bool) -> Result<(), String> {
        let (mut name, mut link, mut pax) = (None, None, None);
        let mut first = true;
        loop {
            let mut block = [0; 512];
            let read = self.fill(&mut block)?;
            if read == 0 {
                return Ok(());
            }
            if read < 512 {
                return Err(if first { "This does not look like a tar archive" } else { "Unexpected EOF in archive" }.to_string());
            }
            let mut member = match header::decode(&block) {
                Ok(Some(member)) => member,
                Ok(None) => return Ok(()),
                Err(()) => return Err("This does not look like a tar archive".to_string()),
            };
            first = false;
            match member.kind {
                b'L' => name = Some(cut(self.content(member.size)?)),
                b'K' => link = Some(cut(self.content(member.size)?)),
                b'x' => pax = Some(self.content(member.size)?),
                b'g' => drop(self.content(member.size)?),
                _ => {
                    if let Some(long) = name.take() {
                        member.name = long;
                    }
                    if let Some(long) = link.take() {
                        member.link = long;
                    }
                    if let Some(records) = pax.take() {
                        header::apply_pax(&mut member, &records);
                    }
                    self.member(member, list)?;
                }
            }
        }
    }

    fn wanted(&mut self, name: &[u8]) -> bool {
        if self.options.excluded(name) {
            return false;
        }
        if self.options.operands.is_empty() {
            return true;
        }
        let mut wanted = false;
        let bare = name.strip_suffix(b"/").unwrap_or(name);
        for (index, (_, operand)) in self.options.operands.iter().enumerate() {
            let operand = operand.strip_suffix(b"/").unwrap_or(operand);
            let inside = bare.strip_prefix(operand).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"));
            let options = pattern::Options { leading_dir: true, ..pattern::Options::default() };
            if inside || self.options.wildcards && pattern::fnmatch(operand, bare, options) {
                self.used[index] = true;
                wanted = true;
            }
        }
        wanted
    }

    fn member(&mut self, mut member: Member, list: bool) -> Result<(), String> {
        let content = if member.kind == b'0' || member.kind == b'7' { self.content(member.size)? } else { Vec::new() };
        if !self.wanted(&member.name) {
            return Ok(());
        }
        let verbose = self.options.verbose;
        if list {
            if self.options.show_changed && !self.changed(&mut member) {
                return Ok(());
            }
            let line = if verbose > 0 { long_line(&member, self.options) } else { [member.name.as_slice(), b"\n"].concat() };
            self.out.put(&line);
            return Ok(());
        }
        let mut shown = member.clone();
        if !self.changed(&mut member) {
            return Ok(());
        }
        if self.options.show_changed {
            shown = member.clone();
        }
        if verbose > 0 {
            let line = if verbose > 1 { long_line(&shown, self.options) } else { [shown.name.as_slice(), b"\n"].concat() };
            if self.options.to_stdout {
                let _ = sys::write_all(2, &line);
            } else {
                self.out.put(&line);
            }
        }
        if self.options.to_stdout {
            self.out.put(&content);
            return Ok(());
        }
        self.extract(&member, &content);
        Ok(())
    }

    /// Changes the names as `--strip-components` and `--transform` say; false when nothing is left of them.
    fn changed(&self, member: &mut Member) -> bool {
        let Options { strip: count, renames, .. } = self.options;
        if *count > 0 {
            match without_directories(&member.name, *count).map(<[u8]>::to_vec) {
                Some(name) => member.name = name,
                None => return false,
            }
            if member.kind == b'1'
                && let Some(link) = without_directories(&member.link, *count).map(<[u8]>::to_vec)
            {
                member.link = link;
            }
        }
        if !renames.is_empty() {
            member.name = super::rename::apply(renames, &member.name, Scope::Member);
            match member.kind {
                b'1' => member.link = super::rename::apply(renames, &member.link, Scope::HardLink),
                b'2' => member.link = super::rename::apply(renames, &member.link, Scope::Symlink),
                _ => {}
            }
        }
        !member.name.is_empty()
    }

    fn complain(&mut self, name: &[u8], what: &str, error: &std::io::Error) {
        self.out.flush();
        warn!("tar: {}: {what}: {}", show(name), sys::message(error));
        self.status = 2;
    }

    fn extract(&mut self, member: &Member, content: &[u8]) {
        let mut name = member.name.clone();
        if !self.options.absolute {
            if name.starts_with(b"/") {
                if !self.told_slash {
                    warn!("tar: Removing leading `/' from member names");
                    self.told_slash = true;
                }
                let start = name.iter().position(|&byte| byte != b'/').unwrap_or(name.len());
                name.drain(..start);
            }
            if name.split(|&byte| byte == b'/').any(|part| part == b"..") {
                warn!("tar: {}: Member name contains '..'", show(&name));
                self.status = 2;
                return;
            }
        }
        let location = Options::locate(&self.options.directory, &name);
        let path = io::path(&location);
        if let Some(parent) = path.parent()
            && !parent.as_os_str().is_empty()
        {
            let _ = fs::create_dir_all(parent);
        }
        let exists = sys::stat(&path, false).ok();
        match member.kind {
            b'5' => {
                let there = exists.is_some_and(|stat| stat.kind() == sys::stat::S_IFDIR);
                if !there && let Err(error) = fs::create_dir(&path) {
                    return self.complain(&name, "Cannot mkdir", &error);
                }
                self.directories.push((location, member.mode, member.mtime));
                return;
            }
            _ if self.options.skip_old && exists.is_some() => return,
            _ if self.options.keep_old && exists.is_some() => {
                let error = std::io::Error::from_raw_os_error(sys::errno::EEXIST);
                return self.complain(&name, "Cannot open", &error);
            }
            _ => {}
        }
        if exists.is_some_and(|stat| stat.kind() == sys::stat::S_IFDIR) {
            let _ = fs::remove_dir(&path);
        } else if exists.is_some() && !self.options.overwrite {
            let _ = fs::remove_file(&path);
        }
        match member.kind {
            b'2' => {
                if let Err(error) = symlink(&member.link, &path) {
                    let what = format!("Cannot create symlink to '{}'", show(&member.link));
                    self.complain(&name, &what, &error);
                }
            }
            b'6' => {
                let done = sys::mkfifo(&path, 0o666).and_then(|()| sys::chmod(&path, true, self.mode(member.mode)));
                if let Err(error) = done {
                    self.complain(&name, "Cannot mkfifo", &error);
                }
            }
            b'1' => {
                let target = Options::locate(&self.options.directory, &member.link);
                if let Err(error) = fs::hard_link(io::path(&target), &path) {
                    let what = format!("Cannot hard link to '{}'", show(&member.link));
                    self.complain(&name, &what, &error);
                }
            }
            _ => {
                if let Err(error) = fs::write(&path, content) {
                    return self.complain(&name, "Cannot open", &error);
                }
                let _ = sys::chmod(&path, true, self.mode(member.mode));
                if !self.options.touch {
                    set_time(&path, member.mtime);
                }
            }
        }
    }

    fn mode(&self, mode: u32) -> u32 {
        if self.options.preserve || sys::user_ids()[0] == 0 {
            return mode & 0o7777;
        }
        let mask = sys::umask(0);
        let _ = sys::umask(mask);
        mode & 0o777 & !mask
    }

    fn finish_directories(&mut self) {
        for (location, mode, mtime) in std::mem::take(&mut self.directories).into_iter().rev() {
            let path = io::path(&location);
            let _ = sys::chmod(&path, true, self.mode(mode));
            if !self.options.touch {
                set_time(&path, mtime);
            }
        }
    }
}

fn cut(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(end) = memchr::memchr(0, &bytes) {
        bytes.truncate(end);
    }
    bytes
}

fn set_time(path: &std::path::Path, seconds: i64) {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds.max(0).cast_unsigned());
    if let Ok(handle) = fs::File::open(path) {
        let _ = handle.set_modified(time);
    }
}

/// Makes a symbolic link.
pub(crate) fn symlink(target: &[u8], path: &std::path::Path) -> std::io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::symlink(io::path(target), path);
    #[cfg(target_os = "wasi")]
    return rustix::fs::symlink(io::path(target), path).map_err(std::io::Error::from);
}
