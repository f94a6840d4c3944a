//! File operations for compatibility layers: with metadata, with custom history rows, and on the files of a running command.

use pyo3::prelude::*;
use runtime::{Error, FileType, Files, FsError, RunningFiles, Sandbox, Stat};
use serde_json::{Value, json};

use crate::errors;
use crate::handle::NativeSandbox;
use crate::operation::Done;

/// Maximum number of links in a path, as on Linux.
const MAX_LINKS: usize = 40;

/// Performs the operation `verb` on one path. `recorded` is its history row as JSON.
#[pyfunction]
#[pyo3(signature = (sandbox, verb, path, recorded, content, done=None))]
pub(crate) fn file_call(
    py: Python<'_>,
    sandbox: &NativeSandbox,
    verb: String,
    path: String,
    recorded: Option<String>,
    content: Option<Vec<u8>>,
    done: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let changes = ["write", "remove", "remove_tree", "make_directory"].contains(&verb.as_str());
    let work = move |sandbox: &Sandbox| {
        let files = match recorded {
            Some(text) => sandbox.fs().recorded_as(parsed(&text)?),
            None => sandbox.fs(),
        };
        perform(&files, &verb, &path, &content.unwrap_or_default())
    };
    if changes { sandbox.change(py, done, work) } else { sandbox.look(py, done, work) }
}

/// Writes files in one transaction, recorded as `seed`.
#[pyfunction]
#[pyo3(signature = (sandbox, files, recorded, done=None))]
pub(crate) fn seed(
    py: Python<'_>,
    sandbox: &NativeSandbox,
    files: Vec<(String, Vec<u8>)>,
    recorded: String,
    done: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    sandbox.change(py, done, move |sandbox| {
        sandbox.fs().recorded_as(parsed(&recorded)?).seed(&files)?;
        Ok(Done::Nothing)
    })
}

/// Reads the files of a running command; `None` if it is no longer running.
pub(crate) fn look(py: Python<'_>, running: Option<RunningFiles>, verb: &str, path: &str) -> PyResult<Option<Py<PyAny>>> {
    let Some(files) = running else { return Ok(None) };
    match py.detach(|| view(&files, verb, path)) {
        Ok(seen) => seen.into_python(py).map(Some),
        Err(_) if files.is_over() => Ok(None),
        Err(error) => Err(errors::raise(py, &error)),
    }
}

fn parsed(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|error| Error::Invalid(format!("not JSON: {error}")))
}

fn perform(files: &Files<'_>, verb: &str, path: &str, content: &[u8]) -> Result<Done, Error> {
    match verb {
        "write" => {
            permit(files, "write", path, 0o200)?;
            files.write(path, content)?;
        }
        "remove" => files.remove_file(path)?,
        "remove_tree" if files.symlink_metadata(path)?.file_type() == FileType::Directory => files.remove_dir_all(path)?,
        "remove_tree" => files.remove_file(path)?,
        "make_directory" => files.create_dir_all(path)?,
        _ => return view(files, verb, path),
    }
    Ok(Done::Nothing)
}

/// Readable files: stored ones, or those of a running command.
trait Look {
    fn read(&self, path: &str) -> Result<Vec<u8>, Error>;
    fn exists(&self, path: &str) -> Result<bool, Error>;
    fn names(&self, path: &str) -> Result<Vec<String>, Error>;
    fn metadata(&self, path: &str) -> Result<Stat, Error>;
    fn symlink_metadata(&self, path: &str) -> Result<Stat, Error>;
    fn read_link(&self, path: &str) -> Result<String, Error>;
    fn walk(&self, path: &str) -> Result<Vec<(String, Stat)>, Error>;
}

impl Look for Files<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        Files::read(self, path)
    }

    fn exists(&self, path: &str) -> Result<bool, Error> {
        Files::exists(self, path)
    }

    fn names(&self, path: &str) -> Result<Vec<String>, Error> {
        Ok(self.list(path)?.into_iter().map(|entry| entry.name).collect())
    }

    fn metadata(&self, path: &str) -> Result<Stat, Error> {
        Files::metadata(self, path)
    }

    fn symlink_metadata(&self, path: &str) -> Result<Stat, Error> {
        Files::symlink_metadata(self, path)
    }

    fn read_link(&self, path: &str) -> Result<String, Error> {
        Files::read_link(self, path)
    }

    fn walk(&self, path: &str) -> Result<Vec<(String, Stat)>, Error> {
        Ok(Files::walk(self, path)?.into_iter().map(|found| (found.path, found.stat)).collect())
    }
}

impl Look for RunningFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        RunningFiles::read(self, path)
    }

    fn exists(&self, path: &str) -> Result<bool, Error> {
        RunningFiles::exists(self, path)
    }

    fn names(&self, path: &str) -> Result<Vec<String>, Error> {
        Ok(self.list(path)?.into_iter().map(|entry| entry.name).collect())
    }

    fn metadata(&self, path: &str) -> Result<Stat, Error> {
        RunningFiles::metadata(self, path)
    }

    fn symlink_metadata(&self, path: &str) -> Result<Stat, Error> {
        RunningFiles::symlink_metadata(self, path)
    }

    fn read_link(&self, path: &str) -> Result<String, Error> {
        RunningFiles::read_link(self, path)
    }

    fn walk(&self, path: &str) -> Result<Vec<(String, Stat)>, Error> {
        RunningFiles::walk(self, path)
    }
}

fn view(files: &impl Look, verb: &str, path: &str) -> Result<Done, Error> {
    let seen = match verb {
        "read" => return readable(files, path).map(Done::Bytes),
        "exists" => return Ok(Done::Flag(files.exists(path)?)),
        "names" => json!(files.names(path)?),
        "stat" => entry(path, &files.metadata(path)?),
        "entries" => {
            let names = files.names(path)?;
            Value::from_iter(names.iter().filter_map(|name| {
                let path = below(path, name);
                // A dangling link describes itself.
                let stat = files.metadata(&path).or_else(|_| files.symlink_metadata(&path)).ok()?;
                Some(entry(&path, &stat))
            }))
        }
        "walk" => {
            Value::from_iter(files.walk(path)?.iter().filter(|(found, _)| found != path).map(|(path, stat)| entry(path, stat)))
        }
        "real_path" => json!(real_path(files, path)?),
        _ => return Err(Error::Invalid(format!("unknown file operation `{verb}`"))),
    };
    Ok(Done::Json(Some(seen.to_string())))
}

// The sandbox's user owns everything in it, so the owner's bits decide.
fn permit(files: &impl Look, doing: &'static str, path: &str, bits: u32) -> Result<(), Error> {
    match files.metadata(path) {
        Ok(stat) if stat.mode & bits == 0 => Err(Error::file(doing, path, FsError::Access)),
        _ => Ok(()),
    }
}

fn readable(files: &impl Look, path: &str) -> Result<Vec<u8>, Error> {
    permit(files, "read", path, 0o400)?;
    // A named pipe has no writer while it is read from here.
    match files.metadata(path).map(|stat| stat.file_type()) {
        Ok(FileType::File | FileType::Directory) | Err(_) => files.read(path),
        Ok(_) => Err(Error::file("read", path, FsError::Invalid)),
    }
}

fn below(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

fn entry(path: &str, stat: &Stat) -> Value {
    let kind = match stat.file_type() {
        FileType::File => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        _ => "other",
    };
    json!([path, kind, stat.size, stat.mode & 0o7777, stat.mtime])
}

// Like `realpath -m`: missing components are kept as written.
fn real_path(files: &impl Look, path: &str) -> Result<String, Error> {
    let mut todo: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    let (mut found, mut links) = (String::new(), 0);
    while let Some(part) = todo.pop() {
        match part.as_str() {
            "" | "." => continue,
            ".." => {
                found.truncate(found.rfind('/').unwrap_or_default());
                continue;
            }
            _ => {}
        }
        let next = format!("{found}/{part}");
        let is_link = files.symlink_metadata(&next).is_ok_and(|stat| stat.file_type() == FileType::Symlink);
        if !is_link {
            found = next;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(Error::file("resolve", path, FsError::Loop));
        }
        let target = files.read_link(&next)?;
        if target.starts_with('/') {
            found.clear();
        }
        todo.extend(target.split('/').rev().map(str::to_owned));
    }
    Ok(if found.is_empty() { "/".to_owned() } else { found })
}
