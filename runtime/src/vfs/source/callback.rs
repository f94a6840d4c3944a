//! Functions of the embedding program as a source: files and directories that are generated when somebody opens them.
//!
//! A function runs on a thread of its own, which nobody waits for once the command is over. What it returns is checked before a
//! guest sees any of it. A function that reads what it is generating, or changes its own sandbox, is refused at once.

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

/// Calls of one function at a time, those that nobody waits for any more included.
const CALLS_MAX: usize = 32;
/// Deepest directory that a function returns.
const DEPTH_MAX: usize = 64;
/// Sizes of generated files that are remembered.
const SIZES_MAX: usize = 10_000;
/// Directories that a view has generated and keeps; then it begins anew.
const TREES_MAX: usize = 1024;
/// Longest name.
const NAME_MAX: usize = 255;

thread_local! {
    /// The sandboxes that the calling thread generates something for.
    static GENERATING: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Returns whether the calling thread is a function that generates files of this sandbox. The sandbox waits for it, so it must
/// not wait for the sandbox.
pub(crate) fn is_generating(sandbox: u64) -> bool {
    GENERATING.with_borrow(|sandboxes| sandboxes.contains(&sandbox))
}

/// What a function that generates files returns: a file, or a directory of more.
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
    /// A file with this content.
    pub fn file(content: impl Into<Vec<u8>>) -> Self {
        Self(Provided::File(content.into().into()))
    }

    /// A directory with these entries. Of two entries with one name, the last counts.
    pub fn directory<N: Into<String>>(entries: impl IntoIterator<Item = (N, Self)>) -> Self {
        Self(Provided::Directory(Arc::new(entries.into_iter().map(|(name, node)| (name.into(), node)).collect())))
    }

    /// A file or directory that is generated when it is opened itself.
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

/// What is generated, and for whom.
#[derive(Clone, Debug)]
pub struct NodeContext {
    path: String,
    call: ToolContext,
    cancel: Cancel,
}

impl NodeContext {
    /// The path in the sandbox.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The row in the history of the command that reads; `None` if the embedding program itself reads.
    #[must_use]
    pub fn run(&self) -> Option<i64> {
        Some(self.call.run()).filter(|run| *run != 0)
    }

    /// The files as the command that reads has them, for reading; `None` if no command does.
    #[must_use]
    pub fn files(&self) -> Option<&RunningFiles> {
        Some(self.call.files()).filter(|files| !files.is_over())
    }

    /// What stops the command.
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Whether nobody waits for the content any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.call.is_over() || self.cancel.is_killed()
    }

    /// The same as the context of a tool's call.
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
    /// A file. The function is called for each open and returns the whole content; its error is what the reader is told, as the
    /// reason of an input/output error.
    pub fn file(generate: impl Fn(&NodeContext) -> Result<Vec<u8>, String> + Send + Sync + 'static) -> Self {
        Self::new(FileType::File, move |context| generate(context).map(ProvidedNode::file))
    }

    /// A file, as a [`ProvidedNode`] that must be one.
    pub fn file_node(generate: impl Fn(&NodeContext) -> Result<ProvidedNode, String> + Send + Sync + 'static) -> Self {
        Self::new(FileType::File, generate)
    }

    /// A program: an executable file with this content, such as a script.
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

    /// A directory. The function is called once for a command, and again whenever the directory itself is listed.
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

    // Calls the function on the thread that was made for it.
    fn call(&self, context: &NodeContext, sandbox: u64, largest: u64) -> Result<ProvidedNode, String> {
        GENERATING.with_borrow_mut(|sandboxes| sandboxes.push(sandbox));
        let returned = catch_unwind(AssertUnwindSafe(|| (self.generate)(context)));
        let node = returned.unwrap_or_else(|_| Err("the function panicked".to_owned()))?;
        if node.kind() != self.kind {
            let (wanted, found) = (name_of(self.kind), name_of(node.kind()));
            return Err(format!("expected a {wanted}, and the function returned a {found}"));
        }
        check(&node, largest, DEPTH_MAX, &mut 0)?;
        Ok(node)
    }
}

fn name_of(kind: FileType) -> &'static str {
    if kind == FileType::Directory { "directory" } else { "file" }
}

/// Refuses what a guest must not see: names that are paths, endless trees, files that are too large.
fn check(node: &ProvidedNode, largest: u64, depth: usize, names: &mut usize) -> Result<(), String> {
    match &node.0 {
        Provided::File(bytes) if bytes.len() as u64 > largest => {
            Err(format!("the content has {} bytes, and a file may have {largest}", bytes.len()))
        }
        Provided::File(_) | Provided::Later(_) => Ok(()),
        Provided::Directory(_) if depth == 0 => Err(format!("directories are nested more than {DEPTH_MAX} deep")),
        Provided::Directory(entries) => {
            *names = names.saturating_add(entries.len());
            if *names > NAMES_MAX {
                return Err(format!("there are more than {NAMES_MAX} names"));
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

/// A function that is mounted.
#[derive(Debug)]
pub(crate) struct CallbackSource {
    provider: Provider,
    largest: u64,
    /// What generated files were last.
    sizes: Mutex<HashMap<String, u64>>,
}

impl CallbackSource {
    /// Mounts a function whose files have at most so many bytes.
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

/// What one view has generated.
struct CallbackFiles {
    source: Arc<CallbackSource>,
    context: SourceContext,
    /// Directories that were generated, by the path of their provider.
    trees: Mutex<HashMap<String, ProvidedNode>>,
}

/// What a path leads to.
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
            self.context.complain(path, "a function cannot read what it is generating");
            return Err(FsError::Busy);
        }
        let calls = Arc::clone(&provider.calls);
        if calls.fetch_add(1, Ordering::AcqRel) >= CALLS_MAX {
            calls.fetch_sub(1, Ordering::AcqRel);
            self.context.complain(path, &format!("more than {CALLS_MAX} calls of the function are going on"));
            return Err(FsError::Busy);
        }
        let cancel = self.context.cancel().clone();
        let call = cancel.call();
        // Dropped with the wait, however it ends.
        let _over = call.ends();
        let (provider, largest) = (provider.clone(), self.source.largest);
        let context = NodeContext { path: self.context.full_path(path), call, cancel };
        let returned = self.context.wait(move || {
            let returned = provider.call(&context, sandbox, largest);
            calls.fetch_sub(1, Ordering::AcqRel);
            returned
        });
        let returned = returned.inspect_err(|error| {
            let reason =
                if *error == FsError::Interrupted { "the command ended before the function did" } else { "it took too long" };
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

    // Walks from the root; a directory that is `listed` itself is generated anew.
    fn find(&self, path: &str, listed: bool) -> Result<Found, FsError> {
        let mut node = ProvidedNode(Provided::Later(self.source.provider.clone()));
        let mut at = String::new();
        let mut names = path.split('/').filter(|name| !name.is_empty());
        loop {
            let next = names.next();
            // What is provided may be provided in turn, and so on: as deep as directories may be.
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
        // Nobody needs the function to know what its own file or directory is.
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
        check(Provider::directory(move |_| Ok(deep.clone())), "directories are nested more than 64 deep");
        check(Provider::file(|_| Ok(vec![0; 101])), "the content has 101 bytes, and a file may have 100");
        check(Provider::file(|_| Err("no such user".to_owned())), "no such user");
        check(Provider::file(|_| panic!("on purpose")), "the function panicked");
        check(Provider::directory(|_| Ok(ProvidedNode::file(""))), "expected a directory, and the function returned a file");
    }
}
