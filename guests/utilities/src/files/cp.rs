//! `cp`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::copy::{Clobber, Copy, Follow};
use super::links::{Backup, join, target};
use super::mkdir::make_parents;
use crate::options::{self, Given, May, Needs, No, Spec};
use crate::program::{self, Args, Outcome, Output, bytes, fail, os, warn};
use crate::quote;

const SPEC: Spec = Spec {
    short: "abdfHilLnprst:uvxPRS:TZ",
    long: &[
        ("archive", No, 'a'),
        ("attributes-only", No, 'A'),
        ("backup", May, 'B'),
        ("copy-contents", No, 'c'),
        ("dereference", No, 'L'),
        ("force", No, 'f'),
        ("interactive", No, 'i'),
        ("link", No, 'l'),
        ("no-clobber", No, 'n'),
        ("no-dereference", No, 'P'),
        ("no-preserve", Needs, 'N'),
        ("no-target-directory", No, 'T'),
        ("one-file-system", No, 'x'),
        ("parents", No, 'q'),
        ("path", No, 'q'),
        ("preserve", May, 'k'),
        ("recursive", No, 'R'),
        ("reflink", May, 'F'),
        ("remove-destination", No, 'D'),
        ("sparse", Needs, 'Y'),
        ("strip-trailing-slashes", No, 'z'),
        ("suffix", Needs, 'S'),
        ("symbolic-link", No, 's'),
        ("target-directory", Needs, 't'),
        ("update", No, 'u'),
        ("verbose", No, 'v'),
        ("context", May, 'Z'),
    ],
    help: "[OPTION]... [-T] SOURCE DEST",
};

fn attributes(list: &OsStr, copy: &mut Copy, on: bool) -> Result<(), i32> {
    for word in list.to_string_lossy().split(',') {
        let known = [("mode", 0), ("timestamps", 2), ("ownership", 1), ("links", 3), ("context", 4), ("xattr", 5), ("all", 6)];
        match options::choose(if on { "--preserve" } else { "--no-preserve" }, OsStr::new(word), &known)? {
            0 => copy.keep_mode = on,
            1 => copy.keep_owner = on,
            2 => copy.keep_times = on,
            3 => copy.keep_links = on,
            6 => (copy.keep_mode, copy.keep_owner, copy.keep_times, copy.keep_links) = (on, on, on, on),
            _ => {}
        }
    }
    Ok(())
}

fn settings(given: &Given) -> Result<Copy, i32> {
    let mut copy = Copy::new();
    let mut follow = None;
    for (letter, value) in &given.options {
        match letter {
            'a' => {
                copy.recursive = true;
                follow = Some(Follow::Never);
                (copy.keep_mode, copy.keep_owner, copy.keep_times, copy.keep_links) = (true, true, true, true);
            }
            'A' => copy.attributes_only = true,
            'd' => {
                follow = Some(Follow::Never);
                copy.keep_links = true;
            }
            'f' => {
                copy.force = true;
            }
            'H' => follow = Some(Follow::Named),
            'i' => copy.clobber = Clobber::Ask,
            'l' => copy.hard_links = true,
            'L' => follow = Some(Follow::Always),
            'n' => copy.clobber = Clobber::No,
            'p' => (copy.keep_mode, copy.keep_owner, copy.keep_times) = (true, true, true),
            'k' if value.is_empty() => (copy.keep_mode, copy.keep_owner, copy.keep_times) = (true, true, true),
            'k' => attributes(value, &mut copy, true)?,
            'N' => attributes(value, &mut copy, false)?,
            'P' => follow = Some(Follow::Never),
            'r' | 'R' => copy.recursive = true,
            's' => copy.symbolic_links = true,
            'u' => copy.update = true,
            'v' => copy.verbose = true,
            'D' => copy.remove_destination = true,
            _ => {}
        }
    }
    copy.follow = follow.unwrap_or(if copy.recursive && !copy.hard_links { Follow::Never } else { Follow::Always });
    copy.backup = Backup::from_options(given)?;
    if copy.clobber == Clobber::No && copy.backup != Backup::None {
        return Err(program::usage("options --backup and --no-clobber are mutually exclusive"));
    }
    if copy.hard_links && copy.symbolic_links {
        return Err(fail("cannot make both hard and symbolic links"));
    }
    Ok(copy)
}

/// Runs `cp`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let mut copy = settings(&given)?;
    let target = target(&given, false)?;
    let parents = given.has('q');
    if parents && !target.into {
        return Err(program::usage("with --parents, the destination must be a directory"));
    }
    let mut status = 0;
    let mut seen: Vec<PathBuf> = Vec::new();
    for source in &target.sources {
        let mut name = bytes(source).to_vec();
        if given.has('z') {
            while name.len() > 1 && name.ends_with(b"/") {
                name.pop();
            }
        }
        let source = PathBuf::from(os(name));
        if seen.contains(&source) && target.sources.len() > 1 {
            let what =
                if sys::stat(&source, false).is_ok_and(|stat| stat.kind() == sys::stat::S_IFDIR) { "directory" } else { "file" };
            warn(format!("warning: source {what} {} specified more than once", quote::always(&source)));
            continue;
        }
        seen.push(source.clone());
        let destination = if parents {
            let below = PathBuf::from(os(bytes(source.as_os_str()).iter().copied().skip_while(|&byte| byte == b'/').collect()));
            let path = join(&target.place, &below);
            make_parent_directories(&target.place, &source, copy.verbose, &mut copy)?;
            path
        } else if bytes(source.as_os_str()).ends_with(b"..") && target.into {
            target.place.clone()
        } else {
            target.path_for(&source)
        };
        if !copy.copy(&source, &destination) {
            status = 1;
        }
    }
    Ok(status)
}

fn make_parent_directories(place: &Path, source: &Path, verbose: bool, copy: &mut Copy) -> Result<(), i32> {
    let mut from = PathBuf::new();
    let mut to = place.to_owned();
    let Some(above) = source.parent() else { return Ok(()) };
    for part in above.components() {
        from.push(part);
        if !matches!(part, std::path::Component::Normal(_)) {
            continue;
        }
        to = join(&to, Path::new(part.as_os_str()));
        if sys::stat(&to, true).is_err() {
            make_parents(&to, false, &mut Output::new())
                .map_err(|(at, error)| fail(format!("cannot make directory {}: {}", quote::always(at), sys::message(&error))))?;
            if let Ok(stat) = sys::stat(&from, true) {
                let _ = sys::chmod(&to, true, stat.mode & 0o7777);
            }
            if verbose {
                copy.say(format!("{} -> {}\n", from.display(), to.display()));
            }
        }
    }
    Ok(())
}
