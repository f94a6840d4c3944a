"""LocalSandbox's API on top of Sandlite: change the import and keep the program.

>>> from sandlite.localsandbox import LocalSandbox
>>> with LocalSandbox(files={"/data/name": "world"}) as sandbox:
...     print(sandbox.bash('echo "Hello, $(cat /data/name)!"').stdout, end="")
Hello, world!

Snapshots of LocalSandbox 0.3 can be read, and it can read those created here. Improvements: no Deno, no npm, no network; async
methods are cancelable; exceptions are also Python's own (``FileNotFoundError``, ``PermissionError``, ``TimeoutError``); Python
code has limits too.
"""

from __future__ import annotations

import builtins
import enum
import json
import re
import threading
import uuid
import warnings
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional, TypeVar, Union

from . import _calls, _files, _localsandbox_tools, _native, _steps, errors
from ._async import _native_answer
from ._calls import Call, Opening
from ._localsandbox_tools import (
    PythonToolset,
    ToolDefinition,
    ToolsetInput,
    function_to_tool_definition,
    functions_to_toolset,
)
from ._results import Result
from ._steps import Steps

if TYPE_CHECKING:
    from pathlib import Path

    from ._turns import Turns

__all__ = [
    "BashResult",
    "CommandError",
    "ExecutionLimitError",
    "ExecutionPreset",
    "FileNotFoundError",
    "HistoryEntry",
    "KVStore",
    "LocalSandbox",
    "LocalSandboxError",
    "PermissionError",
    "PythonResult",
    "PythonToolset",
    "SubprocessCrashed",
    "TimeoutError",
    "ToolDefinition",
    "function_to_tool_definition",
    "functions_to_toolset",
]

T = TypeVar("T")


class LocalSandboxError(Exception):
    """Base class of this module's exceptions."""


class CommandError(LocalSandboxError):
    """A command exited with a non-zero code."""

    def __init__(self, message: str, exit_code: int, stdout: str, stderr: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr


class FileNotFoundError(CommandError, builtins.FileNotFoundError):
    """The file or directory ``path`` does not exist."""

    def __init__(self, message: str, exit_code: int, stdout: str, stderr: str, path: str) -> None:
        super().__init__(message, exit_code, stdout, stderr)
        self.path = path


class PermissionError(CommandError, builtins.PermissionError):
    """Access to ``path`` is not permitted."""

    def __init__(self, message: str, exit_code: int, stdout: str, stderr: str, path: str) -> None:
        super().__init__(message, exit_code, stdout, stderr)
        self.path = path


class TimeoutError(LocalSandboxError, builtins.TimeoutError):
    """A timeout."""

    def __init__(self, message: str, timeout_ms: int) -> None:
        super().__init__(message)
        self.timeout_ms = timeout_ms


class SubprocessCrashed(LocalSandboxError):
    """The sandbox itself failed. (There is no subprocess here; the name is LocalSandbox's.)"""

    def __init__(self, message: str, signal: Optional[int] = None) -> None:
        super().__init__(message)
        self.signal = signal


class ExecutionLimitError(LocalSandboxError):
    """A command reached a limit: ``loop_iterations``, ``command_count``, or another of Sandlite's own names."""

    def __init__(self, message: str, limit_type: str, limit_value: int) -> None:
        super().__init__(message)
        self.limit_type = limit_type
        self.limit_value = limit_value


class ExecutionPreset(enum.Enum):
    """The limits of commands."""

    STRICT = "strict"
    NORMAL = "normal"
    PERMISSIVE = "permissive"


@dataclass
class BashResult:
    """The result of a command."""

    stdout: str
    stderr: str
    exit_code: int
    duration_ms: float


@dataclass
class PythonResult:
    """The result of Python code; ``error`` is the traceback of code that raised."""

    stdout: str
    stderr: str
    exit_code: int
    error: Optional[str] = None


@dataclass
class HistoryEntry:
    """A recorded operation; times are in milliseconds since 1970."""

    id: int
    name: str
    started_at: int
    completed_at: int
    parameters: Optional[dict[str, Any]]
    result: Optional[dict[str, Any]]


_INTERPRETER = "localsandbox"
# Times that LocalSandbox allows, whatever the preset.
_BASH_TIMEOUT_MS = 30_000
_PYTHON_TIMEOUT_MS = 60_000
_DESTROYED = "LocalSandbox instance has been destroyed"

# The forms in which messages of programs contain a file name. The text is hostile: every repetition is bounded, or ends where the next
# attempt begins.
_NOT_FOUND = (
    re.compile(r":\s*['\u2018]?([^\s:]+?)['\u2019]?:\s*No such file", re.IGNORECASE),
    re.compile(
        r"(?:cannot|can't|could not|failed to) (?:access|read|statx?|create regular file|move '[^']{0,1000}' to|open(?: file)?):? "
        r"['\u2018`]?([^'\u2019`:]{1,1000}?)['\u2019]?(?: for reading)?:\s*No such file or directory",
        re.IGNORECASE,
    ),
    re.compile(r"(?<![^\s:])([^\s:]+):\s*not found", re.IGNORECASE),
)
# Exit code 127: LocalSandbox's shell says only `command not found` of programs, whatever their name.
_NO_PROGRAM_CODE = 127
_NO_PROGRAM = re.compile(r"^(?:bash: line \d+(?:: exec)?|env|xargs): .*(?:No such file or directory|not found)$", re.MULTILINE)
_DENIED = (
    re.compile(r":\s*([^\s:]+):\s*Permission denied", re.IGNORECASE),
    re.compile(r"cannot [\w ]{1,50} ['\u2018]([^'\u2019]{1,1000})['\u2019].{0,50}Permission denied", re.IGNORECASE),
)
# Characters of standard error that are searched.
_SEARCHED = 64 << 10
# The texts of its shell's limits, which programs may print too.
_LIMIT_TEXTS = (
    (re.compile(r"too many iterations\s*\((\d{1,18})\).{0,50}executionLimits\.maxLoopIterations", re.IGNORECASE), "loop_iterations"),
    (re.compile(r"too many commands executed\s*\(>?(\d{1,18})\).{0,50}executionLimits\.maxCommandCount", re.IGNORECASE), "command_count"),
    (re.compile(r"maximum command count\s*\((\d{1,18})\).{0,50}executionLimits\.maxCommandCount", re.IGNORECASE), "command_count"),
)
_LIMITS = {"loop_iterations": "loop_iterations", "commands": "command_count"}

# The exit code of LocalSandbox's shell for a command that reached one of its limits, whatever it prints.
_LIMIT_CODE = 126

# The operations for which LocalSandbox has rows; `tool` is our name of its `python_tool_call`.
_RECORDED = frozenset(
    ("bash", "python", "python_tool_call", "tool", "seed", "read_file", "write_file", "list_files", "exists", "delete_file")
)
_UNKNOWN_LIMITS = ("executionlimits.", "maximum function nesting level exceeded")
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):$", re.MULTILINE)
# Number of rows requested at once.
_PAGE = 256


def _below_data(path: str) -> str:
    """Maps ``/x`` to ``/data/x``; a path without a slash starts at the root."""
    path = "/" + path.lstrip("/")
    return path if path == "/data" or path.startswith("/data/") else ("/data" + path).rstrip("/")


def _number(text: str) -> int:
    digits = re.sub(r"[^0-9]", "", text.split(".")[0])
    return int(digits) if digits else 0


def _limit_error(result: Result, timeout_ms: int) -> Optional[LocalSandboxError]:
    limit = result.limit
    if limit is None:
        return None
    if limit.name == "wall":
        return TimeoutError(f"Command timed out after {limit.value}", timeout_ms)
    return ExecutionLimitError(limit.message, _LIMITS.get(limit.name, limit.name), _number(limit.value))


def _bash_result(result: Result) -> BashResult:
    limit = _limit_error(result, _BASH_TIMEOUT_MS)
    if limit is not None:
        raise limit
    if result.exit_code == 0:
        return BashResult(result.stdout, result.stderr, 0, result.duration * 1000)
    code, out, err = result.exit_code, result.stdout, result.stderr
    said = err[:_SEARCHED]
    about_files = _NO_PROGRAM.sub("", said) if code == _NO_PROGRAM_CODE else said
    for pattern in _NOT_FOUND:
        found = pattern.search(about_files)
        if found:
            raise FileNotFoundError(f"File not found: {found[1]}", code, out, err, found[1])
    for pattern in _DENIED:
        found = pattern.search(said)
        if found:
            raise PermissionError(f"Permission denied: {found[1]}", code, out, err, found[1])
    for pattern, kind in _LIMIT_TEXTS:
        found = pattern.search(said)
        if found:
            raise ExecutionLimitError(err, kind, int(found[1]))
    if code == _LIMIT_CODE or any(text in err.lower() for text in _UNKNOWN_LIMITS):
        raise ExecutionLimitError(err, "unknown", 0)
    message = f": {err.strip()}" if err.strip() else ""
    raise CommandError(f"Command failed with exit code {code}{message}", code, out, err)


def _python_result(result: Result) -> PythonResult:
    if result.limit is not None:
        if result.limit.name == "wall":
            raise TimeoutError(f"Python execution timed out after {result.limit.value}", _PYTHON_TIMEOUT_MS)
        said = f"{result.stderr}{result.limit.message}\n"
        return PythonResult(result.stdout, said, 1, result.limit.message)
    if result.exit_code == 0:
        return PythonResult(result.stdout, result.stderr, 0)
    # The traceback, without the output before it.
    begin = _TRACEBACK.search(result.stderr)
    error = result.stderr if begin is None else result.stderr[begin.start() :]
    return PythonResult(result.stdout, result.stderr, 1, error or f"exit code {result.exit_code}")


def _entries(rows: "list[dict[str, Any]]") -> "Iterator[HistoryEntry]":
    """Selects LocalSandbox's rows among ours, which are newest first: the calls of a run come before it."""
    runs = {row["id"]: row for row in rows if row["name"] == "python"}
    calls: dict[int, int] = {}
    for row in rows:
        if row["name"] == "tool":
            parent = row["parameters"]["parent"]
            calls[parent] = calls.get(parent, 0) + 1
        # A failed `write_file` has no row in LocalSandbox.
        is_shown = row["name"] in _RECORDED and not (row["name"] == "write_file" and row.get("error"))
        if is_shown and not str(row["command"]).startswith(_localsandbox_tools.OWN):
            yield _entry(row, calls, runs)


def _are_whole(entries: "list[HistoryEntry]", limit: int) -> bool:
    """Whether there are enough, and the runs of their calls were fetched."""
    calls = (entry for entry in entries[:limit] if entry.name == "python_tool_call")
    return len(entries) >= limit and all((entry.parameters or {}).get("sessionId") is not None for entry in calls)


def _entry(row: Mapping[str, Any], calls: Mapping[int, int], runs: "Mapping[int, Mapping[str, Any]]") -> HistoryEntry:
    name = row["name"]
    parameters = dict(row.get("parameters") or {})
    result = dict(row["result"]) if isinstance(row.get("result"), dict) else {}
    if name == "python":
        parameters = {**_of_python(parameters), "toolCallCount": calls.get(row["id"], 0)}
    elif name == "tool":
        run = runs.get(parameters["parent"], {})
        session = _of_python(run.get("parameters") or {}).get("sessionId")
        name, parameters, result = "python_tool_call", *_of_tool(parameters, row)
        parameters = {"sessionId": session, **parameters}
    elif name not in ("bash", "exists"):
        result = {"success": not row.get("error"), **result}
        if row.get("error"):
            parameters.pop("binary", None)
    started = row["started"] // 1_000_000
    completed = started if row["completed"] is None else row["completed"] // 1_000_000
    return HistoryEntry(row["id"], name, started, completed, parameters, result)


def _of_python(parameters: Mapping[str, Any]) -> "dict[str, Any]":
    command = parameters.get("command") or ""
    if "codeLength" in parameters:  # a row of LocalSandbox itself
        return dict(parameters)
    ran = _RAN.match(command)
    if ran is None:
        return {"codeLength": len(command), "cwd": parameters.get("cwd"), "preloadPackages": ""}
    return {"codeLength": _length(json.loads(ran[2])), "cwd": json.loads(ran[1]), **json.loads(json.loads(ran[3]))}


def _of_tool(parameters: Mapping[str, Any], row: Mapping[str, Any]) -> "tuple[dict[str, Any], dict[str, Any]]":
    shown = {"toolName": parameters.get("tool"), "requestPreview": _preview(parameters.get("arguments"))}
    failed = row.get("error")
    if not failed:
        return shown, {"success": True, "responsePreview": _preview(row.get("result"))}
    kind, _, text = str(failed).partition(": ")
    said = _KIND.match(text)
    kinds = {"unknown": "permission_error", "invalid": "validation_error"}
    return shown, {"success": False, "errorType": said[1] if said else kinds.get(kind, "internal_error")}


def _preview(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    units = text.encode("utf-16-le", "surrogatepass")
    cut = units[: 2 * _PREVIEW].decode("utf-16-le", "replace")
    return text if len(units) <= 2 * _PREVIEW else f"{cut}..."


# Length of a preview, as JavaScript counts it.
_PREVIEW = 200
_KIND = re.compile(r"\[(\w+)\] ")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TEXT = r'("(?:[^"\\]|\\.)*")'
_RAN = re.compile(rf'__import__\("_localsandbox"\)\.run\({_TEXT}, {_TEXT}, {_TEXT}\)\Z', re.DOTALL)


def _run_text(cwd: str, code: str, about: Mapping[str, Any]) -> str:
    # Python has no surrogate pairs in its literals, which JSON would use for characters beyond 16 bits.
    words = ", ".join(json.dumps(text, ensure_ascii=False) for text in (cwd, code, json.dumps(about)))
    # A lone surrogate is an error of the code that is run, not of this call.
    words = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", words)
    return f'__import__("_localsandbox").run({words})'


def _bytes(data: bytes) -> bytes:
    # Neither text nor a number, of which ``bytes`` would make zeros.
    return bytes(memoryview(data))


def _length(text: str) -> int:
    """The length as JavaScript counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _node_text(error: errors.FileError, path: str, call: str) -> str:
    """The message of Node.js for a failed call."""
    code, text = "ENOENT", "no such file or directory"
    if isinstance(error, errors.IsADirectoryError):
        code, text = "EISDIR", "illegal operation on a directory"
    elif isinstance(error, errors.NotADirectoryError):
        code, text = "ENOTDIR", "not a directory"
    return f"{code}: {text}, {call} '{_below_data(path)[len('/data'):] or '/'}'"


class KVStore:
    """Values by name, stored separately from files."""

    def __init__(self, sandbox: "LocalSandbox") -> None:
        self._sandbox = sandbox

    def _ask(self, make: Callable[[_native.Sandbox], Call[T]]) -> T:
        return self._sandbox._finish(make)

    def get(self, key: str) -> Any:
        """Returns the value of a key, or ``None``."""
        return self._ask(lambda box: _calls.kv_get(box, key))

    def set(self, key: str, value: Any) -> None:
        """Stores a value."""
        self._ask(lambda box: _calls.kv_set(box, key, value))

    def delete(self, key: str) -> None:
        """Removes a key, if it exists."""
        self._ask(lambda box: _calls.kv_delete(box, key))

    def keys(self, prefix: str = "") -> list[str]:
        """Returns the keys with a prefix."""
        return self._ask(lambda box: _calls.kv_keys(box, prefix))

    async def aget(self, key: str) -> Any:
        """:meth:`get`, for ``asyncio``."""
        return await self._sandbox._afinish(lambda box: _calls.kv_get(box, key))

    async def aset(self, key: str, value: Any) -> None:
        """:meth:`set`, for ``asyncio``."""
        await self._sandbox._afinish(lambda box: _calls.kv_set(box, key, value))

    async def adelete(self, key: str) -> None:
        """:meth:`delete`, for ``asyncio``."""
        await self._sandbox._afinish(lambda box: _calls.kv_delete(box, key))

    async def akeys(self, prefix: str = "") -> list[str]:
        """:meth:`keys`, for ``asyncio``."""
        return await self._sandbox._afinish(lambda box: _calls.kv_keys(box, prefix))


class LocalSandbox:
    """A sandbox with LocalSandbox's API. All files are below ``/data``, which is another name of the root directory.

    ``bash`` raises when a command fails; :class:`sandlite.Sandbox` returns it as a result."""

    def __init__(
        self,
        files: Optional[Mapping[str, Union[str, bytes, "Path"]]] = None,
        snapshot: Optional[bytes] = None,
        cwd: str = "/data",
        preset: ExecutionPreset = ExecutionPreset.NORMAL,
    ) -> None:
        if files is not None and snapshot is not None:
            raise ValueError("Cannot provide both 'files' and 'snapshot'")
        self._seed = {path: _calls.content(content) for path, content in (files or {}).items()}
        self._snapshot = snapshot
        self._cwd = cwd
        self._preset = preset
        self._opened: Optional[_native.Sandbox] = None
        self._destroyed = False
        self._kv = KVStore(self)
        # The configuration of the live interpreter, and its name in the history.
        self._started: Optional[tuple[str, str]] = None
        self._session = ""
        self._opening_turn = threading.Lock()
        # One run of Python at a time, of threads and of tasks: the next one may need another interpreter.
        self._python_turns: "Optional[Turns]" = None

    # As in LocalSandbox, nothing is started before it is needed.
    def _opening(self) -> Opening:
        env = {"HOME": "/", "TMPDIR": "/tmp"}
        cwd = self._cwd if self._cwd.startswith("/") else _below_data(self._cwd)
        # The snapshot of an unused sandbox is empty.
        arguments = (None, None, self._snapshot or None, cwd, self._preset.value, env, None, None, None)
        return Opening(*arguments, root_alias="data", limits={"wall": f"{_PYTHON_TIMEOUT_MS} ms"})

    def _preparation(self, box: _native.Sandbox) -> "Steps[None]":
        if self._seed:
            yield self._seeding(box)
        directory = _below_data(self._cwd)
        try:
            yield _files.stat(box, directory)
        except errors.FileNotFoundError:
            # LocalSandbox's shell can start in a directory that does not exist.
            yield _files.make_directory(box, directory)

    # One row, with the paths as given.
    def _seeding(self, box: _native.Sandbox) -> Call[None]:
        placed = [(_below_data(path), content) for path, content in self._seed.items()]
        recorded = json.dumps({"paths": list(self._seed), "count": len(placed)})
        return Call(lambda done: _native.seed(box, placed, recorded, done), lambda answer: None)

    def _box(self) -> _native.Sandbox:
        if self._destroyed:
            raise RuntimeError(_DESTROYED)
        # Threads that come first at the same time share one sandbox.
        with self._opening_turn:
            if self._opened is None:
                self._opened = self._open()
        return self._opened

    def _open(self) -> _native.Sandbox:
        opening = self._opening()
        try:
            opened: _native.Sandbox = opening.ask(None)
            _steps.run(self._preparation(opened))
        except errors.SandliteError as error:
            raise SubprocessCrashed(f"Corrupt database or snapshot: {error}") from error
        finally:
            opening.forget()
        self._seed = {}
        self._snapshot = None
        return opened

    async def _abox(self) -> _native.Sandbox:
        if self._opened is None and not self._destroyed:
            opening = self._opening()
            try:
                opened = await _native_answer(opening.ask)
                if self._opened is None:
                    await _steps.arun(self._preparation(opened))
            except errors.SandliteError as error:
                raise SubprocessCrashed(f"Corrupt database or snapshot: {error}") from error
            finally:
                opening.forget()
            with self._opening_turn:
                if self._opened is None:
                    self._opened = opened
        return self._box()

    def _finish(self, make: Callable[[_native.Sandbox], Call[T]], path: Optional[str] = None, call_name: str = "open") -> T:
        box = self._box()
        try:
            call = make(box)
            return call.read(call.ask(None))
        except errors.SandliteError as error:
            raise self._translated(error, path, call_name) from error

    async def _afinish(
        self, make: Callable[[_native.Sandbox], Call[T]], path: Optional[str] = None, call_name: str = "open"
    ) -> T:
        box = await self._abox()
        try:
            call = make(box)
            return call.read(await _native_answer(call.ask))
        except errors.SandliteError as error:
            raise self._translated(error, path, call_name) from error

    def _run(self, steps: "Steps[T]") -> T:
        try:
            return _steps.run(steps)
        except errors.SandliteError as error:
            raise self._translated(error, None) from error

    async def _arun(self, steps: "Steps[T]") -> T:
        try:
            return await _steps.arun(steps)
        except errors.SandliteError as error:
            raise self._translated(error, None) from error

    def _translated(self, error: errors.SandliteError, path: Optional[str], call: str = "open") -> Exception:
        if isinstance(error, errors.ClosedError):
            return RuntimeError(_DESTROYED)
        missing = (errors.FileNotFoundError, errors.NotADirectoryError, errors.IsADirectoryError)
        if path is not None and isinstance(error, missing):
            stderr = _node_text(error, path, call)
            return FileNotFoundError(f"File not found: {path}", 1, "", stderr, path)
        return SubprocessCrashed(str(error))

    @property
    def _python_turn(self) -> "Turns":
        # Imported on first use, because the import takes time.
        from ._turns import Turns

        with self._opening_turn:
            if self._python_turns is None:
                self._python_turns = Turns()
        return self._python_turns

    def _refuse_inside(self, box: _native.Sandbox) -> None:
        # A tool would wait for the run that waits for the tool.
        try:
            box.check_turn()
        except errors.SandliteError as error:
            raise self._translated(error, None) from error

    @property
    def kv(self) -> KVStore:
        """The key-value store."""
        return self._kv

    def _bash(self, command: str, cwd: Optional[str]) -> Callable[[_native.Sandbox], Call[BashResult]]:
        def make(box: _native.Sandbox) -> Call[BashResult]:
            # As in JavaScript: what is not a character becomes U+FFFD.
            text = command.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            call = _calls.run(box, "bash", text, cwd=cwd, timeout=_BASH_TIMEOUT_MS / 1000)
            return Call(call.ask, lambda answer: _bash_result(call.read(answer)))

        return make

    def bash(self, command: str, cwd: Optional[str] = None) -> BashResult:
        """Runs a bash command line; raises unless it exits with 0."""
        return self._finish(self._bash(command, cwd))

    async def abash(self, command: str, cwd: Optional[str] = None) -> BashResult:
        """:meth:`bash`, for ``asyncio``: a cancelled command is killed."""
        return await self._afinish(self._bash(command, cwd))

    def _execute(
        self,
        box: _native.Sandbox,
        code: str,
        cwd: Optional[str],
        packages: Optional[list[str]],
        toolset: Optional[ToolsetInput],
        loop: Any,
    ) -> "Steps[PythonResult]":
        checked = _localsandbox_tools.checked(toolset)
        if packages:
            warnings.warn(f"packages are not loaded from the network: {', '.join(packages)}", stacklevel=4)
        about = (_localsandbox_tools.manifest(checked), json.dumps(sorted(packages or [])))
        box = box.with_tools(_localsandbox_tools.parts(checked, loop))
        # Other tools or packages require another interpreter, and so does one that a limit has ended.
        if about != self._started and box.is_python_live(_INTERPRETER):
            yield _calls.end_session(box, _INTERPRETER)
        if not box.is_python_live(_INTERPRETER):
            self._started, self._session = about, str(uuid.uuid4())
            yield _calls.run(box, "python", _localsandbox_tools.prelude(about[0]), session=_INTERPRETER)
        shown = {"preloadPackages": ",".join(packages or []), "sessionId": self._session}
        text = _run_text(cwd or self._cwd, code, shown)
        result = yield _calls.run(box, "python", text, session=_INTERPRETER)
        return _python_result(result)

    def execute_python(
        self,
        code: str,
        cwd: Optional[str] = None,
        preload_packages: Optional[list[str]] = None,
        toolset: Optional[ToolsetInput] = None,
    ) -> PythonResult:
        """Runs Python code in an interpreter that keeps its globals while its tools stay the same. Code that raises returns a
        result.

        ``toolset`` contains functions that the code may call: ``from host_tools import call, search``."""
        box = self._box()
        self._refuse_inside(box)
        try:
            with self._python_turn:
                return self._run(self._execute(box, code, cwd, preload_packages, toolset, None))
        except errors.BusyError as error:
            raise self._translated(error, None) from error

    async def aexecute_python(
        self,
        code: str,
        cwd: Optional[str] = None,
        preload_packages: Optional[list[str]] = None,
        toolset: Optional[ToolsetInput] = None,
    ) -> PythonResult:
        """:meth:`execute_python`, for ``asyncio``; ``async`` tools run in the caller's loop."""
        import asyncio

        loop = asyncio.get_running_loop()
        box = await self._abox()
        self._refuse_inside(box)
        async with self._python_turn:
            return await self._arun(self._execute(box, code, cwd, preload_packages, toolset, loop))

    # The request of each helper, and its row: paths as given.

    def _reading(self, path: str, row: Mapping[str, Any]) -> Callable[[_native.Sandbox], Call[bytes]]:
        return lambda box: _files.read(box, _below_data(path), row)

    def _writing(self, path: str, data: bytes, row: Mapping[str, Any]) -> Callable[[_native.Sandbox], Call[None]]:
        return lambda box: _files.write(box, _below_data(path), data, row)

    def _listing(self, path: str) -> Callable[[_native.Sandbox], Call[list[str]]]:
        return lambda box: _files.names(box, _below_data(path), {"path": path})

    def _deletion(self, path: str) -> Callable[[_native.Sandbox], Call[None]]:
        return lambda box: _files.remove(box, _below_data(path), {"path": path})

    def _existence(self, path: str) -> Callable[[_native.Sandbox], Call[bool]]:
        return lambda box: _files.exists(box, _below_data(path), {"path": path})

    def read_file(self, path: str) -> str:
        """The text of a file; invalid UTF-8 is replaced."""
        return self._finish(self._reading(path, {"path": path}), path).decode("utf-8", "replace")

    def read_file_bytes(self, path: str) -> bytes:
        """The bytes of a file."""
        return self._finish(self._reading(path, {"path": path, "binary": True}), path)

    def write_file(self, path: str, content: str) -> None:
        """Writes a whole file, creating missing parent directories."""
        self._finish(self._writing(path, content.encode(), {"path": path, "contentLength": _length(content)}))

    def write_file_bytes(self, path: str, data: bytes) -> None:
        """Writes a whole file of bytes."""
        given = _bytes(data)
        self._finish(self._writing(path, given, {"path": path, "contentLength": len(given), "binary": True}))

    def list_files(self, path: str = "/data") -> list[str]:
        """The names in a directory, sorted."""
        return self._finish(self._listing(path), path, "scandir")

    def exists(self, path: str) -> bool:
        """Whether a path exists."""
        return self._finish(self._existence(path))

    def delete_file(self, path: str) -> None:
        """Deletes a file."""
        self._finish(self._deletion(path), path, "unlink")

    @property
    def _is_unused(self) -> bool:
        return self._opened is None and not self._seed and self._snapshot is None and not self._destroyed

    def export_snapshot(self) -> bytes:
        """Returns everything as the bytes of a ``.db`` file, in LocalSandbox 0.3's layout; empty if nothing was done yet."""
        if self._is_unused:
            return b""
        return self._finish(lambda box: _calls.export_snapshot(box, "localsandbox"))

    def _rows(self, box: _native.Sandbox, limit: int) -> "Steps[list[HistoryEntry]]":
        rows: list[dict[str, Any]] = []
        entries: list[HistoryEntry] = []
        while limit < 0 or not _are_whole(entries, limit):
            before = rows[-1]["id"] if rows else None
            page = yield Call(lambda done: box.history(_PAGE, None, before, None, None, done), lambda listed: json.loads(listed[0]))
            rows += page
            # Fetched again, because the calls of a run may be on the previous page.
            entries = list(_entries(rows))
            if len(page) < _PAGE:
                break
        return entries if limit < 0 else entries[:limit]

    def history(self, limit: int = 100) -> list[HistoryEntry]:
        """Returns past operations, newest first."""
        return self._run(self._rows(self._box(), limit))

    async def aread_file(self, path: str) -> str:
        """:meth:`read_file`, for ``asyncio``."""
        return (await self._afinish(self._reading(path, {"path": path}), path)).decode("utf-8", "replace")

    async def aread_file_bytes(self, path: str) -> bytes:
        """:meth:`read_file_bytes`, for ``asyncio``."""
        return await self._afinish(self._reading(path, {"path": path, "binary": True}), path)

    async def awrite_file(self, path: str, content: str) -> None:
        """:meth:`write_file`, for ``asyncio``."""
        await self._afinish(self._writing(path, content.encode(), {"path": path, "contentLength": _length(content)}))

    async def awrite_file_bytes(self, path: str, data: bytes) -> None:
        """:meth:`write_file_bytes`, for ``asyncio``."""
        given = _bytes(data)
        await self._afinish(self._writing(path, given, {"path": path, "contentLength": len(given), "binary": True}))

    async def alist_files(self, path: str = "/data") -> list[str]:
        """:meth:`list_files`, for ``asyncio``."""
        return await self._afinish(self._listing(path), path, "scandir")

    async def aexists(self, path: str) -> bool:
        """:meth:`exists`, for ``asyncio``."""
        return await self._afinish(self._existence(path))

    async def adelete_file(self, path: str) -> None:
        """:meth:`delete_file`, for ``asyncio``."""
        await self._afinish(self._deletion(path), path, "unlink")

    async def aexport_snapshot(self) -> bytes:
        """:meth:`export_snapshot`, for ``asyncio``."""
        if self._is_unused:
            return b""
        return await self._afinish(lambda box: _calls.export_snapshot(box, "localsandbox"))

    async def ahistory(self, limit: int = 100) -> list[HistoryEntry]:
        """:meth:`history`, for ``asyncio``."""
        return await self._arun(self._rows(await self._abox(), limit))

    def destroy(self) -> None:
        """Ends the sandbox and deletes its content. Calling it again has no effect."""
        self._destroyed = True
        if self._opened is not None:
            self._opened.close()

    async def adestroy(self) -> None:
        """:meth:`destroy`, for ``asyncio``."""
        self._destroyed = True
        if self._opened is not None:
            await _native_answer(self._opened.close)

    def __enter__(self) -> "LocalSandbox":
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.destroy()

    async def __aenter__(self) -> "LocalSandbox":
        return self

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if kind is GeneratorExit:
            # A coroutine that is closed cannot wait.
            self.destroy()
        else:
            await self.adestroy()
