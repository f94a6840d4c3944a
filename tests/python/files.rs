//! Python's files are the sandbox's files, with the metadata of Linux.

use super::{check, check_error, python, sandbox, texts};

#[test]
fn files_are_shared_with_the_rest_of_the_sandbox() {
    let sandbox = sandbox();
    sandbox.fs().write("/home/user/in.txt", "from outside").unwrap();
    let output = sandbox.python("print(open('in.txt').read()); open('out.txt', 'w').write('from inside')").unwrap();
    assert_eq!(texts(&output).0, "from outside\n");
    assert_eq!(sandbox.fs().read("/home/user/out.txt").unwrap(), b"from inside");
}

#[test]
fn a_file_left_open_is_written_at_the_end() {
    let sandbox = sandbox();
    sandbox.python("f = open('g', 'w'); f.write('kept')").unwrap();
    assert_eq!(sandbox.fs().read("/home/user/g").unwrap(), b"kept");
}

#[test]
fn directories_change_and_paths_follow() {
    check(
        "import os\nos.makedirs('a/b'); os.chdir('a'); open('x', 'w').close()\n\
         print(os.getcwd(), os.listdir(), os.path.realpath('b/../x'), os.path.exists('../a/x'))",
        "/home/user/a ['b', 'x'] /home/user/a/x True\n",
    );
}

#[test]
fn permissions_are_kept_and_obeyed() {
    check(
        "import os, stat\nopen('f', 'w').close()\nprint(oct(os.stat('f').st_mode))\nos.chmod('f', 0o750)\n\
         print(stat.filemode(os.stat('f').st_mode), os.access('f', os.X_OK), os.stat('f').st_uid)\n\
         os.mkdir('d', 0o700); print(oct(os.stat('d').st_mode))\n\
         print(oct(os.umask(0o077)), oct(os.umask(0o022)))\n\
         fd = os.open('g', os.O_CREAT | os.O_WRONLY, 0o600); print(oct(os.fstat(fd).st_mode))",
        "0o100644\n-rwxr-x--- True 1000\n0o40700\n0o22 0o77\n0o100600\n",
    );
    check_error(
        "import os; open('f', 'w').close(); os.chmod('f', 0); open('f')",
        "PermissionError: [Errno 2] Permission denied: 'f'",
    );
    check_error("import os; os.mkdir('d', 0o600); os.chdir('d')", "PermissionError: [Errno 2] Permission denied: 'd'");
}

#[test]
fn pathlib_shutil_tempfile_and_glob_work() {
    check(
        "import glob, pathlib, shutil, tempfile\n\
         p = pathlib.Path('t'); p.mkdir(); (p / 'a.txt').write_text('ä'); (p / 'l').symlink_to('a.txt')\n\
         shutil.copytree('t', 'u', symlinks=True); shutil.copy2('t/a.txt', 'u/b.txt'); shutil.move('u/b.txt', 'u/c.txt')\n\
         print(sorted(glob.glob('**/*', recursive=True)))\n\
         print((pathlib.Path('u') / 'l').readlink(), (p / 'l').read_text(), p.stat().st_mode & 0o777 == 0o755)\n\
         shutil.rmtree('t'); print(p.exists(), pathlib.Path.home())\n\
         with tempfile.TemporaryDirectory() as d: print(d.startswith('/tmp/'), oct(pathlib.Path(d).stat().st_mode))\n\
         with tempfile.NamedTemporaryFile('w+') as f: f.write('x'); f.seek(0); print(f.read(), oct(pathlib.Path(f.name).stat().st_mode))",
        "['t', 't/a.txt', 't/l', 'u', 'u/a.txt', 'u/c.txt', 'u/l']\na.txt ä True\nFalse /home/user\nTrue 0o40700\nx 0o100600\n",
    );
}

#[test]
fn sqlite_zip_and_csv_work_on_sandbox_files() {
    check(
        "import csv, io, sqlite3, zipfile\n\
         db = sqlite3.connect('x.db'); db.execute('create table t (a, b)'); db.executemany('insert into t values (?, ?)', [(1, 'x'), (2, 'y')])\n\
         db.commit(); db.close(); print(sqlite3.connect('x.db').execute('select sum(a), group_concat(b) from t').fetchone())\n\
         with zipfile.ZipFile('x.zip', 'w', zipfile.ZIP_DEFLATED) as z: z.write('x.db'); z.writestr('n', 'text')\n\
         print(sorted(zipfile.ZipFile('x.zip').namelist()), zipfile.ZipFile('x.zip').read('n'))\n\
         with open('x.csv', 'w', newline='') as f: csv.writer(f).writerows([['a', 'b,c'], [1, 2]])\n\
         print(list(csv.DictReader(open('x.csv'))))",
        "(3, 'x,y')\n['n', 'x.db'] b'text'\n[{'a': '1', 'b,c': '2'}]\n",
    );
}

#[test]
fn the_library_cannot_be_changed() {
    for code in [
        "open('/usr/local/lib/python314.zip', 'ab')",
        "open('/usr/local/lib/x', 'w')",
        "import os; os.remove('/usr/bin/python3')",
    ] {
        assert_eq!(python(code).status.code(), 1, "{code}");
    }
}

#[test]
fn no_compiled_files_are_left_behind() {
    let sandbox = sandbox();
    sandbox.fs().write("/home/user/m.py", "X = 1").unwrap();
    let output = sandbox.python("import m, os; print(m.X, os.listdir())").unwrap();
    assert_eq!(texts(&output).0, "1 ['m.py']\n");
}

#[test]
fn packages_are_found_in_the_users_site() {
    let sandbox = sandbox();
    let site = "/home/user/.local/lib/python3.14/site-packages/thing";
    sandbox.fs().create_dir_all(site).unwrap();
    sandbox.fs().write(&format!("{site}/__init__.py"), "NAME = 'thing'").unwrap();
    assert_eq!(texts(&sandbox.python("import thing; print(thing.NAME)").unwrap()).0, "thing\n");
}

#[test]
fn a_copied_tree_keeps_its_permissions() {
    let code = "import os, shutil\nos.makedirs('a/b')\nopen('a/b/f', 'w').write('x')\nos.chmod('a/b/f', 0o640)\nos.symlink('f', 'a/b/l')\n\
                shutil.copytree('a', 'c', symlinks=True)\nprint(oct(os.stat('c/b/f').st_mode), open('c/b/f').read(), os.readlink('c/b/l'))\n\
                with os.scandir('a/b') as entries: print(sorted((e.name, e.is_symlink(), oct(e.stat().st_mode)) for e in entries))";
    check(code, "0o100640 x f\n[('f', False, '0o100640'), ('l', True, '0o100640')]\n");
}

#[test]
fn the_environment_is_the_same_as_bytes() {
    check("import os; os.environ['A'] = 'x'; print(os.environb[b'A'], os.path.expandvars(b'$A'))", "b'x' b'x'\n");
}
