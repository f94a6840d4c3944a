//! Repositories and bundles that were damaged on purpose: an error, never other bytes, a panic or endless work.

use std::path::{Path, PathBuf};

use git::{Bounds, Commit, Error, Id, Kind, Mode, NewRepository, PackWriter, Reference, Repository, Signature, encode_tree};

fn somebody() -> Signature {
    Signature { name: "A".to_owned(), email: "a".to_owned(), seconds: 1, zone: "+0000".to_owned() }
}

fn commit(tree: Id) -> Vec<u8> {
    let (author, committer) = (somebody(), somebody());
    Commit { tree, parents: Vec::new(), author, committer, message: "x\n".to_owned() }.encode()
}

/// Two versions of a file, the second as a difference from the first, and a commit of both.
fn fill(pack: &mut PackWriter) -> (Id, [Id; 2], [Vec<u8>; 2]) {
    let old: Vec<u8> = (0..600u32).flat_map(|n| n.to_string().into_bytes()).collect();
    let mut new = old.clone();
    new.splice(700..705, *b"other bytes");
    let one = pack.add(Kind::Blob, &old).unwrap();
    let two = pack.add_like(Kind::Blob, &new, Some((one, &old))).unwrap();
    let tree = encode_tree([("one", Mode::File, one), ("two", Mode::Executable, two)]);
    let tree = pack.add(Kind::Tree, &tree).unwrap();
    (pack.add(Kind::Commit, &commit(tree)).unwrap(), [one, two], [old, new])
}

fn repository(directory: &Path) -> (PathBuf, [Id; 2], [Vec<u8>; 2]) {
    let path = directory.join("r.git");
    let new = NewRepository::create(&path, true).unwrap();
    let mut pack = new.pack().unwrap();
    let (head, ids, contents) = fill(&mut pack);
    let main = Reference { name: "refs/heads/main".to_owned(), id: head, peeled: None };
    new.finish(pack.finish().unwrap(), "main", &[main]).unwrap();
    (path, ids, contents)
}

fn bundle(directory: &Path) -> (PathBuf, [Id; 2], [Vec<u8>; 2]) {
    let (path, packing) = (directory.join("r.bundle"), directory.join("pack"));
    let mut pack = PackWriter::create(&packing).unwrap();
    let (head, ids, contents) = fill(&mut pack);
    pack.finish().unwrap();
    git::write_bundle(&path, &[Reference { name: "HEAD".to_owned(), id: head, peeled: None }], &packing).unwrap();
    (path, ids, contents)
}

fn read_all(path: &Path, bounds: Bounds) -> Result<Vec<Vec<u8>>, Error> {
    let repository = Repository::open(path, bounds)?;
    let commit = repository.commit(repository.resolve("HEAD")?)?;
    repository.tree(commit.tree)?.iter().map(|entry| Ok(repository.blob(entry.id)?.to_vec())).collect()
}

#[test]
fn written_packs_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    for (path, ids, contents) in [repository(directory.path()), bundle(directory.path())] {
        assert_eq!(read_all(&path, Bounds::default()).unwrap(), contents);
        let repository = Repository::open(&path, Bounds::default()).unwrap();
        let mut buffer = [0; 11];
        assert_eq!(repository.read_blob(ids[1], 700, &mut buffer).unwrap(), 11);
        assert_eq!(&buffer, b"other bytes");
        assert_eq!(repository.read_blob(ids[1], 1 << 40, &mut buffer).unwrap(), 0);
        assert_eq!(repository.blob_size(ids[1]).unwrap(), contents[1].len() as u64);
        let head = repository.resolve("HEAD").unwrap();
        assert_eq!(repository.resolve(&head.to_string()[..7]).unwrap(), head);
        for unknown in ["nobody", "HEAD~1", "HEAD^2", "0000000", "../../etc/passwd", "", &ids[0].to_string()] {
            assert!(repository.resolve(unknown).is_err(), "{unknown}");
        }
    }
}

#[test]
fn a_bundle_that_is_cut_anywhere_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let (path, ..) = bundle(directory.path());
    let whole = std::fs::read(&path).unwrap();
    for len in 0..whole.len() {
        std::fs::write(&path, &whole[..len]).unwrap();
        assert!(read_all(&path, Bounds::default()).is_err(), "{len}");
    }
    // And one that is changed, in any byte of its pack.
    let pack = whole.windows(4).position(|bytes| bytes == b"PACK").unwrap();
    for at in pack..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        std::fs::write(&path, &changed).unwrap();
        assert!(read_all(&path, Bounds::default()).is_err(), "{at}");
    }
}

#[test]
fn a_named_pipe_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let (path, ..) = repository(directory.path());
    let pack = std::fs::read_dir(path.join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    let pack = pack.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "pack")).unwrap();
    for file in [pack, path.join("HEAD"), path.join("packed-refs"), directory.path().join("x.bundle")] {
        let _ = std::fs::remove_file(&file);
        assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        assert!(read_all(&path, Bounds::default()).is_err(), "{}", file.display());
    }
    assert!(matches!(read_all(&directory.path().join("x.bundle"), Bounds::default()), Err(Error::NotRepository { .. })));
}

#[test]
fn a_byte_that_is_changed_anywhere_never_makes_other_content() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _, contents) = repository(directory.path());
    let packs = path.join("objects/pack");
    for file in std::fs::read_dir(packs).unwrap().map(|entry| entry.unwrap().path()) {
        let whole = std::fs::read(&file).unwrap();
        for at in 0..whole.len() {
            for bit in [0x01, 0x80] {
                let mut changed = whole.clone();
                changed[at] ^= bit;
                std::fs::write(&file, &changed).unwrap();
                if let Ok(found) = read_all(&path, Bounds::default()) {
                    assert_eq!(found, contents, "{} at {at}", file.display());
                }
            }
        }
        std::fs::write(&file, &whole).unwrap();
    }
    assert_eq!(read_all(&path, Bounds::default()).unwrap(), contents);
}

#[test]
fn an_object_is_not_made_beyond_its_bound() {
    let directory = tempfile::tempdir().unwrap();
    for (path, _, contents) in [repository(directory.path()), bundle(directory.path())] {
        let size = contents[1].len() as u64;
        let bounds = Bounds { object_bytes: size - 1, ..Bounds::default() };
        assert!(matches!(read_all(&path, bounds), Err(Error::TooLarge(_))), "{}", path.display());
        let bounds = Bounds { total_bytes: size, ..Bounds::default() };
        assert!(matches!(read_all(&path, bounds), Err(Error::TooLarge(_))), "{}", path.display());
        let bounds = Bounds { entries: 1, ..Bounds::default() };
        assert!(matches!(read_all(&path, bounds), Err(Error::TooLarge(_))), "{}", path.display());
    }
}

#[test]
fn nothing_outside_of_the_directory_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let (path, ..) = repository(directory.path());
    let outside = directory.path().join("outside");
    std::fs::write(&outside, format!("{}\n", Id::of(Kind::Blob, b"x"))).unwrap();
    std::fs::remove_file(path.join("packed-refs")).unwrap();
    std::os::unix::fs::symlink(&outside, path.join("refs/heads/main")).unwrap();
    assert!(read_all(&path, Bounds::default()).is_err());
    std::fs::write(path.join("HEAD"), "ref: ../outside\n").unwrap();
    assert!(matches!(read_all(&path, Bounds::default()), Err(Error::UnknownReference(_))));
    std::fs::write(path.join("HEAD"), "ref: refs/heads/a\n").unwrap();
    std::fs::write(path.join("refs/heads/a"), "ref: HEAD\n").unwrap();
    assert!(matches!(read_all(&path, Bounds::default()), Err(Error::Damaged(_))));
}
