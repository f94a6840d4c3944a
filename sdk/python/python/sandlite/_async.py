"""The sandbox, for ``asyncio``: a cancelled call kills its command."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generator, Mapping, Optional, Sequence, TypeVar, Union

from . import _calls, _pip
from . import _native as native_half
from ._calls import Call, Content, EditLike, MountLike, Opening
from ._host_tools import Approve, ToolLike
from ._pip import Installation, Package
from ._results import Answer, Edited, FileEntry, FileWindow, HistoryEntry, Match, Result

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


async def _native_answer(ask: Any) -> Any:
    # Those who do not use it need not wait for its import.
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: Optional[BaseException]) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)

    def done(value: Any, error: Optional[BaseException]) -> None:
        # Called on a thread of the native half.
        loop.call_soon_threadsafe(settle, value, error)

    task = ask(done)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        # Whoever cancelled may rely on it: the command is over when the cancellation is.
        task.kill()
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                continue
        future.exception()
        raise


async def _finish(call: Call[T]) -> T:
    return call.read(await _native_answer(call.ask))


class AsyncKv:
    """Small JSON values by name, beside the files."""

    def __init__(self, native: native_half.Sandbox) -> None:
        self._native = native

    async def get(self, key: str) -> Any:
        """The value of a key, or ``None``."""
        return await _finish(_calls.kv_get(self._native, key))

    async def set(self, key: str, value: Any) -> int:
        """Keeps a value that JSON can hold; returns the key's version."""
        return await _finish(_calls.kv_set(self._native, key, value))

    async def delete(self, key: str) -> bool:
        """Removes a key; says whether it was there."""
        return await _finish(_calls.kv_delete(self._native, key))

    async def keys(self, prefix: str = "") -> list[str]:
        """The keys that begin with a prefix, sorted."""
        return await _finish(_calls.kv_keys(self._native, prefix))


class AsyncSession:
    """A shell and a Python that go on where their last calls ended: directory, variables, functions; globals and imports.

    The shell's state is in the database, also after it is opened again; the Python lives as long as the sandbox is open."""

    def __init__(self, native: native_half.Sandbox, name: str) -> None:
        self._native = native
        #: Its name.
        self.name = name

    async def bash(
        self,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Union[str, bytes]] = None,
        timeout: Optional[float] = None,
        rollback_on_failure: bool = False,
        check: bool = False,
    ) -> Result:
        """Runs a bash command line where the last one ended."""
        call = _calls.run(
            self._native,
            "bash",
            command,
            session=self.name,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout=timeout,
            rollback_on_failure=rollback_on_failure,
            check=check,
        )
        return await _finish(call)

    async def python(
        self,
        code: str,
        *,
        stdin: Optional[Union[str, bytes]] = None,
        timeout: Optional[float] = None,
        check: bool = False,
    ) -> Result:
        """Runs Python code in the session's live interpreter."""
        call = _calls.run(
            self._native,
            "python",
            code,
            session=self.name,
            stdin=stdin,
            timeout=timeout,
            check=check,
        )
        return await _finish(call)

    async def directory(self) -> str:
        """The directory in which the shell's next call begins."""
        return await _finish(_calls.session_directory(self._native, self.name))

    async def end(self) -> bool:
        """Forgets the shell's state and ends the Python; says whether there was something. The next call begins afresh."""
        return await _finish(_calls.end_session(self._native, self.name))


class AsyncSandbox:
    """:class:`Sandbox` for ``asyncio``. ``async with AsyncSandbox() as box: …``, or ``box = await AsyncSandbox()``.

    Each call runs on a thread of the native half; cancelling it kills its command and waits for its end.
    """

    def __init__(
        self,
        db: Optional[Union[str, "os.PathLike[str]"]] = None,
        *,
        files: Optional[Mapping[str, Content]] = None,
        snapshot: Optional[Union[bytes, str, "os.PathLike[str]"]] = None,
        cwd: str = "/home/user",
        preset: str = "normal",
        env: Optional[Mapping[str, str]] = None,
        mounts: Optional[Sequence[MountLike]] = None,
        tools: Optional[Sequence[ToolLike]] = None,
        approve: Optional[Approve] = None,
        python: str = "core",
    ) -> None:
        self._opening = (db, files, snapshot, cwd, preset, env, mounts, tools, approve)
        self._python = python
        self._opened: Optional[native_half.Sandbox] = None

    @property
    def _native(self) -> native_half.Sandbox:
        if self._opened is None:
            raise RuntimeError("the sandbox is not open: use `async with`, or await it")
        return self._opened

    async def open(self) -> "AsyncSandbox":
        """Opens it; ``async with`` does that too."""
        if self._opened is None:
            import asyncio

            opening = Opening(*self._opening, loop=asyncio.get_running_loop(), python=self._python)
            try:
                self._opened = await _native_answer(opening.ask)
            finally:
                opening.forget()
        return self

    def __await__(self) -> Generator[Any, None, "AsyncSandbox"]:
        return self.open().__await__()

    @property
    def kv(self) -> AsyncKv:
        """The key-value store."""
        return AsyncKv(self._native)

    @property
    def cwd(self) -> str:
        """The directory commands start in."""
        return self._native.cwd

    @property
    def import_notes(self) -> list[str]:
        """What of the snapshot was left out or changed."""
        return self._native.import_notes

    @property
    def closed(self) -> bool:
        """Whether it is closed, or was never opened."""
        return self._opened is None or self._opened.closed

    async def bash(
        self,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Union[str, bytes]] = None,
        timeout: Optional[float] = None,
        rollback_on_failure: bool = False,
        seed: Optional[int] = None,
        check: bool = False,
    ) -> Result:
        """Runs a bash command line. A non-zero exit code is a result; ``check=True`` makes it an exception.

        ``timeout`` (seconds) tightens the preset's time; ``rollback_on_failure`` undoes the files of a command that fails;
        ``seed`` makes the run repeatable."""
        call = _calls.run(
            self._native,
            "bash",
            command,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout=timeout,
            rollback_on_failure=rollback_on_failure,
            seed=seed,
            check=check,
        )
        return await _finish(call)

    async def python(
        self,
        code: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Union[str, bytes]] = None,
        timeout: Optional[float] = None,
        rollback_on_failure: bool = False,
        seed: Optional[int] = None,
        check: bool = False,
    ) -> Result:
        """Runs Python code, with the options of :meth:`bash`. Code that raises is a result."""
        call = _calls.run(
            self._native,
            "python",
            code,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout=timeout,
            rollback_on_failure=rollback_on_failure,
            seed=seed,
            check=check,
        )
        return await _finish(call)

    async def read_file(self, path: str) -> str:
        """The text of a file; what is no UTF-8 is replaced."""
        return await _finish(_calls.read_file(self._native, path))

    async def read_bytes(self, path: str) -> bytes:
        """The bytes of a file."""
        return await _finish(_calls.read_bytes(self._native, path))

    async def read_window(
        self,
        path: str,
        offset: Optional[int] = None,
        limit: Optional[int] = None,
    ) -> FileWindow:
        """Some lines of a file (``offset`` counts from 1) and its version, as an agent reads them."""
        return await _finish(_calls.read_window(self._native, path, offset, limit))

    async def write_file(
        self,
        path: str,
        content: Content,
        *,
        expected_version: Optional[str] = None,
    ) -> None:
        """Writes a whole file from text, bytes or a file of this machine, creating the directories above it.

        With ``expected_version`` it raises :class:`~sandlite.errors.StaleFileError` if the file is not the one that was read;
        ``"none"``: only if there is no such file."""
        await _finish(_calls.write_file(self._native, path, content, expected_version))

    async def edit_file(
        self,
        path: str,
        edits: Sequence[EditLike],
        *,
        expected_version: Optional[str] = None,
    ) -> Edited:
        """Replaces exact pieces of text, all or none: ``[(old, new), …]``. Each old text must be there exactly once."""
        return await _finish(_calls.edit_file(self._native, path, edits, expected_version))

    async def list_files(
        self,
        path: Optional[str] = None,
        *,
        depth: int = 1,
        hidden: bool = False,
    ) -> list[FileEntry]:
        """What is in a directory, down to a depth; at most 1000 entries."""
        return await _finish(_calls.list_files(self._native, path, depth, hidden))

    async def glob(self, pattern: str, path: Optional[str] = None, *, hidden: bool = False) -> list[str]:
        """Paths of files that fit a pattern such as ``src/**/*.{py,toml}``; at most 1000."""
        return await _finish(_calls.glob(self._native, pattern, path, hidden))

    async def grep(
        self,
        pattern: str,
        path: Optional[str] = None,
        *,
        glob: Optional[str] = None,
        ignore_case: bool = False,
        literal: bool = False,
        context: int = 0,
        max_matches: Optional[int] = None,
        hidden: bool = False,
    ) -> list[Match]:
        """Lines that fit a regular expression (Rust's syntax); at most 200."""
        options = {
            "path": path,
            "glob": glob,
            "ignore_case": ignore_case,
            "literal": literal,
            "context": context,
            "max_matches": max_matches,
            "hidden": hidden,
        }
        return await _finish(_calls.grep(self._native, pattern, options))

    async def exists(self, path: str) -> bool:
        """Whether a path leads somewhere."""
        return await _finish(_calls.exists(self._native, path))

    async def delete_file(self, path: str, *, recursive: bool = False) -> None:
        """Deletes a file; a directory with all that is in it if ``recursive``."""
        await _finish(_calls.delete_file(self._native, path, recursive))

    async def move_file(self, from_path: str, to_path: str, *, overwrite: bool = False) -> None:
        """Moves a file or a directory; replaces a file only if ``overwrite``."""
        await _finish(_calls.move_file(self._native, from_path, to_path, overwrite))

    async def history(
        self,
        limit: int = 100,
        *,
        since: Optional[float] = None,
        before: Optional[int] = None,
        name: Optional[str] = None,
        grep: Optional[str] = None,
    ) -> list[HistoryEntry]:
        """What was done, newest first."""
        return await _finish(_calls.history(self._native, limit, since, before, name, grep))

    async def pip_install(
        self,
        *packages: "Union[str, os.PathLike[str]]",
        requirements: "Union[str, os.PathLike[str], Sequence[Union[str, os.PathLike[str]]], None]" = None,
        find_links: "Union[str, os.PathLike[str], Sequence[Union[str, os.PathLike[str]]], None]" = None,
        offline: bool = False,
        no_deps: bool = False,
    ) -> Installation:
        """Installs Python packages by name or from wheel files, as :meth:`Sandbox.pip_install` does."""
        return await _finish(_pip.install(self._native, packages, requirements, find_links, offline, no_deps))

    async def packages(self) -> "list[Package]":
        """The installed Python packages, sorted by name."""
        return await _finish(_pip.installed(self._native))

    async def export_snapshot(self, *, compat: Optional[str] = None) -> bytes:
        """Everything (files, values, history) as the bytes of a ``.db`` file.

        ``compat="localsandbox"`` has the layout of LocalSandbox 0.3, which can open it then."""
        return await _finish(_calls.export_snapshot(self._native, compat))

    async def export_to(self, path: Union[str, "os.PathLike[str]"], *, compat: Optional[str] = None) -> None:
        """The same as a new file of this machine."""
        await _finish(_calls.export_to(self._native, path, compat))

    def session(self, name: str = "main") -> "AsyncSession":
        """A shell and a Python that remember: what one call leaves, the next one finds."""
        return AsyncSession(self._native, name)

    async def sessions(self) -> list[str]:
        """The names of the shells that remember something."""
        return await _finish(_calls.sessions(self._native))

    async def tool_text(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Performs an action and returns the text that a model would read; raises if it fails."""
        return await _finish(_calls.tool_text(self._native, name, arguments))

    async def call_action(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Performs one of :func:`sandlite.actions` as a model does: whatever goes wrong is an answer too."""
        return await _finish(_calls.call_action(self._native, name, arguments))

    async def fork(self, path: Optional[Union[str, "os.PathLike[str]"]] = None) -> "AsyncSandbox":
        """A second sandbox that goes on from here, in memory or in a new file."""
        native = self._native
        made = AsyncSandbox()
        made._opened = await _native_answer(lambda done: native.fork(path, done))
        return made

    async def close(self) -> None:
        """Closes it. What was done is in its file; closing twice is fine."""
        if self._opened is not None:
            self._opened.close()

    async def __aenter__(self) -> "AsyncSandbox":
        return await self.open()

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<sandlite.AsyncSandbox {'closed' if self.closed else 'open'}>"
