//! Reading an untrusted repository or bundle: references, commits, trees and files.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use crate::commit::parse_tag;
use crate::error::Error;
use crate::id::ID_BYTES;
use crate::pack::HEADER_BYTES;
use crate::pack::delta;
use crate::pack::index::Index;
use crate::pack::read::{Entry, Pack, Stored};
use crate::refs::{self, References};
use crate::zlib::{self, Inflater};
use crate::{Commit, Id, Kind, TreeEntry, bundle, directory, tree};

/// Limits on the work that a repository can cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum size of one object, which is completely in memory.
    pub object_bytes: u64,
    /// Maximum total size of all reconstructed objects, including repeated ones.
    pub total_bytes: u64,
    /// Maximum number of objects in a bundle.
    pub objects: u64,
    /// Maximum number of entries in a directory.
    pub entries: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { object_bytes: 256 << 20, total_bytes: 64 << 30, objects: 10_000_000, entries: 1_000_000 }
    }
}

/// Maximum length of a delta chain; git itself creates at most 4095.
const CHAIN_MAX: usize = 4096;
/// Size of the object cache, in bytes.
const CACHE_BYTES: usize = 64 << 20;
/// Maximum sizes of the index of a pack, of a loose object's header, and of the list of shallow commits, in bytes.
const INDEX_MAX: u64 = 4 << 30;
const LOOSE_HEADER: usize = 64;
const SHALLOW_MAX: u64 = 64 << 20;
/// Maximum number of packs in a repository.
const PACKS_MAX: usize = 10_000;
/// Maximum number of nested tags to follow.
const PEEL_MAX: usize = 16;
/// Minimum number of digits of an abbreviated name.
const ABBREVIATED: usize = 4;

type Object = (Kind, Arc<Vec<u8>>);

/// The position of an object, as used by the cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Loose(Id),
    Packed(usize, u64),
}

#[derive(Default)]
struct Cache {
    objects: HashMap<Key, Object>,
    order: VecDeque<Key>,
    bytes: usize,
}

impl Cache {
    fn keep(&mut self, key: Key, object: &Object) {
        if object.1.len() > CACHE_BYTES / 4 || self.objects.insert(key, object.clone()).is_some() {
            return;
        }
        self.order.push_back(key);
        self.bytes += object.1.len();
        while self.bytes > CACHE_BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= self.objects.remove(&oldest).map_or(0, |(_, bytes)| bytes.len());
        }
    }
}

/// A repository in a directory, or a bundle.
pub struct Repository {
    path: PathBuf,
    /// The directory of loose objects.
    loose: Option<Dir>,
    packs: Vec<Pack>,
    references: References,
    /// Commits whose parents a shallow clone omits.
    shallow: HashSet<Id>,
    bounds: Bounds,
    /// Remaining number of bytes that may be reconstructed.
    left: AtomicU64,
    cache: Mutex<Cache>,
}

impl Repository {
    /// Opens a repository (the directory itself, or one with a `.git`) or a bundle.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotRepository`] if the path is neither, [`Error::Unsupported`] if it uses another format, alternates, or
    /// a `.git` that leads elsewhere, and [`Error::Damaged`] if it is damaged.
    pub fn open(path: &Path, bounds: Bounds) -> Result<Self, Error> {
        Self::open_until(path, bounds, &|| false)
    }

    /// Same as [`open`](Self::open), cancelled when `is_over` returns true, because reading a large bundle takes a while.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`open`](Self::open), and [`Error::Interrupted`] if it was cancelled.
    pub fn open_until(path: &Path, bounds: Bounds, is_over: &dyn Fn() -> bool) -> Result<Self, Error> {
        let metadata = std::fs::metadata(path).map_err(Error::io(path))?;
        match () {
            () if metadata.is_dir() => Self::open_directory(path, bounds),
            () if metadata.is_file() => Self::open_bundle(path, bounds, is_over),
            () => Err(Error::NotRepository { path: path.to_owned() }),
        }
    }

    fn new(path: &Path, bounds: Bounds, references: References) -> Self {
        Self {
            path: path.to_owned(),
            loose: None,
            packs: Vec::new(),
            references,
            shallow: HashSet::new(),
            left: AtomicU64::new(bounds.total_bytes),
            bounds,
            cache: Mutex::default(),
        }
    }

    fn open_directory(path: &Path, bounds: Bounds) -> Result<Self, Error> {
        let failed = Error::io(path);
        let mut dir = Dir::open_ambient_dir(path, ambient_authority()).map_err(&failed)?;
        match dir.symlink_metadata(".git") {
            Ok(metadata) if metadata.is_dir() => dir = dir.open_dir(".git").map_err(&failed)?,
            Ok(_) => {
                let reason = "a `.git` file that points to another directory; name the main repository";
                return Err(Error::Unsupported(reason.to_owned()));
            }
            Err(_) => {}
        }
        if !dir.exists("HEAD") || !dir.is_dir("objects") {
            return Err(Error::NotRepository { path: path.to_owned() });
        }
        directory::refuse_unsupported(&dir)?;
        let mut repository = Self::new(path, bounds, References::open(dir.try_clone().map_err(&failed)?)?);
        let shallow = refs::read(&dir, "shallow", SHALLOW_MAX)?.unwrap_or_default();
        repository.shallow = String::from_utf8_lossy(&shallow).lines().filter_map(Id::parse).collect();
        let objects = dir.open_dir("objects").map_err(&failed)?;
        if let Ok(packs) = objects.open_dir("pack") {
            repository.open_packs(&packs)?;
        }
        repository.loose = Some(objects);
        Ok(repository)
    }

    fn open_packs(&mut self, packs: &Dir) -> Result<(), Error> {
        let failed = Error::io(&self.path);
        let names = packs.entries().map_err(&failed)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".idx")).take(PACKS_MAX + 1).collect();
        if names.len() > PACKS_MAX {
            return Err(Error::TooLarge(format!("more than {PACKS_MAX} packs")));
        }
        names.sort();
        for name in names {
            let pack = format!("{}.pack", name.trim_end_matches(".idx"));
            let Some(index) = refs::read(packs, &name, INDEX_MAX)? else { continue };
            // Git removes both, the pack first. Opening a named pipe would block forever.
            if !packs.symlink_metadata(&pack).is_ok_and(|metadata| metadata.is_file()) {
                continue;
            }
            let file = packs.open(&pack).map_err(&failed)?.into_std();
            let pack = Pack::open(file, self.path.join(&pack), 0, Index::parse(index)?)?;
            if pack.count()? != pack.index.len() as u64 {
                return Err(Error::damaged(format!("the pack of `{name}` has a different number of objects")));
            }
            self.packs.push(pack);
        }
        Ok(())
    }

    fn open_bundle(path: &Path, bounds: Bounds, is_over: &dyn Fn() -> bool) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::io(path))?;
        let mut beginning = [0; 16];
        let read = (&file).take(16).read(&mut beginning).map_err(Error::io(path))?;
        if !bundle::is_bundle(beginning.get(..read).unwrap_or_default()) {
            return Err(Error::NotRepository { path: path.to_owned() });
        }
        std::io::Seek::rewind(&mut &file).map_err(Error::io(path))?;
        let header = bundle::read(&file, path)?;
        let pack = Pack::open(file, path.to_owned(), header.pack, Index::List(Vec::new()))?;
        pack.verify(is_over)?;
        let count = pack.count()?;
        if count > bounds.objects {
            return Err(Error::TooLarge(format!("the bundle has {count} objects; the maximum is {}", bounds.objects)));
        }
        let mut repository = Self::new(path, bounds, References::List(header.references.into_iter().collect()));
        repository.packs.push(pack);
        repository.index_bundle(count, is_over)?;
        Ok(repository)
    }

    // A bundle has no index, so every object is reconstructed once in pack order, in which a base usually comes first.
    fn index_bundle(&mut self, count: u64, is_over: &dyn Fn() -> bool) -> Result<(), Error> {
        let (mut at, mut offsets) = (HEADER_BYTES, Vec::new());
        let (mut list, mut waiting) = (Vec::new(), Vec::new());
        for _ in 0..count {
            if is_over() {
                return Err(Error::Interrupted);
            }
            let pack = self.packs.first().ok_or_else(|| Error::damaged("no pack"))?;
            let entry = pack.entry(at)?;
            self.charge(entry.size)?;
            let (bytes, end) = pack.inflate(&entry)?;
            match entry.stored {
                Stored::Whole(kind) => {
                    let object = (kind, Arc::new(bytes));
                    list.push((Id::of(kind, &object.1), at));
                    self.cache().keep(Key::Packed(0, at), &object);
                }
                Stored::FromOffset(base) if offsets.binary_search(&base).is_err() => {
                    return Err(Error::damaged("the base of a delta is not an object"));
                }
                Stored::FromOffset(_) | Stored::FromName(_) => waiting.push(at),
            }
            offsets.push(at);
            at = end;
        }
        list.sort_unstable();
        self.set_list(list);
        // A base that is referenced by name may come later: deltas without their base wait for the next round.
        while !waiting.is_empty() {
            let before = waiting.len();
            let (mut made, mut left) = (Vec::new(), Vec::new());
            for offset in waiting {
                if is_over() {
                    return Err(Error::Interrupted);
                }
                match self.packed(0, offset) {
                    Ok((kind, bytes)) => made.push((Id::of(kind, &bytes), offset)),
                    Err(Error::Missing(_)) => left.push(offset),
                    Err(error) => return Err(error),
                }
            }
            if left.len() == before {
                return Err(Error::damaged("the base of a delta is not in the bundle"));
            }
            let Some(Pack { index: Index::List(list), .. }) = self.packs.first_mut() else { break };
            made.append(list);
            made.sort_unstable();
            self.set_list(made);
            waiting = left;
        }
        Ok(())
    }

    fn set_list(&mut self, list: Vec<(Id, u64)>) {
        if let Some(pack) = self.packs.first_mut() {
            pack.index = Index::List(list);
        }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Restores the initial byte budget for the next reader.
    pub fn refill(&self) {
        self.left.store(self.bounds.total_bytes, Ordering::Relaxed);
    }

    // Charges the byte budget before an object is reconstructed.
    fn charge(&self, bytes: u64) -> Result<(), Error> {
        if bytes > self.bounds.object_bytes {
            let most = self.bounds.object_bytes;
            return Err(Error::TooLarge(format!("an object has {bytes} bytes; the maximum is {most}")));
        }
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.map(drop).map_err(|_| Error::TooLarge(format!("its objects expand to more than {} bytes", self.bounds.total_bytes)))
    }

    /// Reads an object and verifies its name.
    fn object(&self, id: Id) -> Result<Object, Error> {
        for (number, pack) in self.packs.iter().enumerate() {
            if let Some(offset) = pack.index.find(id) {
                let known = self.cache().objects.get(&Key::Packed(number, offset)).cloned();
                if let Some(object) = known {
                    return self.checked(id, object);
                }
                let object = self.packed(number, offset)?;
                return self.checked(id, object);
            }
        }
        let known = self.cache().objects.get(&Key::Loose(id)).cloned();
        match known {
            Some(object) => Ok(object),
            None => {
                let object = self.checked(id, self.loose(id)?)?;
                self.cache().keep(Key::Loose(id), &object);
                Ok(object)
            }
        }
    }

    fn checked(&self, id: Id, object: Object) -> Result<Object, Error> {
        if Id::of(object.0, &object.1) == id {
            Ok(object)
        } else {
            Err(Error::damaged(format!("the content of object {id} does not match its name")))
        }
    }

    // Reconstructs the object at an offset of a pack: the end of a delta chain.
    fn packed(&self, number: usize, offset: u64) -> Result<Object, Error> {
        let pack = self.packs.get(number).ok_or_else(|| Error::damaged("no pack"))?;
        let (mut chain, mut at): (Vec<(u64, Entry)>, u64) = (Vec::new(), offset);
        let mut object = loop {
            let known = self.cache().objects.get(&Key::Packed(number, at)).cloned();
            if let Some(object) = known {
                break object;
            }
            let entry = pack.entry(at)?;
            match entry.stored {
                Stored::Whole(kind) => {
                    self.charge(entry.size)?;
                    let object = (kind, Arc::new(pack.inflate(&entry)?.0));
                    self.cache().keep(Key::Packed(number, at), &object);
                    break object;
                }
                Stored::FromOffset(base) => {
                    chain.push((at, entry));
                    at = base;
                }
                Stored::FromName(base) => {
                    chain.push((at, entry));
                    at = pack.index.find(base).ok_or(Error::Missing(base))?;
                }
            }
            if chain.len() > CHAIN_MAX {
                return Err(Error::TooLarge(format!("a delta chain longer than {CHAIN_MAX}")));
            }
        };
        for (at, entry) in chain.into_iter().rev() {
            self.charge(entry.size)?;
            let difference = pack.inflate(&entry)?.0;
            self.charge(delta::result_size(&difference)?)?;
            object = (object.0, Arc::new(delta::apply(&object.1, &difference)?));
            self.cache().keep(Key::Packed(number, at), &object);
        }
        Ok(object)
    }

    fn loose(&self, id: Id) -> Result<Object, Error> {
        let hex = id.to_string();
        let (directory, name) = hex.split_at(2);
        let most = self.bounds.object_bytes.saturating_add(self.bounds.object_bytes / 512 + 1024);
        let found = self.loose.as_ref().map(|dir| refs::read(dir, &format!("{directory}/{name}"), most)).transpose()?.flatten();
        let bytes = found.ok_or(Error::Missing(id))?;
        let wrong = || Error::damaged(format!("object {id} has an invalid header"));
        let head = zlib::beginning(&bytes, LOOSE_HEADER)?;
        let end = head.iter().position(|byte| *byte == 0).ok_or_else(wrong)?;
        let (words, _) = head.split_at(end);
        let mut words = words.split(|byte| *byte == b' ');
        let kind = words.next().and_then(Kind::of_name).ok_or_else(wrong)?;
        let size: u64 = words.next().and_then(|word| std::str::from_utf8(word).ok()?.parse().ok()).ok_or_else(wrong)?;
        self.charge(size)?;
        let mut inflater = Inflater::new(usize::try_from(size).map_err(|_| wrong())? + end + 1);
        inflater.piece(&bytes, false)?;
        let mut whole = inflater.finish()?;
        whole.drain(..=end);
        Ok((kind, Arc::new(whole)))
    }

    fn object_of(&self, id: Id, kind: Kind) -> Result<Arc<Vec<u8>>, Error> {
        match self.object(id)? {
            (found, bytes) if found == kind => Ok(bytes),
            (found, _) => Err(Error::damaged(format!("object {id} is a {}, not a {}", found.name(), kind.name()))),
        }
    }

    /// Resolves a reference to a commit: a branch, a tag, `HEAD`, a commit name or its prefix, `main~2`, `main^`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::UnknownReference`] if it does not exist or is ambiguous.
    pub fn resolve(&self, reference: &str) -> Result<Id, Error> {
        let unknown = || Error::UnknownReference(reference.escape_debug().take(200).collect());
        let end = reference.find(['~', '^']).unwrap_or(reference.len());
        let (name, mut steps) = reference.split_at(end);
        let mut id = self.peel(self.named(name)?.ok_or_else(unknown)?)?;
        while let Some(step) = steps.chars().next() {
            let digits = steps.get(1..).unwrap_or_default();
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            let (number, rest) = digits.split_at(end);
            let number = if number.is_empty() { 1 } else { number.parse::<u32>().map_err(|_| unknown())? };
            let (parent, times) =
                if step == '~' { (0, number) } else { (number.wrapping_sub(1) as usize, u32::from(number > 0)) };
            if !matches!(step, '~' | '^') {
                return Err(unknown());
            }
            for _ in 0..times {
                id = *self.commit(id)?.parents.get(parent).ok_or_else(unknown)?;
            }
            steps = rest;
        }
        Ok(id)
    }

    fn named(&self, name: &str) -> Result<Option<Id>, Error> {
        if name == "HEAD" {
            return self.head();
        }
        for form in ["", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"] {
            if let Some(id) = self.references.find(&format!("{form}{name}"))? {
                return Ok(Some(id));
            }
        }
        if let Some(id) = self.references.find(&format!("refs/remotes/{name}/HEAD"))? {
            return Ok(Some(id));
        }
        match Id::parse(name) {
            Some(id) => Ok(Some(id)),
            None => self.abbreviated(name),
        }
    }

    // Returns the target of `HEAD`; a bundle without `HEAD` uses its branch if there is only one.
    fn head(&self) -> Result<Option<Id>, Error> {
        if let Some(id) = self.references.find("HEAD")? {
            return Ok(Some(id));
        }
        if self.loose.is_some() {
            return Ok(None);
        }
        let branches = self.references.below("refs/heads/")?;
        let named = ["main", "master"].into_iter().find_map(|name| branches.get(name));
        Ok(named.or(branches.values().next().filter(|_| branches.len() == 1)).copied())
    }

    fn abbreviated(&self, digits: &str) -> Result<Option<Id>, Error> {
        let is_hex = (ABBREVIATED..2 * ID_BYTES).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let digits = digits.to_lowercase();
        let Some(first) = Id::parse(&format!("{digits:0<40}")).filter(|_| is_hex) else { return Ok(None) };
        let mut found: HashSet<Id> = self.packs.iter().flat_map(|pack| pack.index.two_from(first)).collect();
        let (directory, rest) = digits.split_at(2);
        let loose = self.loose.as_ref().and_then(|dir| dir.read_dir(directory).ok());
        let names = loose.into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
        found.extend(names.filter(|name| name.starts_with(rest)).filter_map(|name| Id::parse(&format!("{directory}{name}"))));
        found.retain(|id| id.to_string().starts_with(&digits));
        if found.len() > 1 {
            return Err(Error::UnknownReference(format!("{digits} (ambiguous)")));
        }
        Ok(found.into_iter().next())
    }

    // Returns the commit that a tag points to.
    fn peel(&self, mut id: Id) -> Result<Id, Error> {
        for _ in 0..PEEL_MAX {
            match self.object(id)? {
                (Kind::Commit, _) => return Ok(id),
                (Kind::Tag, bytes) => id = parse_tag(&bytes)?.0,
                (kind, _) => return Err(Error::UnknownReference(format!("{id} (a {}, not a commit)", kind.name()))),
            }
        }
        Err(Error::damaged("cycle of tags"))
    }

    /// Reads a commit. A commit whose parents a shallow clone omits has none.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Missing`] if it does not exist and [`Error::Damaged`] if it is invalid.
    pub fn commit(&self, id: Id) -> Result<Commit, Error> {
        let mut commit = Commit::parse(&self.object_of(id, Kind::Commit)?)?;
        if self.shallow.contains(&id) {
            commit.parents.clear();
        }
        Ok(commit)
    }

    /// Lists a directory.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Missing`] if it does not exist, [`Error::Damaged`] if it is invalid, and [`Error::Unsupported`] if it
    /// contains an invalid file name.
    pub fn tree(&self, id: Id) -> Result<Vec<TreeEntry>, Error> {
        tree::parse(&self.object_of(id, Kind::Tree)?, self.bounds.entries)
    }

    /// Reads a whole file or the target of a link.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Missing`] if it does not exist, [`Error::Damaged`] if it is invalid and [`Error::TooLarge`] if it exceeds
    /// a limit.
    pub fn blob(&self, id: Id) -> Result<Arc<Vec<u8>>, Error> {
        self.object_of(id, Kind::Blob)
    }

    /// Reads a part of a file and returns the number of bytes.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`blob`](Self::blob).
    pub fn read_blob(&self, id: Id, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let bytes = self.blob(id)?;
        let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer.get_mut(..len).unwrap_or_default().copy_from_slice(rest.get(..len).unwrap_or_default());
        Ok(len)
    }

    /// Returns the size of a file without reconstructing it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`blob`](Self::blob).
    pub fn blob_size(&self, id: Id) -> Result<u64, Error> {
        for pack in &self.packs {
            let Some(offset) = pack.index.find(id) else { continue };
            let entry = pack.entry(offset)?;
            return match entry.stored {
                Stored::Whole(_) => Ok(entry.size),
                Stored::FromOffset(_) | Stored::FromName(_) => delta::result_size(&pack.beginning(&entry)?),
            };
        }
        Ok(self.blob(id)?.len() as u64)
    }

    /// Returns the tags, each with its commit and its message, if any.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Damaged`] if a tag cannot be read.
    pub fn tags(&self) -> Result<BTreeMap<String, (Id, Option<String>)>, Error> {
        let mut tags = BTreeMap::new();
        for (name, id) in self.references.below("refs/tags/")? {
            let message = match self.object(id)? {
                (Kind::Tag, bytes) => Some(parse_tag(&bytes)?.2),
                _ => None,
            };
            // A tag can point to any object, including a file.
            match self.peel(id) {
                Ok(commit) => drop(tags.insert(name, (commit, message))),
                Err(Error::UnknownReference(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(tags)
    }

    /// Returns the branches, by name.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Damaged`] if a reference cannot be read.
    pub fn branches(&self) -> Result<BTreeMap<String, Id>, Error> {
        self.references.below("refs/heads/")
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Hasher;

    fn adler(bytes: &[u8]) -> [u8; 4] {
        let next = |(a, b): (u32, u32), byte: &u8| ((a + u32::from(*byte)) % 65521, (a + u32::from(*byte) + b) % 65521);
        let (a, b) = bytes.iter().fold((1, 0), next);
        (b << 16 | a).to_be_bytes()
    }

    fn stored(bytes: &[u8]) -> Vec<u8> {
        [&[0x78, 0x01, 0x01, bytes.len() as u8, 0, !(bytes.len() as u8), 0xFF], bytes, &adler(bytes)].concat()
    }

    /// Creates a bundle with a blob of four bytes and this many deltas, each a copy of the one before, and the offset of the last
    /// one.
    fn chain(path: &Path, length: u32) -> u64 {
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend_from_slice(&(length + 1).to_be_bytes());
        pack.push(0x34);
        pack.extend_from_slice(&stored(b"abcd"));
        let mut last = 12;
        for _ in 0..length {
            let at = pack.len();
            pack.extend_from_slice(&[0x64, u8::try_from(at - last).unwrap()]);
            pack.extend_from_slice(&stored(&[4, 4, 0x90, 4]));
            last = at;
        }
        let mut hasher = Hasher::new();
        hasher.update(&pack);
        let header = format!("# v2 git bundle\n{} HEAD\n\n", Id::of(Kind::Blob, b"abcd"));
        std::fs::write(path, [header.as_bytes(), &pack, &hasher.finish().0].concat()).unwrap();
        last as u64
    }

    #[test]
    fn a_chain_of_differences_has_a_bound_in_length_and_in_work() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.bundle");
        for (length, is_read) in [(4000, true), (5000, false)] {
            let last = chain(&path, length);
            let repository = Repository::open(&path, Bounds::default()).unwrap();
            // Reconstructed objects are cached, which shortens the chain.
            assert_eq!(*repository.packed(0, last).unwrap().1, b"abcd");
            *repository.cache() = Cache::default();
            let made = repository.packed(0, last);
            assert_eq!(made.is_ok(), is_read, "{length}");
            assert!(is_read || matches!(made, Err(Error::TooLarge(_))));
        }
        let bounds = Bounds { total_bytes: 20_000, ..Bounds::default() };
        assert!(matches!(Repository::open(&path, bounds), Err(Error::TooLarge(_))));
        let bounds = Bounds { objects: 5000, ..Bounds::default() };
        assert!(matches!(Repository::open(&path, bounds), Err(Error::TooLarge(_))));
    }
}
