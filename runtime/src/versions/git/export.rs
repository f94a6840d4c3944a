//! Exports the versions as a repository or bundle: one commit for each that changed files. Only changed files are read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use git::{
    Id, Kind, Mode, NewRepository, PackWriter, Packed, Reference, Tag, encode_tree, is_dot_git, is_dot_gitmodules, reference_name,
};
use sqlite_fs::path::{Last, Tree as _};
use sqlite_fs::{ChangeKind, FileType, FsError, Label, Reader, Step, Version, VersionKind, Volume as _};

use super::{describe, is_imported, settle, signature};
use crate::versions::compare::is_at_or_below;
use crate::versions::{LoggedVersion, Versions};
use crate::vfs::{Node, ROOT_NODE, Scope, View, export_tree};
use crate::{Error, NewFile};

/// The branch.
const BRANCH: &str = "main";
/// Larger files are read in pieces, without deltas against their last content.
const SMALL_BYTES: u64 = 1 << 20;
/// Maximum number of listed skipped paths.
const SKIPPED_MAX: usize = 1_000;
/// From this number of changes on, a list may be incomplete.
const CHANGES_MAX: usize = 100_000;

/// The form that [`Versions::git_export`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitForm {
    /// A directory with the files of the newest version and a `.git`.
    Repository,
    /// A bare repository.
    Bare,
    /// One file that can be cloned and fetched from.
    Bundle,
}

/// Options of an export to git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitExport {
    /// The directory that becomes the root of the repository.
    pub path: String,
    /// The form.
    pub form: GitForm,
    /// Whether the checkpoints are the commits, with their messages, and not the versions. Imported commits stay, and there are no tags.
    pub checkpoints: bool,
}

/// The result of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct GitExported {
    /// The newest commit, in hexadecimal.
    pub head: String,
    /// Number of commits: one for each version that changed files below the path.
    pub commits: u64,
    /// Number of tags: one for each checkpoint.
    pub tags: u64,
    /// Number of objects.
    pub objects: u64,
    /// Size of the pack, in bytes.
    pub bytes: u64,
    /// The oldest included version; earlier ones were pruned, or another program has overwritten them.
    pub first_version: i64,
    /// Paths that git cannot represent (named pipes, names such as `.git`), and links that lead out of the working tree, at most
    /// 1000.
    pub skipped: Vec<String>,
}

/// A directory as last written.
#[derive(Default)]
struct Directory {
    entries: BTreeMap<String, Child>,
    stored: Option<(Id, Vec<u8>)>,
    is_changed: bool,
}

enum Child {
    Leaf(Mode, Id),
    Directory(Box<Directory>),
}

impl Directory {
    fn put(&mut self, path: &str, child: Option<Child>) {
        self.is_changed = true;
        let Some((name, rest)) = path.split_once('/') else {
            match child {
                // The content of a directory is listed separately.
                Some(Child::Directory(_)) if matches!(self.entries.get(path), Some(Child::Directory(_))) => {}
                Some(child) => drop(self.entries.insert(path.to_owned(), child)),
                None => drop(self.entries.remove(path)),
            }
            return;
        };
        if child.is_none() && !matches!(self.entries.get(name), Some(Child::Directory(_))) {
            return;
        }
        let entry = self.entries.entry(name.to_owned()).or_insert_with(|| Child::Directory(Box::default()));
        if !matches!(entry, Child::Directory(_)) {
            *entry = Child::Directory(Box::default());
        }
        if let Child::Directory(directory) = entry {
            directory.put(rest, child);
        }
    }

    fn leaf(&self, path: &str) -> Option<Id> {
        match path.split_once('/') {
            Some((name, rest)) => match self.entries.get(name)? {
                Child::Directory(directory) => directory.leaf(rest),
                Child::Leaf(..) => None,
            },
            None => match self.entries.get(path)? {
                Child::Leaf(_, id) => Some(*id),
                Child::Directory(_) => None,
            },
        }
    }

    /// Writes the changed trees; `None` for a directory without files, which git cannot represent.
    fn store(&mut self, pack: &mut PackWriter) -> Result<Option<Id>, Error> {
        if !self.is_changed {
            return Ok(self.stored.as_ref().map(|(id, _)| *id));
        }
        let mut entries = Vec::with_capacity(self.entries.len());
        for (name, child) in &mut self.entries {
            match child {
                Child::Leaf(mode, id) => entries.push((name.as_str(), *mode, *id)),
                Child::Directory(directory) => {
                    entries.extend(directory.store(pack)?.map(|id| (name.as_str(), Mode::Directory, id)));
                }
            }
        }
        self.is_changed = false;
        if entries.is_empty() {
            self.stored = None;
            return Ok(None);
        }
        let bytes = encode_tree(entries);
        let id = pack.add_like(Kind::Tree, &bytes, self.stored.as_ref().map(|(id, bytes)| (*id, bytes.as_slice())))?;
        self.stored = Some((id, bytes));
        Ok(Some(id))
    }

    fn files(&self, path: &str, found: &mut Vec<(String, Mode, Id)>) {
        for (name, child) in &self.entries {
            let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            match child {
                Child::Leaf(mode, id) => found.push((path, *mode, *id)),
                Child::Directory(directory) => directory.files(&path, found),
            }
        }
    }
}

/// An export in progress.
struct Export<'a> {
    versions: Versions<'a>,
    reader: Reader,
    top: String,
    checkpoints: bool,
    labels: BTreeMap<String, Label>,
    pack: PackWriter,
    root: Directory,
    /// The last commit and its tree.
    head: Option<(Id, Id)>,
    commits: u64,
    skipped: BTreeSet<String>,
    tags: Vec<Reference>,
}

/// All commits.
struct Finished {
    exported: GitExported,
    packed: Packed,
    references: Vec<Reference>,
    /// The files of the newest version.
    files: Vec<(String, Mode, Id)>,
    newest: i64,
}

impl Versions<'_> {
    /// Writes a git repository or bundle with one commit for each version that changed files, and a tag for each checkpoint. The
    /// same sandbox produces the same hashes. Of permissions, git keeps only the executable bit.
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # use sandlite_runtime::{GitExport, GitForm};
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// sandbox.bash("mkdir /src; echo one > /src/note")?;
    /// sandbox.bash("echo two > /src/note")?;
    /// let path = directory.path().join("src.bundle");
    /// let exported = sandbox.versions().git_export(&path, &GitExport { checkpoints: false, path: "/src".to_owned(), form: GitForm::of(&path) })?;
    /// assert_eq!(exported.commits, 2);
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if no version has files below the path, and an error if the target exists or cannot be written;
    /// nothing is written then.
    pub fn git_export(&self, to: &Path, options: &GitExport) -> Result<GitExported, Error> {
        if to.symlink_metadata().is_ok() {
            let reason = format!("cannot export to `{}`: it already exists; name a new path", to.display());
            return Err(Error::Invalid(reason));
        }
        let top = self.sandbox.agent().absolute(&options.path)?;
        if top.split('/').any(|name| name == "..") {
            return Err(Error::Invalid(format!("invalid path `{top}`: it contains `..`")));
        }
        let new = NewFile::beside(to)?;
        let exported = match options.form {
            GitForm::Bundle => self.export_bundle(new.path(), (top, options.checkpoints))?,
            GitForm::Bare => {
                let repository = NewRepository::create(new.path(), true)?;
                self.export_repository(new.path(), repository, (top, options.checkpoints), false)?
            }
            GitForm::Repository => {
                let repository = NewRepository::create(&new.path().join(".git"), false)?;
                self.export_repository(new.path(), repository, (top, options.checkpoints), true)?
            }
        };
        new.publish()?;
        Ok(exported)
    }

    fn export_bundle(&self, path: &Path, what: (String, bool)) -> Result<GitExported, Error> {
        let packing = path.with_extension("pack");
        let finished = self.export_commits(PackWriter::create(&packing)?, what)?;
        let head = finished.references.first().map(|branch| Reference { name: "HEAD".to_owned(), ..branch.clone() });
        let references: Vec<Reference> = head.into_iter().chain(finished.references).collect();
        git::write_bundle(path, &references, &packing)?;
        Ok(finished.exported)
    }

    fn export_repository(
        &self,
        path: &Path,
        repository: NewRepository,
        (top, checkpoints): (String, bool),
        with_files: bool,
    ) -> Result<GitExported, Error> {
        let Finished { mut exported, packed, references, files, newest } =
            self.export_commits(repository.pack()?, (top.clone(), checkpoints))?;
        if with_files {
            repository.write_index(files)?;
            let copied = export_tree(&self.stored(newest)?, &top, path, &is_dot_git)?;
            let missing = copied.skipped.into_iter().map(|path| format!("{}/{path}", top.trim_end_matches('/')));
            let all: BTreeSet<String> = missing.chain(exported.skipped).collect();
            exported.skipped = all.into_iter().take(SKIPPED_MAX).collect();
        }
        repository.finish(packed, BRANCH, &references)?;
        Ok(exported)
    }

    // The stored content of a version, without mounts, which are not part of it.
    fn stored(&self, version: i64) -> Result<View<Reader>, Error> {
        let scope = Scope { mounts: Arc::from([]), ..self.sandbox.scope.clone() };
        self.sandbox.recorder.at(&scope, version)
    }

    fn export_commits(&self, pack: PackWriter, (top, checkpoints): (String, bool)) -> Result<Finished, Error> {
        let mut export = Export {
            versions: *self,
            reader: self.reader()?,
            top,
            checkpoints,
            labels: self.checkpoints()?.into_iter().map(|label| (label.name.clone(), label)).collect(),
            pack,
            root: Directory::default(),
            head: None,
            commits: 0,
            skipped: BTreeSet::new(),
            tags: Vec::new(),
        };
        let mut previous: Option<(i64, View<Reader>)> = None;
        let all = self.exportable()?;
        let first_version = all.first().map_or(0, |version| version.number);
        for version in all {
            let number = version.number;
            let view = self.stored(number)?;
            export.take(version, &view, previous.as_ref())?;
            previous = Some((number, view));
        }
        export.finish(first_version, previous.map_or(0, |(number, _)| number))
    }

    // The versions, oldest first. States that another program overwrote are unknown before that.
    fn exportable(&self) -> Result<Vec<Version>, Error> {
        let reader = self.reader()?;
        let mut before = self.sandbox.at.map(|at| at + 1);
        let mut all = Vec::new();
        loop {
            let page = reader.versions(before, 1000)?;
            let Some(last) = page.last() else { break };
            before = Some(last.number);
            let known = page.iter().position(|version| version.kind == VersionKind::Outside);
            all.extend(page.into_iter().take(known.map_or(usize::MAX, |at| at + 1)));
            if known.is_some() {
                break;
            }
        }
        all.reverse();
        Ok(all)
    }
}

fn failed(path: &str) -> impl Fn(FsError) -> Error + '_ {
    move |source| Error::file("export", path, source)
}

impl Export<'_> {
    /// Creates a commit of a version, if its files differ from the previous one.
    fn take(&mut self, version: Version, view: &View<Reader>, previous: Option<&(i64, View<Reader>)>) -> Result<(), Error> {
        match previous {
            None => self.read_everything(view)?,
            Some((before, old)) => match self.changed(*before, version.number)? {
                Some(paths) => paths.iter().try_for_each(|path| self.read_one(view, path, Some(old)))?,
                None => self.read_everything(view)?,
            },
        }
        let is_first = previous.is_none();
        let labels = version.labels.clone();
        let run = version.call.map(|call| self.versions.run(call)).transpose()?.flatten();
        let is_commit = !self.checkpoints || !labels.is_empty() || run.as_ref().is_some_and(is_imported);
        if !is_commit {
            return Ok(());
        }
        let tree = self.root.store(&mut self.pack)?;
        let tree = match (tree, self.head) {
            (Some(tree), head) if head.is_none_or(|(_, before)| before != tree) => Some(tree),
            // All files were removed.
            (None, Some(_)) => {
                let empty = self.pack.add(Kind::Tree, b"")?;
                self.head.is_some_and(|(_, before)| before != empty).then_some(empty)
            }
            _ => None,
        };
        if let Some(tree) = tree {
            let logged = LoggedVersion { version, run };
            let described = match self.checkpoints {
                true => settle(&logged, self.said(&labels)),
                false => describe(&logged, is_first),
            };
            let commit = git::Commit {
                tree,
                parents: self.head.iter().map(|(commit, _)| *commit).collect(),
                author: described.author,
                committer: described.committer,
                message: described.message,
            };
            let id = self.pack.add(Kind::Commit, &commit.encode())?;
            self.head = Some((id, tree));
            self.commits += 1;
        }
        if self.checkpoints { Ok(()) } else { self.tag(&labels) }
    }

    // The message and the time of the newest checkpoint with one of these names.
    fn said(&self, labels: &[String]) -> Option<(String, i64)> {
        let newest = labels.iter().filter_map(|name| self.labels.get(name)).max_by_key(|known| known.time)?;
        let message = newest.message.clone().filter(|text| !text.trim().is_empty());
        Some((message.unwrap_or_else(|| newest.name.clone()), newest.time / 1_000_000_000))
    }

    fn tag(&mut self, labels: &[String]) -> Result<(), Error> {
        let Some((commit, _)) = self.head else { return Ok(()) };
        let is_below = |path: &str, top: &str| path.strip_prefix(top).is_some_and(|rest| rest.starts_with('/'));
        for label in labels {
            let base = reference_name(label);
            let is_taken = |name: &str| {
                self.tags.iter().any(|known| {
                    let known = known.name.trim_start_matches("refs/tags/");
                    // A name cannot also be a directory.
                    known == name || is_below(known, name) || is_below(name, known)
                })
            };
            // A number at the end does not help a name below that of another tag.
            let flat = base.replace('/', "-");
            let numbered = (2..).map(|n| format!("{flat}-{n}"));
            let name = [base, flat.clone()].into_iter().chain(numbered).find(|name| !is_taken(name)).unwrap_or_default();
            let known = self.labels.get(label);
            let message = known.and_then(|known| known.message.clone()).filter(|message| !message.trim().is_empty());
            let (id, peeled) = match message {
                Some(message) => {
                    let tagger = signature(known.map_or(0, |known| known.time / 1_000_000_000));
                    let tag = Tag { object: commit, name: name.clone(), tagger, message };
                    (self.pack.add(Kind::Tag, &tag.encode())?, Some(commit))
                }
                None => (commit, None),
            };
            self.tags.push(Reference { name: format!("refs/tags/{name}"), id, peeled });
        }
        Ok(())
    }

    // The changed paths of a version; `None` if there are too many to list.
    fn changed(&self, before: i64, version: i64) -> Result<Option<Vec<String>>, Error> {
        let (changes, is_complete) = self.reader.changes(before, Some(version))?;
        if !is_complete || changes.len() >= CHANGES_MAX {
            return Ok(None);
        }
        let mut paths = Vec::new();
        for change in changes {
            if let ChangeKind::Renamed { from } = change.kind {
                paths.push(from);
            }
            paths.push(change.path);
        }
        Ok(Some(paths))
    }

    fn read_everything(&mut self, view: &View<Reader>) -> Result<(), Error> {
        self.root = Directory { is_changed: true, stored: self.root.stored.take(), ..Directory::default() };
        let mut found = Vec::new();
        let top = self.top.clone();
        match view.find(ROOT_NODE, &top, Last::NoFollow) {
            Ok((_, FileType::Directory)) => {}
            Ok(_) | Err(FsError::NoEntry | FsError::NotDirectory) => return Ok(()),
            Err(source) => return Err(failed(&top)(source)),
        }
        view.fs().visit::<Error>(&top, |visited| {
            if visited.is_left_out {
                return Ok(Step::Skip);
            }
            found.push(visited.path.to_owned());
            Ok(if name_of(visited.path).is_some_and(is_dot_git) { Step::Skip } else { Step::Enter })
        })?;
        found.iter().try_for_each(|path| self.read_one(view, path, None))
    }

    fn skip(&mut self, path: &str) {
        if self.skipped.len() < SKIPPED_MAX {
            self.skipped.insert(path.to_owned());
        }
    }

    // Updates one path to its state in a version.
    fn read_one(&mut self, view: &View<Reader>, path: &str, old: Option<&View<Reader>>) -> Result<(), Error> {
        let Some(relative) = self.relative(path) else { return Ok(()) };
        // Not through a link that replaced a directory. The fixed world is in every sandbox.
        let Some((node @ Node::Row(_), kind)) = view.find_listed(path).map_err(failed(path))? else {
            self.root.put(&relative, None);
            return Ok(());
        };
        if relative.split('/').any(is_dot_git) {
            self.skip(path);
            return Ok(());
        }
        let child = match kind {
            FileType::Directory => Some(Child::Directory(Box::default())),
            FileType::Symlink if name_of(path).is_some_and(is_dot_gitmodules) => {
                self.skip(path);
                None
            }
            FileType::Symlink => {
                let target = view.readlink(node).map_err(failed(path))?;
                Some(Child::Leaf(Mode::Link, self.pack.add(Kind::Blob, target.as_bytes())?))
            }
            FileType::File => {
                let stat = view.stat(node).map_err(failed(path))?;
                let mode = if stat.mode & 0o100 != 0 { Mode::Executable } else { Mode::File };
                Some(Child::Leaf(mode, self.content(view, node, stat.size, path, &relative, old)?))
            }
            FileType::Fifo | FileType::Device => {
                self.skip(path);
                None
            }
        };
        self.root.put(&relative, child);
        Ok(())
    }

    fn content(
        &mut self,
        view: &View<Reader>,
        node: Node,
        size: u64,
        path: &str,
        relative: &str,
        old: Option<&View<Reader>>,
    ) -> Result<Id, Error> {
        if size > SMALL_BYTES {
            let mut offset = 0;
            return self.pack.add_stream(size, |buffer| {
                let read = view.read(node, offset, buffer).map_err(failed(path))?;
                offset += read as u64;
                Ok::<_, Error>(read)
            });
        }
        let bytes = view.fs().read(path)?;
        let before = self.root.leaf(relative).zip(old).and_then(|(id, old)| {
            let is_small = old.fs().symlink_metadata(path).is_ok_and(|stat| stat.is_file() && stat.size <= SMALL_BYTES);
            let bytes = old.fs().read(path).ok().filter(|_| is_small)?;
            // A delta of other bytes would be another object.
            (Id::of(Kind::Blob, &bytes) == id).then_some((id, bytes))
        });
        Ok(self.pack.add_like(Kind::Blob, &bytes, before.as_ref().map(|(id, bytes)| (*id, bytes.as_slice())))?)
    }

    // The path in the repository; `None` if it is not in it, and for its root.
    fn relative(&self, path: &str) -> Option<String> {
        if !is_at_or_below(path, &self.top) {
            return None;
        }
        let relative = path.get(self.top.trim_end_matches('/').len()..)?.trim_start_matches('/');
        (!relative.is_empty()).then(|| relative.to_owned())
    }

    fn finish(self, first_version: i64, newest: i64) -> Result<Finished, Error> {
        let Some((head, _)) = self.head else {
            return Err(Error::Invalid(format!("cannot export `{}`: no version has files below it", self.top)));
        };
        let packed = self.pack.finish()?;
        let exported = GitExported {
            head: head.to_string(),
            commits: self.commits,
            tags: self.tags.len() as u64,
            objects: packed.objects as u64,
            bytes: packed.bytes,
            first_version,
            skipped: self.skipped.into_iter().collect(),
        };
        let mut files = Vec::new();
        self.root.files("", &mut files);
        let mut references = vec![Reference { name: format!("refs/heads/{BRANCH}"), id: head, peeled: None }];
        references.extend(self.tags);
        Ok(Finished { exported, packed, references, files, newest })
    }
}

fn name_of(path: &str) -> Option<&str> {
    path.rsplit('/').next()
}
