"""``skillfs.sandboxes``: a sandbox of Sandlite with the methods of an E2B one."""

from __future__ import annotations

import asyncio
import builtins
import os
import posixpath
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Optional, Union

from .. import _calls
from .._sandbox import Sandbox

__all__ = [
    "E2BSandbox",
    "EditResult",
    "ExecutionResult",
    "GrepMatch",
    "SandboxCommandError",
    "SandboxConfig",
    "SandboxConnection",
    "WriteResult",
]


class SandboxCommandError(RuntimeError):
    """A command of the sandbox's own failed."""

    def __init__(self, message: str, *, cmd: str, cwd: str, exit_code: int, stderr: Optional[str] = None) -> None:
        super().__init__(message)
        self.cmd = cmd
        self.cwd = cwd
        self.exit_code = exit_code
        self.stderr = stderr


@dataclass
class ExecutionResult:
    """How code or a command ended. ``logs`` is what it printed on standard output."""

    logs: str
    #: What it printed on standard error, or why it was stopped; ``None`` if nothing.
    error: Optional[str] = None
    results: "Optional[list[Any]]" = None
    exit_code: Optional[int] = None


@dataclass(frozen=True)
class GrepMatch:
    """A line that matches."""

    path: str
    line: int
    text: str
    #: Where in the line, in bytes from 1, if that is known.
    column: Optional[int] = None


@dataclass(frozen=True)
class WriteResult:
    """What was written."""

    path: str
    bytes_written: int
    created: bool


@dataclass(frozen=True)
class EditResult:
    """What was replaced."""

    path: str
    replacements_made: int
    bytes_before: int
    bytes_after: int


@dataclass
class SandboxConfig:
    """How a sandbox is made. ``timeout`` is that of a command, in seconds; an ``api_key`` is not needed.

    ``metadata`` may have ``db`` (the database file), ``preset`` and ``limits``, as for :class:`sandlite.Sandbox`."""

    timeout: int = 300
    api_key: Optional[str] = None
    envs: "dict[str, str]" = field(default_factory=dict)
    metadata: "dict[str, Any]" = field(default_factory=dict)

    def __post_init__(self) -> None:
        # SkillFS takes ``None`` for both.
        self.envs = dict(self.envs or {})
        self.metadata = dict(self.metadata or {})


class SandboxConnection(ABC):
    """What a workspace and its runners ask of a sandbox. Relative paths start in ``default_repo_root``."""

    DEFAULT_REPO_ROOT: Optional[str] = None

    def __init__(self, config: Optional[SandboxConfig] = None, default_repo_root: Optional[str] = None) -> None:
        root = default_repo_root or self.DEFAULT_REPO_ROOT
        if root is None:
            raise ValueError("default_repo_root must be given")
        self.config = config or SandboxConfig()
        self._root = root
        self._is_alive = False

    @property
    def default_repo_root(self) -> str:
        """The directory of the repository."""
        return self._root

    @property
    def is_alive(self) -> bool:
        """Whether it can be used."""
        return self._is_alive

    @classmethod
    @abstractmethod
    def create(cls, config: Optional[SandboxConfig] = None) -> "SandboxConnection":
        """Makes a sandbox."""

    @abstractmethod
    def run_code(self, code: str, language: str = "python") -> ExecutionResult:
        """Runs code."""

    @abstractmethod
    def upload_file(self, local_path: Path, remote_path: str) -> None:
        """Copies a file of this machine into the sandbox."""

    @abstractmethod
    def download_file(self, remote_path: str, local_path: Path) -> None:
        """Copies a file of the sandbox to this machine."""

    @abstractmethod
    def list_files(self, path: str = "/") -> "list[str]":
        """The names in a directory."""

    @abstractmethod
    def read_file_bytes(self, path: str, max_bytes: Optional[int] = None) -> bytes:
        """The bytes of a file."""

    def read_file_text(
        self, path: str, encoding: str = "utf-8", errors: str = "strict", max_bytes: Optional[int] = None
    ) -> str:
        """The text of a file."""
        return self.read_file_bytes(path, max_bytes).decode(encoding, errors)

    @abstractmethod
    def glob(
        self,
        pattern: str,
        root: str = ".",
        *,
        absolute: bool = True,
        dot: bool = False,
        follow_symlinks: bool = False,
        max_results: Optional[int] = None,
    ) -> "list[str]":
        """The files that match a pattern, sorted."""

    @abstractmethod
    def grep(
        self,
        pattern: str,
        path: str = ".",
        *,
        include: Optional[str] = None,
        ignore_case: bool = False,
        regex: bool = True,
        max_results: Optional[int] = None,
    ) -> "list[GrepMatch]":
        """The lines that match a pattern, sorted."""

    @abstractmethod
    def write_file(
        self,
        path: str,
        content: Union[str, bytes],
        *,
        create_dirs: bool = True,
        overwrite: bool = True,
        encoding: str = "utf-8",
    ) -> WriteResult:
        """Writes a file."""

    @abstractmethod
    def edit_file(
        self,
        path: str,
        old_string: str,
        new_string: str,
        *,
        replace_all: bool = False,
        allow_no_match: bool = False,
        expected_replacements: Optional[int] = None,
        encoding: str = "utf-8",
    ) -> EditResult:
        """Replaces text of a file."""

    @abstractmethod
    def run_command(self, command: str, cwd: Optional[str] = None) -> ExecutionResult:
        """Runs a command line."""

    @abstractmethod
    def close(self) -> None:
        """Ends the sandbox."""

    async def upload_directory(self, local_dir: Path, remote_dir: str, exclude: "Optional[set[str]]" = None) -> None:
        """Copies a directory of this machine into the sandbox, without the names in ``exclude``."""
        for top, directories, names in os.walk(local_dir):
            directories[:] = sorted(name for name in directories if name not in (exclude or ()))
            for name in sorted(names):
                local = Path(top) / name
                if name not in (exclude or ()):
                    remote = posixpath.join(remote_dir, local.relative_to(local_dir).as_posix())
                    await asyncio.get_running_loop().run_in_executor(None, self.upload_file, local, remote)


class E2BSandbox(SandboxConnection):
    """A sandbox of Sandlite in place of a virtual machine of E2B.

    >>> sandbox = E2BSandbox.create(config=SandboxConfig(timeout=30))
    >>> sandbox.write_file("notes.txt", "one\\ntwo\\n")
    WriteResult(path='/home/user/repo/notes.txt', bytes_written=8, created=True)
    >>> sandbox.run_command("wc -l < notes.txt").logs
    '2\\n'
    >>> sandbox.close()

    ``box`` is the :class:`sandlite.Sandbox` itself, with everything that SkillFS has no name for."""

    DEFAULT_REPO_ROOT = "/home/user/repo"

    def __init__(self, config: Optional[SandboxConfig] = None, *, box: Optional[Sandbox] = None) -> None:
        super().__init__(config)
        self._box = box
        self._is_alive = box is not None

    @classmethod
    def create(cls, config: Optional[SandboxConfig] = None) -> "E2BSandbox":
        """Makes a sandbox. ``config.envs`` are the variables of its commands."""
        settings = config or SandboxConfig()
        known = {name: settings.metadata[name] for name in ("db", "preset", "limits") if name in settings.metadata}
        envs = {"PYTHONPATH": cls.DEFAULT_REPO_ROOT, **settings.envs}
        if "limits" not in known:
            known["limits"] = {"wall": f"{max(1, int(settings.timeout))} s"}
        return cls(settings, box=Sandbox(env=envs, **known))

    @property
    def box(self) -> Sandbox:
        """The sandbox. Raises :class:`RuntimeError` once it is closed."""
        if self._box is None:
            raise RuntimeError("the sandbox is not active: call create() first")
        return self._box

    def connect_mcp(self, servers: "Mapping[str, Mapping[str, Any]]") -> "list[tuple[str, str]]":
        """Gives the sandbox MCP servers, and returns the files of their modules in SkillFS's layout, by their paths below ``src/servers``."""
        from .. import _native

        self.box.connect_mcp(servers)
        return _native.mcp_awaited_files(self.box._native)

    def run_code(self, code: str, language: str = "python") -> ExecutionResult:
        """Runs Python code in an interpreter that keeps its variables between calls."""
        if language != "python":
            raise ValueError(f"only python can be run, not {language!r}")
        result = self.box.session("skillfs").python(code)
        shown = [] if result.value is None else [result.value]
        return ExecutionResult(result.stdout, _error(result), shown, result.exit_code)

    def run_command(self, command: str, cwd: Optional[str] = None) -> ExecutionResult:
        """Runs a bash command line, in the repository if ``cwd`` is not given."""
        directory = self._path(cwd) if cwd else self._root
        if directory == self._root and not self.box.exists(directory):
            directory = "/home/user" if cwd is None else directory
        result = self.box.bash(command, cwd=directory)
        return ExecutionResult(result.stdout, _error(result), None, result.exit_code)

    def _path(self, path: str) -> str:
        if path.startswith("/"):
            return path
        if ".." in path.split("/"):
            raise ValueError(f"a relative path must not have '..': {path}")
        return posixpath.normpath(posixpath.join(self._root, path))

    def _kind(self, path: str) -> Optional[str]:
        return self.box.stat(path).kind if self.box.exists(path) else None

    def upload_file(self, local_path: Path, remote_path: str) -> None:
        """Copies a file of this machine into the sandbox."""
        if not Path(local_path).is_file():
            raise builtins.FileNotFoundError(f"there is no file {str(local_path)!r} on this machine")
        self.box.upload(local_path, self._path(remote_path))

    def download_file(self, remote_path: str, local_path: Path) -> None:
        """Copies a file of the sandbox to this machine."""
        Path(local_path).parent.mkdir(parents=True, exist_ok=True)
        self.box.download(self._path(remote_path), local_path, overwrite=True)

    def list_files(self, path: str = "/") -> "list[str]":
        """The names in a directory."""
        return [entry.name for entry in self.box.list_files(self._path(path), hidden=True)]

    def read_file_bytes(self, path: str, max_bytes: Optional[int] = None) -> bytes:
        """The bytes of a file, whose path is absolute."""
        if not path.startswith("/"):
            raise ValueError(f"the path must be absolute, got: {path}")
        if max_bytes is not None and max_bytes < 0:
            raise ValueError(f"max_bytes must not be negative, got: {max_bytes}")
        return self.box.read_bytes(path)[:max_bytes]

    def glob(
        self,
        pattern: str,
        root: str = ".",
        *,
        absolute: bool = True,
        dot: bool = False,
        follow_symlinks: bool = False,
        max_results: Optional[int] = None,
    ) -> "list[str]":
        """The files that match a pattern such as ``**/*.py``, sorted. Links are never followed."""
        if not pattern or pattern == "!":
            raise ValueError("pattern must not be empty")
        top = self._path(root)
        if self._kind(top) != "directory":
            raise builtins.FileNotFoundError(f"there is no directory {top!r}")
        found = sorted(self.box.glob(pattern, top, hidden=dot))[:max_results]
        return found if absolute else [posixpath.relpath(path, top) for path in found]

    def grep(
        self,
        pattern: str,
        path: str = ".",
        *,
        include: Optional[str] = None,
        ignore_case: bool = False,
        regex: bool = True,
        max_results: Optional[int] = None,
    ) -> "list[GrepMatch]":
        """The lines that match a regular expression, or a text with ``regex=False``; sorted, at most 200 unless ``max_results``."""
        if not pattern:
            raise ValueError("pattern must not be empty")
        if include is not None and include in ("", "!"):
            raise ValueError("include must not be empty")
        target = self._path(path)
        kind = self._kind(target)
        if kind is None:
            raise builtins.FileNotFoundError(f"there is no {target!r}")
        found = self.box.grep(
            pattern,
            target,
            glob=include if kind == "directory" else None,
            ignore_case=ignore_case,
            literal=not regex,
            max_matches=max_results,
        )
        column = _column(pattern, ignore_case, regex)
        made = [GrepMatch(match.path, match.line, match.text, column(match.text)) for match in found]
        return sorted(made, key=lambda match: (match.path, match.line, match.column or 0))[:max_results]

    def write_file(
        self,
        path: str,
        content: Union[str, bytes],
        *,
        create_dirs: bool = True,
        overwrite: bool = True,
        encoding: str = "utf-8",
    ) -> WriteResult:
        """Writes a file, and the directories above it."""
        if not path:
            raise ValueError("path must not be empty")
        target = self._path(path)
        kind = self._kind(target)
        if kind == "directory":
            raise builtins.IsADirectoryError(f"{target!r} is a directory")
        if kind is not None and not overwrite:
            raise builtins.FileExistsError(f"{target!r} exists")
        if not create_dirs and self._kind(posixpath.dirname(target)) != "directory":
            raise builtins.FileNotFoundError(f"there is no directory {posixpath.dirname(target)!r}")
        data = content.encode(encoding) if isinstance(content, str) else _calls.encoded(content)
        self.box.write_file(target, data)
        return WriteResult(target, len(data), kind is None)

    def edit_file(
        self,
        path: str,
        old_string: str,
        new_string: str,
        *,
        replace_all: bool = False,
        allow_no_match: bool = False,
        expected_replacements: Optional[int] = None,
        encoding: str = "utf-8",
    ) -> EditResult:
        """Replaces text of a file: the one place where it is, or all of them with ``replace_all``."""
        if not path or not old_string:
            raise ValueError("path and old_string must not be empty")
        if old_string == new_string:
            raise ValueError("old_string and new_string must be different")
        if allow_no_match and expected_replacements is not None:
            raise ValueError("allow_no_match cannot be combined with expected_replacements")
        target = self._path(path)
        kind = self._kind(target)
        if kind is None:
            raise builtins.FileNotFoundError(f"there is no file {target!r}")
        if kind == "directory":
            raise builtins.IsADirectoryError(f"{target!r} is a directory")
        before = self.box.read_bytes(target)
        old, new = old_string.encode(encoding), new_string.encode(encoding)
        count = before.count(old)
        if expected_replacements is not None and count != expected_replacements:
            raise ValueError(f"expected {expected_replacements} matches of old_string, found {count}")
        if count == 0:
            if allow_no_match or expected_replacements == 0:
                return EditResult(target, 0, len(before), len(before))
            raise ValueError(f"old_string was not found in {target!r}")
        if count > 1 and not replace_all:
            raise ValueError(f"old_string was found {count} times in {target!r}: make it unique, or set replace_all")
        after = before.replace(old, new)
        self.box.write_file(target, after)
        return EditResult(target, count, len(before), len(after))

    def close(self) -> None:
        """Ends the sandbox and discards unsaved files."""
        box, self._box, self._is_alive = self._box, None, False
        if box is not None:
            box.close()


def _error(result: Any) -> Optional[str]:
    if result.stderr:
        return str(result.stderr)
    return None if result.limit is None else f"stopped by the limit {result.limit.name}"


def _column(pattern: str, ignore_case: bool, regex: bool) -> Any:
    try:
        compiled = re.compile(pattern if regex else re.escape(pattern), re.IGNORECASE if ignore_case else 0)
    except re.error:
        return lambda _: None

    def column(text: str) -> Optional[int]:
        found = compiled.search(text)
        return None if found is None else len(text[: found.start()].encode()) + 1

    return column
