"""Return values: frozen dataclasses."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Union

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
class Image:
    """A picture that Python code displayed: a Matplotlib figure, or a value with ``_repr_png_`` or ``_repr_svg_``."""

    #: ``image/png`` or ``image/svg+xml``.
    mime: str
    data: bytes = field(repr=False)


#: Characters of each stream in the ``repr`` of a result.
_REPR_CHARACTERS = 200


@dataclass(frozen=True, repr=False)
class Result:
    """The outcome of a command. A non-zero ``exit_code`` is a result, not an exception.

    A result is true if the command exited with 0, and prints as what the command printed.

    >>> from sandlite import Sandbox
    >>> with Sandbox() as box:
    ...     result = box.bash("echo out; echo err >&2; exit 3")
    >>> result.exit_code, result.stdout, result.stderr, bool(result)
    (3, 'out\\n', 'err\\n', False)
    >>> print(result)
    out
    [stderr]
    err
    [exit code 3]
    """

    exit_code: int
    stdout_bytes: bytes
    stderr_bytes: bytes
    truncated: bool
    duration: float
    run: int
    usage: Usage
    limit: Optional[Limit] = None
    #: Whether the session has a new Python: globals of earlier calls are gone.
    restarted: bool = False
    #: The command line or the code.
    command: str = ""
    #: Notes for people and models, such as "the output was truncated".
    notes: "tuple[str, ...]" = ()
    #: The value of the last expression of Python code, if it was echoed and JSON can represent it.
    value: Any = None
    #: The ``repr`` of that value.
    text: Optional[str] = None
    #: Pictures that the code displayed.
    images: "tuple[Image, ...]" = ()

    @property
    def stdout(self) -> str:
        """Standard output as text; bytes that are not UTF-8 are replaced."""
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """Standard error as text; bytes that are not UTF-8 are replaced."""
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def ok(self) -> bool:
        """Whether the command exited with 0."""
        return self.exit_code == 0

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        text = self.stdout
        if self.stderr_bytes:
            text += f"{_line_end(text)}[stderr]\n{self.stderr}"
        if not self.ok:
            text += f"{_line_end(text)}[exit code {self.exit_code}]\n"
        for note in self.notes:
            text += f"{_line_end(text)}[{note}]\n"
        return text.rstrip("\n")

    def __repr__(self) -> str:
        parts = [f"exit_code={self.exit_code}", f"stdout={_start(self.stdout_bytes)}", f"stderr={_start(self.stderr_bytes)}"]
        if self.limit is not None:
            parts.append(f"limit={self.limit.name!r}")
        if self.text is not None:
            parts.append(f"text={_short(self.text)!r}")
        if self.images:
            parts.append(f"images={len(self.images)}")
        return f"Result({', '.join(parts)})"

    def check(self) -> "Result":
        """Returns the result if the command exited with 0; otherwise raises :class:`CommandError` or :class:`LimitError`.

        >>> from sandlite import Sandbox
        >>> with Sandbox() as box:
        ...     box.bash("echo fine").check().stdout
        'fine\\n'
        """
        if self.limit is not None:
            raise LimitError(self)
        if self.exit_code != 0:
            raise CommandError(self)
        return self


def _line_end(text: str) -> str:
    return "" if not text or text.endswith("\n") else "\n"


def _short(text: str) -> str:
    return text if len(text) <= _REPR_CHARACTERS else text[:_REPR_CHARACTERS] + "…"


def _start(data: bytes) -> str:
    # Four bytes are at most one character.
    return repr(_short(data[: 4 * _REPR_CHARACTERS + 4].decode("utf-8", "replace")))


def result(native: "tuple[bytes, bytes, str]", check: bool, command: str = "") -> Result:
    stdout, stderr, rest = native[:3]
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
        command=command,
        notes=tuple(ran["notes"]),
        value=ran.get("value"),
        text=ran.get("text"),
        images=tuple(_image(image) for image in ran.get("images", ())),
    )
    return made.check() if check else made


def _image(given: Mapping[str, str]) -> Image:
    import base64

    return Image(given["mime"], base64.b64decode(given["data"]))


@dataclass(frozen=True)
class Answer:
    """The outcome of an action: text for a model, the same as data, and whether it failed."""

    text: str
    data: Any = None
    is_error: bool = False


@dataclass(frozen=True)
class FileWindow:
    """A part of a file, as :meth:`Sandbox.read_window` returns it."""

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
