"""Return values of commands: frozen dataclasses. All others are in ``_records.py``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping, Optional

from .errors import CommandError, LimitError

if TYPE_CHECKING:
    from ._records import Answer as Answer
    from ._records import Applied as Applied
    from ._records import AppliedFile as AppliedFile
    from ._records import Bisection as Bisection
    from ._records import BlamedLine as BlamedLine
    from ._records import Checkpoint as Checkpoint
    from ._records import Diff as Diff
    from ._records import Difference as Difference
    from ._records import Edited as Edited
    from ._records import FileEntry as FileEntry
    from ._records import FileStat as FileStat
    from ._records import FileWindow as FileWindow
    from ._records import GitExported as GitExported
    from ._records import GitImported as GitImported
    from ._records import HistoryEntry as HistoryEntry
    from ._records import Image as Image
    from ._records import Info as Info
    from ._records import Match as Match
    from ._records import Refusal as Refusal
    from ._records import ReplayDifference as ReplayDifference
    from ._records import Replayed as Replayed
    from ._records import ShownRun as ShownRun
    from ._records import TreeCopy as TreeCopy
    from ._records import Updated as Updated
    from ._records import Version as Version
    from ._records import Written as Written
    from ._records import file_stat as file_stat
    from ._records import history as history
    from ._records import history_entry as history_entry


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
class Usage:
    """The resource usage of a command."""

    fuel: int
    memory_peak: int
    output: int
    commands: int
    processes: int
    bytes_read: int
    bytes_written: int


#: Characters of each stream in the ``repr`` of a result.
_REPR_CHARACTERS = 200


@dataclass(frozen=True, repr=False)
class Result:
    """The outcome of a command. A non-zero ``exit_code`` is a result, not an exception.

    A result is true if the command exited with 0, and is printed as the output of the command.

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
    #: Whether the session has a new Python interpreter, so that globals of earlier calls are lost.
    restarted: bool = False
    #: The command line or the code.
    command: str = ""
    #: Notes for people and models, such as "the output was truncated".
    notes: "tuple[str, ...]" = ()
    #: The value of the last expression of Python code, if it was echoed and JSON can represent it.
    value: Any = None
    #: The ``repr`` of that value.
    text: Optional[str] = None
    #: Images that the code displayed.
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
        images=_images(ran.get("images")),
    )
    return made.check() if check else made


def _images(given: "Optional[list[Mapping[str, str]]]") -> "tuple[Image, ...]":
    if not given:
        return ()
    import base64

    from ._records import Image

    return tuple(Image(image["mime"], base64.b64decode(image["data"])) for image in given)


def __getattr__(name: str) -> Any:
    # The others are created on first use, because together they take as long as the rest of the import.
    if name.startswith("_"):
        raise AttributeError(name)
    from . import _records

    value = globals()[name] = getattr(_records, name)
    return value
