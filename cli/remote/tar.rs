//! A directory of this machine, as a tar archive for the server's route that unpacks one.
//!
//! Knows nothing of the server. Links that lead out of the directory are left out: the server refuses an archive that has one.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;

/// Bytes of a block.
const BLOCK: usize = 512;
/// Longest name and longest target in a header; longer ones have a record of their own.
const NAME_BYTES: usize = 100;

/// Something below a directory.
enum Kind {
    Directory,
    File { mode: u32, content: Vec<u8> },
    Link(String),
}

/// The content of a directory, by relative paths.
#[derive(Default)]
pub(super) struct Tree {
    entries: Vec<(String, Kind)>,
    /// Omitted files: devices, links that lead out, names that are not UTF-8.
    pub(super) omitted: Vec<String>,
}

impl Tree {
    /// Reads a directory.
    pub(super) fn read(top: &Path) -> anyhow::Result<Self> {
        let (mut tree, mut left) = (Self::default(), vec![(top.to_owned(), String::new())]);
        while let Some((directory, below)) = left.pop() {
            let failed = || format!("cannot read `{}`", directory.display());
            for entry in fs::read_dir(&directory).with_context(failed)? {
                let entry = entry.with_context(failed)?;
                let (place, kind) = (entry.path(), entry.file_type().with_context(failed)?);
                let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                    tree.omitted.push(place.display().to_string());
                    continue;
                };
                let path = format!("{below}{name}");
                if kind.is_dir() {
                    left.push((place, format!("{path}/")));
                    tree.entries.push((path, Kind::Directory));
                } else if kind.is_file() {
                    tree.entries.push((path, file(&place)?));
                } else {
                    let target = fs::read_link(&place).ok().and_then(|target| target.to_str().map(str::to_owned));
                    match target.filter(|target| stays_inside(&path, target)) {
                        Some(target) => tree.entries.push((path, Kind::Link(target))),
                        None => tree.omitted.push(place.display().to_string()),
                    }
                }
            }
        }
        Ok(tree)
    }

    /// Returns a tree of one file of this machine.
    pub(super) fn of_file(name: &str, place: &Path) -> anyhow::Result<Self> {
        Ok(Self { entries: vec![(name.to_owned(), file(place)?)], omitted: Vec::new() })
    }

    /// Returns how many files, directories and links it has.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        let (mut files, mut directories, mut links) = (0, 0, 0);
        for (_, kind) in &self.entries {
            match kind {
                Kind::File { .. } => files += 1,
                Kind::Directory => directories += 1,
                Kind::Link(_) => links += 1,
            }
        }
        (files, directories, links)
    }

    /// Returns its files if there is nothing else: no link, no program, no empty directory, and at most this many bytes.
    pub(super) fn plain(self, most: usize) -> Result<Vec<(String, Vec<u8>)>, Self> {
        if self.entries.is_empty() || !self.is_plain() || self.bytes() > most {
            return Err(self);
        }
        let files = self.entries.into_iter().filter_map(|(path, kind)| match kind {
            Kind::File { content, .. } => Some((path, content)),
            _ => None,
        });
        Ok(files.collect())
    }

    fn is_plain(&self) -> bool {
        let above = |path: &str| path.rsplit_once('/').map(|(above, _)| above.to_owned());
        let above: BTreeSet<String> = self.entries.iter().filter_map(|(path, _)| above(path)).collect();
        self.entries.iter().all(|(path, kind)| match kind {
            Kind::Directory => above.contains(path),
            Kind::File { mode, .. } => mode & 0o111 == 0,
            Kind::Link(_) => false,
        })
    }

    /// Returns the bytes of its files.
    pub(super) fn bytes(&self) -> usize {
        let lengths = self.entries.iter().map(|(_, kind)| match kind {
            Kind::File { content, .. } => content.len(),
            _ => 0,
        });
        lengths.sum()
    }

    /// Returns it as an archive.
    pub(super) fn packed(&self) -> Vec<u8> {
        let mut archive = Vec::new();
        for (path, kind) in &self.entries {
            match kind {
                Kind::Directory => add(&mut archive, &format!("{path}/"), b'5', 0o755, "", &[]),
                Kind::File { mode, content } => add(&mut archive, path, b'0', *mode, "", content),
                Kind::Link(target) => add(&mut archive, path, b'2', 0o777, target, &[]),
            }
        }
        archive.extend([0; 2 * BLOCK]);
        archive
    }
}

fn file(place: &Path) -> anyhow::Result<Kind> {
    let failed = || format!("cannot read `{}`", place.display());
    let mode = fs::metadata(place).with_context(failed)?.permissions().mode() & 0o777;
    Ok(Kind::File { mode, content: fs::read(place).with_context(failed)? })
}

// As the server sees it: relative, and never above the directory.
fn stays_inside(path: &str, target: &str) -> bool {
    let mut depth = path.matches('/').count();
    let mut stays = |part: &str| match part {
        "" | "." => true,
        ".." => match depth.checked_sub(1) {
            Some(above) => {
                depth = above;
                true
            }
            None => false,
        },
        _ => {
            depth += 1;
            true
        }
    };
    !target.is_empty() && !target.starts_with('/') && target.split('/').all(&mut stays)
}

fn add(archive: &mut Vec<u8>, path: &str, kind: u8, mode: u32, target: &str, content: &[u8]) {
    let long = [("path", path), ("linkpath", target)].into_iter().filter(|(_, value)| value.len() > NAME_BYTES);
    let records: String = long.map(|(name, value)| record(name, value)).collect();
    if !records.is_empty() {
        archive.extend(header("extended", b'x', 0o644, "", records.len()));
        fill(archive, records.as_bytes());
    }
    archive.extend(header(path, kind, mode, target, content.len()));
    fill(archive, content);
}

fn fill(archive: &mut Vec<u8>, content: &[u8]) {
    archive.extend_from_slice(content);
    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
}

// `LENGTH NAME=VALUE\n`, where the length counts itself.
fn record(name: &str, value: &str) -> String {
    let rest = name.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    format!("{length} {name}={value}\n")
}

fn header(path: &str, kind: u8, mode: u32, target: &str, size: usize) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let (mode, size) = (format!("{mode:07o}"), format!("{size:011o}"));
    let fields: [(usize, usize, &[u8]); 10] = [
        (0, NAME_BYTES, path.as_bytes()),
        (100, 8, mode.as_bytes()),
        (108, 8, b"0000000"),
        (116, 8, b"0000000"),
        (124, 12, size.as_bytes()),
        (136, 12, b"00000000000"),
        (148, 8, b"        "),
        (156, 1, &[kind]),
        (157, NAME_BYTES, target.as_bytes()),
        (257, 8, b"ustar\x0000"),
    ];
    for (at, most, bytes) in fields {
        block.iter_mut().skip(at).zip(bytes.iter().take(most)).for_each(|(place, byte)| *place = *byte);
    }
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block.iter_mut().skip(148).zip(format!("{sum:06o}\0").bytes()).for_each(|(place, byte)| *place = byte);
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_out_is_known() {
        for (path, target) in [("l", "a"), ("d/l", "../a"), ("d/l", "./x/../../a"), ("l", "a//b")] {
            assert!(stays_inside(path, target), "{path} -> {target}");
        }
        for (path, target) in [("l", "/a"), ("l", "../a"), ("d/l", "../../a"), ("l", "a/../.."), ("l", "")] {
            assert!(!stays_inside(path, target), "{path} -> {target}");
        }
    }

    #[test]
    fn a_header_has_the_sum_of_its_bytes_and_a_record_counts_itself() {
        let block = header("a.txt", b'0', 0o755, "", 511);
        let blank = block.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u32::from(*byte) });
        assert_eq!(&block[148..155], format!("{:06o}\0", blank.sum::<u32>()).as_bytes());
        assert_eq!((&block[124..135], &block[100..107]), (&b"00000000777"[..], &b"0000755"[..]));
        for length in 85..115 {
            let record = record("path", &"x".repeat(length));
            assert_eq!(record.split_once(' ').unwrap().0.parse(), Ok(record.len()));
        }
        let mut archive = Vec::new();
        add(&mut archive, &"x".repeat(120), b'0', 0o644, "", b"content");
        assert_eq!(archive.len(), 4 * BLOCK);
    }
}
