//! The list of a transaction's changes.

use super::memory;
use crate::{ChangeKind, Transaction};

#[test]
fn changes_are_listed_by_path_wherever_their_directory_was() {
    let check = |change: &dyn Fn(&Transaction), expected: &[&str]| {
        let database = memory();
        let transaction = database.begin(None).unwrap();
        transaction.fs().create_dir_all("/a/d").unwrap();
        ["/a/x", "/a/d/y", "/free"].iter().for_each(|path| transaction.fs().write(path, b"1").unwrap());
        transaction.fs().hard_link("/a/x", "/second").unwrap();
        transaction.commit().unwrap();
        let transaction = database.begin(None).unwrap();
        change(&transaction);
        let (changes, is_complete) = transaction.changes().unwrap();
        assert!(is_complete);
        let line = |change: crate::Change| match change.kind {
            ChangeKind::Renamed { from } => format!("{from} -> {}", change.path),
            kind => format!("{kind:?} {}", change.path),
        };
        assert_eq!(changes.into_iter().map(line).collect::<Vec<_>>(), expected);
    };
    check(
        &|t| assert!(t.fs().remove_dir_all("/a").unwrap() > 0),
        &["Deleted /a", "Deleted /a/d", "Deleted /a/d/y", "Deleted /a/x"],
    );
    let removed_elsewhere = |t: &Transaction| {
        t.fs().rename("/a", "/b").unwrap();
        t.fs().remove_dir_all("/b").unwrap();
    };
    check(&removed_elsewhere, &["Deleted /a", "Deleted /a/d", "Deleted /a/d/y", "Deleted /a/x"]);
    let there_and_back = |t: &Transaction| {
        t.fs().rename("/a/d", "/b").unwrap();
        t.fs().remove_file("/b/y").unwrap();
        t.fs().symlink("free", "/b/z").unwrap();
        t.fs().rename("/b", "/a/d").unwrap();
    };
    check(&there_and_back, &["Deleted /a/d/y", "Created /a/d/z"]);
    let replaced = |t: &Transaction| {
        t.fs().create_dir_all("/n/d").unwrap();
        t.fs().symlink("free", "/n/x").unwrap();
        t.fs().rename("/a", "/b").unwrap();
        t.fs().rename("/n", "/a").unwrap();
    };
    check(&replaced, &["Modified /a", "Modified /a/d", "Modified /a/x", "/a -> /b"]);
    check(&|t| t.fs().append("/second", b"2").unwrap(), &["Modified /a/x", "Modified /second"]);
    let linked_and_changed = |t: &Transaction| {
        t.fs().hard_link("/free", "/new").unwrap();
        t.fs().append("/new", b"2").unwrap();
    };
    check(&linked_and_changed, &["Modified /free", "Created /new"]);
}

#[test]
fn the_paths_of_a_list_are_bounded_together() {
    let database = memory();
    let transaction = database.begin(None).unwrap();
    let deep = format!("/{}", vec!["d".repeat(250); 15].join("/"));
    transaction.fs().create_dir_all(&deep).unwrap();
    for number in 0..18_000 {
        transaction.fs().write(&format!("{deep}/{number}"), b"").unwrap();
    }
    let (changes, is_complete) = transaction.changes().unwrap();
    let bytes: usize = changes.iter().map(|change| change.path.len()).sum();
    assert!(!is_complete && (60 << 20..70 << 20).contains(&bytes), "{} paths, {bytes} bytes", changes.len());
}
