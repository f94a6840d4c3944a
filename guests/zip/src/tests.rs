//! Archives as programs write them, and malformed ones.

use super::*;

/// A file of an archive to create: its header has the requested values, true or not.
struct Made<'a> {
    name: &'a [u8],
    method: u16,
    packed: &'a [u8],
    size: u32,
    large: bool,
}

fn stored<'a>(name: &'a [u8], content: &'a [u8]) -> Made<'a> {
    Made { name, method: STORED, packed: content, size: content.len() as u32, large: false }
}

fn directory_entry(made: &Made<'_>, at: u32) -> Vec<u8> {
    let (packed, size) = (made.packed.len() as u32, made.size);
    let mut extra = Vec::new();
    let (short_packed, short_size) = if made.large { (u32::MAX, u32::MAX) } else { (packed, size) };
    if made.large {
        extra = [&LARGE_FIELD.to_le_bytes()[..], &16u16.to_le_bytes()].concat();
        extra.extend_from_slice(&u64::from(size).to_le_bytes());
        extra.extend_from_slice(&u64::from(packed).to_le_bytes());
    }
    let mut bytes = [&ENTRY[..], &[30, UNIX, 20, 0, 0, 0], &made.method.to_le_bytes(), &[0; 8]].concat();
    bytes.extend_from_slice(&short_packed.to_le_bytes());
    bytes.extend_from_slice(&short_size.to_le_bytes());
    for length in [made.name.len() as u16, extra.len() as u16, 0, 0, 0] {
        bytes.extend_from_slice(&length.to_le_bytes());
    }
    bytes.extend_from_slice(&(0o100_644u32 << 16).to_le_bytes());
    bytes.extend_from_slice(&at.to_le_bytes());
    [&bytes, made.name, &extra].concat()
}

fn local(made: &Made<'_>) -> Vec<u8> {
    let length = (made.name.len() as u16).to_le_bytes();
    [&LOCAL[..], &[0; 22], &length, &[0; 2], made.name, made.packed].concat()
}

fn closed(mut bytes: Vec<u8>, directory: &[u8], count: u16, comment: &[u8]) -> Vec<u8> {
    let start = (bytes.len() as u32).to_le_bytes();
    bytes.extend_from_slice(directory);
    let (count, size) = (count.to_le_bytes(), (directory.len() as u32).to_le_bytes());
    let comment_length = (comment.len() as u16).to_le_bytes();
    bytes.extend_from_slice(&[&END[..], &[0; 4], &count, &count, &size, &start, &comment_length, comment].concat());
    bytes
}

fn archive(files: &[Made<'_>]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for made in files {
        directory.extend(directory_entry(made, bytes.len() as u32));
        bytes.extend(local(made));
    }
    closed(bytes, &directory, files.len() as u16, b"")
}

/// Deflates into stored blocks, which needs no packer.
fn deflated(content: &[u8]) -> Vec<u8> {
    let length = content.len() as u16;
    [&[1][..], &length.to_le_bytes(), &(!length).to_le_bytes(), content].concat()
}

#[test]
fn files_are_found_and_read() {
    let packed = deflated(b"deflated");
    let two = Made { name: b"d/two", method: DEFLATED, packed: &packed, size: 8, large: false };
    let bytes = archive(&[stored(b"a/b.py", b"x = 1"), two]);
    let entries = entries(&bytes).unwrap();
    let names: Vec<&[u8]> = entries.iter().map(|entry| entry.name).collect();
    assert_eq!(names, [&b"a/b.py"[..], b"d/two"]);
    assert_eq!((entries[0].content(5), entries[0].mode, entries[0].size), (Ok(b"x = 1".to_vec()), 0o100_644, 5));
    assert_eq!(entries[1].content(8), Ok(b"deflated".to_vec()));
}

#[test]
fn an_empty_archive_has_no_files() {
    assert_eq!(entries(&archive(&[])), Ok(Vec::new()));
}

#[test]
fn content_larger_than_requested_is_rejected() {
    let bytes = archive(&[stored(b"a", b"x = 1")]);
    assert_eq!(entries(&bytes).unwrap()[0].content(4), Err(Error::TooLarge));
    // 2 000 zeros, in one block of repetitions, of which there could be a million.
    let bomb = miniz_oxide::deflate::compress_to_vec(&[0; 2000], 9);
    assert!(bomb.len() < 30);
    let bytes = archive(&[Made { name: b"a", method: DEFLATED, packed: &bomb, size: 10, large: false }]);
    assert_eq!(entries(&bytes).unwrap()[0].content(1999), Err(Error::Content));
    assert_eq!(entries(&bytes).unwrap()[0].content(2000).map(|content| content.len()), Ok(2000));
}

#[test]
fn files_that_share_bytes_are_refused() {
    let (one, other) = (stored(b"a", b"content"), stored(b"a", b"content"));
    let directory = [directory_entry(&one, 0), directory_entry(&other, 0)].concat();
    assert_eq!(entries(&closed(local(&one), &directory, 2, b"")), Err(Error::Overlap));
    // A file whose content is the head of the next: a quoted overlap.
    let inner = local(&stored(b"b", b"kernel"));
    let outer = stored(b"a", &inner);
    let at = local(&outer).len() - inner.len();
    let directory = [directory_entry(&outer, 0), directory_entry(&stored(b"b", b"kernel"), at as u32)].concat();
    assert_eq!(entries(&closed(local(&outer), &directory, 2, b"")), Err(Error::Overlap));
}

#[test]
fn a_name_may_be_there_twice() {
    let bytes = archive(&[stored(b"a", b"1"), stored(b"a", b"2")]);
    let contents: Vec<_> = entries(&bytes).unwrap().iter().map(|entry| entry.content(1).unwrap()).collect();
    assert_eq!(contents, [b"1", b"2"]);
}

#[test]
fn more_files_than_the_directory_has_room_for_are_refused() {
    let one = stored(b"a", b"1");
    for count in [2, 65_534, 65_535] {
        let bytes = closed(local(&one), &directory_entry(&one, 0), count, b"");
        assert_eq!(entries(&bytes), Err(Error::Directory), "{count}");
    }
}

#[test]
fn a_head_with_another_name_is_refused() {
    let (one, other) = (stored(b"a", b"1"), stored(b"b", b"1"));
    assert_eq!(entries(&closed(local(&one), &directory_entry(&other, 0), 1, b"")), Err(Error::Misplaced));
}

#[test]
fn a_file_that_reaches_into_the_directory_is_refused() {
    let mut one = stored(b"a", b"1");
    let head = local(&one);
    one.packed = b"12";
    assert_eq!(entries(&closed(head, &directory_entry(&one, 0), 1, b"")), Err(Error::Misplaced));
}

#[test]
fn encrypted_files_and_unknown_methods_are_listed_and_not_read() {
    let bytes = archive(&[Made { method: 12, ..stored(b"a", b"1") }]);
    assert_eq!(entries(&bytes).unwrap()[0].content(9), Err(Error::Unsupported));
    let mut bytes = archive(&[stored(b"a", b"1")]);
    let at = bytes.windows(4).position(|window| window == ENTRY).unwrap();
    bytes[at + 8] = 1;
    assert_eq!(entries(&bytes).unwrap()[0].content(9), Err(Error::Unsupported));
}

#[test]
fn numbers_of_64_bits_are_read() {
    let made = Made { large: true, ..stored(b"a", b"large") };
    let (mut bytes, directory) = (local(&made), directory_entry(&made, 0));
    let start = bytes.len() as u64;
    bytes.extend_from_slice(&directory);
    let end = bytes.len() as u64;
    bytes.extend_from_slice(&[&LARGE_END[..], &44u64.to_le_bytes(), &[45, 0, 45, 0], &[0; 8]].concat());
    for number in [1, 1, directory.len() as u64, start] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&[&LARGE_LOCATOR[..], &[0; 4], &end.to_le_bytes(), &1u32.to_le_bytes()].concat());
    bytes.extend_from_slice(&[&END[..], &[0; 4], &[0xff; 12], &[0; 2]].concat());
    let found = entries(&bytes).unwrap();
    assert_eq!((found[0].name, found[0].size, found[0].content(5)), (&b"a"[..], 5, Ok(b"large".to_vec())));
    // Without the field that has the numbers.
    let bare = Made { size: u32::MAX, ..stored(b"a", b"large") };
    assert_eq!(entries(&archive(&[bare])), Err(Error::Directory));
}

#[test]
fn a_comment_that_looks_like_an_end_is_a_comment() {
    let one = stored(b"a", b"1");
    let fake = closed(Vec::new(), b"", 0, b"");
    let comment = [&fake[..], b"more"].concat();
    let bytes = closed(local(&one), &directory_entry(&one, 0), 1, &comment);
    assert_eq!(entries(&bytes).map(|entries| entries.len()), Ok(1));
}

#[test]
fn every_cut_is_refused() {
    let bytes = archive(&[stored(b"a/b.py", b"x = 1")]);
    for length in 0..bytes.len() {
        assert!(entries(&bytes[..length]).is_err(), "{length}");
    }
}

#[test]
fn damage_never_panics() {
    let packed = deflated(b"deflated");
    let two = Made { name: b"d/two", method: DEFLATED, packed: &packed, size: 8, large: true };
    let whole = archive(&[stored(b"a/b.py", b"x = 1"), two]);
    for at in 0..whole.len() {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            for entry in entries(&bytes).unwrap_or_default() {
                let _ = entry.content(100);
            }
        }
    }
}
