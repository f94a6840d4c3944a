//! The model: a map of nodes and nothing clever.

use std::collections::{BTreeMap, HashMap};

use sqlite_fs::{FsError, Quota, ROOT};

pub const QUOTA: Quota = Quota {
    bytes: 900_000,
    file_size: 300_000,
    inodes: 24,
    name: 200,
    depth: 3,
    names: 1 << 20,
    keys: 1 << 20,
    sessions: 1 << 20,
    history: 1 << 20,
    past: 64 << 20,
};

const LONG: &str = "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\
01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789";

pub const NAMES: &[&str] =
    &["a", "b", "c", "d", "e", "f", "g", "a", "b", "c", "d", "é", "with space", "", ".", "..", "a/b", "nul\0", LONG];

#[derive(Clone, PartialEq)]
pub enum Outcome {
    Done,
    Number(u64),
    Text(String),
    Bytes(Vec<u8>),
    Names(Vec<(String, u64)>),
    Attributes(u32, u32, u64),
    Usage(u64, u64),
    Failed(FsError),
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Done => write!(f, "done"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
            // A page of zeros is useless.
            Self::Bytes(bytes) => {
                let runs = bytes.chunk_by(|a, b| a == b).map(|run| format!("{}x{}", run.len(), run[0]));
                write!(f, "bytes {}", runs.take(20).collect::<Vec<_>>().join(" "))
            }
            Self::Names(names) => write!(f, "{names:?}"),
            Self::Attributes(mode, nlink, size) => write!(f, "mode {mode:o} nlink {nlink} size {size}"),
            Self::Usage(bytes, inodes) => write!(f, "{bytes} bytes, {inodes} inodes"),
            Self::Failed(error) => write!(f, "{error}"),
        }
    }
}

#[derive(Clone, Debug)]
enum Kind {
    File(Vec<u8>),
    Directory { entries: BTreeMap<String, u64>, parent: u64 },
    Symlink(String),
}

#[derive(Clone, Debug)]
struct Node {
    kind: Kind,
    mode: u32,
    nlink: u32,
}

#[derive(Clone, Debug)]
pub struct Model {
    nodes: HashMap<u64, Node>,
    holds: HashMap<u64, u32>,
    /// Every number ever given, so that dead ones are tried too.
    known: Vec<u64>,
}

type Answer<T> = Result<T, FsError>;

fn outcome(answer: Answer<Outcome>) -> Outcome {
    answer.unwrap_or_else(Outcome::Failed)
}

impl Model {
    pub fn new() -> Self {
        let root = Node { kind: Kind::Directory { entries: BTreeMap::new(), parent: ROOT }, mode: 0o40_755, nlink: 2 };
        Self { nodes: HashMap::from([(ROOT, root)]), holds: HashMap::new(), known: vec![ROOT] }
    }

    /// Half of the choices are existing names.
    pub fn ino(&self, choice: usize) -> u64 {
        match choice {
            0..=5 => ROOT,
            _ => self.known[(choice * 7) % self.known.len()],
        }
    }

    fn node(&self, ino: u64) -> Answer<&Node> {
        self.nodes.get(&ino).ok_or(FsError::NoEntry)
    }

    fn entries(&self, dir: u64) -> Answer<&BTreeMap<String, u64>> {
        match &self.node(dir)?.kind {
            Kind::Directory { entries, .. } => Ok(entries),
            _ => Err(FsError::NotDirectory),
        }
    }

    fn entries_mut(&mut self, dir: u64) -> &mut BTreeMap<String, u64> {
        match self.nodes.get_mut(&dir).map(|node| &mut node.kind) {
            Some(Kind::Directory { entries, .. }) => entries,
            _ => unreachable!("checked before"),
        }
    }

    fn is_dir(&self, ino: u64) -> bool {
        self.entries(ino).is_ok()
    }

    fn parent_of(&self, dir: u64) -> Answer<u64> {
        match &self.node(dir)?.kind {
            Kind::Directory { parent, .. } => Ok(*parent),
            _ => Err(FsError::NotDirectory),
        }
    }

    fn find(&self, dir: u64, name: &str) -> Answer<u64> {
        match name {
            "" => return Err(FsError::NoEntry),
            "." => return self.entries(dir).map(|_| dir),
            ".." => return self.parent_of(dir),
            _ => {}
        }
        let entries = self.entries(dir)?;
        if name.len() > QUOTA.name {
            return Err(FsError::NameTooLong);
        }
        entries.get(name).copied().ok_or(FsError::NoEntry)
    }

    fn check_new(&self, dir: u64, name: &str) -> Answer<()> {
        match name {
            "" => return Err(FsError::NoEntry),
            "." | ".." => return Err(FsError::Exists),
            _ if name.contains(['/', '\0']) => return Err(FsError::Invalid),
            _ => {}
        }
        self.entries(dir)?;
        if self.node(dir)?.nlink == 0 {
            return Err(FsError::NoEntry);
        }
        match self.find(dir, name) {
            Ok(_) => Err(FsError::Exists),
            Err(FsError::NoEntry) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn depth(&self, mut dir: u64) -> u32 {
        let mut depth = 0;
        while dir != ROOT {
            dir = self.parent_of(dir).unwrap();
            depth += 1;
        }
        depth
    }

    fn height(&self, dir: u64) -> u32 {
        let below = self.entries(dir).unwrap().values().filter(|ino| self.is_dir(**ino));
        below.map(|ino| self.height(*ino)).max().unwrap_or(0) + 1
    }

    fn add(&mut self, dir: u64, name: &str, kind: Kind, mode: u32, ino: Option<u64>) -> Answer<Outcome> {
        if self.nodes.len() as u64 >= QUOTA.inodes {
            return Err(FsError::NoSpace);
        }
        // The number is the other side's choice; it must be a fresh one.
        let ino = ino.filter(|ino| !self.nodes.contains_key(ino)).unwrap_or(0);
        let is_dir = matches!(kind, Kind::Directory { .. });
        self.nodes.insert(ino, Node { kind, mode, nlink: if is_dir { 2 } else { 1 } });
        self.known.push(ino);
        self.entries_mut(dir).insert(name.to_owned(), ino);
        if is_dir {
            self.nodes.get_mut(&dir).unwrap().nlink += 1;
        }
        Ok(Outcome::Number(ino))
    }

    pub fn create(&mut self, dir: u64, name: &str, mode: u32, ino: Option<u64>) -> Outcome {
        outcome(self.check_new(dir, name).and_then(|()| self.add(dir, name, Kind::File(Vec::new()), 0o100_000 | mode, ino)))
    }

    pub fn mkdir(&mut self, dir: u64, name: &str, ino: Option<u64>) -> Outcome {
        let mut make = || {
            self.check_new(dir, name)?;
            if self.depth(dir) >= QUOTA.depth {
                return Err(FsError::NameTooLong);
            }
            let kind = Kind::Directory { entries: BTreeMap::new(), parent: dir };
            self.add(dir, name, kind, 0o40_750, ino)
        };
        outcome(make())
    }

    pub fn symlink(&mut self, dir: u64, name: &str, target: &str, ino: Option<u64>) -> Outcome {
        let mut make = || {
            if target.is_empty() {
                return Err(FsError::NoEntry);
            }
            if target.contains('\0') {
                return Err(FsError::Invalid);
            }
            self.check_new(dir, name)?;
            self.add(dir, name, Kind::Symlink(target.to_owned()), 0o120_777, ino)
        };
        outcome(make())
    }

    pub fn readlink(&self, ino: u64) -> Outcome {
        outcome(self.node(ino).and_then(|node| match &node.kind {
            Kind::Symlink(target) => Ok(Outcome::Text(target.clone())),
            _ => Err(FsError::Invalid),
        }))
    }

    pub fn link(&mut self, ino: u64, dir: u64, name: &str) -> Outcome {
        let mut make = || {
            self.check_new(dir, name)?;
            if self.is_dir(ino) {
                return Err(FsError::NotPermitted);
            }
            if self.node(ino)?.nlink == 0 {
                return Err(FsError::NoEntry);
            }
            self.nodes.get_mut(&ino).unwrap().nlink += 1;
            self.entries_mut(dir).insert(name.to_owned(), ino);
            Ok(Outcome::Done)
        };
        outcome(make())
    }

    fn drop_name(&mut self, dir: u64, name: &str, ino: u64) {
        self.entries_mut(dir).remove(name);
        let is_dir = self.is_dir(ino);
        let node = self.nodes.get_mut(&ino).unwrap();
        node.nlink = if is_dir { 0 } else { node.nlink - 1 };
        let gone = node.nlink == 0;
        if is_dir {
            self.nodes.get_mut(&dir).unwrap().nlink -= 1;
        }
        if gone && !self.holds.contains_key(&ino) {
            self.nodes.remove(&ino);
        }
    }

    pub fn unlink(&mut self, dir: u64, name: &str) -> Outcome {
        let mut remove = || {
            let ino = self.find(dir, name)?;
            if self.is_dir(ino) {
                return Err(FsError::IsDirectory);
            }
            self.drop_name(dir, name, ino);
            Ok(Outcome::Done)
        };
        outcome(remove())
    }

    pub fn rmdir(&mut self, dir: u64, name: &str) -> Outcome {
        let mut remove = || {
            match name {
                "." => return Err(FsError::Invalid),
                ".." => return Err(FsError::NotEmpty),
                _ => {}
            }
            let ino = self.find(dir, name)?;
            if !self.entries(ino)?.is_empty() {
                return Err(FsError::NotEmpty);
            }
            self.drop_name(dir, name, ino);
            Ok(Outcome::Done)
        };
        outcome(remove())
    }

    fn is_below(&self, mut dir: u64, top: u64) -> bool {
        loop {
            if dir == top {
                return true;
            }
            if dir == ROOT {
                return false;
            }
            dir = self.parent_of(dir).unwrap();
        }
    }

    pub fn rename(&mut self, dir: u64, name: &str, to: u64, new: &str) -> Outcome {
        let mut rename = || {
            if [name, new].iter().any(|name| *name == "." || *name == "..") {
                return Err(FsError::Busy);
            }
            let ino = self.find(dir, name)?;
            let target = match self.check_new(to, new) {
                Ok(()) => None,
                Err(FsError::Exists) => Some(self.find(to, new)?),
                Err(error) => return Err(error),
            };
            if self.is_dir(ino) && self.is_below(to, ino) {
                return Err(FsError::Invalid);
            }
            if target == Some(ino) {
                return Ok(Outcome::Done);
            }
            if let Some(target) = target {
                if self.is_dir(target) && self.is_below(dir, target) {
                    return Err(FsError::NotEmpty);
                }
                match (self.is_dir(ino), self.is_dir(target)) {
                    (true, false) => return Err(FsError::NotDirectory),
                    (false, true) => return Err(FsError::IsDirectory),
                    (true, true) if !self.entries(target)?.is_empty() => return Err(FsError::NotEmpty),
                    _ => {}
                }
            }
            if self.is_dir(ino)
                && dir != to
                && self.depth(to) > self.depth(dir)
                && self.depth(to) + self.height(ino) > QUOTA.depth
            {
                return Err(FsError::NameTooLong);
            }
            if let Some(target) = target {
                self.drop_name(to, new, target);
            }
            self.entries_mut(dir).remove(name);
            self.entries_mut(to).insert(new.to_owned(), ino);
            if let Kind::Directory { parent, .. } = &mut self.nodes.get_mut(&ino).unwrap().kind {
                *parent = to;
                self.nodes.get_mut(&dir).unwrap().nlink -= 1;
                self.nodes.get_mut(&to).unwrap().nlink += 1;
            }
            Ok(Outcome::Done)
        };
        outcome(rename())
    }

    pub fn lookup(&self, dir: u64, name: &str) -> Outcome {
        outcome(self.find(dir, name).map(Outcome::Number))
    }

    pub fn parent(&self, ino: u64) -> Outcome {
        outcome(self.parent_of(ino).map(Outcome::Number))
    }

    pub fn stat(&self, ino: u64) -> Outcome {
        outcome(self.node(ino).map(|node| Outcome::Attributes(node.mode, node.nlink, size(&node.kind))))
    }

    fn content(&self, ino: u64) -> Answer<&Vec<u8>> {
        match &self.node(ino)?.kind {
            Kind::File(bytes) => Ok(bytes),
            Kind::Directory { .. } => Err(FsError::IsDirectory),
            Kind::Symlink(_) => Err(FsError::Invalid),
        }
    }

    fn content_mut(&mut self, ino: u64) -> &mut Vec<u8> {
        match self.nodes.get_mut(&ino).map(|node| &mut node.kind) {
            Some(Kind::File(bytes)) => bytes,
            _ => unreachable!("checked before"),
        }
    }

    fn bytes(&self) -> u64 {
        self.nodes.values().filter(|node| matches!(node.kind, Kind::File(_))).map(|node| size(&node.kind)).sum()
    }

    pub fn write(&mut self, ino: u64, offset: u64, bytes: &[u8]) -> Outcome {
        let mut write = || {
            let size = self.content(ino)?.len() as u64;
            if bytes.is_empty() {
                return Ok(Outcome::Number(0));
            }
            let end = offset + bytes.len() as u64;
            let by_file = QUOTA.file_size.max(size);
            let by_disk = size + (QUOTA.bytes - self.bytes());
            let end = end.min(by_file).min(by_disk.max(size));
            if end <= offset {
                return Err(if by_file <= by_disk { FsError::FileTooBig } else { FsError::NoSpace });
            }
            let content = self.content_mut(ino);
            if content.len() < end as usize {
                content.resize(end as usize, 0);
            }
            let len = (end - offset) as usize;
            content[offset as usize..end as usize].copy_from_slice(&bytes[..len]);
            Ok(Outcome::Number(len as u64))
        };
        outcome(write())
    }

    pub fn append(&mut self, ino: u64, bytes: &[u8]) -> Outcome {
        match self.content(ino).map(|content| content.len() as u64) {
            Ok(size) => match self.write(ino, size, bytes) {
                Outcome::Number(written) => Outcome::Number(size + written),
                other => other,
            },
            Err(error) => Outcome::Failed(error),
        }
    }

    pub fn truncate(&mut self, ino: u64, new: u64) -> Outcome {
        let mut truncate = || {
            let size = self.content(ino)?.len() as u64;
            if new > size {
                if new > QUOTA.file_size {
                    return Err(FsError::FileTooBig);
                }
                if new - size > QUOTA.bytes - self.bytes() {
                    return Err(FsError::NoSpace);
                }
            }
            self.content_mut(ino).resize(new as usize, 0);
            Ok(Outcome::Done)
        };
        outcome(truncate())
    }

    pub fn read(&self, ino: u64, offset: u64, len: usize) -> Outcome {
        outcome(self.content(ino).map(|content| {
            let start = (offset as usize).min(content.len());
            let end = (start + len).min(content.len());
            Outcome::Bytes(content[start..end].to_vec())
        }))
    }

    pub fn readdir(&self, dir: u64) -> Outcome {
        outcome(self.entries(dir).map(|entries| Outcome::Names(entries.iter().map(|(name, ino)| (name.clone(), *ino)).collect())))
    }

    pub fn chmod(&mut self, ino: u64, mode: u32) -> Outcome {
        match self.nodes.get_mut(&ino) {
            Some(node) => {
                node.mode = (node.mode & 0o170_000) | mode;
                Outcome::Done
            }
            None => Outcome::Failed(FsError::NoEntry),
        }
    }

    pub fn exists(&self, ino: u64) -> Outcome {
        outcome(self.node(ino).map(|_| Outcome::Done))
    }

    pub fn hold(&mut self, ino: u64) -> Outcome {
        if self.nodes.contains_key(&ino) {
            *self.holds.entry(ino).or_insert(0) += 1;
        }
        self.exists(ino)
    }

    pub fn release(&mut self, ino: u64) -> Outcome {
        if let Some(count) = self.holds.get_mut(&ino) {
            *count -= 1;
            if *count == 0 {
                self.holds.remove(&ino);
                if self.nodes.get(&ino).is_some_and(|node| node.nlink == 0) {
                    self.nodes.remove(&ino);
                }
            }
        }
        Outcome::Done
    }

    pub fn used(&self) -> Outcome {
        Outcome::Usage(self.bytes(), self.nodes.len() as u64)
    }

    /// The end of a transaction: nothing is held any more.
    pub fn end(&mut self) {
        self.holds.clear();
        self.nodes.retain(|_, node| node.nlink > 0);
    }

    /// The state of `self`, held as in `now`: descriptors do not close when files go back.
    pub fn clone_with_holds_of(&self, now: &Self) -> Self {
        let mut state = self.clone();
        state.holds = now.holds.clone();
        state.known = now.known.clone();
        state
    }

    /// Everything below the root: its path, and its state in a version.
    pub fn tree(&self) -> BTreeMap<String, (u64, u32, u32, Vec<u8>)> {
        let mut tree = BTreeMap::new();
        let mut todo = vec![(ROOT, String::new())];
        while let Some((dir, path)) = todo.pop() {
            for (name, ino) in self.entries(dir).unwrap() {
                let path = format!("{path}/{name}");
                let node = &self.nodes[ino];
                let content = match &node.kind {
                    Kind::File(bytes) => bytes.clone(),
                    Kind::Directory { .. } => Vec::new(),
                    Kind::Symlink(target) => target.clone().into_bytes(),
                };
                tree.insert(path.clone(), (*ino, node.mode, node.nlink, content));
                if self.is_dir(*ino) {
                    todo.push((*ino, path));
                }
            }
        }
        tree
    }

    /// Every file with its path.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut files = Vec::new();
        let mut todo = vec![(ROOT, String::new())];
        while let Some((dir, path)) = todo.pop() {
            for (name, ino) in self.entries(dir).unwrap() {
                let path = format!("{path}/{name}");
                match &self.nodes[ino].kind {
                    Kind::File(bytes) => files.push((path, bytes.clone())),
                    Kind::Directory { .. } => todo.push((*ino, path)),
                    Kind::Symlink(_) => {}
                }
            }
        }
        files
    }
}

fn size(kind: &Kind) -> u64 {
    match kind {
        Kind::File(bytes) => bytes.len() as u64,
        Kind::Directory { .. } => 0,
        Kind::Symlink(target) => target.len() as u64,
    }
}
