"""The sandbox, for ordinary code."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Mapping, Optional, Sequence, TypeVar, Union

from . import _calls, _native, _pip
from ._calls import Call, Content, EditLike, MountLike, Opening
from ._host_tools import Approve, ToolLike
from ._pip import Installation, Package
from ._results import Answer, Edited, FileEntry, FileWindow, HistoryEntry, Match, Result

T = TypeVar("T")


def _finish(call: Call[T]) -> T:
    return call.read(call.ask(None))


class Kv:
    """Small JSON values by name, beside the files."""

    def __init__(self, native: _native.Sandbox) -> None:
        self._native = native

    def get(self, key: str) -> Any:
        """The value of a key, or ``None``."""
        return _finish(_calls.kv_get(self._native, key))

    def set(self, key: str, value: Any) -> int:
        """Keeps a value that JSON can hold; returns the key's version."""
        return _finish(_calls.kv_set(self._native, key, value))

    def delete(self, key: str) -> bool:
        """Removes a key; says whether it was there."""
        return _finish(_calls.kv_delete(self._native, key))

    def keys(self, prefix: str = "") -> list[str]:
        """The keys that begin with a prefix, sorted."""
        return _finish(_calls.kv_keys(self._native, prefix))


class Session:
    """A shell and a Python that go on where their last calls ended: directory, variables, functions; globals and imports.

    The shell's state is in the database, also after it is opened again; the Python lives as long as the sandbox is open."""

    def __init__(self, native: _native.Sandbox, name: str) -> None:
        self._native = native
        #: Its name.
        self.name = name

    def bash(
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
        return _finish(call)

    def python(
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
        return _finish(call)

    def directory(self) -> str:
        """The directory in which the shell's next call begins."""
        return _finish(_calls.session_directory(self._native, self.name))

    def end(self) -> bool:
        """Forgets the shell's state and ends the Python; says whether there was something. The next call begins afresh."""
        return _finish(_calls.end_session(self._native, self.name))


class Sandbox:
    """One database, and what may be done in it. Without ``db`` it lives in memory.

    ``files`` are put into it; ``snapshot`` (bytes or a path) is what it starts from; ``preset`` is ``strict``, ``normal`` or
    ``permissive``; nothing of this machine's environment gets in but what ``env`` says. ``mounts`` shows directories of this
    machine (``"./src:/src"``, or a :class:`Mount`), never written to. ``tools`` are functions that programs in the sandbox may
    call; ``approve`` is asked before each call, with a :class:`ToolCall`. ``python`` is what ``python3`` is: ``core``, or ``sci``
    for NumPy, pandas and more, once ``sandlite guests add python-sci`` has installed it.

    Calls release the interpreter lock, and Ctrl-C ends a running command. Relative paths start in ``cwd``.
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
        opening = Opening(db, files, snapshot, cwd, preset, env, mounts, tools, approve, python=python)
        try:
            self._native: _native.Sandbox = opening.ask(None)
        finally:
            opening.forget()

    @classmethod
    def _of(cls, native: _native.Sandbox) -> "Sandbox":
        made = cls.__new__(cls)
        made._native = native
        return made

    @property
    def kv(self) -> Kv:
        """The key-value store."""
        return Kv(self._native)

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
        """Whether it is closed."""
        return self._native.closed

    def bash(
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
        return _finish(call)

    def python(
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
        return _finish(call)

    def read_file(self, path: str) -> str:
        """The text of a file; what is no UTF-8 is replaced."""
        return _finish(_calls.read_file(self._native, path))

    def read_bytes(self, path: str) -> bytes:
        """The bytes of a file."""
        return _finish(_calls.read_bytes(self._native, path))

    def read_window(self, path: str, offset: Optional[int] = None, limit: Optional[int] = None) -> FileWindow:
        """Some lines of a file (``offset`` counts from 1) and its version, as an agent reads them."""
        return _finish(_calls.read_window(self._native, path, offset, limit))

    def write_file(self, path: str, content: Content, *, expected_version: Optional[str] = None) -> None:
        """Writes a whole file from text, bytes or a file of this machine, creating the directories above it.

        With ``expected_version`` it raises :class:`~sandlite.errors.StaleFileError` if the file is not the one that was read;
        ``"none"``: only if there is no such file."""
        _finish(_calls.write_file(self._native, path, content, expected_version))

    def edit_file(
        self,
        path: str,
        edits: Sequence[EditLike],
        *,
        expected_version: Optional[str] = None,
    ) -> Edited:
        """Replaces exact pieces of text, all or none: ``[(old, new), …]``. Each old text must be there exactly once."""
        return _finish(_calls.edit_file(self._native, path, edits, expected_version))

    def list_files(
        self,
        path: Optional[str] = None,
        *,
        depth: int = 1,
        hidden: bool = False,
    ) -> list[FileEntry]:
        """What is in a directory, down to a depth; at most 1000 entries."""
        return _finish(_calls.list_files(self._native, path, depth, hidden))

    def glob(self, pattern: str, path: Optional[str] = None, *, hidden: bool = False) -> list[str]:
        """Paths of files that fit a pattern such as ``src/**/*.{py,toml}``; at most 1000."""
        return _finish(_calls.glob(self._native, pattern, path, hidden))

    def grep(
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
        return _finish(_calls.grep(self._native, pattern, options))

    def exists(self, path: str) -> bool:
        """Whether a path leads somewhere."""
        return _finish(_calls.exists(self._native, path))

    def delete_file(self, path: str, *, recursive: bool = False) -> None:
        """Deletes a file; a directory with all that is in it if ``recursive``."""
        _finish(_calls.delete_file(self._native, path, recursive))

    def move_file(self, from_path: str, to_path: str, *, overwrite: bool = False) -> None:
        """Moves a file or a directory; replaces a file only if ``overwrite``."""
        _finish(_calls.move_file(self._native, from_path, to_path, overwrite))

    def history(
        self,
        limit: int = 100,
        *,
        since: Optional[float] = None,
        before: Optional[int] = None,
        name: Optional[str] = None,
        grep: Optional[str] = None,
    ) -> list[HistoryEntry]:
        """What was done, newest first."""
        return _finish(_calls.history(self._native, limit, since, before, name, grep))

    def pip_install(
        self,
        *packages: "Union[str, os.PathLike[str]]",
        requirements: "Union[str, os.PathLike[str], Sequence[Union[str, os.PathLike[str]]], None]" = None,
        find_links: "Union[str, os.PathLike[str], Sequence[Union[str, os.PathLike[str]]], None]" = None,
        offline: bool = False,
        no_deps: bool = False,
    ) -> Installation:
        """Installs Python packages by name (``"requests>=2"``) or from wheel files, with what they need.

        >>> box.pip_install("jinja2", "pyyaml")  # doctest: +SKIP
        >>> box.pip_install(requirements="requirements.txt", find_links="wheels/", offline=True)  # doctest: +SKIP

        This interpreter's own pip downloads them, and runs no code of theirs. What has compiled parts is tried without them. Raises
        :class:`~sandlite.PackageError` if some cannot be installed; the others are then."""
        return _finish(_pip.install(self._native, packages, requirements, find_links, offline, no_deps))

    def packages(self) -> "list[Package]":
        """The installed Python packages, sorted by name."""
        return _finish(_pip.installed(self._native))

    def export_snapshot(self, *, compat: Optional[str] = None) -> bytes:
        """Everything (files, values, history) as the bytes of a ``.db`` file.

        ``compat="localsandbox"`` has the layout of LocalSandbox 0.3, which can open it then."""
        return _finish(_calls.export_snapshot(self._native, compat))

    def export_to(self, path: Union[str, "os.PathLike[str]"], *, compat: Optional[str] = None) -> None:
        """The same as a new file of this machine."""
        _finish(_calls.export_to(self._native, path, compat))

    def session(self, name: str = "main") -> "Session":
        """A shell and a Python that remember: what one call leaves, the next one finds."""
        return Session(self._native, name)

    def sessions(self) -> list[str]:
        """The names of the shells that remember something."""
        return _finish(_calls.sessions(self._native))

    def tool_text(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Performs an action and returns the text that a model would read; raises if it fails."""
        return _finish(_calls.tool_text(self._native, name, arguments))

    def call_action(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Performs one of :func:`sandlite.actions` as a model does: whatever goes wrong is an answer too."""
        return _finish(_calls.call_action(self._native, name, arguments))

    def fork(self, path: Optional[Union[str, "os.PathLike[str]"]] = None) -> "Sandbox":
        """A second sandbox that goes on from here, in memory or in a new file."""
        return Sandbox._of(self._native.fork(path))

    def close(self) -> None:
        """Closes it. What was done is in its file; closing twice is fine."""
        self._native.close()

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<sandlite.Sandbox {'closed' if self.closed else 'open'}>"
