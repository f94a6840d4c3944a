"""Return values of everything but commands: frozen dataclasses, made when one is first asked for (see ``_results.py``)."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Union


@dataclass(frozen=True)
class Image:
    """A picture that Python code displayed: a Matplotlib figure, or a value with ``_repr_png_`` or ``_repr_svg_``."""

    #: ``image/png`` or ``image/svg+xml``.
    mime: str
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class Answer:
    """The outcome of an action: text for a model, the same as data, and whether it failed."""

    text: str
    data: Any = None
    is_error: bool = False


@dataclass(frozen=True)
class McpTool:
    """A tool of an MCP server."""

    #: Its name on the server.
    name: str
    #: Its name in approvals, in the history and for ``tool NAME JSON``.
    tool: str
    #: Its name in the Python module of the server.
    function: str
    #: A digest of what the server says of it.
    digest: str
    #: Why it cannot be called; ``None`` if it can.
    off: Optional[str] = None


@dataclass(frozen=True)
class McpServer:
    """An MCP server of a sandbox, as :meth:`Sandbox.mcp_servers` returns it."""

    name: str
    #: The name of its Python module, below ``servers``.
    module: str
    tools: "tuple[McpTool, ...]"


@dataclass(frozen=True)
class FileWindow:
    """A part of a file, as :meth:`Sandbox.read_window` returns it."""

    path: str
    content: str
    encoding: str
    start_line: int
    end_line: int
    #: ``None`` if the file is large and only the window was read.
    total_lines: Optional[int]
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
class FileStat:
    """Metadata of a path, as :meth:`Sandbox.stat` and :meth:`Sandbox.walk` return it."""

    path: str
    #: ``file``, ``directory``, ``symlink``, ``fifo`` or ``device``.
    kind: str
    size: int
    #: The permission bits, such as ``0o644``.
    mode: int
    #: When the content was last changed, in seconds since 1970.
    modified: float
    #: The target of a symbolic link.
    target: Optional[str] = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return self.kind == "directory"

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.kind == "file"


def file_stat(row: Mapping[str, Any]) -> FileStat:
    return FileStat(
        path=row["path"],
        kind=row["type"],
        size=row["size"],
        mode=int(row["mode"], 8),
        modified=row["modified"] / 1e9,
        target=row.get("target"),
    )


@dataclass(frozen=True)
class TreeCopy:
    """What :meth:`Sandbox.upload_dir` and :meth:`Sandbox.download_dir` copied."""

    files: int
    directories: int
    symlinks: int
    bytes: int
    #: Paths that were not copied: devices, pipes, links that lead out of the tree.
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GitExported:
    """What :meth:`Sandbox.git_export` wrote."""

    #: The newest commit.
    head: str
    commits: int
    tags: int
    objects: int
    #: Bytes of the pack.
    bytes: int
    #: The oldest version that is part of it.
    first_version: int
    #: Paths that git cannot hold, and links that lead out of the working tree.
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GitImported:
    """What :meth:`Sandbox.git_import` made."""

    #: The newest commit.
    head: str
    commits: int
    versions: int
    #: Files and links of the newest commit, and their bytes.
    files: int
    bytes: int
    #: Checkpoints that were made of tags, and tags that could not be.
    checkpoints: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Info:
    """What a sandbox holds, as :meth:`Sandbox.info` returns it. Sizes are in bytes."""

    #: The database file; ``None`` in memory.
    path: Optional[str]
    preset: str
    #: The size of the database itself, without its write-ahead log.
    database_bytes: int
    files: int
    directories: int
    symlinks: int
    keys: int
    runs: int
    #: Usage and limit by name: ``disk``, ``inodes``, ``names``, ``keys``, ``sessions`` and ``history``.
    used: Mapping[str, int] = field(default_factory=dict)
    allowed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Match:
    """A line that matches."""

    path: str
    line: int
    text: str
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class HistoryEntry:
    """One row of the history. Times are in seconds since 1970."""

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
    #: What it printed, if the history was read with ``output=True``.
    stdout_bytes: bytes = b""
    stderr_bytes: bytes = b""

    @property
    def stdout(self) -> str:
        """Standard output as text, if the history was read with ``output=True``."""
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """Standard error as text, if the history was read with ``output=True``."""
        return self.stderr_bytes.decode("utf-8", "replace")


def history(native: "Union[str, tuple[str, list[tuple[bytes, bytes]]]]") -> list[HistoryEntry]:
    text, outputs = (native, []) if isinstance(native, str) else native
    rows = json.loads(text)
    outputs = outputs or [(b"", b"")] * len(rows)
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
            stdout_bytes=stdout,
            stderr_bytes=stderr,
        )
        for row, (stdout, stderr) in zip(rows, outputs)
    ]


def history_entry(row: "dict[str, Any]") -> HistoryEntry:
    """One row as an action returns it, with its output."""
    started, duration = row["started_ms"] / 1e3, row["duration_ms"]
    return HistoryEntry(
        id=row["run"],
        name=row["name"],
        command=row["command"],
        status=row["status"],
        exit_code=row["exit_code"],
        limit=row["limit"],
        error=row["error"],
        started_at=started,
        completed_at=None if duration is None else started + duration / 1e3,
        usage=row.get("usage"),
        output_pruned=row["output_pruned"],
        stdout_bytes=_output(row, "stdout"),
        stderr_bytes=_output(row, "stderr"),
    )


def _output(row: "dict[str, Any]", name: str) -> bytes:
    encoded = row.get(f"{name}_base64")
    return base64.b64decode(encoded) if encoded is not None else (row.get(name) or "").encode()


@dataclass(frozen=True)
class Version:
    """A state of the sandbox: the run that made it, and what it changed."""

    version: int
    #: The number of the run, which names the version too.
    run: Optional[int]
    #: ``run``, ``setup`` for a new sandbox, ``base`` for the oldest version kept, or ``outside`` for a change by another program.
    made_by: str
    command: str
    exit_code: Optional[int]
    time_ms: int
    #: The first 20 paths.
    changed: list[str]
    #: How many paths were changed.
    changes: int
    checkpoints: list[str]
    #: The digest of its files alone: equal trees have equal digests. ``None`` if nobody has asked for it yet.
    digest: Optional[str]


@dataclass(frozen=True)
class FileChange:
    """One change that is about to be committed."""

    #: Where it was, if it is renamed.
    from_path: Optional[str]
    #: ``file``, ``directory``, ``symlink``, ``fifo`` or ``device``.
    type: Optional[str]
    path: str
    #: ``created``, ``modified``, ``attributes``, ``deleted`` or ``renamed``.
    kind: str
    size: int


@dataclass(frozen=True)
class Commit:
    """What is about to be committed, for a function registered with :meth:`Sandbox.on_commit`."""

    #: The number of the command; ``None`` for a call of this library.
    run: Optional[int]
    command: str
    #: The principal of the view that it is made in.
    principal: Optional[str]
    #: What changes at or below the function's path.
    changes: list[FileChange]
    #: What the changed files are about to hold, by path; files of more than 1 MB are not here.
    contents: "dict[str, bytes]"


@dataclass(frozen=True)
class Event:
    """A change that was committed."""

    #: Where it was, if it was renamed.
    from_path: Optional[str]
    #: ``file``, ``directory``, ``symlink``, ``fifo`` or ``device``.
    type: Optional[str]
    version: int
    #: The run that made the change; ``None`` if no run did.
    run: Optional[int]
    #: When, in nanoseconds since 1970.
    time: int
    path: str
    #: ``created``, ``modified``, ``attributes``, ``deleted`` or ``renamed``; ``lost`` stands for versions that were dropped.
    kind: str
    size: int
    #: A name for the content after the change, the same as a file's version.
    hash: Optional[str]


@dataclass(frozen=True)
class Difference:
    """A path that differs between two versions."""

    path: str
    #: ``added``, ``modified``, ``mode`` or ``deleted``.
    kind: str
    is_directory: bool
    old_size: int
    new_size: int


@dataclass(frozen=True)
class Diff:
    """What differs between two versions; false if nothing does."""

    files: list[Difference]
    total: int
    #: The lines that differ, as ``git apply`` takes them.
    patch: str
    truncated: bool

    def __bool__(self) -> bool:
        return self.total > 0


@dataclass(frozen=True)
class ShownRun:
    """One run with its output and what it changed."""

    #: ``None`` if no run made the version.
    run: Optional[HistoryEntry]
    #: ``None`` if the run changed nothing.
    version: Optional[int]
    checkpoints: list[str]
    #: ``None`` if that is nothing, or not known any more.
    changes: Optional[Diff]


@dataclass(frozen=True)
class BlamedLine:
    """A line of a file, and who wrote it."""

    line: int
    text: str
    version: Version


@dataclass(frozen=True)
class Bisection:
    """What :meth:`Sandbox.bisect` found."""

    first_bad: Version
    #: Versions that were skipped and may be the first bad one instead.
    suspects: list[int]
    changes: Optional[Diff]
    #: Each version that was tried, with ``good``, ``bad`` or ``skip``.
    tried: "list[tuple[int, str]]"


@dataclass(frozen=True)
class ReplayDifference:
    """Where a replay and its recording part."""

    run: int
    command: str
    #: ``exit_code``, ``stdout``, ``stderr``, ``files`` or ``tools``.
    what: str
    recorded: str
    replayed: str


@dataclass(frozen=True)
class Replayed:
    """What :meth:`Sandbox.replay` found; true if nothing differs."""

    #: The version that it began with.
    start: int
    runs: int
    #: How many versions between them were not recorded and taken over as they are.
    given: int
    notes: list[str]
    #: The first difference; nothing was run after it.
    difference: Optional[ReplayDifference]

    def __bool__(self) -> bool:
        return self.difference is None


@dataclass(frozen=True)
class AppliedFile:
    """A path that changes in a directory of this machine."""

    #: The path below the directory.
    path: str
    #: ``added``, ``modified``, ``mode`` or ``deleted``.
    kind: str


@dataclass(frozen=True)
class Refusal:
    """A path that does not change in a directory of this machine, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Applied:
    """What was applied to a directory of this machine, or would be; false if nothing was."""

    files: list[AppliedFile]
    #: How many changes the directory already had.
    unchanged: int
    #: Paths that were edited in the directory meanwhile; there are some only in a dry run.
    conflicts: list[Refusal]
    #: Paths that are never applied, such as those below ``.git``.
    left_out: list[Refusal]
    is_applied: bool

    def __bool__(self) -> bool:
        return self.is_applied and bool(self.files)


@dataclass(frozen=True)
class Updated:
    """What :meth:`Sandbox.update` did."""

    path: str
    #: The versions of the base before and after, such as ``v3``.
    was: str
    now: str
    #: How many files, links and removed paths are the sandbox's own.
    changes: int
    #: Paths that both sides had changed.
    conflicts: list[str]


@dataclass(frozen=True)
class Checkpoint:
    """A name for a version."""

    name: str
    version: int
    message: Optional[str]
    time_ms: int
