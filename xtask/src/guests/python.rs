//! CPython as a guest: its bytes come from a pinned package, and our glue is imported into it once, here.
//!
//! Nothing of the interpreter is in the repository: `guests/python` names the package, its version and the sha256 of each
//! file taken from it.

mod snapshot;
mod stack;
mod wasi;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use sha2::{Digest, Sha256};

use super::{files, hex, megabytes, pack};
use crate::run::{cargo, output, root, run, step, target};

const PACKAGE: &str = "bashkit-cpython-wasm";

/// Where the modules come from that the package leaves out of the standard library.
const MORE_PACKAGE: &str = "rustpython-pylib";
const MORE_MODULES: [&str; 31] = [
    "_pydatetime.py",
    "_pydecimal.py",
    "_pyio.py",
    "_pyrepl",
    "bdb.py",
    "bz2.py",
    "cmd.py",
    "compileall.py",
    "dbm",
    "doctest.py",
    "http/server.py",
    "lzma.py",
    "mailbox.py",
    "modulefinder.py",
    "netrc.py",
    "pickletools.py",
    "plistlib.py",
    "profile.py",
    "pstats.py",
    "pyclbr.py",
    "pydoc.py",
    "pydoc_data",
    "rlcompleter.py",
    "shelve.py",
    "socketserver.py",
    "tabnanny.py",
    "this.py",
    "trace.py",
    "unittest",
    "wave.py",
    "zipapp.py",
];
const MODULE: &str = "python.wasm";
const PACKED: &str = "python.wasm.xz";
const LIBRARY: &str = "python314.zip";
const MORE: &str = "python314-more.zip";
const LICENSES: &str = "THIRD_PARTY_LICENSES.md";
const MORE_LICENSE: &str = "PSF-LICENSE";

/// Builds what changed into `dist`.
pub(super) fn build(dist: &Path) -> crate::Outcome {
    let key = key()?;
    let key_file = dist.join("python.key");
    let built = [PACKED, "python.sha256", LIBRARY, MORE, "python.licenses"].iter().all(|name| dist.join(name).exists());
    if built && fs::read_to_string(&key_file).is_ok_and(|built| built == key) {
        return Ok(());
    }
    let started = Instant::now();
    step("fetching CPython");
    let metadata = fetch()?;
    let package = directory_of(PACKAGE, &metadata)?;
    let packed = pinned(PACKED, fs::read(package.join("artifacts").join(PACKED))?)?;
    let library = pinned(LIBRARY, fs::read(package.join("artifacts").join(LIBRARY))?)?;
    let mut module = Vec::new();
    lzma_rust2::XzReader::new(packed.as_slice(), false).read_to_end(&mut module)?;
    let module = pinned(MODULE, module)?;
    step("making CPython at home in the sandbox");
    let more = directory_of(MORE_PACKAGE, &metadata)?.join("Lib");
    let more_library = snapshot::compile(&module, &library, &sources(&more)?)?;
    let module = snapshot::take(&module, &library, &modules("lib")?)?;
    step("packing CPython");
    let packed = pack(&module)?;
    fs::create_dir_all(dist)?;
    fs::write(dist.join(PACKED), &packed)?;
    fs::write(dist.join(LIBRARY), &library)?;
    fs::write(dist.join(MORE), &more_library)?;
    fs::write(dist.join("python.licenses"), licenses(&package, &more)?)?;
    fs::write(dist.join("python.sha256"), hex(&Sha256::digest(&module)))?;
    fs::write(&key_file, key)?;
    eprintln!(
        "    python.wasm: {:.1} MB, packed {:.1} MB, in {} s",
        megabytes(module.len()),
        megabytes(packed.len()),
        started.elapsed().as_secs()
    );
    Ok(())
}

fn home() -> PathBuf {
    root().join("guests/python")
}

// Everything that decides what comes out: the pins, the glue, and how the two are put together.
fn key() -> crate::Fallible<String> {
    let mut hasher = Sha256::new();
    hasher.update(include_str!("python.rs"));
    hasher.update(include_str!("../../../guests/image/src/lib.rs"));
    hasher.update(include_str!("python/snapshot.rs"));
    hasher.update(include_str!("python/stack.rs"));
    hasher.update(include_str!("python/wasi.rs"));
    // Of the scientific interpreter nothing is built here.
    let is_ours = |file: &PathBuf| file.extension().is_none_or(|ext| ext != "md") && !file.starts_with(home().join("sci"));
    for file in files(&home())?.into_iter().filter(is_ours) {
        hasher.update(file.strip_prefix(root())?.to_string_lossy().as_bytes());
        hasher.update([0]);
        hasher.update(fs::read(&file)?);
    }
    Ok(hex(&hasher.finalize()))
}

// Our own modules in a folder of `guests/python`: name and source, in the order of their names.
fn modules(folder: &str) -> crate::Fallible<Vec<(String, Vec<u8>)>> {
    let mut modules = Vec::new();
    for file in files(&home().join(folder))?.into_iter().filter(|file| file.extension().is_some_and(|ext| ext == "py")) {
        let name = file.file_name().ok_or("a module without a name")?.to_string_lossy().into_owned();
        modules.push((name, fs::read(&file)?));
    }
    Ok(modules)
}

// The modules to add, those of `guests/python/modules` among them: path below the library, and source.
fn sources(library: &Path) -> crate::Fallible<Vec<(String, Vec<u8>)>> {
    let mut sources = modules("modules")?;
    for module in MORE_MODULES {
        for file in files(&library.join(module))?.into_iter().filter(|file| file.extension().is_some_and(|ext| ext == "py")) {
            sources.push((file.strip_prefix(library)?.to_string_lossy().into_owned(), fs::read(&file)?));
        }
    }
    Ok(sources)
}

// The licenses that the interpreter's package lists for everything linked into it, and those of modules from elsewhere.
fn licenses(package: &Path, more: &Path) -> crate::Fallible<String> {
    let linked = fs::read_to_string(package.join(LICENSES))?;
    let text = fs::read_to_string(more.join(MORE_LICENSE))?;
    let modules = MORE_MODULES.map(|module| format!("`{module}`")).join(", ");
    Ok(format!(
        "{}\n\n## Modules of CPython's standard library from the package `{MORE_PACKAGE}`\n\n\
         {modules}: copyright the Python Software Foundation and the CPython developers, with changes by the RustPython \
         project, under the PSF license. They are in `{MORE}`, compiled to bytecode.\n\n```text\n{}\n```\n",
        linked.trim_end(),
        text.trim_end()
    ))
}

// The ordinary client fetches the packages; the lock file pins each by its checksum. Answers what cargo knows of them.
fn fetch() -> crate::Fallible<String> {
    let directory = target().join("guests/python-fetch");
    fs::create_dir_all(&directory)?;
    fs::copy(home().join("fetch.toml"), directory.join("Cargo.toml"))?;
    fs::copy(home().join("fetch.lock"), directory.join("Cargo.lock"))?;
    fs::write(directory.join("lib.rs"), "")?;
    let manifest = directory.join("Cargo.toml");
    run(cargo().args(["fetch", "--quiet", "--locked", "--manifest-path"]).arg(&manifest), "install Rust with rustup")?;
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version", "1", "--locked", "--offline", "--manifest-path"]).arg(&manifest);
    output(&mut metadata, "install Rust with rustup")
}

// Where a package lies, from cargo's JSON: paths that need escapes are not worth a parser.
fn directory_of(package: &str, metadata: &str) -> crate::Fallible<PathBuf> {
    let from = metadata.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let mut directories = from.filter_map(|path| Path::new(path).parent());
    let begins = format!("{package}-");
    let found = directories.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&begins)));
    found.map(Path::to_path_buf).ok_or_else(|| format!("cargo does not say where `{package}` is").into())
}

// A file is used only with the sha256 that the repository names.
fn pinned(name: &str, bytes: Vec<u8>) -> crate::Fallible<Vec<u8>> {
    let pins = fs::read_to_string(home().join("artifacts.sha256"))?;
    let pin = pins.lines().filter_map(|line| line.split_once("  ")).find(|(_, pinned)| *pinned == name);
    let (pin, _) = pin.ok_or_else(|| format!("`{name}` has no pin in guests/python/artifacts.sha256"))?;
    let found = hex(&Sha256::digest(&bytes));
    if found != pin {
        return Err(format!("`{name}` of `{PACKAGE}` has the sha256 {found}, not {pin}: it is not used").into());
    }
    Ok(bytes)
}
