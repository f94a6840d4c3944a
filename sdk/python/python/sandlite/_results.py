"""Return values of commands. All others are in ``_records.py``."""

from __future__ import annotations

from ._typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence

if TYPE_CHECKING:
    from ._records import Answer as Answer
    from ._records import Applied as Applied
    from ._records import AppliedFile as AppliedFile
    from ._records import Bisection as Bisection
    from ._records import BlamedLine as BlamedLine
    from ._records import Checkpoint as Checkpoint
    from ._records import Compacted as Compacted
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
    from ._records import Limit as Limit
    from ._records import Match as Match
    from ._records import Refusal as Refusal
    from ._records import ReplayDifference as ReplayDifference
    from ._records import Replayed as Replayed
    from ._records import ShownRun as ShownRun
    from ._records import TreeCopy as TreeCopy
    from ._records import Updated as Updated
    from ._records import ValueDifference as ValueDifference
    from ._records import Version as Version
    from ._records import Written as Written
    from ._records import file_stat as file_stat
    from ._records import history as history
    from ._records import history_entry as history_entry


class _Fields:
    """``__dataclass_fields__``, created when it is read."""

    def __get__(self, instance: object, owner: "type[_Frozen]") -> Any:
        from dataclasses import dataclass

        shadow = type(owner.__name__, (), {"__annotations__": owner.__annotations__, "__module__": owner.__module__, **owner._defaults})
        return dataclass(frozen=True)(shadow).__dataclass_fields__  # type: ignore[attr-defined]


class _Frozen:
    """A frozen dataclass, for which importing :mod:`dataclasses` is not necessary: that takes longer than the rest of the package.
    The functions of that module accept it. Its fields are the annotations of its class."""

    _defaults: "Mapping[str, Any]" = {}
    __dataclass_fields__ = _Fields()

    def __setattr__(self, name: str, value: Any) -> None:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in type(self).__annotations__))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).__annotations__)
        return f"{type(self).__name__}({fields})"


class Usage(_Frozen):
    """The resource usage of a command."""

    fuel: int
    memory_peak: int
    output: int
    commands: int
    processes: int
    bytes_read: int
    bytes_written: int

    def __init__(
        self,
        fuel: int,
        memory_peak: int,
        output: int,
        commands: int,
        processes: int,
        bytes_read: int,
        bytes_written: int,
    ) -> None:
        self.__dict__.update(
            fuel=fuel,
            memory_peak=memory_peak,
            output=output,
            commands=commands,
            processes=processes,
            bytes_read=bytes_read,
            bytes_written=bytes_written,
        )


#: Characters of each stream in the ``repr`` of a result.
_REPR_CHARACTERS = 200


class Result(_Frozen):
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
    limit: Optional[Limit]
    #: Whether the session has a new Python interpreter, so that globals of earlier calls are lost.
    restarted: bool
    #: The command line or the code.
    command: str
    #: Notes for people and models, such as "the output was truncated".
    notes: "tuple[str, ...]"
    #: The value of the last expression of Python code, if it was echoed and JSON can represent it.
    value: Any
    #: The ``repr`` of that value.
    text: Optional[str]
    #: Images that the code displayed.
    images: "tuple[Image, ...]"

    _defaults = {"limit": None, "restarted": False, "command": "", "notes": (), "value": None, "text": None, "images": ()}

    def __init__(
        self,
        exit_code: int,
        stdout_bytes: bytes,
        stderr_bytes: bytes,
        truncated: bool,
        duration: float,
        run: int,
        usage: Usage,
        limit: Optional[Limit] = None,
        restarted: bool = False,
        command: str = "",
        notes: "tuple[str, ...]" = (),
        value: Any = None,
        text: Optional[str] = None,
        images: "tuple[Image, ...]" = (),
    ) -> None:
        given = dict(locals())
        del given["self"]
        self.__dict__.update(given)

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
        if self.limit is None and self.exit_code == 0:
            return self
        from .errors import CommandError, LimitError

        raise CommandError(self) if self.limit is None else LimitError(self)


def _line_end(text: str) -> str:
    return "" if not text or text.endswith("\n") else "\n"


def _short(text: str) -> str:
    return text if len(text) <= _REPR_CHARACTERS else text[:_REPR_CHARACTERS] + "…"


def _start(data: bytes) -> str:
    # Four bytes are at most one character.
    return repr(_short(data[: 4 * _REPR_CHARACTERS + 4].decode("utf-8", "replace")))


def result(fields: "Mapping[str, Any]", check: bool, command: str = "") -> Result:
    """The result of a command, from the fields that the native half returns."""
    made = Result.__new__(Result)
    own = made.__dict__
    own.update(fields)
    own["command"] = command
    usage = own["usage"] = Usage.__new__(Usage)
    usage.__dict__.update(fields["usage"])
    if fields["limit"] is not None:
        from ._records import Limit

        own["limit"] = Limit(**fields["limit"])
    if fields["value"] is not None:
        import json

        own["value"] = json.loads(fields["value"])
    if fields["images"]:
        own["images"] = _images(fields["images"])
    return made.check() if check else made


def _images(given: "Sequence[tuple[str, str]]") -> "tuple[Image, ...]":
    import base64

    from ._records import Image

    return tuple(Image(mime, base64.b64decode(data)) for mime, data in given)


def __getattr__(name: str) -> Any:
    # The others are created on first use, because together they take longer than the rest of the import.
    if name.startswith("_"):
        raise AttributeError(name)
    from . import _records

    value = globals()[name] = getattr(_records, name)
    return value
