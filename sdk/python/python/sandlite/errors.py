"""What can go wrong. A command that fails is not here: that is a result, unless you ask for ``check=True``."""

from __future__ import annotations

import builtins
import errno as _errno
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._results import Result

__all__ = [
    "SandliteError",
    "ClosedError",
    "CommandError",
    "LimitError",
    "FileError",
    "FileNotFoundError",
    "FileExistsError",
    "IsADirectoryError",
    "NotADirectoryError",
    "PermissionError",
    "StaleFileError",
    "InvalidError",
]


class SandliteError(Exception):
    """Any trouble that is Sandlite's own. ``hint`` says what to do about it, when there is something to do."""

    hint: Optional[str] = None

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}\nhint: {self.hint}" if self.hint else text


class ClosedError(SandliteError, RuntimeError):
    """The sandbox is closed."""


class InvalidError(SandliteError, ValueError):
    """What was asked for makes no sense."""


class CommandError(SandliteError):
    """A command did not succeed, and ``check=True`` was asked for. ``result`` is how it went."""

    def __init__(self, result: "Result") -> None:
        last = result.stderr.strip().splitlines()
        super().__init__(f"exit code {result.exit_code}" + (f": {last[-1]}" if last else ""))
        self.result = result


class LimitError(CommandError):
    """A command met a limit, and ``check=True`` was asked for."""

    def __init__(self, result: "Result") -> None:
        super().__init__(result)
        if result.limit is not None:
            self.args = (result.limit.message,)
            self.hint = result.limit.hint


class FileError(SandliteError, OSError):
    """A file operation failed; ``path`` is the path in the sandbox, ``errno`` as on Linux."""

    path: Optional[str] = None

    def __str__(self) -> str:
        text = str(self.strerror)
        return f"{text}\nhint: {self.hint}" if self.hint else text


class FileNotFoundError(FileError, builtins.FileNotFoundError):
    """There is no such file or directory."""


class FileExistsError(FileError, builtins.FileExistsError):
    """There is something of that name."""


class IsADirectoryError(FileError, builtins.IsADirectoryError):
    """It is a directory."""


class NotADirectoryError(FileError, builtins.NotADirectoryError):
    """It is no directory."""


class PermissionError(FileError, builtins.PermissionError):
    """It is not allowed."""


class StaleFileError(SandliteError):
    """The file was changed since it was read; ``path`` says which."""

    path: Optional[str] = None


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
    """The exception for an error of the native half."""
    error: SandliteError
    if number is not None:
        error = _BY_NUMBER.get(number, FileError)(number, text)
        setattr(error, "path", path)
    elif kind == "changed":
        error = StaleFileError(text)
        setattr(error, "path", path)
    elif kind == "closed":
        error = ClosedError(text)
    elif kind == "invalid":
        error = InvalidError(text)
    else:
        error = SandliteError(text)
    error.hint = hint
    return error
