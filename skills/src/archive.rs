//! Zip files of skills: everything is checked before the first byte is unpacked, and equal files produce equal bytes when packed.
//!
//! Knows nothing about skills: it returns names and contents.

use std::collections::HashMap;

use miniz_oxide::deflate::compress_to_vec;

use crate::Error;
use crate::package::File;

/// Maximum size of a skill, packed and unpacked.
pub(crate) const MOST_BYTES: u64 = 50 << 20;
/// Maximum number of files and directories in a skill.
pub(crate) const MOST_ENTRIES: usize = 500;
/// Maximum ratio of unpacked to packed bytes of one file.
const MOST_RATIO: u64 = 100;
/// Maximum length of a path.
const PATH_BYTES: usize = 512;
/// Maximum depth of a path.
const PATH_DEPTH: usize = 16;

/// File extensions of archives: a nested archive would hide its content from every check.
const ARCHIVES: [&str; 15] =
    ["zip", "tar", "gz", "tgz", "bz2", "tbz", "tbz2", "xz", "txz", "lz", "lzma", "tlz", "7z", "rar", "zst"];

/// Names that file managers leave behind.
const LITTER: [&str; 3] = [".DS_Store", "Thumbs.db", "desktop.ini"];
/// Directories that are never part of a skill.
const LITTER_DIRECTORIES: [&str; 3] = ["__MACOSX", ".git", "__pycache__"];

/// The mode of a directory and of a regular file, and the mask of the type bits.
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const KIND: u32 = 0o170_000;

/// Returns whether a path belongs to a file that file managers and tools leave behind.
pub(crate) fn is_litter(path: &str) -> bool {
    let mut parts = path.trim_end_matches('/').split('/');
    let last = parts.next_back().unwrap_or_default();
    parts.any(|part| LITTER_DIRECTORIES.contains(&part))
        || LITTER.contains(&last)
        || last.starts_with("._")
        || LITTER_DIRECTORIES.contains(&last)
}

/// Checks the path of a file in a skill (T-SKL-01).
pub(crate) fn check_path(path: &str) -> Result<(), Error> {
    let shown = || path.chars().take(100).flat_map(char::escape_debug).collect::<String>();
    let refuse = |reason: &str| Err(Error::Unsafe(format!("invalid path `{}`: {reason}", shown())));
    let inner = path.strip_suffix('/').unwrap_or(path);
    match () {
        () if path.starts_with(['/', '\\']) => refuse("the path is absolute"),
        () if inner.split('/').any(|part| part == "..") => refuse("the path leads out of the skill"),
        () if inner.contains('\\') => refuse("the path contains a backslash"),
        () if inner.as_bytes().get(1) == Some(&b':') => refuse("the path contains a drive letter"),
        () if inner.split('/').any(|part| matches!(part, "" | ".")) => refuse("the path contains an empty component"),
        () if inner.split('/').any(|part| part.len() > 255) || path.len() > PATH_BYTES => refuse("the path is too long"),
        () if inner.split('/').count() > PATH_DEPTH => refuse("the path is too deep"),
        () if inner.chars().any(is_ambiguous) => refuse("the path contains a control, invisible or combining character"),
        () => Ok(()),
    }
}

// Characters that make two different names look alike (T-SKL-03). Without combining marks, jamo and second codes of one character, no two
// names are canonically equivalent, apart from letters that are equal in lower case and a few vowels of Indic scripts.
fn is_ambiguous(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{653}'..='\u{655}' | '\u{93c}' | '\u{9bc}' | '\u{a3c}' | '\u{b3c}' | '\u{3099}' | '\u{309a}')
        || matches!(letter, '\u{37e}' | '\u{387}' | '\u{1fef}' | '\u{1ffd}' | '\u{2000}' | '\u{2001}' | '\u{2329}' | '\u{232a}')
        || matches!(letter, '\u{f900}'..='\u{faff}' | '\u{2f800}'..='\u{2fa1f}')
        || matches!(letter, '\u{300}'..='\u{36f}' | '\u{1100}'..='\u{11ff}' | '\u{1ab0}'..='\u{1aff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
        || is_invisible(letter)
}

/// Returns whether a character is invisible, so that a reader and a model see different texts.
pub(crate) fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Rejects duplicate names, nested archives, and a file that is also a directory.
pub(crate) fn check_names<'a>(paths: impl IntoIterator<Item = &'a str>) -> Result<(), Error> {
    let mut seen: HashMap<String, bool> = HashMap::new();
    for path in paths {
        let (inner, is_directory) = path.strip_suffix('/').map_or((path, false), |inner| (inner, true));
        let folded = inner.to_lowercase();
        let mut above = folded.as_str();
        while let Some((parent, _)) = above.rsplit_once('/') {
            if seen.get(parent) == Some(&false) {
                return Err(Error::Unsafe(format!("`{parent}` is both a file and a directory")));
            }
            seen.insert(parent.to_owned(), true);
            above = parent;
        }
        match seen.get(&folded) {
            Some(true) if is_directory => {}
            Some(_) => return Err(Error::Unsafe(format!("duplicate path `{inner}` (ignoring case)"))),
            None => {
                seen.insert(folded, is_directory);
            }
        }
        let ending = inner.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending.to_lowercase());
        if !is_directory && ending.is_some_and(|ending| ARCHIVES.contains(&ending.as_str())) {
            return Err(Error::Unsafe(format!("`{inner}` is a nested archive")));
        }
    }
    Ok(())
}

/// Unpacks a zip file. All entries of its directory are checked before anything is unpacked.
pub(crate) fn unpack(bytes: &[u8]) -> Result<Vec<File>, Error> {
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Error::TooLarge(format!("the archive has {} bytes; the maximum is {MOST_BYTES}", bytes.len())));
    }
    // A polyglot, such as a picture that is also an archive, is rejected (T-SKL-03).
    if !bytes.starts_with(b"PK\x03\x04") {
        return Err(Error::Invalid("not a zip file".to_owned()));
    }
    let entries = zip::entries(bytes).map_err(|error| match error {
        zip::Error::Overlap | zip::Error::Misplaced => Error::Unsafe(error.to_string()),
        error => Error::Invalid(error.to_string()),
    })?;
    if entries.len() > MOST_ENTRIES {
        return Err(Error::Unsafe(format!("the archive has {} entries; the maximum is {MOST_ENTRIES}", entries.len())));
    }
    let mut named = Vec::with_capacity(entries.len());
    let mut total = 0u64;
    for entry in &entries {
        let name = std::str::from_utf8(entry.name).map_err(|_| Error::Unsafe("a file name is not UTF-8".to_owned()))?;
        check_path(name)?;
        let kind = entry.mode & KIND;
        if entry.is_symlink() {
            return Err(Error::Unsafe(format!("`{name}` is a symbolic link")));
        }
        if kind != 0 && kind != REGULAR && kind != DIRECTORY {
            return Err(Error::Unsafe(format!("`{name}` is neither a file nor a directory")));
        }
        if entry.is_encrypted() {
            return Err(Error::Unsafe(format!("`{name}` is encrypted")));
        }
        total = total.saturating_add(entry.size);
        if total > MOST_BYTES {
            return Err(Error::Unsafe(format!("the archive unpacks to more than {MOST_BYTES} bytes")));
        }
        if entry.size / (entry.packed().len() as u64).max(1) > MOST_RATIO {
            return Err(Error::Unsafe(format!("the compression ratio of `{name}` exceeds {MOST_RATIO}:1")));
        }
        named.push((name, entry));
    }
    named.retain(|(name, _)| !is_litter(name));
    check_names(named.iter().map(|(name, _)| *name))?;
    let mut files = Vec::new();
    for (name, entry) in named.into_iter().filter(|(name, _)| !name.ends_with('/')) {
        let declared = usize::try_from(entry.size).unwrap_or(usize::MAX);
        let content = entry.content(declared).map_err(|error| Error::Unsafe(format!("cannot unpack `{name}`: {error}")))?;
        if content.len() != declared || checksum(&content) != entry.sum {
            return Err(Error::Unsafe(format!("the content of `{name}` does not match the archive's directory")));
        }
        files.push(File { path: name.to_owned(), content, is_executable: entry.mode & 0o111 != 0 });
    }
    Ok(files)
}

/// Packs files into a zip file, sorted and without timestamps, so that equal files produce equal bytes.
#[must_use]
pub fn pack(files: &[File]) -> Vec<u8> {
    let mut files: Vec<&File> = files.iter().collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    let short = |number: usize| u16::try_from(number).unwrap_or(u16::MAX).to_le_bytes();
    let long = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
    for file in &files {
        let deflated = compress_to_vec(&file.content, 6);
        // Our own ratio limit must not reject an archive that we pack.
        let packs = deflated.len() < file.content.len()
            && file.content.len() / deflated.len().max(1) < usize::try_from(MOST_RATIO).unwrap_or(1);
        let (method, packed) = if packs { (zip::DEFLATED, deflated.as_slice()) } else { (zip::STORED, file.content.as_slice()) };
        let mut common = Vec::new();
        // Version 2.0, names in UTF-8, 1980-01-01.
        common.extend([20, 0, 0, 0x08]);
        common.extend(method.to_le_bytes());
        common.extend([0, 0, 0x21, 0]);
        common.extend(checksum(&file.content).to_le_bytes());
        common.extend(long(packed.len()));
        common.extend(long(file.content.len()));
        common.extend(short(file.path.len()));
        common.extend([0, 0]);
        let at = long(bytes.len());
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&common);
        bytes.extend(file.path.as_bytes());
        bytes.extend(packed);
        let mode: u32 = REGULAR | if file.is_executable { 0o755 } else { 0o644 };
        directory.extend(b"PK\x01\x02");
        // Made by Unix.
        directory.extend([20, 3]);
        directory.extend(&common);
        directory.extend([0; 6]);
        directory.extend((mode << 16).to_le_bytes());
        directory.extend(at);
        directory.extend(file.path.as_bytes());
    }
    let start = long(bytes.len());
    let count = short(files.len());
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06");
    bytes.extend([0; 4]);
    bytes.extend(count);
    bytes.extend(count);
    bytes.extend(long(directory.len()));
    bytes.extend(start);
    bytes.extend([0, 0]);
    bytes
}

/// Computes the CRC-32 of zip files.
fn checksum(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    !bytes.iter().fold(u32::MAX, |sum, byte| (sum >> 8) ^ TABLE[usize::from(sum.to_le_bytes()[0] ^ byte)])
}

const fn table() -> [u32; 256] {
    let mut table = [0u32; 256];
    let mut index = 0;
    let mut start = 0u32;
    while index < 256 {
        let (mut value, mut bit) = (start, 0);
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ 0xedb8_8320 } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
        start += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, content: &[u8]) -> File {
        File { path: path.to_owned(), content: content.to_vec(), is_executable: path.ends_with(".sh") }
    }

    fn refusal(files: &[File]) -> String {
        unpack(&pack(files)).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn packages_round_trip_and_equal_files_have_equal_bytes() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
        let files = [file("SKILL.md", b"text"), file("a/run.sh", &[7; 5000]), file("b", &[0; 1 << 20]), file("c", b"")];
        let packed = pack(&files);
        let mut unpacked = unpack(&packed).unwrap();
        unpacked.sort_by(|a, b| a.path.cmp(&b.path));
        assert_eq!(unpacked, files);
        let mut backwards = files.to_vec();
        backwards.reverse();
        assert_eq!(pack(&backwards), packed);
    }

    // T-SKL-01: Z01–Z06, Z13–Z16.
    #[test]
    fn paths_that_lead_out_are_refused() {
        for path in
            ["../x", "a/../../x", "/etc/passwd", "a\\..\\x", "\\\\host\\x", "C:/x", "a//b", "./a", "a\0b", "a\nb", "a\u{202e}b"]
        {
            assert!(refusal(&[file(path, b"x")]).starts_with("unsafe archive: invalid path"), "{path:?}");
        }
        assert!(refusal(&[file(&"d/".repeat(40), b"")]).contains("too deep"));
        assert_eq!(refusal(&[file("a..b/...c", b"x"), file("ä/ö.py", b"")]), "");
    }

    fn with_mode(mode: u32) -> String {
        let mut bytes = pack(&[file("x", b"target")]);
        let at = bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap() + 38;
        bytes[at..at + 4].copy_from_slice(&(mode << 16).to_le_bytes());
        unpack(&bytes).err().map(|error| error.to_string()).unwrap_or_default()
    }

    // T-SKL-01.
    #[test]
    fn links_and_devices_are_refused() {
        assert!(with_mode(0o120_777).contains("symbolic link"));
        for kind in [0o010_000, 0o020_000, 0o060_000, 0o140_000] {
            assert!(with_mode(kind | 0o644).contains("neither a file nor a directory"), "{kind:o}");
        }
        assert_eq!(with_mode(0o100_644), "");
        assert_eq!(with_mode(0), "", "an archive of another system has no modes");
    }

    // T-SKL-02: Z07, Z08, Z21–Z23.
    #[test]
    fn bombs_are_refused_before_they_are_unpacked() {
        let many: Vec<File> = (0..501).map(|number| file(&format!("f{number}"), b"")).collect();
        assert!(refusal(&many).contains("501 entries"));
        // A forged size: the directory claims one file of 4 GB, or of 1 MB in 4096 bytes.
        for (claimed, reason) in [(0xf000_0000u32, "more than"), (1 << 20, "compression ratio of `a`")] {
            let mut bomb = pack(&[file("a", &[0; 4096])]);
            for signature in [b"PK\x01\x02", b"PK\x03\x04"] {
                let at = bomb.windows(4).position(|window| window == signature).unwrap();
                let size = at + if signature == b"PK\x01\x02" { 24 } else { 22 };
                bomb[size..size + 4].copy_from_slice(&claimed.to_le_bytes());
            }
            assert!(unpack(&bomb).unwrap_err().to_string().contains(reason), "{reason}");
        }
        let mut lie = pack(&[file("a", &[0; 50])]);
        let at = lie.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
        lie[at + 24..at + 28].copy_from_slice(&10u32.to_le_bytes());
        assert!(unpack(&lie).unwrap_err().to_string().contains("`a`"));
        for name in ["inner.zip", "a/b.TAR", "x.tar.gz", "x.tar.lzma", "y.7z"] {
            assert!(refusal(&[file(name, b"x")]).contains("nested archive"), "{name}");
        }
    }

    // T-SKL-02: what cannot be unpacked cannot be checked.
    #[test]
    fn encrypted_files_are_refused() {
        let mut locked = pack(&[file("a", b"text")]);
        for (signature, flags) in [(b"PK\x01\x02", 8), (b"PK\x03\x04", 6)] {
            let at = locked.windows(4).position(|window| window == signature).unwrap();
            locked[at + flags] |= 1;
        }
        assert!(unpack(&locked).unwrap_err().to_string().contains("`a` is encrypted"));
    }

    // T-SKL-02: a directory with a million entries is rejected by its count, without reading them.
    #[test]
    fn a_million_entries_are_refused_at_once() {
        let mut bytes = b"PK\x03\x04".to_vec();
        bytes.resize(64, 0);
        let start = bytes.len();
        bytes.extend(b"PK\x05\x06");
        bytes.extend([0; 4]);
        bytes.extend([0xff, 0xfe, 0xff, 0xfe]);
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(u32::try_from(start).unwrap().to_le_bytes());
        bytes.extend([0, 0]);
        assert!(unpack(&bytes).is_err());
    }

    // T-SKL-03: Z09–Z12, Z27.
    #[test]
    fn ambiguous_packages_are_refused() {
        assert!(refusal(&[file("a", b"1"), file("a", b"2")]).contains("duplicate path"));
        assert!(refusal(&[file("README", b"1"), file("readme", b"2")]).contains("ignoring case"));
        assert!(refusal(&[file("\u{c5}", b"1"), file("\u{212b}", b"2")]).contains("duplicate path"), "one letter, two codes");
        for name in ["e\u{301}", "\u{304b}\u{3099}", "\u{627}\u{653}", "\u{915}\u{93c}", "a\u{37e}", "\u{f900}"] {
            assert!(refusal(&[file(name, b"1")]).contains("combining"), "{}", name.escape_unicode());
        }
        assert_eq!(refusal(&[file("\u{304c}", b"1"), file("\u{622}", b"2"), file("\u{8c48};", b"3")]), "");
        assert!(refusal(&[file("a", b"1"), file("a/b", b"2")]).contains("both a file and a directory"));
        let polyglot = [b"GIF89a".as_slice(), &pack(&[file("SKILL.md", b"x")])].concat();
        assert!(unpack(&polyglot).unwrap_err().to_string().contains("not a zip"));
        let mut damaged = pack(&[file("SKILL.md", b"some text that matters")]);
        let at = damaged.windows(4).position(|window| window == b"some").unwrap();
        damaged[at] = b'X';
        assert!(unpack(&damaged).unwrap_err().to_string().contains("does not match"));
    }

    #[test]
    fn litter_is_left_out() {
        let files =
            unpack(&pack(&[file("a", b"1"), file("__MACOSX/._a", b"2"), file(".DS_Store", b"3"), file("d/Thumbs.db", b"4")]))
                .unwrap();
        assert_eq!(files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["a"]);
    }
}
