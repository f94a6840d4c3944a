"""Exceptions. A command that fails does not raise: it returns a result, unless you pass ``check=True``."""

from __future__ import annotations

import builtins
import errno as _errno

from ._typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._results import Result

__all__ = [
    "SandliteError",
    "BusyError",
    "ClosedError",
    "CommandError",
    "LimitError",
    "FileError",
    "FileNotFoundError",
    "FileExistsError",
    "IsADirectoryError",
    "NotADirectoryError",
    "PermissionError",
    "RefusedError",
    "StaleFileError",
    "ConflictError",
    "InvalidError",
]


class SandliteError(Exception):
    """Base class of every exception that Sandlite raises. ``hint`` suggests a remedy, if there is one."""

    hint: Optional[str] = None

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}\nhint: {self.hint}" if self.hint else text


class ClosedError(SandliteError, RuntimeError):
    """The sandbox is closed."""


class BusyError(SandliteError, RuntimeError):
    """The sandbox is in use: another process is running a command in it, or this code works for a running command of it, as a tool or
    as a reader of its output."""


class InvalidError(SandliteError, ValueError):
    """An argument is invalid."""


#: Lines and characters of standard error, and characters of the command, in the text of a :class:`CommandError`.
_LAST_LINES = 10
_LAST_CHARACTERS = 2000
_COMMAND_CHARACTERS = 200


class CommandError(SandliteError):
    """A command failed and ``check=True`` was passed, or :meth:`Result.check` was called.

    The text contains the command, its exit code and the end of its standard error.

    >>> from sandlite import Sandbox
    >>> with Sandbox() as box:
    ...     try:
    ...         box.bash("echo no such luck >&2; exit 3", check=True)
    ...     except CommandError as error:
    ...         print(error.exit_code, error.command)
    ...         print(error)
    3 echo no such luck >&2; exit 3
    `echo no such luck >&2; exit 3` failed with exit code 3
    no such luck
    """

    #: The result of the command, with its whole output.
    result: "Result"
    #: The command line or the code.
    command: str
    #: Its exit code.
    exit_code: int

    def __init__(self, result: "Result") -> None:
        super().__init__(_failure(result))
        self.result = result
        self.command = result.command
        self.exit_code = result.exit_code

    @property
    def stdout(self) -> str:
        """The standard output of the command, as text."""
        return self.result.stdout

    @property
    def stderr(self) -> str:
        """The standard error of the command, as text."""
        return self.result.stderr

    def __reduce__(self) -> "tuple[type[CommandError], tuple[Result]]":
        return type(self), (self.result,)


def _failure(result: "Result") -> str:
    command = result.command
    if len(command) > _COMMAND_CHARACTERS:
        command = command[:_COMMAND_CHARACTERS] + "…"
    how = f"failed with exit code {result.exit_code}" if result.limit is None else f"was stopped: {result.limit.message}"
    end = "\n".join(result.stderr.rstrip().splitlines()[-_LAST_LINES:])[-_LAST_CHARACTERS:]
    return f"`{command}` {how}" + (f"\n{end}" if end else "")


class LimitError(CommandError):
    """A limit stopped a command, and ``check=True`` was passed or :meth:`Result.check` was called."""

    def __init__(self, result: "Result") -> None:
        super().__init__(result)
        if result.limit is not None:
            self.hint = result.limit.hint


class FileError(SandliteError, OSError):
    """A file operation failed; ``path`` is the path in the sandbox, ``errno`` as on Linux."""

    path: Optional[str] = None

    def __str__(self) -> str:
        text = str(self.strerror)
        return f"{text}\nhint: {self.hint}" if self.hint else text


class FileNotFoundError(FileError, builtins.FileNotFoundError):
    """The file or directory does not exist."""


class FileExistsError(FileError, builtins.FileExistsError):
    """The path already exists."""


class IsADirectoryError(FileError, builtins.IsADirectoryError):
    """The path is a directory."""


class NotADirectoryError(FileError, builtins.NotADirectoryError):
    """The path is not a directory."""


class PermissionError(FileError, builtins.PermissionError):
    """The operation is not permitted."""


class RefusedError(SandliteError):
    """A function registered with ``on_commit`` rejected the change; nothing was changed."""


class StaleFileError(SandliteError):
    """The file at ``path`` was changed after it was read."""

    path: Optional[str] = None


class ConflictError(SandliteError):
    """Files were changed both in a directory on this machine and in the sandbox; nothing was applied."""


_BY_NUMBER = {
    _errno.ENOENT: FileNotFoundError,
    _errno.EEXIST: FileExistsError,
    _errno.EISDIR: IsADirectoryError,
    _errno.ENOTDIR: NotADirectoryError,
    _errno.EPERM: PermissionError,
    _errno.EACCES: PermissionError,
}


def _make(
    kind: str, text: str, hint: Optional[str], number: Optional[int], path: Optional[str]
) -> SandliteError:
    """Returns the exception for an error of the native half."""
    error: SandliteError
    if number is not None:
        error = _BY_NUMBER.get(number, FileError)(number, text)
        setattr(error, "path", path)
    elif kind == "changed":
        error = StaleFileError(text)
        setattr(error, "path", path)
    elif kind == "conflict":
        error = ConflictError(text)
    elif kind == "refused":
        error = RefusedError(text)
    elif kind == "closed":
        error = ClosedError(text)
    elif kind == "busy":
        error = BusyError(text)
    elif kind == "invalid":
        error = InvalidError(text)
    else:
        error = SandliteError(text)
    error.hint = hint
    return error
