"""The API of sandfs 0.1 to 0.2 on a Sandlite sandbox: change ``from sandfs import …`` to ``from sandlite.sandfs import …``.

Files are in a sandbox in memory (``vfs.box``). Commands other than sandfs's own run in that sandbox's bash, not on this machine:
``bash``, ``sh``, ``host -p PATH COMMAND`` and unknown commands see the same files, under the same policies and the same view.

>>> vfs = VirtualFileSystem()
>>> vfs.write_file("/notes/todo.txt", "- build VFS\\n").version
1
>>> SandboxShell(vfs).exec("ls /notes").stdout
'todo.txt'
"""

from .adapters import MemoryStorageAdapter, StorageAdapter
from .hooks import WriteEvent, WriteHook
from .integrations import PathEvent, PathHook
from .policies import NodePolicy, VisibilityView
from .providers import ContentProvider, DirectoryProvider, NodeContext, ProvidedNode
from .pyexec import PythonExecutionResult, PythonExecutor
from .search import SearchQuery, SearchResult
from .shell import CommandResult, SandboxShell
from .vfs import VirtualFileSystem

__all__ = [
    "CommandResult",
    "ContentProvider",
    "DirectoryProvider",
    "MemoryStorageAdapter",
    "NodeContext",
    "NodePolicy",
    "PathEvent",
    "PathHook",
    "ProvidedNode",
    "PythonExecutionResult",
    "PythonExecutor",
    "SandboxShell",
    "SearchQuery",
    "SearchResult",
    "StorageAdapter",
    "VirtualFileSystem",
    "VisibilityView",
    "WriteEvent",
    "WriteHook",
]
