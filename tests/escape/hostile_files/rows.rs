//! Lies in rows and in the schema: SQL that changes a sound database. `INO(x)` stands for the inode of the name `x`.

/// A kind of lie: its name, and what makes it.
pub type Lie = (&'static str, &'static str);

/// Names, directories, sizes, types and values.
pub const ROWS: &[Lie] = &[
    // Names that lead elsewhere, and also resolve inside.
    ("name-file-up", "UPDATE fs_dentry SET name='../../.bashrc' WHERE name='notes'"),
    ("name-file-canary", "UPDATE fs_dentry SET name='../../canary/planted' WHERE name='notes'"),
    ("name-file-secret", "UPDATE fs_dentry SET name='../../../canary/.bashrc' WHERE name='large'"),
    ("name-directory-up", "UPDATE fs_dentry SET name='../../canary' WHERE name='b'"),
    ("name-directory-root", "UPDATE fs_dentry SET name='../../..' WHERE name='b'"),
    ("name-link-up", "UPDATE fs_dentry SET name='../../canary/link' WHERE name='soft'"),
    ("name-root-up", "UPDATE fs_dentry SET name='../canary/.bashrc' WHERE name='.bashrc'"),
    ("name-absolute", "UPDATE fs_dentry SET name='/tmp/sandlite-hostile-planted' WHERE name='notes'"),
    ("name-slash", "UPDATE fs_dentry SET name='a/large' WHERE name='notes'"),
    ("name-trailing-slash", "UPDATE fs_dentry SET name='notes/' WHERE name='notes'"),
    ("name-dot", "UPDATE fs_dentry SET name='.' WHERE name='b'"),
    ("name-dot-dot", "UPDATE fs_dentry SET name='..' WHERE name='b'"),
    ("name-empty", "UPDATE fs_dentry SET name='' WHERE name='notes'"),
    ("name-zero", "UPDATE fs_dentry SET name='no'||char(0)||'tes' WHERE name='notes'"),
    ("name-300", "UPDATE fs_dentry SET name=hex(zeroblob(150)) WHERE name='notes'"),
    ("name-20-mb", "UPDATE fs_dentry SET name=hex(zeroblob(10000000)) WHERE name='notes'"),
    ("name-not-utf8", "UPDATE fs_dentry SET name=CAST(x'ff41fe' AS TEXT) WHERE name='notes'"),
    ("name-blob", "UPDATE fs_dentry SET name=x'2e2e2f2e2e2f78' WHERE name='notes'"),
    ("name-control", "UPDATE fs_dentry SET name=char(27)||'[2J'||char(10)||char(155) WHERE name='notes'"),
    // Directories.
    ("cycle-down", "UPDATE fs_dentry SET ino=INO(a) WHERE name='c'"),
    ("cycle-self", "INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('self',INO(a),INO(a))"),
    ("cycle-root", "INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('root',INO(a),1)"),
    (
        "cycle-many",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<50)
        INSERT INTO fs_dentry (name,parent_ino,ino) SELECT 'again'||i,INO(c),INO(a) FROM n",
    ),
    (
        "cycle-apart",
        "INSERT INTO fs_inode (ino,mode,nlink,atime,mtime,ctime) VALUES (900,16877,2,0,0,0),(901,16877,2,0,0,0);
        INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('x',900,901),('y',901,900)",
    ),
    ("two-names", "INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('second',1,INO(b))"),
    (
        "two-names-doubling",
        "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i+1 FROM n WHERE i<1060)
        INSERT INTO fs_inode (ino,mode,nlink,atime,mtime,ctime) SELECT i,16877,2,0,0,0 FROM n;
        INSERT INTO fs_dentry (name,parent_ino,ino) SELECT 'l',ino,ino+1 FROM fs_inode WHERE ino BETWEEN 1000 AND 1059;
        INSERT INTO fs_dentry (name,parent_ino,ino) SELECT 'r',ino,ino+1 FROM fs_inode WHERE ino BETWEEN 1000 AND 1059;
        INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('top',INO(a),1000)",
    ),
    (
        "deep",
        "WITH RECURSIVE n(i) AS (SELECT 2000 UNION ALL SELECT i+1 FROM n WHERE i<5000)
        INSERT INTO fs_inode (ino,mode,nlink,atime,mtime,ctime) SELECT i,16877,2,0,0,0 FROM n;
        INSERT INTO fs_dentry (name,parent_ino,ino) SELECT 'd',ino,ino+1 FROM fs_inode WHERE ino BETWEEN 2000 AND 4999;
        INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('top',INO(a),2000)",
    ),
    (
        "long-paths",
        "WITH RECURSIVE n(i) AS (SELECT 2000 UNION ALL SELECT i+1 FROM n WHERE i<2240)
        INSERT INTO fs_inode (ino,mode,nlink,atime,mtime,ctime) SELECT i,16877,2,0,0,0 FROM n;
        INSERT INTO fs_dentry (name,parent_ino,ino) SELECT substr(hex(zeroblob(128)),1,255),ino,ino+1 FROM fs_inode
          WHERE ino BETWEEN 2000 AND 2239;
        INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('top',INO(a),2000);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<40000)
        INSERT INTO fs_dentry (name,parent_ino,ino) SELECT 'f'||i,2240,INO(notes) FROM n",
    ),
    (
        "wide",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<60000)
        INSERT INTO fs_dentry (name,parent_ino,ino) SELECT 'w'||i,INO(a),INO(notes) FROM n",
    ),
    ("parent-missing", "UPDATE fs_dentry SET parent_ino=777777 WHERE name='b'"),
    ("parent-file", "UPDATE fs_dentry SET parent_ino=INO(notes) WHERE name='b'"),
    ("parent-negative", "UPDATE fs_dentry SET parent_ino=-1 WHERE name='b'"),
    ("entry-missing", "UPDATE fs_dentry SET ino=777777 WHERE name='notes'"),
    ("entry-negative", "UPDATE fs_dentry SET ino=-5 WHERE name='notes'"),
    ("entry-text", "UPDATE fs_dentry SET ino='x' WHERE name='notes'"),
    ("entry-real", "UPDATE fs_dentry SET ino=2.5 WHERE name='notes'"),
    ("entry-id-negative", "UPDATE fs_dentry SET id=-id"),
    ("entry-id-largest", "UPDATE fs_dentry SET id=9223372036854775807 WHERE name='notes'"),
    ("no-entries", "DELETE FROM fs_dentry"),
    ("no-inodes", "DELETE FROM fs_inode"),
    ("root-missing", "DELETE FROM fs_inode WHERE ino=1"),
    ("root-file", "UPDATE fs_inode SET mode=33188, size=8000000000 WHERE ino=1"),
    ("root-link", "UPDATE fs_inode SET mode=41471 WHERE ino=1; INSERT INTO fs_symlink VALUES (1,'/')"),
    // Sizes.
    ("size-8-gb", "UPDATE fs_inode SET size=8000000000 WHERE ino=INO(large)"),
    ("size-8-gb-all", "UPDATE fs_inode SET size=8000000000 WHERE (mode & 61440)=32768"),
    ("size-largest", "UPDATE fs_inode SET size=9223372036854775807 WHERE ino=INO(large)"),
    ("size-largest-all", "UPDATE fs_inode SET size=9223372036854775807"),
    ("size-negative", "UPDATE fs_inode SET size=-1 WHERE ino=INO(large)"),
    ("size-smallest", "UPDATE fs_inode SET size=-9223372036854775808"),
    ("size-1-mb", "UPDATE fs_inode SET size=1000000 WHERE (mode & 61440)=32768"),
    ("size-database", "UPDATE fs_inode SET size=400000 WHERE (mode & 61440)=32768"),
    ("size-text", "UPDATE fs_inode SET size='large' WHERE ino=INO(large)"),
    ("size-real", "UPDATE fs_inode SET size=1e300 WHERE ino=INO(large)"),
    ("size-blob", "UPDATE fs_inode SET size=zeroblob(10000000) WHERE ino=INO(large)"),
    ("size-smaller", "UPDATE fs_inode SET size=3 WHERE ino=INO(large)"),
    ("size-of-directory", "UPDATE fs_inode SET size=9000000000000 WHERE (mode & 61440)=16384"),
    ("size-of-link", "UPDATE fs_inode SET size=9000000000000 WHERE (mode & 61440)=40960"),
    (
        "size-of-many",
        "WITH RECURSIVE n(i) AS (SELECT 5000 UNION ALL SELECT i+1 FROM n WHERE i<25000)
        INSERT INTO fs_inode (ino,mode,nlink,size,atime,mtime,ctime) SELECT i,33188,1,300000,0,0,0 FROM n;
        INSERT INTO fs_dentry (name,parent_ino,ino) SELECT 's'||ino,INO(a),ino FROM fs_inode WHERE ino>=5000",
    ),
    // Other values of inodes.
    ("mode-zero", "UPDATE fs_inode SET mode=0"),
    ("mode-negative", "UPDATE fs_inode SET mode=-1 WHERE ino=INO(large)"),
    ("mode-huge", "UPDATE fs_inode SET mode=9223372036854775807 WHERE ino=INO(large)"),
    ("mode-text", "UPDATE fs_inode SET mode='x' WHERE ino=INO(large)"),
    ("mode-device", "UPDATE fs_inode SET mode=24996, rdev=1281 WHERE ino=INO(large)"),
    ("mode-socket", "UPDATE fs_inode SET mode=49645 WHERE ino=INO(large)"),
    ("mode-setuid", "UPDATE fs_inode SET mode=36333 WHERE ino=INO(large)"),
    ("mode-directory-for-file", "UPDATE fs_inode SET mode=16877 WHERE ino=INO(large)"),
    ("mode-file-for-directory", "UPDATE fs_inode SET mode=33188 WHERE ino=INO(a)"),
    ("links-zero", "UPDATE fs_inode SET nlink=0"),
    ("links-negative", "UPDATE fs_inode SET nlink=-7"),
    ("links-huge", "UPDATE fs_inode SET nlink=9223372036854775807"),
    ("owner-negative", "UPDATE fs_inode SET uid=-1, gid=99999999999"),
    (
        "times-huge",
        "UPDATE fs_inode SET atime=9223372036854775807, mtime=-9223372036854775808, ctime=9223372036854775807,
        mtime_nsec=9223372036854775807, atime_nsec=-9223372036854775808",
    ),
    ("times-text", "UPDATE fs_inode SET mtime='yesterday'"),
    (
        "inode-largest",
        "INSERT INTO fs_inode (ino,mode,nlink,atime,mtime,ctime) VALUES (9223372036854775807,33188,1,0,0,0);
        INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('last',1,9223372036854775807)",
    ),
    (
        "inode-negative",
        "INSERT INTO fs_inode (ino,mode,nlink,atime,mtime,ctime) VALUES (-9,16877,1,0,0,0);
        INSERT INTO fs_dentry (name,parent_ino,ino) VALUES ('below',1,-9)",
    ),
    ("inode-zero", "UPDATE fs_inode SET ino=0 WHERE ino=INO(a); UPDATE fs_dentry SET ino=0 WHERE name='a'"),
    // Contents.
    ("chunk-missing", "DELETE FROM fs_data WHERE ino=INO(large) AND chunk_index=1"),
    ("chunk-short", "UPDATE fs_data SET data=x'41' WHERE ino=INO(large) AND chunk_index=0"),
    ("chunk-long", "UPDATE fs_data SET data=zeroblob(40000000) WHERE ino=INO(large) AND chunk_index=0"),
    ("chunk-empty", "UPDATE fs_data SET data=x''"),
    ("chunk-text", "UPDATE fs_data SET data='text'"),
    ("chunk-number", "UPDATE fs_data SET data=7"),
    ("chunk-negative", "UPDATE fs_data SET chunk_index=-chunk_index-1"),
    (
        "chunk-far",
        "UPDATE fs_data SET chunk_index=4611686018427387904 WHERE ino=INO(large) AND chunk_index=2;
        UPDATE fs_inode SET size=9223372036854775807 WHERE ino=INO(large)",
    ),
    ("chunk-of-directory", "UPDATE fs_data SET ino=INO(a) WHERE ino=INO(large)"),
    (
        "chunk-many-tiny",
        "WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i+1 FROM n WHERE i<50000)
        INSERT INTO fs_data SELECT INO(large),i,x'41' FROM n; UPDATE fs_inode SET size=65536*50000 WHERE ino=INO(large)",
    ),
    ("chunk-size-1", "UPDATE fs_config SET value='1' WHERE key='chunk_size'"),
    ("chunk-size-0", "UPDATE fs_config SET value='0' WHERE key='chunk_size'"),
    ("chunk-size-negative", "UPDATE fs_config SET value='-65536' WHERE key='chunk_size'"),
    ("chunk-size-16-mb", "UPDATE fs_config SET value='16777216' WHERE key='chunk_size'"),
    ("chunk-size-huge", "UPDATE fs_config SET value='99999999999999999999' WHERE key='chunk_size'"),
    ("chunk-size-text", "UPDATE fs_config SET value='many' WHERE key='chunk_size'"),
    ("chunk-size-20-mb-text", "UPDATE fs_config SET value=hex(zeroblob(10000000)) WHERE key='chunk_size'"),
    ("chunk-size-missing", "DELETE FROM fs_config"),
    (
        "chunk-size-tiny-huge-file",
        "UPDATE fs_config SET value='2' WHERE key='chunk_size';
        UPDATE fs_inode SET size=8000000000 WHERE ino=INO(large)",
    ),
    // Links.
    ("target-20-mb", "UPDATE fs_symlink SET target=hex(zeroblob(10000000))"),
    ("target-5000", "UPDATE fs_symlink SET target=hex(zeroblob(2500))"),
    ("target-empty", "UPDATE fs_symlink SET target=''"),
    ("target-zero", "UPDATE fs_symlink SET target='a'||char(0)||'b'"),
    ("target-blob", "UPDATE fs_symlink SET target=x'ff00'"),
    ("target-missing", "DELETE FROM fs_symlink"),
    ("target-self", "UPDATE fs_symlink SET target='soft'"),
    ("target-outside", "UPDATE fs_symlink SET target='../../../canary'"),
    ("target-absolute", "UPDATE fs_symlink SET target='/etc/passwd'"),
    (
        "target-then-directory",
        "UPDATE fs_symlink SET target='../../canary';
        UPDATE fs_dentry SET name='soft/x' WHERE name='notes'",
    ),
    // Keys.
    ("value-bomb", "UPDATE kv_store SET value='['||replace(hex(zeroblob(10000000)),'00','1,')||'1]'"),
    ("value-deep", "UPDATE kv_store SET value=replace(hex(zeroblob(2000000)),'00','[')"),
    ("value-not-json", "UPDATE kv_store SET value='{'"),
    ("value-blob", "UPDATE kv_store SET value=x'ff'"),
    ("value-40-mb", "UPDATE kv_store SET value='\"'||hex(zeroblob(20000000))||'\"'"),
    ("key-20-mb", "UPDATE kv_store SET key=hex(zeroblob(10000000))"),
    ("key-blob", "UPDATE kv_store SET key=x'ff00ff'"),
    ("key-control", "UPDATE kv_store SET key=char(27)||']0;x'||char(7)"),
    (
        "keys-many",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<200000)
        INSERT INTO kv_store (key,value) SELECT 'k'||i,'1' FROM n",
    ),
    ("version-negative", "UPDATE sandlite_kv SET version=-1, secret='no'"),
    ("version-largest", "UPDATE sandlite_kv SET version=9223372036854775807"),
    // History and sessions.
    ("output-100-mb", "UPDATE sandlite_run SET stdout=zeroblob(50000000), stderr=zeroblob(50000000) WHERE id=1"),
    ("output-text", "UPDATE sandlite_run SET stdout='text', stderr=5"),
    ("command-20-mb", "UPDATE sandlite_run SET command=hex(zeroblob(10000000))"),
    ("command-blob", "UPDATE sandlite_run SET command=x'ff00'"),
    ("parameters-bomb", "UPDATE tool_calls SET parameters='['||replace(hex(zeroblob(5000000)),'00','1,')||'1]'"),
    ("changes-bomb", "UPDATE sandlite_run SET changes='['||replace(hex(zeroblob(5000000)),'00','{},')||'{}]'"),
    ("usage-bomb", "UPDATE sandlite_run SET usage='{\"fuel\":['||replace(hex(zeroblob(5000000)),'00','[],')||'[]]}'"),
    ("parameters-not-utf8", "UPDATE tool_calls SET parameters=CAST(x'fffefd' AS TEXT)"),
    ("status-number", "UPDATE tool_calls SET status=7, name=8"),
    ("started-text", "UPDATE tool_calls SET started_at='then'; UPDATE sandlite_run SET started_ns='then'"),
    (
        "started-largest",
        "UPDATE tool_calls SET started_at=9223372036854775807, completed_at=-9223372036854775808;
        UPDATE sandlite_run SET started_ns=9223372036854775807, completed_ns=-9223372036854775808",
    ),
    ("exit-code-huge", "UPDATE sandlite_run SET exit_code=99999999999"),
    ("call-largest", "INSERT INTO tool_calls (id,name,started_at) VALUES (9223372036854775807,'bash',0)"),
    ("call-negative", "UPDATE tool_calls SET id=-id; UPDATE sandlite_run SET id=-id"),
    (
        "calls-many",
        "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i+1 FROM n WHERE i<200000)
        INSERT INTO tool_calls (id,name,started_at) SELECT i,'bash',0 FROM n",
    ),
    ("run-without-call", "DELETE FROM tool_calls"),
    ("session-60-mb", "UPDATE sandlite_session SET state=zeroblob(60000000)"),
    ("session-garbage", "UPDATE sandlite_session SET state=randomblob(5000)"),
    ("session-text", "UPDATE sandlite_session SET state='x', updated_ns='y'"),
    (
        "whiteouts",
        "CREATE TABLE fs_whiteout (path TEXT PRIMARY KEY, parent_path TEXT NOT NULL, created_at INTEGER NOT NULL);
        INSERT INTO fs_whiteout VALUES ('../../canary','',0),(hex(zeroblob(5000000)),'/',0),(x'ff','/',0)",
    ),
    // The past.
    ("past-inode-size", "UPDATE sandlite_past_inode SET size=9223372036854775807"),
    ("past-inode-negative", "UPDATE sandlite_past_inode SET size=-1"),
    ("past-inode-mode", "UPDATE sandlite_past_inode SET mode=NULL"),
    ("past-inode-type", "UPDATE sandlite_past_inode SET mode=16877"),
    ("past-inode-state", "UPDATE sandlite_past_inode SET state=7"),
    ("past-inode-times", "UPDATE sandlite_past_inode SET mtime=9223372036854775807, mtime_nsec=-5"),
    ("past-inode-place", "UPDATE sandlite_past_inode SET dir=INO(a), name='../../canary'"),
    ("past-data-empty", "UPDATE sandlite_past_data SET data=x''"),
    ("past-data-text", "UPDATE sandlite_past_data SET data='text'"),
    ("past-data-huge", "UPDATE sandlite_past_data SET data=zeroblob(100000000)"),
    ("past-data-gone", "DELETE FROM sandlite_past_data"),
    ("past-data-elsewhere", "UPDATE sandlite_past_data SET ino=INO(large), chunk_index=chunk_index+1000000000"),
    ("past-name-up", "UPDATE sandlite_past_dentry SET name='../../canary/planted'"),
    ("past-name-slash", "UPDATE sandlite_past_dentry SET name='a/large'"),
    ("past-name-dot-dot", "UPDATE sandlite_past_dentry SET name='..'"),
    ("past-name-20-mb", "UPDATE sandlite_past_dentry SET name=hex(zeroblob(10000000))"),
    ("past-name-control", "UPDATE sandlite_past_dentry SET name=char(27)||'[2J'||char(10)"),
    ("past-name-root", "UPDATE sandlite_past_dentry SET ino=1"),
    ("past-name-ino", "UPDATE sandlite_past_dentry SET ino=-3"),
    ("past-name-null", "UPDATE sandlite_past_dentry SET ino=NULL"),
    ("past-name-entry", "UPDATE sandlite_past_dentry SET entry='x'"),
    (
        "past-cycle",
        "INSERT INTO sandlite_past_dentry SELECT (SELECT max(id) FROM sandlite_past_dentry)+row_number() OVER (), 0, ino, 'self', ino, 1
        FROM sandlite_past_dentry WHERE ino NOT NULL",
    ),
    (
        "past-cycle-tree",
        "INSERT INTO sandlite_past_dentry SELECT (SELECT max(id) FROM sandlite_past_dentry)+ino, 0, ino, 'up', 1, 1 FROM fs_inode
        WHERE (mode & 61440)=16384",
    ),
    ("past-link", "UPDATE sandlite_past_symlink SET target=x'ff00'"),
    ("past-link-20-mb", "UPDATE sandlite_past_symlink SET target=hex(zeroblob(10000000))"),
    ("past-key", "UPDATE sandlite_past_kv SET value='not json', state=0"),
    ("past-key-20-mb", "UPDATE sandlite_past_kv SET key=hex(zeroblob(10000000))"),
    ("past-session", "UPDATE sandlite_past_session SET state=7, content='text'"),
    ("past-numbers", "UPDATE sandlite_past_data SET id=id+(1<<40); UPDATE sandlite_past_dentry SET id=-id"),
    ("version-mark", "UPDATE sandlite_version SET mark=-1"),
    ("version-mark-high", "UPDATE sandlite_version SET mark=9007199254740991, entries=9007199254740991"),
    ("version-mark-low", "UPDATE sandlite_version SET mark=2, entries=1"),
    ("version-entries", "UPDATE sandlite_version SET entries='x'"),
    ("version-number", "UPDATE sandlite_version SET id=id+4000000000"),
    ("version-last", "INSERT INTO sandlite_version SELECT 2147483647, time_ns, call, mark, entries, total, outside, inodes, digest
        FROM sandlite_version ORDER BY id DESC LIMIT 1"),
    ("version-gap", "DELETE FROM sandlite_version WHERE id=2"),
    ("version-none", "DELETE FROM sandlite_version"),
    ("version-total", "UPDATE sandlite_version SET total=-5"),
    ("version-inodes", "UPDATE sandlite_version SET inodes=x'ffffffffffffffffffffffffff'"),
    ("version-inodes-long", "UPDATE sandlite_version SET inodes=zeroblob(50000000)"),
    ("version-outside", "UPDATE sandlite_version SET outside=id, inodes=x'00'"),
    ("version-digest", "UPDATE sandlite_version SET digest=zeroblob(5)"),
    ("version-time", "UPDATE sandlite_version SET time_ns='x'"),
    (
        "version-million",
        "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i+1 FROM n WHERE i<1000000)
        INSERT INTO sandlite_version SELECT i, 0, NULL, v.mark, v.entries, v.total, 0, x'', NULL FROM n, (SELECT * FROM sandlite_version
        ORDER BY id DESC LIMIT 1) v",
    ),
    ("label-elsewhere", "UPDATE sandlite_label SET version=99"),
    ("label-control", "UPDATE sandlite_label SET name=char(27)||'[2J'"),
    ("label-20-mb", "UPDATE sandlite_label SET name=hex(zeroblob(10000000))"),
    ("digest-parent", "UPDATE sandlite_digest SET parent=ino"),
    ("digest-cycle", "UPDATE sandlite_digest SET parent=INO(b) WHERE parent NOT NULL"),
    ("digest-text", "UPDATE sandlite_digest SET digest='x', attributes='y', mode='z'"),
];

/// `PRAGMA writable_schema` is on; `SET(table, old, new)` stands for a change of a table's text.
pub const SCHEMA: &[Lie] = &[
    ("check-400-mb", "SET(fs_inode, mode INTEGER NOT NULL, mode INTEGER NOT NULL CHECK (length(hex(zeroblob(200000000)))>0))"),
    ("check-400-mb-calls", "SET(tool_calls, name TEXT NOT NULL, name TEXT NOT NULL CHECK (length(hex(zeroblob(200000000)))>0))"),
    (
        "check-recursive",
        "SET(tool_calls, name TEXT NOT NULL, name TEXT NOT NULL CHECK (length(replace(hex(zeroblob(60000000)),'00',hex(zeroblob(9))))>0))",
    ),
    ("default-400-mb", "SET(tool_calls, DEFAULT 'pending', DEFAULT (hex(zeroblob(200000000))))"),
    (
        "default-400-mb-inode",
        "SET(fs_inode, rdev INTEGER NOT NULL DEFAULT 0, rdev INTEGER NOT NULL DEFAULT (length(hex(zeroblob(200000000)))))",
    ),
    ("generated-virtual", "SET(fs_inode, rdev INTEGER NOT NULL DEFAULT 0, rdev INTEGER AS (length(hex(zeroblob(200000000)))))"),
    ("generated-stored", "ALTER TABLE fs_dentry ADD COLUMN more AS (hex(zeroblob(200000000)))"),
    ("generated-session", "ALTER TABLE sandlite_session ADD COLUMN more AS (hex(zeroblob(200000000)))"),
    ("collation", "SET(fs_dentry, name TEXT NOT NULL, name TEXT NOT NULL COLLATE nocase)"),
    ("collation-unknown", "SET(fs_dentry, name TEXT NOT NULL, name TEXT NOT NULL COLLATE unheard)"),
    ("column-more", "ALTER TABLE fs_inode ADD COLUMN more"),
    ("column-renamed", "ALTER TABLE fs_inode RENAME COLUMN size TO length"),
    (
        "foreign-key",
        "SET(fs_dentry, parent_ino INTEGER NOT NULL, parent_ino INTEGER NOT NULL REFERENCES kv_store ON DELETE CASCADE)",
    ),
    ("strict", "DROP TABLE fs_symlink; CREATE TABLE fs_symlink (ino INTEGER PRIMARY KEY, target TEXT NOT NULL) STRICT"),
    (
        "without-rowid",
        "DROP TABLE fs_data; CREATE TABLE fs_data (ino INTEGER NOT NULL, chunk_index INTEGER NOT NULL, data BLOB NOT NULL,
        PRIMARY KEY (ino, chunk_index)) WITHOUT ROWID",
    ),
    ("index-more", "CREATE INDEX more ON fs_inode(size)"),
    (
        "index-expression",
        "CREATE INDEX more ON fs_dentry(length(name)); SET(more, length(name), length(hex(zeroblob(200000000))))",
    ),
    ("index-partial", "CREATE INDEX idx_tool_calls_name ON tool_calls(name) WHERE length(name)>99"),
    (
        "index-of-sdk",
        "CREATE INDEX idx_tool_calls_name ON tool_calls(name); CREATE INDEX idx_kv_store_created_at ON kv_store(created_at)",
    ),
    (
        "index-of-sdk-lies",
        "CREATE INDEX idx_tool_calls_name ON tool_calls(name); UPDATE fs_inode SET size=8000000000;
        UPDATE fs_dentry SET ino=INO(a) WHERE name='c'",
    ),
    ("index-gone", "DROP INDEX idx_fs_dentry_parent"),
    ("trigger-call", "CREATE TRIGGER t AFTER INSERT ON tool_calls BEGIN UPDATE kv_store SET value=hex(zeroblob(200000000)); END"),
    ("trigger-inode", "CREATE TRIGGER t AFTER UPDATE ON fs_inode BEGIN DELETE FROM fs_inode; END"),
    ("trigger-apart", "CREATE TABLE mine (x); CREATE TRIGGER t AFTER INSERT ON mine BEGIN DELETE FROM fs_inode; END"),
    (
        "view-for-keys",
        "DROP TABLE kv_store; CREATE VIEW kv_store AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n)
        SELECT 'k'||i AS key, '1' AS value, 0 AS created_at, 0 AS updated_at FROM n",
    ),
    ("view-for-entries", "ALTER TABLE fs_dentry RENAME TO mine; CREATE VIEW fs_dentry AS SELECT * FROM mine"),
    ("view-apart", "CREATE VIEW mine AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT * FROM n"),
    ("virtual-for-calls", "DROP TABLE tool_calls; CREATE VIRTUAL TABLE tool_calls USING fts5(id, name, started_at)"),
    (
        "virtual-apart",
        "CREATE VIRTUAL TABLE mine USING fts5(x); CREATE VIRTUAL TABLE mine2 USING rtree(id, a, b);
        CREATE VIRTUAL TABLE mine3 USING dbstat",
    ),
    ("table-upper-case", "ALTER TABLE kv_store RENAME TO mine; CREATE TABLE KV_STORE (key, value AS (hex(zeroblob(200000000))))"),
    ("table-gone", "DROP TABLE sandlite_run"),
    ("table-gone-data", "DROP TABLE fs_data"),
    ("table-of-the-future", "CREATE TABLE sandlite_future (x)"),
    (
        "table-own",
        "CREATE TABLE mine (x, y AS (hex(zeroblob(200000000))), CHECK (length(hex(zeroblob(200000000)))>0)); CREATE INDEX mine_x ON mine(x)",
    ),
    (
        "text-long",
        "CREATE TABLE mine (x); UPDATE sqlite_schema SET sql='CREATE TABLE mine (x /*'||hex(zeroblob(5000000))||'*/)' WHERE name='mine'",
    ),
    (
        "text-deep",
        "CREATE TABLE mine (x); UPDATE sqlite_schema SET sql='CREATE TABLE mine (x CHECK ('||replace(hex(zeroblob(2000)),'00','(')||'1'||replace(hex(zeroblob(2000)),'00',')')||'))' WHERE name='mine'",
    ),
    (
        "text-columns",
        "CREATE TABLE mine (x); UPDATE sqlite_schema SET sql='CREATE TABLE mine (x'||replace(hex(zeroblob(1500)),'00',',y')||')' WHERE name='mine'",
    ),
    ("text-broken", "UPDATE sqlite_schema SET sql='CREATE TABLE fs_inode (' WHERE name='fs_inode'"),
    ("text-null", "UPDATE sqlite_schema SET sql=NULL WHERE name='fs_inode'"),
    ("text-blob", "UPDATE sqlite_schema SET sql=CAST(sql AS BLOB)"),
    ("type-lie", "UPDATE sqlite_schema SET type='index' WHERE name='fs_data'"),
    (
        "pages-shared",
        "UPDATE sqlite_schema SET rootpage=(SELECT rootpage FROM sqlite_schema WHERE name='fs_inode') WHERE name='tool_calls'",
    ),
    ("page-first", "UPDATE sqlite_schema SET rootpage=1 WHERE name='fs_data'"),
    ("page-missing", "UPDATE sqlite_schema SET rootpage=99999999 WHERE name='fs_data'"),
    ("page-negative", "UPDATE sqlite_schema SET rootpage=-1 WHERE name='fs_data'"),
    ("statistics", "ANALYZE; UPDATE sqlite_stat1 SET stat='9223372036854775807 1 1'"),
    ("statistics-4", "ANALYZE"),
];
