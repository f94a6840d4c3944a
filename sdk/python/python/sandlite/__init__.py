"""The SQLite of sandboxes: one ``.db`` file is a whole small computer for an AI agent.

>>> from sandlite import Sandbox
>>> with Sandbox() as box:
...     box.bash("echo hello | tr a-z A-Z").stdout
'HELLO\\n'
"""

import atexit as _atexit
import json as _json
import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import _native, errors
from ._calls import Mount
from ._commands import CommandCall, CommandFiles
from ._host_tools import Tool, ToolCall, ToolContext
from ._native import __version__
from ._pip import Installation, Package, PackageError
from ._process import AsyncProcess, AsyncStream, Chunk, Process, Stream
from ._results import Limit, Result, Usage
from ._sandbox import Kv, Sandbox, Session
from ._async import AsyncKv, AsyncSandbox, AsyncSession
from .errors import BusyError, CommandError, LimitError, SandliteError
from .skills import Skills, SkillError, SkillResult

if _TYPE_CHECKING:
    from ._records import (
        Answer,
        Applied,
        AppliedFile,
        Bisection,
        BlamedLine,
        Checkpoint,
        Commit,
        Diff,
        Difference,
        Edited,
        Event,
        FileChange,
        FileEntry,
        FileStat,
        FileWindow,
        GitExported,
        GitImported,
        HistoryEntry,
        Image,
        Info,
        Match,
        McpServer,
        McpTool,
        Refusal,
        ReplayDifference,
        Replayed,
        ShownRun,
        TreeCopy,
        Updated,
        Version,
        Written,
    )
    from ._providers import NodeContext, NodeView, ProvidedNode

# The compiled guests of this package.
_native.set_shipped(_os.path.join(_os.path.dirname(_os.path.abspath(__file__)), "compiled"))
# Keeps our own threads out of an interpreter that is shutting down.
_atexit.register(_native.shut_gate)


def actions() -> "list[dict[str, _Any]]":
    """Returns the actions of :meth:`Sandbox.call_action`: name, title, description, effect, permission, audience and schemas of
    each.

    >>> [action["name"] for action in actions()][:2]
    ['bash', 'python']
    """
    listed: list[dict[str, _Any]] = _json.loads(_native.actions())
    return listed


def __getattr__(name: str) -> _Any:
    # Types that are imported only when they are used.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in ("NodeContext", "NodeView", "ProvidedNode"):
        from . import _providers as found
    else:
        from . import _records as found  # type: ignore[no-redef]

    value = globals()[name] = getattr(found, name)
    return value


__all__ = [
    "Answer",
    "Applied",
    "AppliedFile",
    "AsyncKv",
    "AsyncProcess",
    "AsyncSandbox",
    "AsyncSession",
    "AsyncStream",
    "Bisection",
    "BlamedLine",
    "BusyError",
    "Checkpoint",
    "Chunk",
    "CommandCall",
    "CommandError",
    "CommandFiles",
    "Commit",
    "Diff",
    "Difference",
    "Edited",
    "Event",
    "FileChange",
    "FileEntry",
    "FileStat",
    "FileWindow",
    "GitExported",
    "GitImported",
    "HistoryEntry",
    "Image",
    "Info",
    "Installation",
    "Kv",
    "Limit",
    "LimitError",
    "Match",
    "McpServer",
    "McpTool",
    "Mount",
    "NodeContext",
    "NodeView",
    "Package",
    "PackageError",
    "Process",
    "ProvidedNode",
    "Refusal",
    "ReplayDifference",
    "Replayed",
    "Result",
    "Sandbox",
    "SandliteError",
    "Session",
    "ShownRun",
    "SkillError",
    "SkillResult",
    "Skills",
    "Stream",
    "Tool",
    "ToolCall",
    "ToolContext",
    "TreeCopy",
    "Updated",
    "Usage",
    "Version",
    "Written",
    "__version__",
    "actions",
    "errors",
]
