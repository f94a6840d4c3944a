"""What comes back: plain, frozen dataclasses."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional

from .errors import CommandError, LimitError


@dataclass(frozen=True)
class Limit:
    """A limit that stopped a command."""

    name: str
    value: str
    used: str
    hint: str
    message: str
    #: The command's changes were undone because they could not be stored in time.
    rolled_back: bool = False


@dataclass(frozen=True)
class Usage:
    """What a command used."""

    fuel: int
    memory_peak: int
    output: int
    commands: int
    processes: int
    bytes_read: int
    bytes_written: int


@dataclass(frozen=True)
class Result:
    """How a command went. A non-zero ``exit_code`` is a result, not an exception."""

    exit_code: int
    stdout_bytes: bytes
    stderr_bytes: bytes
    truncated: bool
    duration: float
    run: int
    usage: Usage
    limit: Optional[Limit] = None
    #: Its session has a new Python: globals of earlier calls are gone.
    restarted: bool = False
    #: What else to know, such as an option that was not used as it was given, or the limit that stopped it.
    notes: "tuple[str, ...]" = ()

    @property
    def stdout(self) -> str:
        """Standard output as text; what is no UTF-8 is replaced."""
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """Standard error as text; what is no UTF-8 is replaced."""
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def ok(self) -> bool:
        """Whether it exited with 0."""
        return self.exit_code == 0

    def check(self) -> "Result":
        """Itself if it exited with 0; otherwise raises :class:`CommandError` or :class:`LimitError`."""
        if self.limit is not None:
            raise LimitError(self)
        if self.exit_code != 0:
            raise CommandError(self)
        return self


def result(native: "tuple[bytes, bytes, str]", check: bool) -> Result:
    stdout, stderr, rest = native
    ran = json.loads(rest)
    limit, wall_us = ran["limit"], ran["usage"].pop("wall_us")
    made = Result(
        exit_code=ran["exit_code"],
        stdout_bytes=stdout,
        stderr_bytes=stderr,
        truncated=ran["truncated"],
        duration=wall_us / 1e6,
        run=ran["run"],
        usage=Usage(**ran["usage"]),
        limit=None if limit is None else Limit(**limit),
        restarted=ran["restarted"],
        notes=tuple(ran["notes"]),
    )
    return made.check() if check else made


@dataclass(frozen=True)
class Answer:
    """What an action returns: text for a model, the same as data, and whether it failed."""

    text: str
    data: Any = None
    is_error: bool = False


@dataclass(frozen=True)
class FileWindow:
    """A part of a file, as :meth:`Sandbox.read_window` gives it."""

    path: str
    content: str
    encoding: str
    start_line: int
    end_line: int
    total_lines: int
    size: int
    version: str
    truncated: bool
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Written:
    """What was written."""

    path: str
    created: bool
    size: int
    version: str


@dataclass(frozen=True)
class Edited:
    """What was replaced: how many places, and the first line of each edit."""

    path: str
    replacements: int
    lines: list[int]
    size: int
    version: str


@dataclass(frozen=True)
class FileEntry:
    """One entry of a directory: ``file``, ``directory``, ``symlink`` or ``other``."""

    path: str
    kind: str
    size: int
    target: Optional[str] = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Match:
    """A line that fits."""

    path: str
    line: int
    text: str
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class HistoryEntry:
    """One thing that was done. Times are in seconds since 1970."""

    id: int
    name: str
    command: str
    status: str
    exit_code: Optional[int]
    limit: Optional[str]
    error: Optional[str]
    started_at: float
    completed_at: Optional[float]
    parameters: Any = None
    result: Any = None
    usage: Any = None
    changes: Any = None
    #: Only the beginning of its output was recorded.
    output_truncated: bool = False
    #: Its output was dropped to keep the history within the limit ``history``.
    output_pruned: bool = False


def history(text: str) -> list[HistoryEntry]:
    return [
        HistoryEntry(
            id=row["id"],
            name=row["name"],
            command=row["command"],
            status=row["status"],
            exit_code=row["exit_code"],
            limit=row["limit"],
            error=row.get("error"),
            started_at=row["started"] / 1e9,
            completed_at=None if row["completed"] is None else row["completed"] / 1e9,
            parameters=row.get("parameters"),
            result=row.get("result"),
            usage=row.get("usage"),
            changes=row.get("changes"),
            output_truncated=row.get("output_truncated", False),
            output_pruned=row.get("output_pruned", False),
        )
        for row in json.loads(text)
    ]
