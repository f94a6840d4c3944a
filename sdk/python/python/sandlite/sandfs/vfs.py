"""``VirtualFileSystem``: sandfs's methods on the files of a sandbox."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, TypeVar, Union

from .. import errors
from .._sandbox import Sandbox
from .adapters import StorageAdapter
from .exceptions import InvalidOperation, NodeExists, NodeNotFound, ProviderError
from .hooks import WriteEvent, WriteHook
from .integrations import PathEvent, PathHook
from .policies import NodePolicy, VisibilityView
from .providers import ContentProvider, DirectoryProvider, NodeContext, ProvidedNode
from .search import SearchQuery, SearchResult

T = TypeVar("T")
PathLike = Union[str, PurePosixPath]
ROOT = PurePosixPath("/")

#: Names at the root that exist in every sandbox and cannot be used for files.
_FIXED = {"bin", "dev", "etc", "lib", "proc", "sbin", "usr"}


@dataclass
class DirEntry:
    """One entry of :meth:`VirtualFileSystem.ls`."""

    name: str
    path: PurePosixPath
    is_dir: bool
    metadata: Dict[str, object]
    policy: NodePolicy


class VirtualNode:
    """A file or a directory, by its path."""

    def __init__(self, vfs: "VirtualFileSystem", path: PurePosixPath) -> None:
        self._vfs = vfs
        self._path = path
        self.name = path.name

    def path(self) -> PurePosixPath:
        """Returns the path."""
        return self._path

    @property
    def policy(self) -> NodePolicy:
        """The policy, which can be modified in place."""
        return self._vfs._policies.setdefault(self._path, NodePolicy())

    @policy.setter
    def policy(self, policy: NodePolicy) -> None:
        self._vfs._policies[self._path] = policy

    @property
    def metadata(self) -> Dict[str, object]:
        """Arbitrary data that the caller stores with the node."""
        return self._vfs._metadata.setdefault(self._path, {})

    @metadata.setter
    def metadata(self, metadata: Dict[str, object]) -> None:
        self._vfs._metadata[self._path] = metadata

    @property
    def version(self) -> int:
        """The number of writes so far."""
        return self._vfs._versions.get(self._path, 0)

    @property
    def parent(self) -> "Optional[VirtualDirectory]":
        """The directory that contains the node."""
        return None if self._path == ROOT else VirtualDirectory(self._vfs, self._path.parent)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._path)!r})"


class VirtualFile(VirtualNode):
    """A file."""

    def read(self, vfs: "Optional[VirtualFileSystem]" = None) -> str:
        """Returns the content."""
        return self._vfs._content(self._path)

    def set_provider(self, provider: ContentProvider) -> None:
        """Makes a function provide the content at each read."""
        self._vfs._providers[self._path] = provider


class VirtualDirectory(VirtualNode):
    """A directory."""

    @property
    def children(self) -> "Dict[str, VirtualNode]":
        """The nodes in the directory, by name."""
        return {node.name: node for node in self._vfs._children(self._path)}

    def iter_children(self, vfs: "Optional[VirtualFileSystem]" = None) -> "Iterator[VirtualNode]":
        """Yields the nodes in the directory."""
        return iter(self._vfs._children(self._path))

    def get_child(self, name: str, vfs: "Optional[VirtualFileSystem]" = None) -> VirtualNode:
        """Returns the node with a name, or raises :class:`NodeNotFound`."""
        return self._vfs._resolve_node(self._path / name)


@dataclass
class VFSSnapshot:
    """A state of a :class:`VirtualFileSystem`."""

    checkpoint: str
    cwd: PurePosixPath
    policies: Dict[PurePosixPath, NodePolicy]
    metadata: Dict[PurePosixPath, Dict[str, object]]
    versions: Dict[PurePosixPath, int]
    born: Dict[PurePosixPath, None]
    providers: Dict[PurePosixPath, ContentProvider]
    loaders: Dict[PurePosixPath, DirectoryProvider]
    storage: Dict[PurePosixPath, StorageAdapter]


def _translated(work: Callable[[], T]) -> T:
    """Runs ``work`` with sandfs's exceptions instead of Sandlite's."""
    try:
        return work()
    except errors.FileNotFoundError as error:
        raise NodeNotFound(str(error)) from error
    except errors.SandliteError as error:
        raise InvalidOperation(str(error)) from error


class VirtualFileSystem:
    """Files of a sandbox, with the policies, versions, hooks, providers and stores of sandfs.

    ``box`` is the sandbox; defaults to a new one in memory. Its files are ordinary files, visible to all other users of the
    sandbox.
    """

    def __init__(self, box: Optional[Sandbox] = None) -> None:
        if box is None:
            box = Sandbox(cwd="/")
            # sandfs starts with no files.
            for directory in ("/home", "/tmp"):
                if box.exists(directory):
                    box.remove(directory, recursive=True)
        #: The sandbox.
        self.box = box
        self._cwd = ROOT
        self._policies: Dict[PurePosixPath, NodePolicy] = {}
        self._metadata: Dict[PurePosixPath, Dict[str, object]] = {}
        self._versions: Dict[PurePosixPath, int] = {}
        # Nodes in the order of their creation, in which walks and searches list them.
        self._born: Dict[PurePosixPath, None] = {}
        self._providers: Dict[PurePosixPath, ContentProvider] = {}
        self._loaders: Dict[PurePosixPath, DirectoryProvider] = {}
        self._storage: Dict[PurePosixPath, StorageAdapter] = {}
        self._write_hooks: List[Tuple[PurePosixPath, WriteHook]] = []
        self._path_hooks: List[Tuple[PurePosixPath, PathHook]] = []
        self._snapshots = 0

    # Paths and nodes.

    def _normalize(self, path: Optional[PathLike]) -> PurePosixPath:
        whole = self._cwd if path is None or str(path) == "" else self._cwd / PurePosixPath(path)
        return PurePosixPath(os.path.normpath(str(whole)).replace("//", "/", 1))

    def _load(self, path: PurePosixPath) -> None:
        """Fills the directories on a path whose provider was not called yet."""
        for directory in [*reversed(path.parents), path]:
            loader = self._loaders.pop(directory, None)
            if loader is None:
                continue
            try:
                children = loader(NodeContext(directory, self._metadata.get(directory, {}), self))
            except Exception as error:
                self._loaders[directory] = loader
                raise ProviderError(str(error)) from error
            for name, child in children.items():
                if not _translated(lambda path=str(directory / name): self.box.exists(path)):  # type: ignore[misc]
                    self._provide(directory / name, child)

    def _note(self, path: PurePosixPath) -> None:
        """Remembers that a node and the directories above it exist."""
        for one in (*reversed(path.parents), path):
            self._born.setdefault(one)

    def _provide(self, path: PurePosixPath, node: ProvidedNode) -> None:
        self._note(path)
        if node.kind == "file":
            _translated(lambda: self.box.write_file(str(path), node.content or ""))
            if node.content_provider is not None:
                self._providers[path] = node.content_provider
        elif node.kind == "dir":
            _translated(lambda: self.box.mkdir(str(path)))
            if node.directory_provider is not None:
                self._loaders[path] = node.directory_provider
            for name, child in (node.children or {}).items():
                self._provide(path / name, child)
        else:
            raise InvalidOperation(f"unknown kind of node: {node.kind}")
        if node.metadata:
            self._metadata[path] = dict(node.metadata)
        if node.policy is not None:
            self._policies[path] = node.policy

    def _resolve_node(self, path: PathLike) -> VirtualNode:
        target = self._normalize(path)
        self._load(target.parent)
        if target == ROOT:
            return VirtualDirectory(self, target)
        if target.parts[1] in _FIXED:
            raise NodeNotFound(f"Child {target.parts[1]} not found in /")
        try:
            kind = _translated(lambda: self.box.stat(str(target))).kind
        except (NodeNotFound, InvalidOperation) as error:
            above = self._resolve_node(target.parent)
            if not isinstance(above, VirtualDirectory):
                raise InvalidOperation(f"{above.path()} is not a directory") from None
            if isinstance(error, NodeNotFound):
                raise NodeNotFound(f"Child {target.name} not found in {above.path()}") from None
            raise
        return VirtualDirectory(self, target) if kind == "directory" else VirtualFile(self, target)

    def get_node(self, path: PathLike) -> VirtualNode:
        """Returns the node at a path."""
        return self._resolve_node(path)

    def _directory(self, path: Optional[PathLike]) -> PurePosixPath:
        node = self._resolve_node(self._cwd if path is None else path)
        if not isinstance(node, VirtualDirectory):
            raise InvalidOperation(f"{node.path()} is not a directory")
        self._load(node.path())
        return node.path()

    def _policy(self, path: PurePosixPath) -> NodePolicy:
        return self._policies.get(path) or NodePolicy()

    def _may_read(self, path: PurePosixPath) -> None:
        if not self._policy(path).readable:
            raise InvalidOperation(f"{path} is not readable")

    def _may_write(self, path: PurePosixPath, append: bool = False) -> None:
        policy = self._policy(path)
        if not policy.writable:
            raise InvalidOperation(f"{path} is read-only")
        if policy.append_only and not append:
            raise InvalidOperation(f"{path} is append-only")

    def _content(self, path: PurePosixPath) -> str:
        provider = self._providers.get(path)
        if provider is None:
            # A command can write any bytes; sandfs has only text.
            return _translated(lambda: self.box.read_bytes(str(path))).decode(errors="ignore")
        try:
            return provider(NodeContext(path, self._metadata.get(path, {}), self))
        except Exception as error:
            raise ProviderError(str(error)) from error

    # Reading.

    def pwd(self) -> str:
        """Returns the working directory."""
        return str(self._cwd)

    @property
    def cwd(self) -> VirtualDirectory:
        """The working directory."""
        return VirtualDirectory(self, self._cwd)

    @property
    def root(self) -> VirtualDirectory:
        """The root directory."""
        return VirtualDirectory(self, ROOT)

    def cd(self, path: PathLike) -> str:
        """Changes the working directory and returns it."""
        directory = self._directory(path)
        self._may_read(directory)
        self._cwd = directory
        return self.pwd()

    def _children(self, directory: PurePosixPath) -> List[VirtualNode]:
        self._load(directory)
        entries = _translated(lambda: self.box.list_files(str(directory), hidden=True))
        listed: List[VirtualNode] = []
        for entry in entries:
            path = directory / PurePosixPath(entry.path).name
            if directory == ROOT and path.name in _FIXED:
                continue
            listed.append(VirtualDirectory(self, path) if entry.kind == "directory" else VirtualFile(self, path))
        return sorted(listed, key=lambda node: (not isinstance(node, VirtualDirectory), node.name))

    def _in_order(self, directory: PurePosixPath) -> List[VirtualNode]:
        """Returns the nodes in a directory in the order of their creation; those that commands created come last."""
        nodes = {node.path(): node for node in self._children(directory)}
        known = [path for path in self._born if path in nodes]
        return [nodes[path] for path in dict.fromkeys([*known, *nodes])]

    def ls(self, path: Optional[PathLike] = None, *, view: Optional[VisibilityView] = None) -> List[DirEntry]:
        """Lists a directory, directories first."""
        directory = self._directory(path)
        self._may_read(directory)
        return [
            DirEntry(node.name, node.path(), isinstance(node, VirtualDirectory), node.metadata, self._policy(node.path()))
            for node in self._children(directory)
            if view is None or view.allows(self._policy(node.path()))
        ]

    def read_file(self, path: PathLike) -> str:
        """Returns the content of a file."""
        node = self._resolve_node(path)
        if node.path() == ROOT:
            raise InvalidOperation("Cannot create file at root path")
        if not isinstance(node, VirtualFile):
            raise InvalidOperation(f"{node.path()} is not a file")
        self._may_read(node.path())
        return self._content(node.path())

    def exists(self, path: PathLike) -> bool:
        """Returns whether a path exists."""
        try:
            self._resolve_node(path)
        except (NodeNotFound, InvalidOperation):
            return False
        return True

    def is_dir(self, path: PathLike) -> bool:
        """Returns whether a path is a directory."""
        return self.exists(path) and isinstance(self._resolve_node(path), VirtualDirectory)

    def is_file(self, path: PathLike) -> bool:
        """Returns whether a path is a file."""
        return self.exists(path) and isinstance(self._resolve_node(path), VirtualFile)

    def walk(self, path: Optional[PathLike] = None) -> Iterator[Tuple[PurePosixPath, VirtualNode]]:
        """Yields a path and everything below it."""
        top = self._resolve_node(self._cwd if path is None else path)
        yield top.path(), top
        if isinstance(top, VirtualDirectory):
            for child in self._in_order(top.path()):
                yield from self.walk(child.path())

    def iter_files(
        self, path: Optional[PathLike] = None, *, recursive: bool = True
    ) -> Iterator[Tuple[PurePosixPath, VirtualFile]]:
        """Yields the files of a directory and, by default, those below it."""
        top = self._resolve_node(self._cwd if path is None else path)
        self._may_read(top.path())
        if isinstance(top, VirtualFile):
            yield top.path(), top
            return
        for child in self._in_order(top.path()):
            if isinstance(child, VirtualFile):
                yield child.path(), child
            elif recursive:
                yield from self.iter_files(child.path())

    def tree(self, path: Optional[PathLike] = None, *, view: Optional[VisibilityView] = None) -> str:
        """Draws a directory and everything below it."""
        top = self._directory(path)
        self._may_read(top)
        lines = [str(top)]

        def draw(directory: PurePosixPath, before: str) -> None:
            nodes = [node for node in self._children(directory) if view is None or view.allows(self._policy(node.path()))]
            for node in nodes:
                is_last, is_directory = node is nodes[-1], isinstance(node, VirtualDirectory)
                lines.append(f"{before}{'└──' if is_last else '├──'} {node.name}{'/' if is_directory else ''}")
                if is_directory:
                    draw(node.path(), before + ("    " if is_last else "│   "))

        draw(top, "")
        return "\n".join(lines)

    def glob(
        self, pattern: str, *, cwd: Optional[PathLike] = None, view: Optional[VisibilityView] = None
    ) -> List[str]:
        """Returns the paths that match a pattern. Without a slash it matches names in ``cwd``; otherwise it matches whole paths, in
        which ``*`` also matches slashes."""
        if not pattern:
            return []
        directory = self._normalize(cwd)
        if "/" not in pattern:
            entries = self.ls(directory, view=view)
            return [str(entry.path) for entry in entries if fnmatch.fnmatchcase(entry.name, pattern)]
        whole = str(directory / pattern)
        paths = [str(path) for path, _ in self.walk(ROOT) if view is None or view.allows(self._policy(path))]
        return sorted(path for path in paths if fnmatch.fnmatchcase(path, whole))

    def search(
        self,
        query: Union[str, SearchQuery],
        path: Optional[PathLike] = None,
        regex: bool = False,
        ignore_case: bool = False,
        *,
        view: Optional[VisibilityView] = None,
    ) -> List[SearchResult]:
        """Returns the matching lines of the files at a path or below it; by default of all files. Files that cannot be read are
        omitted. ``query`` is a text, or a :class:`SearchQuery` with all other arguments but ``view``."""
        if isinstance(query, str):
            query = SearchQuery(query, regex, ignore_case, None if path is None else self._normalize(path))
        top, matches = query.path_prefix or ROOT, query._matcher()
        found: List[SearchResult] = []
        for place, node in self.iter_files(top) if self.exists(top) else ():
            policy = self._policy(place)
            if not policy.readable or not (view is None or view.allows(policy)):
                continue
            for number, line in enumerate(node.read().splitlines(), start=1):
                if matches(line):
                    found.append(SearchResult(place, number, line))
        return found

    def get_version(self, path: PathLike) -> int:
        """Returns the number of writes to a file."""
        node = self._resolve_node(path)
        if not isinstance(node, VirtualFile):
            raise InvalidOperation(f"{node.path()} is not a file")
        return node.version

    # Changing.

    def mkdir(self, path: PathLike, *, parents: bool = False, exist_ok: bool = False) -> VirtualDirectory:
        """Creates a directory."""
        target = self._normalize(path)
        if target == ROOT:
            return VirtualDirectory(self, ROOT)
        self._load(target.parent)
        if not parents:
            self._resolve_node(target.parent)
        if self.exists(target):
            if not self.is_dir(target):
                raise InvalidOperation(f"{target} is not a directory")
            if not exist_ok:
                raise NodeExists(f"Directory {target} already exists")
        else:
            self._may_write(target.parent)
            _translated(lambda: self.box.mkdir(str(target)))
            self._note(target)
        return VirtualDirectory(self, target)

    def write_file(
        self, path: PathLike, data: str, *, append: bool = False, expected_version: Optional[int] = None
    ) -> VirtualFile:
        """Writes or appends to a file, creating missing parent directories. Versions count writes, from 1."""
        target = self._normalize(path)
        if target == ROOT:
            raise InvalidOperation("Cannot create file at root path")
        if self.is_dir(target):
            raise InvalidOperation(f"{target} is not a file")
        self._load(target.parent)
        above = next((above for above in target.parents if self.exists(above)), ROOT)
        if not self.is_dir(above):
            raise InvalidOperation(f"{above} is not a directory")
        self._may_write(target, append)
        before = self._versions.get(target, 0)
        if expected_version is not None and expected_version != before:
            raise InvalidOperation(f"Version mismatch for {target}: expected {expected_version}, current {before}")
        # A provider's content is replaced; appended data becomes the whole content.
        was_provided = self._providers.pop(target, None) is not None
        old = self._content(target) if append and not was_provided and self.exists(target) else ""
        store = self._store_of(target)
        if store is not None:
            prefix, adapter = store
            try:
                adapter.write(target.relative_to(prefix).as_posix(), old + data, version=before)
            except ValueError as error:
                raise InvalidOperation(f"Storage conflict for {target}") from error
        _translated(lambda: self.box.write_file(str(target), old + data))
        self._written(target, append, old + data)
        return VirtualFile(self, target)

    def _written(self, path: PurePosixPath, append: bool, content: str) -> None:
        self._note(path)
        version = self._versions[path] = self._versions.get(path, 0) + 1
        for prefix, hook in self._write_hooks:
            if path.is_relative_to(prefix):
                hook(WriteEvent(str(path), content, version, append))
        self._tell(path, "create" if version == 1 else "update", content)

    def _tell(self, path: PurePosixPath, event: str, content: Optional[str]) -> None:
        for prefix, hook in self._path_hooks:
            if path.is_relative_to(prefix):
                hook(PathEvent(str(path), event, content))

    def append_file(self, path: PathLike, data: str, *, expected_version: Optional[int] = None) -> VirtualFile:
        """Appends to a file."""
        return self.write_file(path, data, append=True, expected_version=expected_version)

    def touch(self, path: PathLike) -> VirtualFile:
        """Creates an empty file if it does not exist."""
        target = self._normalize(path)
        self._may_write(target, append=True)
        if not self.exists(target):
            _translated(lambda: self.box.write_file(str(target), ""))
            self._note(target)
        return VirtualFile(self, target)

    def remove(self, path: PathLike, *, recursive: bool = False) -> None:
        """Removes a file or a directory."""
        node = self._resolve_node(path)
        target = node.path()
        if target == ROOT:
            raise InvalidOperation("Cannot remove root directory")
        self._may_write(target)
        self._may_write(target.parent)
        if isinstance(node, VirtualDirectory):
            children = self._children(target)
            if children and not recursive:
                raise InvalidOperation("Directory not empty; pass recursive=True")
            for child in children:
                self.remove(child.path(), recursive=True)
        _translated(lambda: self.box.remove(str(target)))
        self._forget(target)
        if isinstance(node, VirtualFile):
            store = self._store_of(target)
            if store is not None:
                store[1].delete(target.relative_to(store[0]).as_posix())
            self._tell(target, "delete", None)

    def _kept(self) -> "Tuple[Dict[PurePosixPath, Any], ...]":
        return (self._policies, self._metadata, self._versions, self._providers, self._loaders, self._born)

    def _forget(self, path: PurePosixPath) -> None:
        for kept in self._kept():
            kept.pop(path, None)

    def _target(self, target: PathLike, name: str) -> "Tuple[PurePosixPath, bool]":
        """Returns the destination of a move or a copy, inside an existing directory, and whether it is an existing file."""
        path = self._normalize(target)
        try:
            node = self._resolve_node(path)
        except (NodeNotFound, InvalidOperation):
            self._may_write(self._directory(path.parent))
            return path, False
        if not isinstance(node, VirtualDirectory):
            return path, True
        self._may_write(path)
        return path / name, False

    def move(self, source: PathLike, target: PathLike) -> None:
        """Moves a file or a directory with its policies, metadata and versions: into ``target`` if that is a directory. It replaces
        nothing, and calls no hook."""
        path = self._normalize(source)
        if path == ROOT:
            raise InvalidOperation("Cannot move root directory")
        node = self._resolve_node(path)
        self._may_write(path)
        self._may_write(path.parent)
        to, is_file = self._target(target, path.name)
        if is_file:
            raise InvalidOperation(f"Destination {to} already exists")
        if isinstance(node, VirtualDirectory) and to.parent.is_relative_to(path):
            raise InvalidOperation("Cannot move a directory inside itself")
        if to == path:
            return
        if self.exists(to):
            raise NodeExists(f"Node {to.name} already exists in {to.parent}")
        _translated(lambda: self.box.move(str(path), str(to)))
        for kept in self._kept():
            for old in [old for old in kept if old.is_relative_to(path)]:
                kept[to / old.relative_to(path)] = kept.pop(old)
        self._note(to)
        if self._cwd.is_relative_to(path):
            self._cwd = to / self._cwd.relative_to(path)

    def copy(self, source: PathLike, target: PathLike, *, recursive: bool = False) -> None:
        """Copies a file, or a directory if ``recursive``, with its policies and metadata: into ``target`` if that is a directory. An
        existing file is replaced. The copy has no writes yet, its content is no longer provided, and no hook is called."""
        path = self._normalize(source)
        node = self._resolve_node(path)
        if isinstance(node, VirtualDirectory) and not recursive:
            raise InvalidOperation("Source is a directory; pass recursive=True")
        self._may_read(path)
        to, is_file = self._target(target, path.name)
        if is_file:
            self._may_write(to.parent)
            self._may_write(to)
        if isinstance(node, VirtualDirectory) and to.is_relative_to(path):
            raise InvalidOperation("Cannot copy a directory inside itself")
        if not is_file and self.exists(to):
            raise NodeExists(f"Node {to.name} already exists in {to.parent}")
        # Everything is read before anything is replaced: a file may be copied to itself.
        copies: "List[Tuple[PurePosixPath, Optional[bytes], NodePolicy, Dict[str, object]]]" = []
        for old, one in list(self.walk(path)):
            content = None if isinstance(one, VirtualDirectory) else self._bytes(old)
            copies.append((to / old.relative_to(path), content, self._policy(old).copy(), dict(self._metadata.get(old, {}))))
        if is_file:
            _translated(lambda: self.box.remove(str(to)))
            self._forget(to)
        for new, content, policy, metadata in copies:
            if content is None:
                _translated(lambda new=new: self.box.mkdir(str(new)))  # type: ignore[misc]
            else:
                _translated(lambda new=new, content=content: self.box.write_file(str(new), content))  # type: ignore[misc]
            self._note(new)
            self._policies[new], self._metadata[new] = policy, metadata

    def _bytes(self, path: PurePosixPath) -> bytes:
        """Returns the content of a file: a command may have written bytes that are not text."""
        if path in self._providers:
            return self._content(path).encode()
        return _translated(lambda: self.box.read_bytes(str(path)))

    # Providers and stores.

    def mount_file(
        self, path: PathLike, provider: ContentProvider, *, metadata: Optional[Dict[str, object]] = None
    ) -> VirtualFile:
        """Creates a file whose content is provided by a function at each read."""
        target = self._normalize(path)
        _translated(lambda: self.box.write_file(str(target), ""))
        self._note(target)
        self._providers[target] = provider
        self._metadata.setdefault(target, {}).update(metadata or {})
        return VirtualFile(self, target)

    def mount_directory(
        self, path: PathLike, provider: DirectoryProvider, *, metadata: Optional[Dict[str, object]] = None
    ) -> VirtualDirectory:
        """Creates a directory whose children are provided by a function on first use."""
        directory = self.mkdir(path, parents=True, exist_ok=True)
        self._loaders[directory.path()] = provider
        self._metadata.setdefault(directory.path(), {}).update(metadata or {})
        return directory

    def mount_storage(
        self, path: PathLike, adapter: StorageAdapter, *, policy: Optional[NodePolicy] = None
    ) -> VirtualDirectory:
        """Fills a directory from a store and keeps the store up to date."""
        directory = self.mkdir(path, parents=True, exist_ok=True)
        if policy is not None:
            self._policies[directory.path()] = policy
        self._storage[directory.path()] = adapter
        self.sync_storage(directory.path())
        return directory

    def sync_storage(self, path: PathLike) -> None:
        """Replaces the content of a directory with the current content of its store."""
        prefix = self._normalize(path)
        if prefix not in self._storage:
            raise InvalidOperation(f"No storage mount at {prefix}")
        for child in self._children(prefix):
            for below, _ in list(self.walk(child.path())):
                self._forget(below)
            _translated(lambda child=child: self.box.remove(str(child.path()), recursive=True))  # type: ignore[misc]
        entries = self._storage[prefix].list()
        _translated(lambda: self.box.write_files({str(prefix / name): entry.content for name, entry in entries.items()}))
        for name, entry in entries.items():
            self._note(prefix / name)
            self._versions[prefix / name] = entry.version

    def _store_of(self, path: PurePosixPath) -> Optional[Tuple[PurePosixPath, StorageAdapter]]:
        found = [(prefix, adapter) for prefix, adapter in self._storage.items() if path.is_relative_to(prefix)]
        return max(found, key=lambda item: len(item[0].parts), default=None)

    # Hooks and policies.

    def register_write_hook(self, prefix: PathLike, hook: WriteHook) -> None:
        """Calls a function after each write at a path or below it."""
        self._write_hooks.append((self._normalize(prefix), hook))

    def register_path_hook(self, prefix: PathLike, hook: PathHook) -> None:
        """Calls a function after each creation, update and deletion at a path or below it."""
        self._path_hooks.append((self._normalize(prefix), hook))

    def set_policy(self, path: PathLike, policy: NodePolicy) -> None:
        """Sets the policy of one node."""
        self._policies[self._resolve_node(path).path()] = policy

    def get_policy(self, path: PathLike) -> NodePolicy:
        """Returns the policy of one node."""
        return self._resolve_node(path).policy

    # Snapshots and copies.

    def snapshot(self) -> VFSSnapshot:
        """Returns the current state, for :meth:`restore`."""
        self._snapshots += 1
        name = f"sandfs-{id(self):x}-{self._snapshots}"
        _translated(lambda: self.box.checkpoint(name))
        policies = {path: policy.copy() for path, policy in self._policies.items()}
        metadata = {path: dict(kept) for path, kept in self._metadata.items()}
        return VFSSnapshot(
            name,
            self._cwd,
            policies,
            metadata,
            dict(self._versions),
            dict(self._born),
            dict(self._providers),
            dict(self._loaders),
            dict(self._storage),
        )

    def restore(self, snapshot: VFSSnapshot) -> None:
        """Restores a state returned by :meth:`snapshot`."""
        _translated(lambda: self.box.restore(snapshot.checkpoint))
        self._cwd = snapshot.cwd
        self._policies = {path: policy.copy() for path, policy in snapshot.policies.items()}
        self._metadata = {path: dict(kept) for path, kept in snapshot.metadata.items()}
        self._versions, self._born = dict(snapshot.versions), dict(snapshot.born)
        self._providers = dict(snapshot.providers)
        self._loaders, self._storage = dict(snapshot.loaders), dict(snapshot.storage)

    def export_to_path(self, target: Union[str, "os.PathLike[str]"], *, source: Optional[PathLike] = None) -> Path:
        """Copies a directory to this machine and returns its path."""
        top, to = self._directory(source), Path(target)
        to.mkdir(parents=True, exist_ok=True)
        for path, node in self.walk(top):
            place = to / path.relative_to(top)
            if isinstance(node, VirtualDirectory):
                place.mkdir(parents=True, exist_ok=True)
            else:
                place.write_text(self._content(path))
        return to

    @contextlib.contextmanager
    def materialize(self, path: Optional[PathLike] = None) -> Iterator[Path]:
        """Copies a directory to a temporary one, which is removed at the end."""
        with tempfile.TemporaryDirectory() as temporary:
            yield self.export_to_path(temporary, source=path)

    # Commands in the sandbox.

    def _rules(self, view: Optional[VisibilityView]) -> "List[Dict[str, Any]]":
        """Converts the policies of nodes to rules of the sandbox."""
        rules: "List[Dict[str, Any]]" = []
        for path, policy in self._policies.items():
            special = "".join(f"\\{letter}" if letter in "*?[]{}\\" else letter for letter in str(path))
            rule: "Dict[str, Any]" = {"path": special, "inherit": False}
            if (view is not None and not view.allows(policy)) or not policy.readable:
                rules.append({**rule, "access": "hidden"})
            elif not policy.writable:
                rules.append({**rule, "access": "read"})
            elif policy.append_only:
                rules.append({**rule, "access": "append"})
        return rules

    def run(self, command: str, *, view: Optional[VisibilityView] = None, env: Optional[Dict[str, str]] = None) -> Any:
        """Runs a bash command line in the sandbox, under the policies of the nodes and a view, and returns its result."""
        for path, _ in list(self.walk(ROOT)):
            if path in self._providers:
                content = self._content(path)
                _translated(lambda path=path, content=content: self.box.write_file(str(path), content))  # type: ignore[misc]
        after = max((version.version for version in self.box.log(limit=1)), default=0)
        bound = self.box.with_policy(self._rules(view))
        result = _translated(lambda: bound.bash(command, cwd=self.pwd(), env=env))
        self._notice(after)
        return result

    def _notice(self, after: int) -> None:
        """Counts and reports the writes of a command."""
        for event in list(self.box.events(after=after)):
            path = PurePosixPath(event.path)
            if event.kind == "deleted" or event.kind == "renamed":
                old = PurePosixPath(event.from_path) if event.from_path else path
                is_file = event.type != "directory"
                self._forget(old)
                if is_file:
                    self._tell(old, "delete", None)
            if event.type == "file" and event.kind in ("created", "modified", "renamed"):
                self._written(path, False, self._content(path))


__all__ = ["DirEntry", "VFSSnapshot", "VirtualDirectory", "VirtualFile", "VirtualFileSystem", "VirtualNode"]
