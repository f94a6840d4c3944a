"""A sandbox as a workspace backend of Pydantic AI; see ``pydantic_ai.py``."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import posixpath
import shlex
import uuid
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, TypeVar, Union

from pydantic_ai.workspaces import (
    CommandResult,
    FileEntry,
    WorkspaceOutputLimitError,
    WorkspaceRef,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)

from . import _calls, _files, _native
from ._async import AsyncSandbox, _native_answer
from ._calls import Call
from .errors import ClosedError, FileExistsError, NotADirectoryError, SandliteError

__all__ = ["SandliteWorkspace"]

T = TypeVar("T")

#: The provider name of these backends' environments.
PROVIDER = "sandlite"
#: Processes are numbered per command. This many numbers are used in turn, so that a command that checks whether a process of an earlier
#: one is alive does not find itself.
_PIDS_IN_TURN = 16


class _Environment:
    """One database file, opened once in this program for any number of backends."""

    def __init__(self, path: Path, box: AsyncSandbox) -> None:
        self.path = path
        self.box = box
        self.running: list[Any] = []
        self.is_destroyed = False
        self.turns = itertools.cycle(range(_PIDS_IN_TURN))

    @property
    def is_gone(self) -> bool:
        return self.is_destroyed or not self.path.exists()


_environments: "dict[str, _Environment]" = {}


class SandliteWorkspace:
    """An environment for an agent's runs: one database file, which the holder of the ref keeps or destroys.

    Without ``ref`` the first operation creates a file in ``directory``; otherwise it opens the file of the ref. The other options
    are those of :class:`sandlite.Sandbox`. Files written by a running command can be read at once."""

    def __init__(
        self,
        directory: Union[str, "os.PathLike[str]", None] = None,
        *,
        ref: Optional[WorkspaceRef] = None,
        **options: Any,
    ) -> None:
        if (directory is None) == (ref is None):
            raise ValueError("missing directory for a new database, or ref of an existing one")
        if ref is not None and ref.provider != PROVIDER:
            raise ValueError(f"the ref belongs to {ref.provider!r}, expected {PROVIDER!r}")
        self._directory = None if directory is None else Path(directory)
        self._ref = ref
        # An agent's own shell loops are long, and its commands take minutes.
        self._options = {"preset": "permissive", **options}
        self._lock = asyncio.Lock()
        self._environment: Optional[_Environment] = None

    @property
    def ref(self) -> Optional[WorkspaceRef]:
        """The reference to the environment; ``None`` until the first operation has created it."""
        return self._ref

    async def _attached(self) -> _Environment:
        async with self._lock:
            if self._environment is None:
                self._environment = await self._open()
        if self._environment.is_gone:
            raise _unavailable(self._environment.path)
        return self._environment

    async def _open(self) -> _Environment:
        if self._ref is None:
            assert self._directory is not None
            path = (self._directory / f"{uuid.uuid4().hex}.db").absolute()
            path.parent.mkdir(parents=True, exist_ok=True)
            # Before anything that can fail or be cancelled, so that the holder of the ref finds the existing data.
            self._ref = WorkspaceRef(provider=PROVIDER, id=str(path))
        else:
            path = Path(self._ref.id)
            if not path.is_file():
                raise _unavailable(path)
        key = str(path)
        known = _environments.get(key)
        if known is None or known.is_gone or known.box.closed:
            known = _environments[key] = _Environment(path, await AsyncSandbox(path, **self._options))
        return known

    async def aclose(self) -> None:
        """Releases the database, which is kept."""
        environment, self._environment = self._environment, None
        if environment is not None:
            _environments.pop(str(environment.path), None)
            await environment.box.close()

    async def destroy(self) -> None:
        """Ends all commands and deletes the database. For the owner of the environment: a run never does this."""
        environment = await self._attached()
        environment.is_destroyed = True
        _environments.pop(str(environment.path), None)
        for task in list(environment.running):
            task.kill()
        await environment.box.close()
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{environment.path}{suffix}").unlink(missing_ok=True)

    async def _finish(self, environment: _Environment, call: Call[T]) -> T:
        try:
            return call.read(await _native_answer(call.ask))
        except SandliteError as error:
            if environment.is_gone or isinstance(error, ClosedError):
                raise _unavailable(environment.path) from error
            raise

    async def _look(self, verb: str, path: str) -> Any:
        """Reads the current files: a running command may have changed them, and commits only at its end."""
        environment = await self._attached()
        for task in list(environment.running):
            seen = task.look(verb, path)
            if seen is not None:
                return seen
        ask = Call(lambda done: _native.file_call(environment.box._native, verb, path, None, None, done), lambda answer: answer)
        return await self._finish(environment, ask)

    async def _change(self, verb: str, path: str, content: Optional[bytes] = None) -> None:
        environment = await self._attached()
        box = environment.box._native
        call: Call[None] = Call(lambda done: _native.file_call(box, verb, path, None, content, done), lambda answer: None)
        try:
            await self._finish(environment, call)
        except FileExistsError:
            # A file in place of a parent directory is an error.
            for above in _above(path):
                if await self.exists(above) and not (await self.stat(above)).is_dir:
                    raise NotADirectoryError(errno.ENOTDIR, f"cannot use `{path}`: `{above}` is not a directory") from None
            raise

    async def working_dir(self) -> str:
        """The directory in which commands start."""
        return (await self._attached()).box.cwd

    async def run(
        self,
        command: Union[str, Sequence[str]],
        *,
        shell: bool = False,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
    ) -> CommandResult:
        """Runs a program with its arguments, or a bash command line with ``shell``."""
        if isinstance(command, str) != shell:
            raise TypeError("a string needs shell=True, and a sequence of arguments shell=False")
        if timeout is not None and not 0 < timeout < float("inf"):
            raise ValueError("timeout must be a positive finite number or None")
        environment = await self._attached()
        words = ["bash", "-c", command] if isinstance(command, str) else [str(word) for word in command]
        # As a child process, with a number that the previous command did not have.
        before = "/bin/true; " * next(environment.turns)
        text = f"{before}{' '.join(map(shlex.quote, words))}; exit"
        call = _calls.run(environment.box._native, "bash", text, env=env, stdin=b"", timeout=timeout)
        tasks: list[Any] = []

        def ask(done: Any) -> Any:
            tasks.append(call.ask(done))
            environment.running.extend(tasks)
            return tasks[0]

        try:
            result = await self._finish(environment, Call(ask, call.read))
        finally:
            environment.running = [task for task in environment.running if task not in tasks]
        if environment.is_gone:
            raise _unavailable(environment.path)
        if result.limit is not None and result.limit.name == "wall":
            raise WorkspaceTimeoutError(result.limit.message, stdout=result.stdout, stderr=result.stderr)
        if result.truncated:
            raise WorkspaceOutputLimitError(
                "the output of the command exceeded the limit of the sandbox",
                limit=len(result.stdout_bytes) + len(result.stderr_bytes),
                stdout=result.stdout,
                stderr=result.stderr,
            )
        return CommandResult(exit_code=result.exit_code, stdout=result.stdout, stderr=result.stderr)

    async def read_bytes(self, path: str) -> bytes:
        """The bytes of a file."""
        content: bytes = await self._look("read", path)
        return content

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Writes a whole file, after the running command has ended."""
        await self._change("write", path, data)

    async def stat(self, path: str) -> FileEntry:
        """The metadata of a path."""
        return _entry(_files.decoded_entry(await self._look("stat", path)))

    async def list_dir(self, path: str) -> "list[FileEntry]":
        """Returns the content of a directory."""
        return [_entry(entry) for entry in _files.decoded_entries(await self._look("entries", path))]

    async def make_dir(self, path: str) -> None:
        """Creates a directory and its missing parents."""
        await self._change("make_directory", path)

    async def remove(self, path: str) -> None:
        """Removes a file, a link, or a directory with its content; never the working directory or one of its parents."""
        directory = await self.working_dir()
        # The parent directory without links; the name itself may be a link.
        parent = await self.realpath(posixpath.dirname(path) or "/")
        place = posixpath.normpath(posixpath.join(parent, posixpath.basename(path)))
        if directory == place or directory.startswith(place.rstrip("/") + "/"):
            raise ValueError(f"cannot remove {path!r}: it contains the working directory")
        await self._change("remove_tree", path)

    async def exists(self, path: str) -> bool:
        """Whether a path exists."""
        return bool(await self._look("exists", path))

    async def realpath(self, path: str) -> str:
        """The path without links; missing components are kept as written."""
        return _files.decoded_path(await self._look("real_path", path))


def _above(path: str) -> "list[str]":
    parts = path.strip("/").split("/")[:-1]
    return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]


def _unavailable(path: Path) -> WorkspaceUnavailableError:
    return WorkspaceUnavailableError(f"workspace {str(path)!r} does not exist: its database was deleted")


def _entry(entry: _files.Entry) -> FileEntry:
    size = None if entry.is_directory else entry.size
    return FileEntry(name=posixpath.basename(entry.path), path=entry.path, is_dir=entry.is_directory, size=size)
