//! Bundles: a list of references, and a pack with all objects they reach.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read as _, Write};
use std::path::Path;

use crate::error::Error;
use crate::names::is_reference;
use crate::{Id, Reference};

/// Maximum size of the list of references, in bytes.
const HEADER_MAX: u64 = 64 << 20;

/// The first line of a bundle.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) references: Vec<(String, Id)>,
    /// The offset of the pack.
    pub(crate) pack: u64,
}

/// Returns whether a file starts like a bundle.
pub(crate) fn is_bundle(beginning: &[u8]) -> bool {
    beginning.starts_with(b"# v2 git bundle\n") || beginning.starts_with(b"# v3 git bundle\n")
}

pub(crate) fn read(file: &File, path: &Path) -> Result<Header, Error> {
    let mut lines = BufReader::new(file.take(HEADER_MAX));
    let (mut pack, mut references) = (0, Vec::new());
    loop {
        let mut line = Vec::new();
        let len = lines.read_until(b'\n', &mut line).map_err(Error::io(path))?;
        if line.pop() != Some(b'\n') {
            return Err(Error::damaged(format!("the bundle `{}` is truncated", path.display())));
        }
        let is_first = pack == 0;
        pack += len as u64;
        let text = String::from_utf8_lossy(&line);
        match line.first() {
            None => return Ok(Header { references, pack }),
            Some(b'#') if is_first => {}
            Some(b'@') => capability(&text)?,
            Some(b'-') => {
                return Err(Error::Unsupported(
                    "the bundle requires commits that it does not contain; create a complete one with `git bundle create FILE --all`".to_owned(),
                ));
            }
            Some(_) => {
                let wrong = || Error::damaged(format!("invalid reference in the bundle `{}`", path.display()));
                let (hex, name) = text.split_once(' ').ok_or_else(wrong)?;
                if hex.len() == 64 {
                    return Err(sha256());
                }
                let id = Id::parse(hex).ok_or_else(wrong)?;
                if is_reference(name) {
                    references.push((name.to_owned(), id));
                }
            }
        }
    }
}

fn capability(line: &str) -> Result<(), Error> {
    match line {
        "@object-format=sha1" => Ok(()),
        "@object-format=sha256" => Err(sha256()),
        _ => Err(Error::Unsupported(format!(
            "the bundle requires the capability `{}`",
            line.escape_debug().take(64).collect::<String>()
        ))),
    }
}

pub(crate) fn sha256() -> Error {
    Error::Unsupported("SHA-256 object names (only SHA-1 is supported)".to_owned())
}

fn write_header(out: &mut dyn Write, references: &[Reference]) -> std::io::Result<()> {
    out.write_all(b"# v2 git bundle\n")?;
    for Reference { name, id, .. } in references {
        writeln!(out, "{id} {name}")?;
    }
    out.write_all(b"\n")
}

/// Writes a bundle with references and a complete pack.
///
/// # Errors
///
/// Returns [`Error::Io`] if the file exists or cannot be written.
pub fn write(path: &Path, references: &[Reference], pack: &Path) -> Result<(), Error> {
    let mut packed = File::open(pack).map_err(Error::io(pack))?;
    let mut write = || {
        let mut file = BufWriter::new(File::create_new(path)?);
        write_header(&mut file, references)?;
        std::io::copy(&mut packed, &mut file)?;
        file.flush()
    };
    write().map_err(Error::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8]) -> Result<Header, Error> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read(&File::open(file.path()).unwrap(), file.path())
    }

    #[test]
    fn references_precede_the_pack() {
        let id = Id::parse("4b825dc642cb6eb9a060e54bf8d69288fbee4904").unwrap();
        let mut bytes = Vec::new();
        let reference = |name: &str| Reference { name: name.to_owned(), id, peeled: None };
        write_header(&mut bytes, &[reference("HEAD"), reference("refs/heads/main")]).unwrap();
        let pack = bytes.len() as u64;
        bytes.extend_from_slice(b"PACK");
        let references = vec![("HEAD".to_owned(), id), ("refs/heads/main".to_owned(), id)];
        assert_eq!(check(&bytes).unwrap(), Header { references, pack });
        assert!(is_bundle(&bytes) && !is_bundle(b"PACK"));
    }

    #[test]
    fn a_bundle_that_needs_more_or_is_cut_is_refused() {
        let id = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        for wrong in [
            format!("# v2 git bundle\n-{id} before\n{id} HEAD\n\nPACK"),
            format!("# v2 git bundle\n{id} HEAD\n"),
            "# v2 git bundle\n12 HEAD\n\n".to_owned(),
            format!("# v3 git bundle\n@object-format=sha256\n{id}{id} HEAD\n\n"),
            format!("# v3 git bundle\n@filter=blob:none\n{id} HEAD\n\n"),
        ] {
            assert!(check(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
