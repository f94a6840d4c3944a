//! `zip` and `unzip`: stored and deflated members.

mod format;

use std::ffi::OsString;
use std::fs;

use common::getopt::{self, Item, Spec};
use pattern::fnmatch;

use crate::date;
use crate::files::basename::last_component;
use crate::io::{self, Out, show};
use format::Member;

fn seconds(stat: &sys::Stat) -> i64 {
    stat.mtime.div_euclid(1_000_000_000)
}

/// Runs `zip`.
pub fn zip(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let spec = Spec {
        short: "rqjv0123456789x:i:uf9dmyX@T",
        long: &[("quiet", getopt::Value::No, 'q'), ("recurse-paths", getopt::Value::No, 'r')],
    };
    let items = match spec.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => {
            warn!("\nzip error: Invalid command arguments ({message})");
            return 16;
        }
    };
    let (mut recurse, mut quiet, mut junk, mut level, mut exclude, mut names, mut links) =
        (false, false, false, 6, Vec::new(), Vec::new(), false);
    let (mut delete, mut remove, mut excluding) = (false, false, false);
    for item in items {
        match item {
            Item::Operand(name) if excluding => exclude.push(name),
            Item::Operand(name) => names.push(name),
            Item::Opt('d', _) => delete = true,
            Item::Opt('m', _) => remove = true,
            Item::Opt('r', _) => recurse = true,
            Item::Opt('q', _) => quiet = true,
            Item::Opt('j', _) => junk = true,
            Item::Opt('y', _) => links = true,
            Item::Opt('x', value) => {
                exclude.extend(value);
                excluding = true;
            }
            Item::Opt(digit @ '0'..='9', _) => level = digit as u32 - '0' as u32,
            Item::Opt(..) => {}
        }
    }
    let _ = links;
    if names.is_empty() {
        warn!("\nzip error: Nothing to do! (no archive name)");
        return 16;
    }
    let mut archive = names.remove(0);
    if archive != b"-" && !last_component(&archive).contains(&b'.') {
        archive.extend_from_slice(b".zip");
    }
    let mut members = match fs::read(io::path(&archive)) {
        _ if archive == b"-" => Vec::new(),
        // The existing file is not an archive and is not overwritten.
        Ok(bytes) => match format::read(&bytes) {
            Some(members) => members,
            None => {
                let mut out = Out::new("zip", 14);
                out.put(format!("\nzip error: Zip file structure invalid ({})\n", show(&archive)).as_bytes());
                out.flush();
                return 3;
            }
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            warn!("\nzip I/O error: {}\n\nzip error: Could not open zip file ({})", sys::message(&error), show(&archive));
            return 15;
        }
    };
    let mut out = Out::new("zip", 14);
    if delete {
        return take_out(&archive, members, &names, quiet, &mut out);
    }
    let mut paths = Vec::new();
    let mut packed = Vec::new();
    for name in &names {
        if !collect(name, recurse, &mut paths) {
            out.put(format!("\tzip warning: name not matched: {}\n", show(name)).as_bytes());
        }
    }
    let (mut changed, mut unreadable) = (false, false);
    for path in paths {
        let stored = path.strip_prefix(b"./").unwrap_or(&path).to_vec();
        let start = stored.iter().position(|&byte| byte != b'/').unwrap_or(0);
        let mut name = stored[start..].to_vec();
        if exclude.iter().any(|pattern| fnmatch(pattern, &name, pattern::Options::default())) {
            continue;
        }
        let Ok(stat) = sys::stat(&io::path(&path), true) else { continue };
        let directory = stat.kind() == sys::stat::S_IFDIR;
        if junk {
            if directory {
                continue;
            }
            name = last_component(&name).to_vec();
        }
        if directory && !name.ends_with(b"/") {
            name.push(b'/');
        }
        if name.is_empty() || name == b"./" {
            continue;
        }
        let content = match fs::read(io::path(&path)) {
            _ if directory => Vec::new(),
            Ok(content) => content,
            Err(error) => {
                out.flush();
                let name = show(&path);
                warn!("\tzip warning: could not open for reading: {name}\n\tzip warning: {}", sys::message(&error));
                unreadable = true;
                continue;
            }
        };
        let member = Member::pack(name, &content, stat.mode, seconds(&stat), if directory { 0 } else { level });
        let verb = if members.iter().any(|known| known.name == member.name) { "updating" } else { "  adding" };
        if !quiet {
            let how = if member.method == 8 { "deflated" } else { "stored" };
            let saved = if content.is_empty() {
                0
            } else {
                ((content.len() - member.packed.len().min(content.len())) * 100 + content.len() / 2) / content.len()
            };
            let text = format!("{verb}: {} ({how} {saved}%)\n", show(&member.name));
            if archive == b"-" {
                let _ = sys::write_all(2, text.as_bytes());
            } else {
                out.put(text.as_bytes());
            }
        }
        match members.iter_mut().find(|known| known.name == member.name) {
            Some(known) => *known = member,
            None => members.push(member),
        }
        packed.push((path, directory));
        changed = true;
    }
    if !changed {
        out.put(format!("\nzip error: Nothing to do! ({})\n", show(&archive)).as_bytes());
        out.flush();
        return 12;
    }
    out.flush();
    let bytes = format::write(&members);
    let written = if archive == b"-" { sys::write_all(1, &bytes) } else { fs::write(io::path(&archive), bytes) };
    if let Err(error) = written {
        warn!("zip I/O error: {}\nzip error: Could not create output file ({})", sys::message(&error), show(&archive));
        return 15;
    }
    if unreadable {
        return 18;
    }
    if remove {
        for (path, directory) in packed.iter().rev() {
            let path = io::path(path);
            let _ = if *directory { fs::remove_dir(path) } else { fs::remove_file(path) };
        }
    }
    0
}

/// Runs `zip -d`: takes members out.
fn take_out(archive: &[u8], mut members: Vec<Member>, names: &[Vec<u8>], quiet: bool, out: &mut Out) -> i32 {
    let named = |pattern: &[u8], member: &Member| fnmatch(pattern, &member.name, pattern::Options::default());
    for name in names.iter().filter(|name| !members.iter().any(|member| named(name, member))) {
        out.put(format!("\tzip warning: name not matched: {}\n", show(name)).as_bytes());
    }
    let before = members.len();
    members.retain(|member| {
        let gone = names.iter().any(|name| named(name, member));
        if gone && !quiet {
            out.put(format!("deleting: {}\n", show(&member.name)).as_bytes());
        }
        !gone
    });
    if members.len() == before {
        out.put(format!("\nzip error: Nothing to do! ({})\n", show(archive)).as_bytes());
        out.flush();
        return 12;
    }
    if members.is_empty() {
        out.put(b"\tzip warning: zip file empty\n");
        out.flush();
        let _ = fs::remove_file(io::path(archive));
        return 0;
    }
    out.flush();
    match fs::write(io::path(archive), format::write(&members)) {
        Ok(()) => 0,
        Err(error) => {
            warn!("zip I/O error: {}\nzip error: Could not create output file ({})", sys::message(&error), show(archive));
            15
        }
    }
}

fn collect(name: &[u8], recurse: bool, paths: &mut Vec<Vec<u8>>) -> bool {
    let path = io::path(name);
    let Ok(stat) = sys::stat(&path, true) else { return false };
    paths.push(name.to_vec());
    if recurse && stat.kind() == sys::stat::S_IFDIR {
        let mut children: Vec<Vec<u8>> = fs::read_dir(&path)
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .map(|child| child.file_name().into_encoded_bytes())
            .collect();
        children.sort();
        for child in children {
            let full = [name.strip_suffix(b"/").unwrap_or(name), b"/", &child].concat();
            collect(&full, true, paths);
        }
    }
    true
}

struct Unzip {
    list: bool,
    test: bool,
    pipe: bool,
    quiet: bool,
    overwrite: bool,
    never: bool,
    junk: bool,
    names_only: bool,
    directory: Vec<u8>,
    wanted: Vec<Vec<u8>>,
    exclude: Vec<Vec<u8>>,
}

/// Runs `unzip`.
pub fn unzip(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let spec = Spec { short: "lvtpqonjd:xZ1aCLfuP:", long: &[] };
    let items = match spec.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => {
            warn!("error:  {message}");
            return 10;
        }
    };
    let mut options = Unzip {
        list: false,
        test: false,
        pipe: false,
        quiet: false,
        overwrite: false,
        never: false,
        junk: false,
        names_only: false,
        directory: Vec::new(),
        wanted: Vec::new(),
        exclude: Vec::new(),
    };
    let (mut archive, mut excluding) = (None, false);
    for item in items {
        match item {
            Item::Operand(name) if archive.is_none() => archive = Some(name),
            Item::Operand(name) if excluding => options.exclude.push(name),
            Item::Operand(name) => options.wanted.push(name),
            Item::Opt('l' | 'v', _) => options.list = true,
            Item::Opt('t', _) => options.test = true,
            Item::Opt('p' | 'c', _) => options.pipe = true,
            Item::Opt('q', _) => options.quiet = true,
            Item::Opt('o', _) => options.overwrite = true,
            Item::Opt('n', _) => options.never = true,
            Item::Opt('j', _) => options.junk = true,
            Item::Opt('Z' | '1', _) => options.names_only = true,
            Item::Opt('d', value) => options.directory = value.unwrap_or_default(),
            Item::Opt('x', _) => excluding = true,
            Item::Opt(..) => {}
        }
    }
    let Some(mut archive) = archive else {
        warn!("UnZip 6.00: usage: unzip [-opts] file[.zip] [list] [-x xlist] [-d exdir]");
        return 10;
    };
    if fs::metadata(io::path(&archive)).is_err() {
        let with = [archive.as_slice(), b".zip"].concat();
        if fs::metadata(io::path(&with)).is_err() {
            let name = show(&archive);
            warn!("unzip:  cannot find or open {name}, {name}.zip or {name}.ZIP.");
            return 9;
        }
        archive = with;
    }
    let bytes = match io::read_all(&archive) {
        Ok(bytes) => bytes,
        Err(error) => {
            warn!("error:  cannot open zipfile [ {} ]\n        {}", show(&archive), sys::message(&error));
            return 9;
        }
    };
    let Some(members) = format::read(&bytes) else {
        let name = show(&archive);
        let mut out = Out::new("unzip", 9);
        out.put(format!("Archive:  {name}\n").as_bytes());
        out.flush();
        warn!(
            "  End-of-central-directory signature not found.  Either this file is not\n  a zipfile, or it constitutes one disk of a multi-part archive.  In the\n  latter case the central directory and zipfile comment will be found on\n  the last disk(s) of this archive.\nunzip:  cannot find zipfile directory in one of {name} or\n        {name}.zip, and cannot find {name}.ZIP, period."
        );
        return 9;
    };
    let mut out = Out::new("unzip", 9);
    let status = options.run(&mut out, &archive, &members);
    out.flush();
    status
}

impl Unzip {
    fn takes(&self, name: &[u8]) -> bool {
        let any = |patterns: &[Vec<u8>]| patterns.iter().any(|pattern| fnmatch(pattern, name, pattern::Options::default()));
        (self.wanted.is_empty() || any(&self.wanted)) && !any(&self.exclude)
    }

    fn run(&self, out: &mut Out, archive: &[u8], members: &[Member]) -> i32 {
        let chosen: Vec<&Member> = members.iter().filter(|member| self.takes(&member.name)).collect();
        if self.names_only {
            chosen.iter().for_each(|member| out.put(&[member.name.as_slice(), b"\n"].concat()));
            return 0;
        }
        if !self.pipe && (!self.quiet || self.list) {
            out.put(&[b"Archive:  ", archive, b"\n"].concat());
        }
        if self.list {
            self.listing(out, &chosen);
            return 0;
        }
        let mut status = 0;
        for member in &chosen {
            let content = match member.content() {
                Some(content) => content,
                None => {
                    out.flush();
                    warn!("{}  bad CRC or unsupported compression method", show(&member.name));
                    status = 2;
                    continue;
                }
            };
            if self.pipe {
                out.put(&content);
            } else if self.test {
                if !self.quiet {
                    out.put(format!("    testing: {:<22}   OK\n", show(&member.name)).as_bytes());
                }
            } else {
                status = status.max(self.extract(out, member, &content));
            }
        }
        if self.test && status == 0 {
            out.put(format!("No errors detected in compressed data of {}.\n", show(archive)).as_bytes());
        }
        if chosen.is_empty() && !self.wanted.is_empty() {
            for wanted in &self.wanted {
                out.flush();
                warn!("caution: filename not matched:  {}", show(wanted));
            }
            return 11;
        }
        status
    }

    fn listing(&self, out: &mut Out, chosen: &[&Member]) {
        out.put(b"  Length      Date    Time    Name\n---------  ---------- -----   ----\n");
        let mut total = 0;
        for member in chosen {
            let date = date::format(b"%Y-%m-%d %H:%M", i128::from(member.modified) * date::SECOND);
            out.put(format!("{:9}  {}   {}\n", member.size, show(&date), show(&member.name)).as_bytes());
            total += member.size;
        }
        out.put(
            format!(
                "---------                     -------\n{total:9}                     {} file{}\n",
                chosen.len(),
                if chosen.len() == 1 { "" } else { "s" }
            )
            .as_bytes(),
        );
    }

    fn extract(&self, out: &mut Out, member: &Member, content: &[u8]) -> i32 {
        let directory = member.name.ends_with(b"/");
        if directory && self.junk {
            return 0;
        }
        let name = if self.junk { last_component(&member.name).to_vec() } else { member.name.clone() };
        // A member may not climb out of the directory it is unpacked into.
        let safe: Vec<&[u8]> =
            name.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".." && *part != b".").collect();
        let relative = safe.join(&b'/');
        let target = if self.directory.is_empty() { relative } else { [self.directory.as_slice(), b"/", &relative].concat() };
        let path = io::path(&target);
        if directory {
            let existed = path.is_dir();
            if fs::create_dir_all(&path).is_err() {
                return 2;
            }
            if !self.quiet && !existed {
                out.put(&[b"   creating: ", target.as_slice(), b"/\n"].concat());
            }
            return 0;
        }
        if let Some(parent) = path.parent() {
            let _ = fs::create_dir_all(parent);
        }
        if path.exists() && !self.overwrite {
            if self.never {
                return 0;
            }
            out.flush();
            warn!(
                "replace {}? [y]es, [n]o, [A]ll, [N]one, [r]ename:  NULL\n(EOF or read error, treating as \"[N]one\" ...)",
                show(&target)
            );
            return 1;
        }
        if !self.quiet {
            let verb = if member.method == 8 { "  inflating" } else { " extracting" };
            out.put(format!("{verb}: {:<22}  \n", show(&target)).as_bytes());
        }
        if let Err(error) = fs::write(&path, content) {
            out.flush();
            warn!("error:  cannot create {}\n        {}", show(&target), sys::message(&error));
            return 50;
        }
        if member.mode & 0o777 != 0 {
            let _ = sys::chmod(&path, true, member.mode & 0o777);
        }
        if let Ok(handle) = fs::File::options().write(true).open(&path) {
            let when = std::time::UNIX_EPOCH + std::time::Duration::from_secs(member.modified.max(0).cast_unsigned());
            let _ = handle.set_modified(when);
        }
        0
    }
}
