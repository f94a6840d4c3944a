//! Patches in git's format, for `git apply`: texts, binary files, modes, links, new and deleted files.
//!
//! Knows nothing about versions: it receives the two contents of a path.

use std::io::Write;
use std::time::Duration;

use sha1::{Digest as _, Sha1};
use similar::{DiffOp, DiffTag, TextDiff};
use sqlite_fs::Reader;

use super::compare::{Comparison, Difference, DifferenceKind};
use crate::Error;
use crate::vfs::View;

/// Number of context lines.
const CONTEXT: usize = 3;

/// Larger files are not compared line by line: a patch contains all of it.
const TEXT_BYTES: u64 = 4 << 20;

/// Maximum size of one displayed diff; the rest is omitted with a note.
const SHOWN_BYTES: usize = 256 << 10;

/// Maximum size of a file in a patch, because it and its compressed form are in memory.
const FILE_BYTES: u64 = 64 << 20;

/// Maximum time to compare the lines of one file; the rest then counts as replaced.
const PATIENCE: Duration = Duration::from_secs(2);

/// The type of a path in git's trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    File,
    Executable,
    Link,
}

impl Mode {
    fn digits(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
        }
    }
}

/// A file or a link on one side.
struct Content {
    mode: Mode,
    /// All permission bits.
    bits: u32,
    bytes: Bytes,
}

#[derive(PartialEq, Eq)]
enum Bytes {
    Whole(Vec<u8>),
    /// Too large to be shown.
    Large,
}

impl Content {
    fn text(&self) -> Option<&str> {
        match &self.bytes {
            Bytes::Whole(bytes) if bytes.len() as u64 <= TEXT_BYTES && !bytes.contains(&0) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

/// The purpose of a patch.
#[derive(Clone, Copy)]
enum Purpose {
    /// For display to a person or a model.
    Show,
    /// For `git apply`.
    Apply,
}

impl Comparison {
    /// Returns a patch of all differing text files, for display. Binary and large files are only listed.
    #[must_use]
    pub fn patch(&self) -> String {
        let mut out = String::new();
        for difference in &self.differences {
            if out.len() > SHOWN_BYTES {
                out.push_str("# truncated: name fewer paths\n");
                break;
            }
            out.push_str(&self.patch_of(difference));
        }
        out
    }

    /// Returns the patch of one path, for display.
    #[must_use]
    pub fn patch_of(&self, difference: &Difference) -> String {
        let mut out = Vec::new();
        let name = difference.path.trim_start_matches('/');
        if difference.kind == DifferenceKind::Links {
            return format!("# the hard links of {} changed\n", quoted("", name));
        }
        match self.contents(difference, Purpose::Show) {
            Ok((old, new)) => write_change(&mut out, name, old.as_ref(), new.as_ref(), Purpose::Show),
            Err(_) => out.extend(format!("# cannot read `{}`\n", difference.path).into_bytes()),
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Writes a patch for `git apply` with everything that git can represent. Names are relative to the directory `below`; other
    /// paths are omitted. Returns the paths below it that git refuses, such as `.git/hooks`, which are omitted, too.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read, is larger than 64 MB, or the patch cannot be written.
    pub fn write_patch(&self, below: &str, out: &mut dyn Write) -> Result<Vec<String>, Error> {
        let (top, mut refused) = (below.trim_end_matches('/'), Vec::new());
        for difference in &self.differences {
            let Some(name) = difference.path.strip_prefix(top).and_then(|rest| rest.strip_prefix('/')) else { continue };
            if name.split('/').any(git::is_dot_git) {
                if !difference.is_directory {
                    refused.push(difference.path.clone());
                }
                continue;
            }
            let (old, new) = self.contents(difference, Purpose::Apply)?;
            let is_link = [&old, &new].into_iter().flatten().any(|content| content.mode == Mode::Link);
            if is_link && name.rsplit('/').next().is_some_and(git::is_dot_gitmodules) {
                refused.push(difference.path.clone());
                continue;
            }
            let mut patch = Vec::new();
            write_change(&mut patch, name, old.as_ref(), new.as_ref(), Purpose::Apply);
            out.write_all(&patch).map_err(|source| Error::Input { path: difference.path.clone(), source })?;
        }
        Ok(refused)
    }

    /// Returns the number of lines added and removed in a differing text file; `None` for a binary or large file.
    #[must_use]
    pub fn line_counts(&self, difference: &Difference) -> Option<(usize, usize)> {
        let (old, new) = self.contents(difference, Purpose::Show).ok().filter(|_| !difference.is_directory)?;
        let lines = |content: Option<&Content>| content.map_or(Some(String::new()), |content| content.text().map(str::to_owned));
        let (old, new) = (lines(old.as_ref())?, lines(new.as_ref())?);
        let (old, new): (Vec<&str>, Vec<&str>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
        let diff = TextDiff::configure().timeout(PATIENCE).diff_slices(&old, &new);
        let count = |sum: (usize, usize), op: &DiffOp| match op.as_tag_tuple() {
            (DiffTag::Equal, ..) => sum,
            (_, old, new) => (sum.0 + new.len(), sum.1 + old.len()),
        };
        Some(diff.ops().iter().fold((0, 0), count))
    }

    fn contents(&self, difference: &Difference, purpose: Purpose) -> Result<(Option<Content>, Option<Content>), Error> {
        let Some((from, to)) = self.views().filter(|_| difference.kind != DifferenceKind::Links) else { return Ok((None, None)) };
        // A missing path can still lead somewhere, through a link that replaced a directory.
        let of = |view: &View<Reader>, missing: DifferenceKind| match difference.kind == missing {
            true => Ok(None),
            false => content(view, &difference.path, purpose),
        };
        Ok((of(from, DifferenceKind::Added)?, of(to, DifferenceKind::Deleted)?))
    }
}

// The content of a path as git would store it: nothing for a directory, a pipe, or a missing path.
fn content(view: &View<Reader>, path: &str, purpose: Purpose) -> Result<Option<Content>, Error> {
    let Ok(stat) = view.fs().symlink_metadata(path) else { return Ok(None) };
    match stat.mode & 0o170_000 {
        0o120_000 => {
            Ok(Some(Content { mode: Mode::Link, bits: 0o777, bytes: Bytes::Whole(view.fs().read_link(path)?.into_bytes()) }))
        }
        0o100_000 => {
            let mode = if stat.mode & 0o111 == 0 { Mode::File } else { Mode::Executable };
            let bytes = match purpose {
                Purpose::Show if stat.size > TEXT_BYTES => Bytes::Large,
                Purpose::Apply if stat.size > FILE_BYTES => {
                    return Err(Error::Invalid(format!(
                        "cannot create a patch of `{path}`: it has {} bytes; the maximum is {FILE_BYTES}",
                        stat.size
                    )));
                }
                _ => Bytes::Whole(view.fs().read(path)?),
            };
            Ok(Some(Content { mode, bits: stat.mode & 0o7777, bytes }))
        }
        _ => Ok(None),
    }
}

fn write_change(out: &mut Vec<u8>, name: &str, old: Option<&Content>, new: Option<&Content>, purpose: Purpose) {
    match (old, new) {
        (None, None) => {}
        // A file that becomes a link is one file deleted and one created.
        (Some(before), Some(after)) if (before.mode == Mode::Link) != (after.mode == Mode::Link) => {
            write_one(out, name, old, None, purpose);
            write_one(out, name, None, new, purpose);
        }
        _ => write_one(out, name, old, new, purpose),
    }
}

fn write_one(out: &mut Vec<u8>, name: &str, old: Option<&Content>, new: Option<&Content>, purpose: Purpose) {
    // Git cannot represent a change of other permission bits, and rejects a header without a change.
    if let (Some(old), Some(new)) = (old, new)
        && (old.mode, &old.bytes) == (new.mode, &new.bytes)
        && old.bytes != Bytes::Large
    {
        if matches!(purpose, Purpose::Show) && old.bits != new.bits {
            let name = quoted("", name);
            out.extend(format!("# the mode of {name} changed from {:03o} to {:03o}\n", old.bits, new.bits).into_bytes());
        }
        return;
    }
    let (a, b) = (quoted("a/", name), quoted("b/", name));
    let mut head = format!("diff --git {a} {b}\n");
    match (old, new) {
        (None, Some(new)) => head += &format!("new file mode {}\n", new.mode.digits()),
        (Some(old), None) => head += &format!("deleted file mode {}\n", old.mode.digits()),
        (Some(old), Some(new)) if old.mode != new.mode => {
            head += &format!("old mode {}\nnew mode {}\n", old.mode.digits(), new.mode.digits());
        }
        _ => {}
    }
    out.extend(head.into_bytes());
    let text = |content: Option<&Content>| content.map_or(Some(String::new()), |content| content.text().map(str::to_owned));
    match (text(old), text(new), purpose) {
        (Some(before), Some(after), _) => write_lines(out, (&before, old.map(|_| &*a)), (&after, new.map(|_| &*b))),
        (_, _, Purpose::Show) if [old, new].into_iter().flatten().any(|content| matches!(content.bytes, Bytes::Large)) => {
            out.extend(format!("Files {a} and {b} differ (larger than {} MB)\n", TEXT_BYTES >> 20).into_bytes());
        }
        (_, _, Purpose::Show) => out.extend(format!("Binary files {a} and {b} differ\n").into_bytes()),
        (_, _, Purpose::Apply) => write_binary(out, old, new),
    }
}

fn write_lines(out: &mut Vec<u8>, (before, a): (&str, Option<&str>), (after, b): (&str, Option<&str>)) {
    if before == after {
        return;
    }
    for (mark, name) in [("---", a), ("+++", b)] {
        let name = name.unwrap_or("/dev/null");
        // Without the tab a reader could not find the end of a name with spaces.
        let end = if name.contains(' ') && !name.starts_with('"') { "\t" } else { "" };
        out.extend(format!("{mark} {name}{end}\n").into_bytes());
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
    let diff = TextDiff::configure().timeout(PATIENCE).diff_slices(&old, &new);
    for group in diff.grouped_ops(CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let range = |from: usize, to: usize| match to - from {
            0 => format!("{from},0"),
            1 => (from + 1).to_string(),
            length => format!("{},{length}", from + 1),
        };
        let (old_range, new_range) =
            (range(first.old_range().start, last.old_range().end), range(first.new_range().start, last.new_range().end));
        out.extend(format!("@@ -{old_range} +{new_range} @@\n").into_bytes());
        for op in &group {
            let (tag, in_old, in_new) = op.as_tag_tuple();
            match tag {
                DiffTag::Equal => write_marked(out, b' ', old.get(in_old)),
                _ => {
                    write_marked(out, b'-', old.get(in_old));
                    write_marked(out, b'+', new.get(in_new));
                }
            }
        }
    }
}

fn write_marked(out: &mut Vec<u8>, mark: u8, lines: Option<&[&str]>) {
    for line in lines.unwrap_or_default() {
        out.push(mark);
        out.extend_from_slice(line.as_bytes());
        if !line.ends_with('\n') {
            out.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

// Git accepts a binary patch only with the full names of both blobs.
fn write_binary(out: &mut Vec<u8>, old: Option<&Content>, new: Option<&Content>) {
    let bytes = |content: Option<&Content>| match content.map(|content| &content.bytes) {
        Some(Bytes::Whole(bytes)) => bytes.clone(),
        _ => Vec::new(),
    };
    let (before, after) = (bytes(old), bytes(new));
    if old.is_some() && new.is_some() && before == after {
        return;
    }
    let blob = |content: Option<&Content>, bytes: &[u8]| content.map_or_else(|| "0".repeat(40), |_| blob_id(bytes));
    let index = format!("index {}..{}\n", blob(old, &before), blob(new, &after));
    out.extend(index.into_bytes());
    out.extend_from_slice(b"GIT binary patch\n");
    // Forward, and backward for `git apply -R`.
    for side in [&after, &before] {
        out.extend(format!("literal {}\n", side.len()).into_bytes());
        let packed = miniz_oxide::deflate::compress_to_vec_zlib(side, 6);
        for line in packed.chunks(BINARY_LINE) {
            write_base85(out, line);
        }
        out.push(b'\n');
    }
}

/// Returns git's name of a blob.
fn blob_id(bytes: &[u8]) -> String {
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0", bytes.len()));
    hasher.update(bytes);
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Number of bytes per line of a binary patch.
const BINARY_LINE: usize = 52;

fn write_base85(out: &mut Vec<u8>, line: &[u8]) {
    const DIGITS: &[u8; 85] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
    // The first letter is the line's length: A to Z for 1 to 26, a to z for 27 to 52.
    let letter = u8::try_from(line.len()).unwrap_or(0);
    out.push(if letter <= 26 { b'A' + letter - 1 } else { b'a' + letter - 27 });
    for group in line.chunks(4) {
        let mut word = [0; 4];
        word.iter_mut().zip(group).for_each(|(to, from)| *to = *from);
        let mut number = u32::from_be_bytes(word);
        let mut digits = [0; 5];
        for digit in digits.iter_mut().rev() {
            *digit = DIGITS.get(number as usize % 85).copied().unwrap_or(b'0');
            number /= 85;
        }
        out.extend_from_slice(&digits);
    }
    out.push(b'\n');
}

// A name in git's syntax: quoted if it contains special characters.
fn quoted(prefix: &str, name: &str) -> String {
    let is_plain = |c: char| !c.is_control() && c != '"' && c != '\\';
    if name.chars().all(is_plain) {
        return format!("{prefix}{name}");
    }
    let mut text = format!("\"{prefix}");
    for c in name.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            c if c.is_control() => c.to_string().bytes().for_each(|byte| text.push_str(&format!("\\{byte:03o}"))),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> Content {
        Content { mode: Mode::File, bits: 0o644, bytes: Bytes::Whole(bytes.to_vec()) }
    }

    fn check(old: Option<&[u8]>, new: Option<&[u8]>, expected: &str) {
        let (old, new) = (old.map(file), new.map(file));
        let mut out = Vec::new();
        write_change(&mut out, "f", old.as_ref(), new.as_ref(), Purpose::Apply);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_text_is_compared_by_its_lines() {
        check(
            Some(b"a\nb"),
            Some(b"a\nc\n"),
            "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n",
        );
        check(
            None,
            Some(b"x\r\ry\n"),
            "diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\r\ry\n",
        );
        check(None, Some(b""), "diff --git a/f b/f\nnew file mode 100644\n");
        check(Some(b"x\n"), Some(b"x\n"), "");
        check(Some(b"x\n"), None, "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
    }

    #[test]
    fn a_blob_has_the_hash_that_git_computes() {
        assert_eq!(blob_id(b""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(blob_id(b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
    }

    #[test]
    fn bytes_are_written_as_git_writes_them() {
        let mut out = Vec::new();
        write_base85(&mut out, b"\0\0\0\x01\xff");
        assert_eq!(out, b"E00001{{R30\n");
    }

    #[test]
    fn a_name_that_a_line_cannot_have_is_quoted() {
        assert_eq!(quoted("a/", "d/plain name"), "a/d/plain name");
        assert_eq!(quoted("a/", "é"), "a/é");
        assert_eq!(quoted("b/", "a\n\"\\\u{1}"), "\"b/a\\n\\\"\\\\\\001\"");
    }
}
