"""Return values other than those of commands: frozen dataclasses, created on first use (see ``_results.py``)."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Union


@dataclass(frozen=True)
class Image:
    """An image that Python code displayed: a Matplotlib figure, or a value with ``_repr_png_`` or ``_repr_svg_``."""

    #: ``image/png`` or ``image/svg+xml``.
    mime: str
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class Mount:
    """A directory on this machine, mounted at ``guest``. It is never written to: ``ro`` rejects changes, ``overlay`` stores them
    in the sandbox.

    ``allow_sensitive`` mounts it even though it may expose secrets (``/etc``, a home directory, ``.ssh``, …)."""

    host: Union[str, "os.PathLike[str]"]
    guest: str
    mode: str = "ro"
    allow_sensitive: bool = False


@dataclass(frozen=True)
class Limit:
    """A limit that stopped a command."""

    name: str
    value: str
    used: str
    hint: str
    message: str
    #: Whether the command's changes were rolled back because they could not be stored in time.
    rolled_back: bool = False


@dataclass(frozen=True)
class Answer:
    """The result of an action: text for a model, the same as data, and whether it failed."""

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
    #: A digest of its description.
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
    """A part of a file, as returned by :meth:`Sandbox.read_window`."""

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
    """The result of a write."""

    path: str
    created: bool
    size: int
    version: str


@dataclass(frozen=True)
class Edited:
    """The result of an edit: the number of replacements, and the first line of each edit."""

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
        """The last component of the path."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class FileStat:
    """Metadata of a path, as returned by :meth:`Sandbox.stat` and :meth:`Sandbox.walk`."""

    path: str
    #: ``file``, ``directory``, ``symlink``, ``fifo`` or ``device``.
    kind: str
    size: int
    #: The permission bits, such as ``0o644``.
    mode: int
    #: The modification time, in seconds since 1970.
    modified: float
    #: The target of a symbolic link.
    target: Optional[str] = None

    @property
    def name(self) -> str:
        """The last component of the path."""
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
    """The result of :meth:`Sandbox.upload_dir` and :meth:`Sandbox.download_dir`."""

    files: int
    directories: int
    symlinks: int
    bytes: int
    #: Paths that were not copied: devices, named pipes, links that lead out of the tree.
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GitExported:
    """The result of :meth:`Sandbox.git_export`."""

    #: The newest commit.
    head: str
    commits: int
    tags: int
    objects: int
    #: The size of the pack, in bytes.
    bytes: int
    #: The oldest included version.
    first_version: int
    #: Paths that git cannot represent, and links that lead out of the working tree.
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GitImported:
    """The result of :meth:`Sandbox.git_import`."""

    #: The newest commit.
    head: str
    commits: int
    versions: int
    #: Files and links of the newest commit, and their size in bytes.
    files: int
    bytes: int
    #: Checkpoints created from tags, and tags without a checkpoint.
    checkpoints: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Info:
    """A summary of a sandbox, as returned by :meth:`Sandbox.info`. Sizes are in bytes."""

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
    """A matching line."""

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
    #: The output, if the history was read with ``output=True``.
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


class _Changes:
    """``HistoryEntry.changes``, parsed when it is read: a list of rows has far more of it than its readers look at."""

    def __get__(self, entry: Any, owner: object = None) -> Any:
        if entry is None:
            return None
        text = entry.__dict__.pop("_changes", None)
        try:
            value = None if text is None else json.loads(text)
        except ValueError:
            # Another program wrote it.
            value = None
        entry.__dict__["changes"] = value
        return value


# Not an assignment: type checkers reject one to a frozen class.
setattr(HistoryEntry, "changes", _Changes())


def _unread(entry: HistoryEntry, changes: Optional[str]) -> HistoryEntry:
    del entry.__dict__["changes"]
    entry.__dict__["_changes"] = changes
    return entry


def history(native: "tuple[str, list[tuple[Optional[str], bytes, bytes]]]") -> list[HistoryEntry]:
    text, beside = native
    return [
        _unread(_history_row(row, stdout, stderr), changes)
        for row, (changes, stdout, stderr) in zip(json.loads(text), beside)
    ]


def _history_row(row: "dict[str, Any]", stdout: bytes, stderr: bytes) -> HistoryEntry:
    return HistoryEntry(
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
        output_truncated=row.get("output_truncated", False),
        output_pruned=row.get("output_pruned", False),
        stdout_bytes=stdout,
        stderr_bytes=stderr,
    )


def history_entry(row: "dict[str, Any]") -> HistoryEntry:
    """One row as returned by an action, with its output."""
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
    """A state of the sandbox: the run that created it, and its changes."""

    version: int
    #: The number of the run, which also identifies the version.
    run: Optional[int]
    #: ``run``, ``setup`` for a new sandbox, ``base`` for the oldest existing version, or ``outside`` for a change by another program.
    made_by: str
    command: str
    exit_code: Optional[int]
    time_ms: int
    #: The first 20 paths.
    changed: list[str]
    #: The number of changed paths.
    changes: int
    checkpoints: list[str]
    #: The digest of its files: equal trees have equal digests. ``None`` if it was not computed yet.
    digest: Optional[str]
    #: The changed files with their numbers of lines (``path``, ``mark``, ``added``, ``removed``), if ``stat`` was set.
    stat: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class FileChange:
    """A change that is about to be committed."""

    #: The previous path, if it is renamed.
    from_path: Optional[str]
    #: ``file``, ``directory``, ``symlink``, ``fifo`` or ``device``.
    type: Optional[str]
    path: str
    #: ``created``, ``modified``, ``attributes``, ``deleted`` or ``renamed``.
    kind: str
    size: int


@dataclass(frozen=True)
class Commit:
    """The pending commit, for a function registered with :meth:`Sandbox.on_commit`."""

    #: The number of the command; ``None`` for a call of this library.
    run: Optional[int]
    command: str
    #: The principal of the view that makes the commit.
    principal: Optional[str]
    #: The changes at the function's path or below it.
    changes: list[FileChange]
    #: The new contents of the changed files, by path; files larger than 1 MB are omitted.
    contents: "dict[str, bytes]"


@dataclass(frozen=True)
class Event:
    """A committed change."""

    #: The previous path, if it was renamed.
    from_path: Optional[str]
    #: ``file``, ``directory``, ``symlink``, ``fifo`` or ``device``.
    type: Optional[str]
    version: int
    #: The run that made the change; ``None`` if no run did.
    run: Optional[int]
    #: The time, in nanoseconds since 1970.
    time: int
    path: str
    #: ``created``, ``modified``, ``attributes``, ``deleted`` or ``renamed``; ``lost`` represents versions that were dropped.
    kind: str
    size: int
    #: The content hash after the change, equal to the file's version.
    hash: Optional[str]


@dataclass(frozen=True)
class Difference:
    """A path that differs between two versions."""

    path: str
    #: ``added``, ``modified``, ``mode``, ``links`` or ``deleted``.
    kind: str
    is_directory: bool
    old_size: int
    new_size: int


@dataclass(frozen=True)
class ValueDifference:
    """A key or session that differs between two versions."""

    #: ``key`` or ``session``.
    value: str
    name: str
    #: ``added``, ``modified`` or ``deleted``.
    kind: str


@dataclass(frozen=True)
class Diff:
    """The differences between two versions; false if there are none."""

    files: list[Difference]
    #: The number of differing paths.
    total: int
    #: The differing lines, as a patch for ``git apply``.
    patch: str
    truncated: bool
    #: The keys and sessions that differ, unless only some paths were compared.
    values: list[ValueDifference] = field(default_factory=list)
    #: Whether other keys may differ, because another program wrote to the file.
    values_unknown: bool = False

    def __bool__(self) -> bool:
        return self.total > 0 or bool(self.values) or self.values_unknown


@dataclass(frozen=True)
class ShownRun:
    """A run with its output and changes."""

    #: ``None`` if no run created the version.
    run: Optional[HistoryEntry]
    #: ``None`` if the run changed nothing.
    version: Optional[int]
    checkpoints: list[str]
    #: ``None`` if there are none, or if they are no longer known.
    changes: Optional[Diff]


@dataclass(frozen=True)
class BlamedLine:
    """A line of a file, and the version that wrote it."""

    line: int
    text: str
    version: Version


@dataclass(frozen=True)
class Bisection:
    """The result of :meth:`Sandbox.bisect`."""

    first_bad: Version
    #: Skipped versions, each of which may be the first bad one instead.
    suspects: list[int]
    changes: Optional[Diff]
    #: Each tested version, with ``good``, ``bad`` or ``skip``.
    tried: "list[tuple[int, str]]"


@dataclass(frozen=True)
class ReplayDifference:
    """The first difference between a replay and its recording."""

    run: int
    command: str
    #: ``exit_code``, ``stdout``, ``stderr``, ``files``, ``values`` (keys and sessions) or ``tools``.
    what: str
    recorded: str
    replayed: str


@dataclass(frozen=True)
class Replayed:
    """The result of :meth:`Sandbox.replay`; true if nothing differs."""

    #: The version that it started from.
    start: int
    runs: int
    #: The number of versions in between that were not recorded and were applied without replay.
    given: int
    notes: list[str]
    #: The first difference; nothing was run after it.
    difference: Optional[ReplayDifference]

    def __bool__(self) -> bool:
        return self.difference is None


@dataclass(frozen=True)
class AppliedFile:
    """A path that changes in a directory on this machine."""

    #: The path relative to the directory.
    path: str
    #: ``added``, ``modified``, ``mode`` or ``deleted``.
    kind: str


@dataclass(frozen=True)
class Refusal:
    """A path that is not changed in a directory on this machine, and the reason."""

    path: str
    reason: str


@dataclass(frozen=True)
class Applied:
    """The result of :meth:`Sandbox.apply`, or of its dry run; false if nothing changes."""

    files: list[AppliedFile]
    #: The number of changes that the directory already had.
    unchanged: int
    #: Paths that were edited in the directory meanwhile; not empty only in a dry run.
    conflicts: list[Refusal]
    #: Paths that are never applied, such as those below ``.git``.
    left_out: list[Refusal]
    is_applied: bool

    def __bool__(self) -> bool:
        return self.is_applied and bool(self.files)


@dataclass(frozen=True)
class Compacted:
    """The result of :meth:`Sandbox.compact`: sizes of the database in bytes."""

    before_bytes: int
    after_bytes: int
    #: Bytes of earlier versions, which remain until they are pruned.
    past_bytes: int


@dataclass(frozen=True)
class Updated:
    """The result of :meth:`Sandbox.update`."""

    path: str
    #: The version of the base before and after, such as ``v3``.
    was: str
    now: str
    #: The number of the sandbox's own files, links and removed paths.
    changes: int
    #: Paths that both sides changed.
    conflicts: list[str]


@dataclass(frozen=True)
class Checkpoint:
    """A name for a version."""

    name: str
    version: int
    message: Optional[str]
    time_ms: int
