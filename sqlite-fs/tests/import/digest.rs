//! A snapshot is the one that was sent, or it is refused.

use std::path::Path;

use sqlite_fs::{Database, Error, Export, Import};

use super::{Corpus, import};

/// T-SNAP-07: a snapshot that is not the one that was sent is refused, wherever it was changed.
#[test]
fn t_snap_07_a_snapshot_with_another_digest_is_refused() {
    let corpus = Corpus::new();
    let everything = Export { history: true, secrets: true };
    let (database, _) = import(&corpus.sound).unwrap();
    let digest = database.digest(everything).unwrap();
    let expecting =
        |path: &Path| Database::import(path, Database::options(), &Import { digest: Some(digest.clone()), ..Import::default() });
    expecting(&corpus.sound).unwrap();
    for change in [
        "UPDATE fs_data SET data=CAST('SMALL' AS BLOB) WHERE length(data)=5",
        "UPDATE fs_inode SET mode=mode|1 WHERE size=5",
        "UPDATE fs_dentry SET name='renamed' WHERE name='small'",
        "UPDATE fs_symlink SET target='/etc/large'",
        "UPDATE kv_store SET value='2' WHERE key='key'",
        "UPDATE sandlite_run SET stdout=CAST('forged' AS BLOB)",
        "DELETE FROM tool_calls; DELETE FROM sandlite_run",
        "INSERT INTO sandlite_session VALUES ('main', 'shell', x'00', 1)",
    ] {
        let forged = corpus.changed(change);
        assert!(import(&forged).is_ok(), "{change}: sound in itself");
        let Err(Error::Refused { rule: "digest", .. }) = expecting(&forged) else { panic!("{change} went unnoticed") };
    }
    // Data that an export omits is not in its digest.
    let public = corpus.dir.path().join("public.db");
    database.export(&public, Export { history: false, secrets: false }).unwrap();
    let digest = database.digest(Export { history: false, secrets: false }).unwrap();
    Database::import(&public, Database::options(), &Import { digest: Some(digest), ..Import::default() }).unwrap();
}
