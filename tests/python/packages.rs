//! Wheels: pure-Python packages are installed into the sandbox, and nothing that only looks like one.

use runtime::{Fetched, Installation, Package, Sandbox, Sources};

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
    assert_eq!(texts(&sandbox.python(code).unwrap()), ("hello from a wheel\n1.2 10\n".to_owned(), String::new()));
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
        "bin/greet\nbin/greet-script\n{info}/INSTALLER\n{info}/METADATA\n{info}/RECORD\n{info}/WHEEL\n{info}/entry_points.txt\nlib/python3.14/site-packages/greet/__init__.py\nlib/python3.14/site-packages/greet/__pycache__/__init__.cpython-314.pyc\nlib/python3.14/site-packages/greet/data.txt\n"
    );
    assert_eq!(texts(&found).0, expected);
    sandbox.python("import greet").unwrap();
    assert!(sandbox.packages().uninstall("GREET-it").unwrap());
    assert!(!sandbox.packages().uninstall("greet-it").unwrap());
    assert_eq!(sandbox.bash("find ~/.local -type f; ls ~/.local/lib/python3.14/site-packages").unwrap().stdout, b"");
}

#[test]
fn an_invalid_wheel_is_rejected_as_a_whole() {
    let sandbox = sandbox();
    for (change, after, reason) in [
        (
            "tag = 'cp314-cp314-linux_x86_64'",
            "",
            "it is built for cp314-cp314-linux_x86_64; only pure Python (py3-none-any) is supported",
        ),
        ("files['../evil.py'] = ''", "", "invalid file name \"../evil.py\""),
        ("files['/etc/evil'] = ''", "", "invalid file name \"/etc/evil\""),
        ("", "files['greet/__init__.py'] += b'#'", "`greet/__init__.py` does not match RECORD"),
        ("", "files['greet/more.py'] = b''", "`greet/more.py` is not listed in RECORD"),
        ("", "del files['greet/data.txt']", "`greet/data.txt` is listed in RECORD but missing"),
        ("", "files.pop(stem + '.dist-info/WHEEL')", "missing file WHEEL"),
        ("name = 'other'", "", "METADATA describes other 1.2, but the directory belongs to Greet_It-1.2"),
        ("files['x-1.dist-info/METADATA'] = ''", "", "more than one directory .dist-info"),
    ] {
        let wheel = build(&sandbox, change, after);
        let error = sandbox.packages().install(&wheel).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(format!("invalid wheel: {reason}").as_str()), "{change}{after}");
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
    assert_eq!(error, "invalid wheel: cannot unpack `a4`: it is damaged, or too large");
}

#[test]
fn pip_inside_prints_a_hint() {
    let output = python3(&["-m", "pip", "install", "six"]);
    let expected = "python3: packages are installed from outside the sandbox: `sandlite pip install PACKAGE` (pure Python only, a name or a .whl file)\n";
    assert_eq!((texts(&output).1.as_str(), output.status.code()), (expected, 1));
    check_error("import nothing_at_all", "ModuleNotFoundError: No module named 'nothing_at_all'");
}

#[test]
fn compiled_modules_are_used_until_the_source_changes() {
    let sandbox = sandbox();
    install(&sandbox, "");
    let code = "import importlib.util, os, struct\n\
                spec = importlib.util.find_spec('greet')\n\
                magic, flags, time, size = struct.unpack('<4sIII', open(spec.cached, 'rb').read(16))\n\
                stat = os.stat(spec.origin)\n\
                print(magic == importlib.util.MAGIC_NUMBER, flags, time == int(stat.st_mtime), size == stat.st_size)";
    assert_eq!(texts(&sandbox.python(code).unwrap()), ("True 0 True True\n".to_owned(), String::new()));
    // Other bytecode in its place is then imported.
    let swap = "import importlib.util, marshal\n\
                spec = importlib.util.find_spec('greet')\n\
                head = open(spec.cached, 'rb').read(16)\n\
                open(spec.cached, 'wb').write(head + marshal.dumps(compile('value = 7', spec.origin, 'exec')))";
    assert_eq!(texts(&sandbox.python(swap).unwrap()).1, "");
    assert_eq!(sandbox.python("import greet; print(greet.value)").unwrap().stdout, b"7\n");
    sandbox.bash("echo 'value = 8' > ~/.local/lib/python3.14/site-packages/greet/__init__.py").unwrap();
    assert_eq!(sandbox.python("import greet; print(greet.value)").unwrap().stdout, b"8\n");
}

/// The file that gives the wheel a compiled part.
const COMPILED: &str = "tag = 'cp314-cp314-manylinux_2_17_x86_64'\n\
    files['{stem}.dist-info/WHEEL'] = files['{stem}.dist-info/WHEEL'].replace('true', 'false')\n\
    files['greet/_fast.cpython-314-x86_64-linux-gnu.so'] = 'ELF'\n";

// pip finds no pure wheel, and this one among the others.
fn install_compiled(sandbox: &Sandbox, change: &str) -> Installation {
    let wheel = build(sandbox, &format!("{COMPILED}{change}"), "");
    let file = "Greet_It-1.2-cp314-cp314-manylinux_2_17_x86_64.whl";
    let pip = |arguments: &[String]| {
        let is_compiled = arguments.iter().any(|word| word == "--abi=cp314");
        let missing = || Fetched::Err("ERROR: No matching distribution found for greet-it".to_owned());
        Ok(if is_compiled { Ok(vec![(file.to_owned(), wheel.clone())]) } else { missing() })
    };
    sandbox.packages().install_named(&["greet.it".to_owned()], Vec::new(), &Sources::default(), pip).unwrap()
}

#[test]
fn a_compiled_part_that_is_not_needed_is_left_out() {
    let sandbox = sandbox();
    let change =
        "files['greet/__init__.py'] = 'try:\\n    from greet._fast import x\\nexcept ImportError:\\n    x = \"slow\"\\n'";
    let done = install_compiled(&sandbox, change);
    assert_eq!((done.installed[0].name.as_str(), done.refused.len()), ("Greet.It", 0));
    assert_eq!(done.missing, ["six>=1"]);
    let output = sandbox.bash("python3 -c 'import greet; print(greet.x)'; find ~/.local -name '*.so'").unwrap();
    assert_eq!(texts(&output), ("slow\n".to_owned(), String::new()));
}

#[test]
fn a_package_that_needs_its_compiled_part_is_refused_with_the_reason() {
    let sandbox = sandbox();
    let done = install_compiled(&sandbox, "files['greet/__init__.py'] = 'from greet import _fast\\n'");
    let refused = &done.refused[0];
    assert_eq!((refused.name.as_str(), done.installed.len()), ("greet-it", 0));
    assert!(refused.reason.starts_with("it does not work without its native code: ImportError: "), "{}", refused.reason);
    assert_eq!(sandbox.packages().list().unwrap(), []);
}

#[test]
fn names_that_pip_might_run_code_for_are_not_handed_to_it() {
    let sandbox = sandbox();
    // The last two are files of the current directory, which pip would build.
    for name in
        ["six @ https://example.com/six.whl", "git+https://example.com/six", "--index-url=x", "a;b", "a.tar.gz", "a.zip[x]"]
    {
        let asked = |_: &[String]| panic!("pip was asked for {name}");
        let error = sandbox.packages().install_named(&[name.to_owned()], Vec::new(), &Sources::default(), asked).unwrap_err();
        assert!(error.to_string().starts_with("invalid package name `"), "{error}");
    }
}
