//! Functions of the embedding program as a source: files and directories that are generated when they are opened.
//!
//! A function runs on its own thread, which is abandoned once the command has ended. Its result is checked before a guest sees
//! any of it. A function that reads the path it is generating, or changes its own sandbox, fails at once.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sqlite_fs::{FileType, FsError};

use super::{NAMES_MAX, Source, SourceContext, SourceFiles, SourceStat};
use crate::tools::ToolContext;
use crate::vfs::directory::component;
use crate::{Cancel, RunningFiles};

/// Maximum number of concurrent calls of one function, including abandoned ones.
const CALLS_MAX: usize = 32;
/// Maximum depth of a directory that a function returns.
const DEPTH_MAX: usize = 64;
/// Maximum number of remembered sizes of generated files.
const SIZES_MAX: usize = 10_000;
/// Maximum number of cached generated directories per view; then the cache is cleared.
const TREES_MAX: usize = 1024;
/// Longest name.
const NAME_MAX: usize = 255;

thread_local! {
    /// The sandboxes for which the calling thread generates something.
    static GENERATING: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Returns whether the calling thread is a function that generates files of this sandbox. The sandbox waits for it, so it must
/// not wait for the sandbox.
pub(crate) fn is_generating(sandbox: u64) -> bool {
    GENERATING.with_borrow(|sandboxes| sandboxes.contains(&sandbox))
}

/// The return value of a function that generates files: a file, or a directory of nodes.
///
/// ```
/// use sandlite_runtime::ProvidedNode;
/// let tree = ProvidedNode::directory([
///     ("README", ProvidedNode::file("read me")),
///     ("users", ProvidedNode::directory([("1", ProvidedNode::file("{}"))])),
/// ]);
/// ```
#[derive(Clone, Debug)]
pub struct ProvidedNode(Provided);

#[derive(Clone, Debug)]
enum Provided {
    File(Arc<[u8]>),
    Directory(Arc<BTreeMap<String, ProvidedNode>>),
    Later(Provider),
}

impl ProvidedNode {
    /// Creates a file with this content.
    pub fn file(content: impl Into<Vec<u8>>) -> Self {
        Self(Provided::File(content.into().into()))
    }

    /// Creates a directory with these entries. Of two entries with the same name, the last one counts.
    pub fn directory<N: Into<String>>(entries: impl IntoIterator<Item = (N, Self)>) -> Self {
        Self(Provided::Directory(Arc::new(entries.into_iter().map(|(name, node)| (name.into(), node)).collect())))
    }

    /// Creates a file or directory that is generated when it is opened itself.
    #[must_use]
    pub fn later(provider: Provider) -> Self {
        Self(Provided::Later(provider))
    }

    fn kind(&self) -> FileType {
        match &self.0 {
            Provided::File(_) => FileType::File,
            Provided::Directory(_) => FileType::Directory,
            Provided::Later(provider) => provider.kind,
        }
    }
}

/// The context of a generated node.
#[derive(Clone, Debug)]
pub struct NodeContext {
    path: String,
    call: ToolContext,
    cancel: Cancel,
}

impl NodeContext {
    /// Returns the path in the sandbox.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the history row of the reading command; `None` if the embedding program itself reads.
    #[must_use]
    pub fn run(&self) -> Option<i64> {
        Some(self.call.run()).filter(|run| *run != 0)
    }

    /// Returns the files as the reading command sees them, for reading; `None` if no command reads.
    #[must_use]
    pub fn files(&self) -> Option<&RunningFiles> {
        Some(self.call.files()).filter(|files| !files.is_over())
    }

    /// Returns the handle that stops the command.
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Returns whether the content is no longer needed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.call.is_over() || self.cancel.is_killed()
    }

    /// Returns the same in the form of a tool's context.
    #[must_use]
    pub fn call(&self) -> &ToolContext {
        &self.call
    }
}

type Generate = dyn Fn(&NodeContext) -> Result<ProvidedNode, String> + Send + Sync;

/// A function that generates a file each time it is opened, or a directory; see [`Builder::dynamic`](crate::Builder::dynamic).
#[derive(Clone)]
pub struct Provider {
    kind: FileType,
    mode: u32,
    generate: Arc<Generate>,
    calls: Arc<AtomicUsize>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Provider {
    /// Creates a file. The function is called for each open and returns the whole content; its error is reported to the reader as
    /// the reason of an input/output error.
    pub fn file(generate: impl Fn(&NodeContext) -> Result<Vec<u8>, String> + Send + Sync + 'static) -> Self {
        Self::new(FileType::File, move |context| generate(context).map(ProvidedNode::file))
    }

    /// Creates a file from a [`ProvidedNode`] that must be one.
    pub fn file_node(generate: impl Fn(&NodeContext) -> Result<ProvidedNode, String> + Send + Sync + 'static) -> Self {
        Self::new(FileType::File, generate)
    }

    /// Creates a program: an executable file with this content, such as a script.
    ///
    /// ```
    /// use sandlite_runtime::{Provider, Sandbox};
    /// let greet = Provider::program("#!/bin/bash\necho hello $1\n");
    /// let sandbox = Sandbox::builder().dynamic("/home/user/.local/bin/greet", greet).open()?;
    /// assert_eq!(sandbox.bash("greet you")?.stdout, b"hello you\n");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    pub fn program(content: impl Into<Vec<u8>>) -> Self {
        let node = ProvidedNode::file(content);
        Self { mode: 0o755, ..Self::new(FileType::File, move |_| Ok(node.clone())) }
    }

    /// Creates a directory. The function is called once for a command, and again whenever the directory itself is listed.
    pub fn directory(generate: impl Fn(&NodeContext) -> Result<ProvidedNode, String> + Send + Sync + 'static) -> Self {
        Self::new(FileType::Directory, generate)
    }

    /// Returns whether it generates a directory.
    pub(crate) fn is_directory(&self) -> bool {
        self.kind == FileType::Directory
    }

    fn new(kind: FileType, generate: impl Fn(&NodeContext) -> Result<ProvidedNode, String> + Send + Sync + 'static) -> Self {
        let mode = if kind == FileType::Directory { 0o755 } else { 0o644 };
        Self { kind, mode, generate: Arc::new(generate), calls: Arc::default() }
    }

    // Calls the function on its own thread.
    fn call(&self, context: &NodeContext, sandbox: u64, largest: u64) -> Result<ProvidedNode, String> {
        GENERATING.with_borrow_mut(|sandboxes| sandboxes.push(sandbox));
        let returned = catch_unwind(AssertUnwindSafe(|| (self.generate)(context)));
        let node = returned.unwrap_or_else(|_| Err("the function panicked".to_owned()))?;
        if node.kind() != self.kind {
            let (wanted, found) = (name_of(self.kind), name_of(node.kind()));
            return Err(format!("expected a {wanted}, but the function returned a {found}"));
        }
        check(&node, largest, DEPTH_MAX, &mut 0)?;
        Ok(node)
    }
}

/// A counted call of a function.
struct Running(Arc<AtomicUsize>);

impl Running {
    // `None` if there are too many.
    fn begin(calls: &Arc<AtomicUsize>) -> Option<Self> {
        let others = calls.fetch_add(1, Ordering::AcqRel);
        let running = Self(Arc::clone(calls));
        (others < CALLS_MAX).then_some(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn name_of(kind: FileType) -> &'static str {
    if kind == FileType::Directory { "directory" } else { "file" }
}

/// Rejects invalid results: names that are paths, endless trees, files that are too large.
fn check(node: &ProvidedNode, largest: u64, depth: usize, names: &mut usize) -> Result<(), String> {
    match &node.0 {
        Provided::File(bytes) if bytes.len() as u64 > largest => {
            Err(format!("the content has {} bytes; the maximum is {largest}", bytes.len()))
        }
        Provided::File(_) | Provided::Later(_) => Ok(()),
        Provided::Directory(_) if depth == 0 => Err(format!("directories are nested deeper than {DEPTH_MAX}")),
        Provided::Directory(entries) => {
            *names = names.saturating_add(entries.len());
            if *names > NAMES_MAX {
                return Err(format!("more than {NAMES_MAX} names"));
            }
            for (name, node) in entries.iter() {
                if component(name).is_err() || name.len() > NAME_MAX {
                    let shown: String = name.escape_debug().take(64).collect();
                    return Err(format!("invalid name `{shown}`"));
                }
                check(node, largest, depth - 1, names)?;
            }
            Ok(())
        }
    }
}

/// A mounted function.
#[derive(Debug)]
pub(crate) struct CallbackSource {
    provider: Provider,
    largest: u64,
    /// The last known sizes of generated files.
    sizes: Mutex<HashMap<String, u64>>,
}

impl CallbackSource {
    /// Mounts a function whose files have at most this many bytes.
    pub(crate) fn new(provider: Provider, largest: u64) -> Self {
        Self { provider, largest, sizes: Mutex::default() }
    }

    fn sizes(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for CallbackSource {
    fn kind(&self) -> &'static str {
        "function"
    }

    fn root(&self) -> FileType {
        self.provider.kind
    }

    fn open(self: Arc<Self>, context: SourceContext) -> Result<Box<dyn SourceFiles>, FsError> {
        Ok(Box::new(CallbackFiles { source: self, context, trees: Mutex::default() }))
    }
}

/// The generated content of one view.
struct CallbackFiles {
    source: Arc<CallbackSource>,
    context: SourceContext,
    /// Generated directories, by the path of their provider.
    trees: Mutex<HashMap<String, ProvidedNode>>,
}

/// The result of resolving a path.
enum Found {
    Content(Arc<[u8]>),
    Directory(Arc<BTreeMap<String, ProvidedNode>>),
    /// A file that is generated when it is opened.
    Generated(Provider),
}

impl CallbackFiles {
    fn trees(&self) -> MutexGuard<'_, HashMap<String, ProvidedNode>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn generate_from(&self, provider: &Provider, path: &str) -> Result<ProvidedNode, FsError> {
        let sandbox = self.context.sandbox();
        if is_generating(sandbox) {
            self.context.complain(path, "a function cannot read the path that it is generating");
            return Err(FsError::Busy);
        }
        let Some(running) = Running::begin(&provider.calls) else {
            self.context.complain(path, &format!("more than {CALLS_MAX} concurrent calls of the function"));
            return Err(FsError::Busy);
        };
        let cancel = self.context.cancel().clone();
        let call = cancel.call();
        // Dropped with the wait, however it ends.
        let _over = call.ends();
        let (provider, largest) = (provider.clone(), self.source.largest);
        let context = NodeContext { path: self.context.full_path(path), call, cancel };
        let returned = self.context.wait(move || {
            // Dropped with the thread, or without one if it cannot be started.
            let _running = running;
            provider.call(&context, sandbox, largest)
        });
        let returned = returned.inspect_err(|error| {
            let reason = if *error == FsError::Interrupted {
                "the command ended before the function did"
            } else {
                "the function took too long"
            };
            self.context.complain(path, reason);
        })?;
        returned.map_err(|message| {
            self.context.complain(path, if message.is_empty() { "the function failed" } else { &message });
            FsError::Io
        })
    }

    // The tree of a provider of a directory: that of this view, or a new one.
    fn tree(&self, provider: &Provider, path: &str, is_new: bool) -> Result<ProvidedNode, FsError> {
        if !is_new && let Some(tree) = self.trees().get(path) {
            return Ok(tree.clone());
        }
        let tree = self.generate_from(provider, path)?;
        let mut trees = self.trees();
        if trees.len() >= TREES_MAX {
            trees.clear();
        }
        trees.insert(path.to_owned(), tree.clone());
        Ok(tree)
    }

    // Walks from the root; a directory that is `listed` itself is generated again.
    fn find(&self, path: &str, listed: bool) -> Result<Found, FsError> {
        let mut node = ProvidedNode(Provided::Later(self.source.provider.clone()));
        let mut at = String::new();
        let mut names = path.split('/').filter(|name| !name.is_empty());
        loop {
            let next = names.next();
            // Provided nodes may be providers in turn, up to the maximum depth of directories.
            for step in 0.. {
                match node.0 {
                    Provided::Later(provider) if provider.kind == FileType::Directory && step < DEPTH_MAX => {
                        node = self.tree(&provider, &at, listed && next.is_none())?;
                    }
                    other => {
                        node.0 = other;
                        break;
                    }
                }
            }
            let Some(name) = next else { break };
            let Provided::Directory(entries) = &node.0 else { return Err(FsError::NotDirectory) };
            node = entries.get(name).cloned().ok_or(FsError::NoEntry)?;
            at = if at.is_empty() { name.to_owned() } else { format!("{at}/{name}") };
        }
        match node.0 {
            Provided::File(bytes) => Ok(Found::Content(bytes)),
            Provided::Directory(entries) => Ok(Found::Directory(entries)),
            Provided::Later(provider) => Ok(Found::Generated(provider)),
        }
    }
}

impl SourceFiles for CallbackFiles {
    fn stat(&self, path: &str) -> Result<SourceStat, FsError> {
        // The type of its own file or directory is known without calling the function.
        let own = &self.source.provider;
        let (kind, mode, size) = match path.is_empty() {
            true => (own.kind, own.mode, self.source.sizes().get(path).copied().unwrap_or(0)),
            false => match self.find(path, false)? {
                Found::Content(bytes) => (FileType::File, 0o644, bytes.len() as u64),
                Found::Directory(_) => (FileType::Directory, 0o755, 0),
                Found::Generated(provider) => (provider.kind, provider.mode, self.source.sizes().get(path).copied().unwrap_or(0)),
            },
        };
        Ok(SourceStat { kind, mode, size, atime: 0, mtime: 0, ctime: 0 })
    }

    fn list(&self, path: &str) -> Result<Vec<(String, FileType)>, FsError> {
        match self.find(path, true)? {
            Found::Directory(entries) => Ok(entries.iter().map(|(name, node)| (name.clone(), node.kind())).collect()),
            _ => Err(FsError::NotDirectory),
        }
    }

    fn read(&self, path: &str, _: u64, _: &mut [u8]) -> Result<usize, FsError> {
        // Its files are opened, never read by offset.
        match self.find(path, false)? {
            Found::Directory(_) => Err(FsError::IsDirectory),
            _ => Err(FsError::Invalid),
        }
    }

    fn read_link(&self, _: &str) -> Result<String, FsError> {
        Err(FsError::Invalid)
    }

    fn generate(&self, path: &str) -> Result<Option<Arc<[u8]>>, FsError> {
        let provider = match self.find(path, false)? {
            Found::Content(bytes) => return Ok(Some(bytes)),
            Found::Directory(_) => return Err(FsError::IsDirectory),
            Found::Generated(provider) => provider,
        };
        let Provided::File(bytes) = self.generate_from(&provider, path)?.0 else { return Err(FsError::Io) };
        let mut sizes = self.source.sizes();
        if sizes.len() >= SIZES_MAX {
            sizes.clear();
        }
        sizes.insert(path.to_owned(), bytes.len() as u64);
        Ok(Some(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::source::{Complaints, Patience};

    fn open(provider: Provider) -> (Box<dyn SourceFiles>, Complaints) {
        let complaints = Complaints::default();
        let context = SourceContext::new(&Patience::default(), "/m", &complaints);
        (Arc::new(CallbackSource::new(provider, 100)).open(context).unwrap(), complaints)
    }

    #[test]
    fn a_file_is_generated_for_each_open_and_its_last_size_is_known() {
        let count = AtomicUsize::new(8);
        let (files, _) = open(Provider::file(move |_| Ok("x".repeat(count.fetch_add(1, Ordering::Relaxed)).into())));
        assert_eq!(files.stat("").unwrap().size, 0);
        assert_eq!(files.generate("").unwrap().unwrap().len(), 8);
        assert_eq!(files.stat("").unwrap().size, 8);
        assert_eq!(files.generate("").unwrap().unwrap().len(), 9);
    }

    #[test]
    fn a_call_is_counted_until_its_work_is_dropped() {
        let calls = Arc::new(AtomicUsize::new(0));
        let running: Vec<Running> = (0..CALLS_MAX).map(|_| Running::begin(&calls).unwrap()).collect();
        assert!(Running::begin(&calls).is_none());
        // What happens to the work of a thread that cannot be started.
        let work = move || drop(running);
        assert_eq!(calls.load(Ordering::Acquire), CALLS_MAX);
        drop(work);
        assert_eq!(calls.load(Ordering::Acquire), 0);
        assert!(Running::begin(&calls).is_some());
    }

    #[test]
    fn a_directory_is_generated_again_when_it_is_listed() {
        let count = Arc::new(AtomicUsize::new(0));
        let calls = Arc::clone(&count);
        let inner = Provider::file(|context| Ok(context.path().into()));
        let (files, _) = open(Provider::directory(move |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            let below = ProvidedNode::directory([("b", ProvidedNode::later(inner.clone()))]);
            Ok(ProvidedNode::directory([("a", below), ("c", ProvidedNode::file("3"))]))
        }));
        assert_eq!(files.stat("a").unwrap().kind, FileType::Directory);
        assert_eq!(files.generate("a/b").unwrap().unwrap(), Arc::from(*b"/m/a/b"));
        assert_eq!(files.stat("c").unwrap().size, 1);
        assert_eq!(count.load(Ordering::Relaxed), 1);
        assert_eq!(files.list("").unwrap().len(), 2);
        assert_eq!(count.load(Ordering::Relaxed), 2);
        assert_eq!(files.stat("a/b/c"), Err(FsError::NotDirectory));
        assert_eq!(files.stat("d"), Err(FsError::NoEntry));
    }

    // T-SRC-01.
    #[test]
    fn nonsense_of_a_function_is_an_error_with_its_reason() {
        let check = |provider: Provider, reason: &str| {
            let (files, complaints) = open(provider);
            let failed =
                if files.stat("").unwrap().kind == FileType::File { files.generate("").err() } else { files.list("").err() };
            assert_eq!((failed, complaints.all()), (Some(FsError::Io), vec![("/m".to_owned(), reason.to_owned())]));
        };
        for name in ["", ".", "..", "a/b", "a\0b", "../x"] {
            let provider = Provider::directory(move |_| Ok(ProvidedNode::directory([(name, ProvidedNode::file(""))])));
            check(provider, &format!("invalid name `{}`", name.escape_debug()));
        }
        let deep = (0..=DEPTH_MAX).fold(ProvidedNode::file(""), |node, _| ProvidedNode::directory([("d", node)]));
        check(Provider::directory(move |_| Ok(deep.clone())), "directories are nested deeper than 64");
        check(Provider::file(|_| Ok(vec![0; 101])), "the content has 101 bytes; the maximum is 100");
        check(Provider::file(|_| Err("no such user".to_owned())), "no such user");
        check(Provider::file(|_| panic!("on purpose")), "the function panicked");
        check(Provider::directory(|_| Ok(ProvidedNode::file(""))), "expected a directory, but the function returned a file");
    }
}
