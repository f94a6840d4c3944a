//! Writing a new repository to a directory, and checking the configuration of an existing one.

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;

use crate::bundle::sha256;
use crate::error::Error;
use crate::pack::write::Packed;
use crate::refs;
use crate::tree::order;
use crate::{Id, Mode, PackWriter};

/// Maximum size of `config`, in bytes.
const CONFIG_MAX: u64 = 1 << 20;

/// A reference of a new repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The full name, such as `refs/heads/main`.
    pub name: String,
    /// Its target.
    pub id: Id,
    /// The commit, if the target is a tag.
    pub peeled: Option<Id>,
}

/// A repository that is being written to a new directory. It consists of packs and references, which git can read at once.
pub struct NewRepository {
    path: PathBuf,
    is_bare: bool,
}

const PACKING: &str = "objects/pack/tmp_pack";

impl NewRepository {
    /// Creates the directory of a bare repository, or the `.git` of one with a working tree.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`] if it cannot be created.
    pub fn create(path: &Path, is_bare: bool) -> Result<Self, Error> {
        for directory in ["objects/info", "objects/pack", "refs/heads", "refs/tags"] {
            let directory = path.join(directory);
            fs::create_dir_all(&directory).map_err(Error::io(&directory))?;
        }
        Ok(Self { path: path.to_owned(), is_bare })
    }

    /// Starts its pack.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`] if it cannot be created.
    pub fn pack(&self) -> Result<PackWriter, Error> {
        PackWriter::create(&self.path.join(PACKING))
    }

    /// Completes the repository: writes the pack's index, names the pack, and points `HEAD` at a branch.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`] if a file cannot be written.
    pub fn finish(self, mut packed: Packed, branch: &str, references: &[Reference]) -> Result<(), Error> {
        let pack = |extension: &str| self.path.join(format!("objects/pack/pack-{}.{extension}", packed.id));
        let (index_path, pack_path) = (pack("idx"), pack("pack"));
        if packed.objects > 0 {
            write(&index_path, &packed.index())?;
            let from = self.path.join(PACKING);
            fs::rename(&from, &pack_path).map_err(Error::io(&pack_path))?;
        } else {
            let from = self.path.join(PACKING);
            fs::remove_file(&from).map_err(Error::io(&from))?;
        }
        let mut list = String::from("# pack-refs with: peeled fully-peeled sorted \n");
        let mut references: Vec<&Reference> = references.iter().collect();
        references.sort_by(|a, b| a.name.cmp(&b.name));
        for Reference { name, id, peeled } in references {
            list += &format!("{id} {name}\n");
            if let Some(commit) = peeled {
                list += &format!("^{commit}\n");
            }
        }
        write(&self.path.join("packed-refs"), list.as_bytes())?;
        let bare = self.is_bare;
        let config = format!("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = {bare}\n");
        write(&self.path.join("config"), config.as_bytes())?;
        write(&self.path.join("HEAD"), format!("ref: refs/heads/{branch}\n").as_bytes())
    }

    /// Writes the index of the working tree. Git compares the files with it at the next command.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`] if it cannot be written.
    pub fn write_index(&self, mut entries: Vec<(String, Mode, Id)>) -> Result<(), Error> {
        entries.sort_by(|a, b| order((&a.0, false), (&b.0, false)));
        let mut bytes = b"DIRC\0\0\0\x02".to_vec();
        bytes.extend_from_slice(&u32::try_from(entries.len()).unwrap_or(u32::MAX).to_be_bytes());
        for (path, mode, id) in &entries {
            let at = bytes.len();
            let mode: u32 = match mode {
                Mode::Executable => 0o100_755,
                Mode::Link => 0o120_000,
                _ => 0o100_644,
            };
            // Times, device, inode, owner and size are unknown.
            bytes.extend_from_slice(&[0; 24]);
            bytes.extend_from_slice(&mode.to_be_bytes());
            bytes.extend_from_slice(&[0; 12]);
            bytes.extend_from_slice(id.as_bytes());
            bytes.extend_from_slice(&u16::try_from(path.len().min(0xFFF)).unwrap_or(0xFFF).to_be_bytes());
            bytes.extend_from_slice(path.as_bytes());
            let padding = 8 - (bytes.len() - at) % 8;
            bytes.resize(bytes.len() + padding, 0);
        }
        let mut hasher = crate::id::Hasher::new();
        hasher.update(&bytes);
        bytes.extend_from_slice(hasher.finish().as_bytes());
        write(&self.path.join("index"), &bytes)
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let write = || {
        let mut file = BufWriter::new(fs::File::create_new(path)?);
        file.write_all(bytes)?;
        file.flush()
    };
    write().map_err(Error::io(path))
}

/// Rejects a repository that uses unsupported features.
pub(crate) fn refuse_unsupported(dir: &Dir) -> Result<(), Error> {
    let config = refs::read(dir, "config", CONFIG_MAX)?.unwrap_or_default();
    let config = String::from_utf8_lossy(&config).to_lowercase();
    let mut section = "";
    for line in config.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            section = name.trim();
        }
        let Some((key, value)) = line.split_once('=').map(|(key, value)| (key.trim(), value.trim().trim_matches('"'))) else {
            continue;
        };
        match (section, key, value) {
            ("extensions", "objectformat", "sha1") => {}
            ("extensions", "objectformat", _) => return Err(sha256()),
            ("extensions", "refstorage", value) if value != "files" => {
                return Err(Error::Unsupported(
                    "reference storage other than files; convert it with `git refs migrate --ref-format=files`".to_owned(),
                ));
            }
            _ => {}
        }
    }
    for alternates in ["objects/info/alternates", "objects/info/http-alternates"] {
        if refs::read(dir, alternates, CONFIG_MAX)?.is_some_and(|bytes| !bytes.is_empty()) {
            return Err(Error::Unsupported("alternates; run `git repack -ad`, then remove `objects/info/alternates`".to_owned()));
        }
    }
    Ok(())
}
