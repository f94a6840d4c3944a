"""The SQLite of sandboxes: one ``.db`` file is a whole small computer for an AI agent.

>>> from sandlite import Sandbox
>>> with Sandbox() as box:
...     box.bash("echo hello | tr a-z A-Z").stdout
'HELLO\\n'
"""

import atexit as _atexit
import json as _json
import os as _os
from typing import Any as _Any

from . import _native, errors
from ._calls import Mount
from ._host_tools import Tool, ToolCall, ToolContext
from ._native import __version__
from ._pip import Installation, Package, PackageError
from ._results import Answer, Edited, FileEntry, FileWindow, HistoryEntry, Limit, Match, Result, Usage, Written
from ._sandbox import Kv, Sandbox, Session
from ._async import AsyncKv, AsyncSandbox, AsyncSession
from .errors import CommandError, LimitError, SandliteError

# The guests that came compiled with this package.
_native.set_shipped(_os.path.join(_os.path.dirname(_os.path.abspath(__file__)), "compiled"))
# Our own threads stay out of an interpreter that is at its end.
_atexit.register(_native.shut_gate)


def actions() -> "list[dict[str, _Any]]":
    """What :meth:`Sandbox.call_action` can do: name, title, description, effect, permission, audience and schemas of each."""
    listed: list[dict[str, _Any]] = _json.loads(_native.actions())
    return listed


__all__ = [
    "Answer",
    "AsyncKv",
    "AsyncSandbox",
    "AsyncSession",
    "CommandError",
    "Edited",
    "FileEntry",
    "FileWindow",
    "HistoryEntry",
    "Installation",
    "Kv",
    "Limit",
    "LimitError",
    "Match",
    "Mount",
    "Package",
    "PackageError",
    "Result",
    "Sandbox",
    "SandliteError",
    "Session",
    "Tool",
    "ToolCall",
    "ToolContext",
    "Usage",
    "Written",
    "__version__",
    "actions",
    "errors",
]
