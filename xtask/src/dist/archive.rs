//! Archives with the same bytes on every machine: sorted names, one date, no owner.
//!
//! `tar` and `ar` are written here, because the programs of that name differ between systems in their headers.

use std::collections::BTreeMap;
use std::io::Write as _;

use crate::Fallible;

/// A node of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// A file.
    File(Vec<u8>),
    /// A file that can be executed.
    Program(Vec<u8>),
    /// A symbolic link with this target.
    Link(String),
}

/// The content of an archive, by path; the directories above are added.
pub(crate) type Tree = BTreeMap<String, Node>;

/// The unit of a tar file.
const BLOCK: usize = 512;

/// Returns a tree as a tar file, with all times at `date`, in seconds since 1970.
pub(crate) fn tar(tree: &Tree, date: u64) -> Fallible<Vec<u8>> {
    let mut archive = Vec::new();
    let mut made = std::collections::BTreeSet::new();
    for (path, node) in tree {
        for (end, _) in path.match_indices('/') {
            let directory = &path[..=end];
            if directory != "./" && made.insert(directory.to_owned()) {
                archive.extend(header(directory, 0o755, 0, b'5', "", date)?);
            }
        }
        match node {
            Node::Link(target) => archive.extend(header(path, 0o777, 0, b'2', target, date)?),
            Node::File(content) => add(&mut archive, path, 0o644, content, date)?,
            Node::Program(content) => add(&mut archive, path, 0o755, content, date)?,
        }
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    Ok(archive)
}

fn add(archive: &mut Vec<u8>, path: &str, mode: u32, content: &[u8], date: u64) -> Fallible<()> {
    archive.extend(header(path, mode, content.len(), b'0', "", date)?);
    archive.extend_from_slice(content);
    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    Ok(())
}

fn header(path: &str, mode: u32, size: usize, kind: u8, target: &str, date: u64) -> Fallible<[u8; BLOCK]> {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, length: usize, text: &str| {
        let field = block.get_mut(at..at + length).and_then(|field| field.get_mut(..text.len()));
        field.map(|field| field.copy_from_slice(text.as_bytes())).ok_or_else(|| format!("`{text}` is too long for a tar file"))
    };
    put(0, 100, path)?;
    put(100, 8, &format!("{mode:07o}"))?;
    put(108, 8, "0000000")?;
    put(116, 8, "0000000")?;
    put(124, 12, &format!("{size:011o}"))?;
    put(136, 12, &format!("{date:011o}"))?;
    // The sum is computed with spaces in its own field.
    put(148, 8, "        ")?;
    put(156, 1, &char::from(kind).to_string())?;
    put(157, 100, target)?;
    put(257, 8, "ustar\x0000")?;
    put(265, 32, "root")?;
    put(297, 32, "root")?;
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// Returns the members as an `ar` archive, in this order.
pub(crate) fn ar(members: &[(&str, Vec<u8>)], date: u64) -> Fallible<Vec<u8>> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, content) in members {
        writeln!(archive, "{name:<16}{date:<12}{:<6}{:<6}{:<8}{:<10}`", 0, 0, "100644", content.len())?;
        archive.extend_from_slice(content);
        if content.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    Ok(archive)
}

/// Compresses bytes as `gzip -n` does, without a name and a time.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    const LEVEL: u8 = 9;
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255];
    packed.extend(miniz_oxide::deflate::compress_to_vec(bytes, LEVEL));
    packed.extend(crc32(bytes).to_le_bytes());
    #[expect(clippy::cast_possible_truncation, reason = "the format has the size modulo 2^32")]
    packed.extend((bytes.len() as u32).to_le_bytes());
    packed
}

fn crc32(bytes: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256u32)
        .map(|byte| (0..8).fold(byte, |sum, _| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 }))
        .collect();
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        let index = (sum ^ u32::from(*byte)) & 0xff;
        table.get(index as usize).copied().unwrap_or_default() ^ (sum >> 8)
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn tree() -> Tree {
        let files = [
            ("./usr/bin/program", Node::Program(b"#!/bin/sh\n".to_vec())),
            ("./usr/share/text", Node::File(vec![b'x'; 1000])),
            ("./usr/bin/link", Node::Link("program".to_owned())),
        ];
        files.into_iter().map(|(path, node)| (path.to_owned(), node)).collect()
    }

    fn run(program: &str, args: &[&str]) -> String {
        let output = Command::new(program).args(args).env("TZ", "UTC").output().unwrap();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn the_check_value_of_crc32_is_right() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    // The system's own `tar` and `gzip` read what is written here.
    #[test]
    fn the_systems_tar_reads_the_archive() {
        let path = std::env::temp_dir().join(format!("sandlite-archive-{}.tar.gz", std::process::id()));
        std::fs::write(&path, gzip(&tar(&tree(), 1_700_000_000).unwrap())).unwrap();
        let listed = run("tar", &["-tvzf", path.to_str().unwrap(), "--full-time"]);
        std::fs::remove_file(&path).unwrap();
        let lines: Vec<String> = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let date = "2023-11-14 22:13:20";
        assert_eq!(
            lines,
            [
                format!("drwxr-xr-x root/root 0 {date} ./usr/"),
                format!("drwxr-xr-x root/root 0 {date} ./usr/bin/"),
                format!("lrwxrwxrwx root/root 0 {date} ./usr/bin/link -> program"),
                format!("-rwxr-xr-x root/root 10 {date} ./usr/bin/program"),
                format!("drwxr-xr-x root/root 0 {date} ./usr/share/"),
                format!("-rw-r--r-- root/root 1000 {date} ./usr/share/text"),
            ]
        );
    }

    #[test]
    fn a_name_that_does_not_fit_is_an_error() {
        let tree = Tree::from([("x".repeat(101), Node::File(Vec::new()))]);
        assert!(tar(&tree, 0).unwrap_err().to_string().ends_with("is too long for a tar file"));
    }

    #[test]
    fn members_of_ar_begin_at_even_offsets() {
        let archive = ar(&[("debian-binary", b"2.0\n".to_vec()), ("odd", b"123".to_vec()), ("even", b"12".to_vec())], 7).unwrap();
        let second = 8 + 60 + 4;
        assert_eq!(&archive[..8], b"!<arch>\n");
        assert_eq!(archive[second..second + 60], *b"odd             7           0     0     100644  3         `\n");
        assert_eq!(archive[second + 64..second + 68], *b"even");
        assert_eq!(archive.len(), second + 64 + 60 + 2);
    }
}
