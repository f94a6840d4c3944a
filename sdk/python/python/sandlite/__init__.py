"""The SQLite of sandboxes: one ``.db`` file is a whole small computer for an AI agent.

>>> from sandlite import Sandbox
>>> with Sandbox() as box:
...     box.bash("echo hello | tr a-z A-Z").stdout
'HELLO\\n'
"""

import atexit as _atexit
import os as _os

from . import _native
from ._native import __version__
from ._results import Result, Usage
from ._sandbox import Kv, Sandbox, Session
from ._typing import TYPE_CHECKING as _TYPE_CHECKING
from ._typing import Any as _Any

if _TYPE_CHECKING:
    from . import errors
    from ._async import AsyncKv, AsyncSandbox, AsyncSession
    from ._commands import CommandCall, CommandFiles
    from ._host_tools import Tool, ToolCall, ToolContext
    from ._pip import Installation, Package, PackageError
    from ._process import AsyncProcess, AsyncStream, Chunk, Process, Stream
    from ._records import (
        Answer,
        Applied,
        AppliedFile,
        Bisection,
        BlamedLine,
        Checkpoint,
        Commit,
        Compacted,
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
        Limit,
        Match,
        McpServer,
        McpTool,
        Mount,
        Refusal,
        ReplayDifference,
        Replayed,
        ShownRun,
        TreeCopy,
        Updated,
        ValueDifference,
        Version,
        Written,
    )
    from ._providers import NodeContext, NodeView, ProvidedNode
    from .errors import BusyError, CommandError, LimitError, SandliteError
    from .skills import SkillError, SkillResult, Skills

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
    import json

    listed: list[dict[str, _Any]] = json.loads(_native.actions())
    return listed


# Modules that are imported when one of their names is used; the names in none of them are in ``_records``.
_LAZY = {
    "_async": ("AsyncKv", "AsyncSandbox", "AsyncSession"),
    "_commands": ("CommandCall", "CommandFiles"),
    "_host_tools": ("Tool", "ToolCall", "ToolContext"),
    "_pip": ("Installation", "Package", "PackageError"),
    "_process": ("AsyncProcess", "AsyncStream", "Chunk", "Process", "Stream"),
    "_providers": ("NodeContext", "NodeView", "ProvidedNode"),
    "errors": ("BusyError", "CommandError", "LimitError", "SandliteError"),
    "skills": ("SkillError", "SkillResult", "Skills"),
}


def __getattr__(name: str) -> _Any:
    from importlib import import_module

    # Importing the submodule sets the attribute.
    if name in ("errors", "skills"):
        return import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = next((module for module, names in _LAZY.items() if name in names), "_records")
    value = globals()[name] = getattr(import_module(f"{__name__}.{found}"), name)
    return value


def __dir__() -> "list[str]":
    return sorted({*globals(), *__all__, "skills"})


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
    "Compacted",
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
    "ValueDifference",
    "Version",
    "Written",
    "__version__",
    "actions",
    "errors",
]
