"""Custom programs: modules built for ``wasm32-wasip1``, components built for ``wasm32-wasip2``, and Python functions as commands of the sandbox."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Union

from . import _calls
from ._host_tools import _awaited

if TYPE_CHECKING:
    import asyncio

    from . import _native

#: A module: its bytes, its file, or ``None`` for one installed with ``sandlite guests add``.
ProgramLike = Union[bytes, str, "os.PathLike[str]", None]


class _Input(io.RawIOBase):
    """Standard input of a command."""

    def __init__(self, native: "_native.CommandScope") -> None:
        self._native = native

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._native.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Output(io.RawIOBase):
    """Standard output or standard error of a command."""

    def __init__(self, native: "_native.CommandScope", stream: int) -> None:
        self._native = native
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        content = bytes(data)
        self._native.write(self._stream, content)
        return len(content)


class CommandFiles:
    """The files of the run that calls a command, including its changes so far. Writes become part of the run. Relative paths
    start in the directory of the call."""

    def __init__(self, native: "_native.CommandScope") -> None:
        self._native = native

    def _look(self, verb: str, path: str) -> Any:
        seen = self._native.look(verb, self._native.path(path))
        if seen is None:
            raise BrokenPipeError("the command has ended")
        return seen

    def _change(self, verb: str, path: str, content: bytes = b"") -> None:
        self._native.change(verb, self._native.path(path), content)

    def read_bytes(self, path: str) -> bytes:
        """Returns the bytes of a file.

        >>> @box.command("own")
        ... def own(call):
        ...     call.stdout.write(str(call.files.read_bytes('a')))
        >>> box.bash('printf hi > a; own').stdout
        "b'hi'"
        """
        content: bytes = self._look("read", path)
        return content

    def read_file(self, path: str) -> str:
        """Returns the text of a file; invalid UTF-8 is replaced.

        >>> @box.command("own")
        ... def own(call):
        ...     call.stdout.write(call.files.read_file('a').upper())
        >>> box.bash('echo hi > a; own').stdout
        'HI\\n'
        """
        return self.read_bytes(path).decode("utf-8", "replace")

    def exists(self, path: str) -> bool:
        """Returns whether a path exists.

        >>> @box.command("own")
        ... def own(call):
        ...     return 0 if call.files.exists(call.args[1]) else 1
        >>> box.bash('own /tmp && own /nothing || echo missing').stdout
        'missing\\n'
        """
        return bool(self._look("exists", path))

    def list_files(self, path: str = ".") -> "list[str]":
        """Returns the names in a directory, sorted.

        >>> @box.command("own")
        ... def own(call):
        ...     print(*call.files.list_files(), file=call.stdout)
        >>> box.bash('cd /tmp; touch b a; own').stdout
        'a b\\n'
        """
        import json

        names: list[str] = json.loads(self._look("names", path))
        return names

    def write_file(self, path: str, content: Union[str, bytes]) -> None:
        """Writes a file, which is created if missing.

        >>> @box.command("own")
        ... def own(call):
        ...     call.files.write_file('/tmp/made', 'text')
        >>> box.bash('own; cat /tmp/made').stdout
        'text'
        """
        self._change("write", path, _calls.encoded(content))

    def append(self, path: str, content: Union[str, bytes]) -> None:
        """Appends to a file.

        >>> @box.command("own")
        ... def own(call):
        ...     call.files.append('log', 'more')
        >>> box.bash("printf 'some ' > log; own; cat log").stdout
        'some more'
        """
        self._change("append", path, _calls.encoded(content))

    def mkdir(self, path: str) -> None:
        """Creates a directory and its missing parents.

        >>> @box.command("own")
        ... def own(call):
        ...     call.files.mkdir('/tmp/a/b')
        >>> box.bash('own; ls /tmp/a').stdout
        'b\\n'
        """
        self._change("make_directory", path)

    def remove(self, path: str) -> None:
        """Removes a file, or a directory with its content.

        >>> @box.command("own")
        ... def own(call):
        ...     call.files.remove('/tmp/old')
        >>> box.bash('mkdir -p /tmp/old/x; own; ls /tmp').stdout
        ''
        """
        self._change("remove", path)


class CommandCall:
    """One call of a command: its arguments, its standard streams, and the files of the run that called it.

    >>> def shout(call: CommandCall) -> None:
    ...     for line in call.stdin:
    ...         call.stdout.write(line.upper())

    ``stdin``, ``stdout`` and ``stderr`` are text streams, like those of :mod:`sys`; their ``buffer`` is for bytes. Output is
    written at the latest when the function returns; ``flush()`` writes it at once. Once the process is killed or its command has
    ended, :attr:`is_cancelled` is true and every stream raises :class:`BrokenPipeError`.
    """

    def __init__(self, native: "_native.CommandScope") -> None:
        self._native = native
        #: The words of the command line, starting with the command's name.
        self.args: "list[str]" = native.args
        #: The environment.
        self.env: "dict[str, str]" = dict(native.env)
        #: The working directory.
        self.cwd: str = native.cwd
        #: The number of its run in the history.
        self.run: int = native.run
        self.stdin = io.TextIOWrapper(io.BufferedReader(_Input(native)), encoding="utf-8", errors="surrogateescape")
        self.stdout = io.TextIOWrapper(io.BufferedWriter(_Output(native, 1)), encoding="utf-8", errors="surrogateescape")
        self.stderr = io.TextIOWrapper(
            io.BufferedWriter(_Output(native, 2)), encoding="utf-8", errors="surrogateescape", line_buffering=True
        )
        #: The files of the run.
        self.files = CommandFiles(native)

    @property
    def is_cancelled(self) -> bool:
        """Whether the process was ended, so that its output is no longer read."""
        return self._native.is_over()

    def _finish(self) -> None:
        """Flushes all buffers."""
        try:
            for stream in (self.stdout, self.stderr):
                stream.flush()
        finally:
            # A broken stream would report another error when it is garbage-collected.
            for stream in (self.stdout, self.stderr):
                stream.detach().detach()


CommandLike = Callable[[CommandCall], Any]


def status_of(returned: Any) -> int:
    """Converts the return value of a command's function to an exit status."""
    if returned is None or returned is True:
        return 0
    if returned is False:
        return 1
    if isinstance(returned, int):
        return returned & 0xFF
    raise TypeError(f"a command must return an exit status or None, not {type(returned).__name__}")


def wrapped(function: CommandLike, loop: Optional["asyncio.AbstractEventLoop"] = None) -> "Callable[[_native.CommandScope], int]":
    """Wraps the function for the native half; an ``async`` one runs in ``loop``, or in its own loop."""

    def run(native: "_native.CommandScope") -> int:
        call = CommandCall(native)
        try:
            returned = _awaited(function(call), loop)
        except SystemExit as error:
            if error.code is not None and not isinstance(error.code, int):
                call.stderr.write(f"{error.code}\n")
                returned = 1
            else:
                returned = error.code
        finally:
            call._finish()
        return status_of(returned)

    return run


def own_parts(
    programs: Optional[Mapping[str, ProgramLike]],
    commands: Optional[Mapping[str, CommandLike]],
    allow_host: Optional[Sequence[str]],
    loop: Optional["asyncio.AbstractEventLoop"],
) -> Any:
    """Converts the programs for the native half."""
    modules = [(name, _module(program)) for name, program in (programs or {}).items()]
    if isinstance(allow_host, str):
        raise TypeError("allow_host must be a list of names")
    functions = [(name, wrapped(function, loop)) for name, function in (commands or {}).items()]
    return modules, functions, list(allow_host or ())


def _module(program: ProgramLike) -> Optional[bytes]:
    if program is None or isinstance(program, (bytes, bytearray)):
        return None if program is None else bytes(program)
    # A number would be a descriptor of this process.
    with open(os.fspath(program), "rb") as file:
        return file.read()
