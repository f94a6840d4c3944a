//! Wheels: pure-Python packages are installed into the sandbox, and nothing that only looks like one.

use runtime::{Package, Sandbox};

use super::{check_error, python3, sandbox, texts};

/// Python code that makes `/w.whl` of `files`; what it does to them can be changed.
const BUILD: &str = r##"
import base64, hashlib, zipfile
name, version, tag = "Greet.It", "1.2", "py3-none-any"
files = {
    "greet/__init__.py": "def hello(): print('hello from a wheel')\ndef main(): hello(); return 3\n",
    "greet/data.txt": "deep" * 1000,
    "{stem}.data/scripts/greet-script": "#!python\nimport greet; greet.hello()\n",
    "{stem}.dist-info/METADATA": "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: six>=1\nRequires-Dist: x; extra == 'y'\n\nName: no\n",
    "{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
    "{stem}.dist-info/entry_points.txt": "[console_scripts]\ngreet = greet:main\n",
}
CHANGE
stem = "Greet_It-" + version
def fill(text): return text.replace("{stem}", stem).replace("{name}", name).replace("{version}", version).replace("{tag}", tag)
files = {fill(path): fill(text).encode() for path, text in files.items()}
record = "".join(
    f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')},{len(data)}\n"
    for path, data in files.items())
AFTER
with zipfile.ZipFile("/w.whl", "w", zipfile.ZIP_DEFLATED) as archive:
    for path, data in files.items():
        archive.writestr(path, data)
    archive.writestr(f"{stem}.dist-info/RECORD", record + f"{stem}.dist-info/RECORD,,\n")
"##;

fn build(sandbox: &Sandbox, change: &str, after: &str) -> Vec<u8> {
    let output = sandbox.python(BUILD.replace("CHANGE", change).replace("AFTER", after)).unwrap();
    assert_eq!((texts(&output).1.as_str(), output.status.code()), ("", 0));
    sandbox.fs().read("/w.whl").unwrap()
}

fn install(sandbox: &Sandbox, change: &str) -> Package {
    let wheel = build(sandbox, change, "");
    sandbox.packages().install(&wheel).unwrap()
}

#[test]
fn a_wheel_is_imported_run_and_listed() {
    let sandbox = sandbox();
    let package = install(&sandbox, "");
    let expected = Package {
        name: "Greet.It".to_owned(),
        version: "1.2".to_owned(),
        requires: vec!["six>=1".to_owned()],
        programs: vec!["greet".to_owned()],
    };
    assert_eq!(package, expected);
    assert_eq!(sandbox.packages().list().unwrap(), [expected]);
    let code = "import greet, importlib.metadata as m; greet.hello(); print(m.version('greet.it'), len(m.files('greet.it')))";
    assert_eq!(texts(&sandbox.python(code).unwrap()), ("hello from a wheel\n1.2 9\n".to_owned(), String::new()));
    let output = sandbox.bash("greet; echo $?; greet-script; head -1 ~/.local/bin/greet-script").unwrap();
    assert_eq!(texts(&output), ("hello from a wheel\n3\nhello from a wheel\n#!/usr/bin/python3\n".to_owned(), String::new()));
    assert!(sandbox.history(20).unwrap().iter().any(|run| run.command == "install_package Greet.It==1.2"));
}

#[test]
fn a_new_version_takes_the_place_of_the_old_one_and_uninstalling_leaves_nothing() {
    let sandbox = sandbox();
    install(&sandbox, "files['greet/old.py'] = ''");
    install(&sandbox, "version = '2.0'");
    let found = sandbox.bash("find ~/.local -type f | sort | sed 's|/home/user/.local/||'").unwrap();
    let info = "lib/python3.14/site-packages/Greet_It-2.0.dist-info";
    let expected = format!(
        "bin/greet\nbin/greet-script\n{info}/INSTALLER\n{info}/METADATA\n{info}/RECORD\n{info}/WHEEL\n{info}/entry_points.txt\nlib/python3.14/site-packages/greet/__init__.py\nlib/python3.14/site-packages/greet/data.txt\n"
    );
    assert_eq!(texts(&found).0, expected);
    sandbox.python("import greet").unwrap();
    assert!(sandbox.packages().uninstall("GREET-it").unwrap());
    assert!(!sandbox.packages().uninstall("greet-it").unwrap());
    assert_eq!(sandbox.bash("find ~/.local -type f; ls ~/.local/lib/python3.14/site-packages").unwrap().stdout, b"");
}

#[test]
fn what_is_not_as_it_should_be_is_refused_whole() {
    let sandbox = sandbox();
    for (change, after, reason) in [
        (
            "tag = 'cp314-cp314-linux_x86_64'",
            "",
            "it is for cp314-cp314-linux_x86_64, and only pure Python (py3-none-any) runs here",
        ),
        ("files['../evil.py'] = ''", "", "\"../evil.py\" is no name for a file"),
        ("files['/etc/evil'] = ''", "", "\"/etc/evil\" is no name for a file"),
        ("", "files['greet/__init__.py'] += b'#'", "`greet/__init__.py` is not the file that its RECORD describes"),
        ("", "files['greet/more.py'] = b''", "`greet/more.py` is not in its RECORD"),
        ("", "del files['greet/data.txt']", "`greet/data.txt` is in its RECORD and not there"),
        ("", "files.pop(stem + '.dist-info/WHEEL')", "it has no file WHEEL"),
        ("name = 'other'", "", "METADATA is of other 1.2, the directory of Greet_It-1.2"),
        ("files['x-1.dist-info/METADATA'] = ''", "", "it has more than one directory .dist-info"),
    ] {
        let wheel = build(&sandbox, change, after);
        let error = sandbox.packages().install(&wheel).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(format!("the wheel is refused: {reason}").as_str()), "{change}{after}");
    }
    assert_eq!(sandbox.bash("ls -A ~").unwrap().stdout, b"");
}

#[test]
fn a_bomb_is_refused() {
    let sandbox = sandbox();
    let code = "import zipfile\nwith zipfile.ZipFile('/w.whl', 'w', zipfile.ZIP_DEFLATED) as archive:\n    for i in range(5):\n        with archive.open(f'a{i}', 'w') as file:\n            for _ in range(60): file.write(bytes(1 << 20))";
    assert_eq!(texts(&sandbox.python(code).unwrap()).1, "");
    let wheel = sandbox.fs().read("/w.whl").unwrap();
    assert!(wheel.len() < 1 << 20);
    let error = sandbox.packages().install(&wheel).unwrap_err().to_string();
    assert_eq!(error, "the wheel is refused: `a4` cannot be unpacked: it is damaged, or too large");
}

#[test]
fn inside_pip_says_what_to_do() {
    let output = python3(&["-m", "pip", "install", "six"]);
    let expected = "python3: packages are installed from outside the sandbox: `sandlite pip install PACKAGE` (pure Python only, a name or a .whl file)\n";
    assert_eq!((texts(&output).1.as_str(), output.status.code()), (expected, 1));
    check_error("import nothing_at_all", "ModuleNotFoundError: No module named 'nothing_at_all'");
}
