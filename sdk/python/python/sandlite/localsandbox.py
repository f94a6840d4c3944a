"""LocalSandbox's own interface over Sandlite: change the import, keep the program.

>>> from sandlite.localsandbox import LocalSandbox
>>> with LocalSandbox(files={"/data/name": "world"}) as sandbox:
...     print(sandbox.bash('echo "Hello, $(cat /data/name)!"').stdout, end="")
Hello, world!

Snapshots of LocalSandbox 0.3 are read, and those made here can be read by it. What is better: no Deno, no npm, no network; the async
methods are really cancellable; exceptions are Python's own as well (``FileNotFoundError``, ``PermissionError``, ``TimeoutError``);
Python code has limits too.
"""

from __future__ import annotations

import builtins
import enum
import inspect
import json
import re
import warnings
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, TypeVar, Union

from . import _calls, _native, errors
from ._async import _native_answer
from ._calls import Call, Opening
from ._host_tools import _awaited, schema_of, schema_of_type, to_json
from ._results import Result

if TYPE_CHECKING:
    from pathlib import Path

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
    """Any trouble of this module."""


class CommandError(LocalSandboxError):
    """A command ended with a code other than 0."""

    def __init__(self, message: str, exit_code: int, stdout: str, stderr: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr


class FileNotFoundError(CommandError, builtins.FileNotFoundError):
    """There is no such file or directory; ``path`` says which."""

    def __init__(self, message: str, exit_code: int, stdout: str, stderr: str, path: str) -> None:
        super().__init__(message, exit_code, stdout, stderr)
        self.path = path


class PermissionError(CommandError, builtins.PermissionError):
    """It is not allowed; ``path`` says what."""

    def __init__(self, message: str, exit_code: int, stdout: str, stderr: str, path: str) -> None:
        super().__init__(message, exit_code, stdout, stderr)
        self.path = path


class TimeoutError(LocalSandboxError, builtins.TimeoutError):
    """It took too long."""

    def __init__(self, message: str, timeout_ms: int) -> None:
        super().__init__(message)
        self.timeout_ms = timeout_ms


class SubprocessCrashed(LocalSandboxError):
    """The sandbox itself could not do its work. (There is no subprocess here; the name is LocalSandbox's.)"""

    def __init__(self, message: str, signal: Optional[int] = None) -> None:
        super().__init__(message)
        self.signal = signal


class ExecutionLimitError(LocalSandboxError):
    """A command met a limit: ``loop_iterations``, ``command_count``, or another of Sandlite's own names."""

    def __init__(self, message: str, limit_type: str, limit_value: int) -> None:
        super().__init__(message)
        self.limit_type = limit_type
        self.limit_value = limit_value


class ExecutionPreset(enum.Enum):
    """What commands may use."""

    STRICT = "strict"
    NORMAL = "normal"
    PERMISSIVE = "permissive"


@dataclass
class BashResult:
    """How a command went."""

    stdout: str
    stderr: str
    exit_code: int
    duration_ms: float


@dataclass
class PythonResult:
    """How Python code went; ``error`` is the traceback of code that raised."""

    stdout: str
    stderr: str
    exit_code: int
    error: Optional[str] = None


@dataclass
class HistoryEntry:
    """One thing that was done; times are in milliseconds since 1970."""

    id: int
    name: str
    started_at: int
    completed_at: int
    parameters: Optional[dict[str, Any]]
    result: Optional[dict[str, Any]]


@dataclass(frozen=True)
class ToolDefinition:
    """A tool that Python code in the sandbox may call."""

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: Optional[dict[str, Any]] = None
    timeout_ms: int = 30_000


ToolHandler = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class PythonToolset:
    """Tools and the functions behind them."""

    definitions: list[ToolDefinition]
    handlers: dict[str, ToolHandler] = field(default_factory=dict)


ToolsetInput = Union[PythonToolset, Sequence[Callable[..., Any]]]


def function_to_tool_definition(fn: Callable[..., Any]) -> ToolDefinition:
    """A definition from a function's name, hints and the first line of its documentation."""
    signature = inspect.signature(fn)
    for name, parameter in signature.parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ValueError(f"Tool {fn.__name__!r} parameter {name!r} must be positional/keyword or keyword-only")
        if parameter.annotation is parameter.empty:
            raise ValueError(f"Tool {fn.__name__!r} parameter {name!r} is missing a type hint")
    lines = (inspect.getdoc(fn) or "").strip().splitlines()
    hints = _return_hint(fn)
    return ToolDefinition(
        name=fn.__name__,
        description=lines[0].strip() if lines else "",
        input_schema=schema_of(fn),
        output_schema=None if hints is None else schema_of_type(hints[0]),
    )


def _return_hint(fn: Callable[..., Any]) -> Optional[tuple[Any]]:
    import typing

    hints = typing.get_type_hints(fn)
    return (hints["return"],) if "return" in hints else None


def functions_to_toolset(functions: Sequence[Callable[..., Any]]) -> PythonToolset:
    """A toolset of plain functions."""
    from ._host_tools import _from_json, _hints

    def handler(fn: Callable[..., Any]) -> ToolHandler:
        hints = _hints(fn)
        return lambda payload: fn(**{name: _from_json(hints.get(name, Any), value) for name, value in payload.items()})

    definitions = [function_to_tool_definition(fn) for fn in functions]
    handlers = {definition.name: handler(fn) for definition, fn in zip(definitions, functions)}
    return PythonToolset(definitions, handlers)


def _checked(toolset: ToolsetInput) -> PythonToolset:
    if not isinstance(toolset, PythonToolset):
        if not all(callable(fn) for fn in toolset):
            raise TypeError("toolset sequences must contain only callables")
        toolset = functions_to_toolset(toolset)
    names = [definition.name for definition in toolset.definitions]
    for definition in toolset.definitions:
        if names.count(definition.name) > 1:
            raise ValueError(f"Duplicate tool definition: {definition.name}")
        if definition.timeout_ms <= 0:
            raise ValueError(f"Tool {definition.name!r} must have a positive timeout_ms")
    missing = sorted(set(names) - set(toolset.handlers))
    if missing:
        raise ValueError(f"Missing handlers for tools: {', '.join(missing)}")
    extra = sorted(set(toolset.handlers) - set(names))
    if extra:
        raise ValueError(f"Handlers declared without matching tool definitions: {', '.join(extra)}")
    return toolset


def _tool_parts(definition: ToolDefinition, handler: ToolHandler, loop: Any) -> tuple[str, str, str, Callable[..., str]]:
    import threading

    def call(text: str, is_over: Callable[[], bool] = lambda: False) -> str:
        outcome: list[Any] = []
        if is_over():
            raise TimeoutError(f"Tool {definition.name!r} was called by a command that is over", definition.timeout_ms)

        def work() -> None:
            try:
                outcome.append((json.dumps(_awaited(handler(json.loads(text)), loop), default=to_json), None))
            except BaseException as error:  # whatever it is, the sandbox is told
                outcome.append((None, error))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(definition.timeout_ms / 1000)
        if not outcome:
            raise TimeoutError(
                f"Tool {definition.name!r} timed out after {definition.timeout_ms} ms", definition.timeout_ms
            )
        answer, error = outcome[0]
        if error is not None:
            raise error
        return str(answer)

    return definition.name, definition.description, json.dumps(definition.input_schema), call


# What Python code finds as `host_tools`, and how it is run: in one interpreter, each time from its directory.
_PRELUDE = '''# sandlite.localsandbox
def _install():
    import linecache, os, re, sys, traceback, types, __main__
    from math import log
    from sandlite import ToolError, tools

    def call(name, payload):
        if not isinstance(name, str):
            raise TypeError("host_tools.call expects a string tool name")
        try:
            return tools.call(name, payload)
        except ToolError as error:
            text = f"Tool {name!r} is not declared" if error.kind == "unknown" else str(error)
            raise RuntimeError(text) from None

    def words(text):
        return re.findall(r"[a-z0-9]+", re.sub(r"([a-z0-9])([A-Z])", r"\\1 \\2", text).lower())

    def search(query, detail="brief", limit=10):
        for holds, error, rule in (
            (isinstance(query, str), TypeError, "expects a string query"),
            (detail in ("brief", "full"), ValueError, "detail must be 'brief' or 'full'"),
            (type(limit) is int, TypeError, "limit must be an integer"),
            (type(limit) is int and limit > 0, ValueError, "limit must be at least 1"),
        ):
            if not holds:
                raise error("host_tools.search " + rule)
        offered = tools.list()
        texts = [[(3.5, words(t["name"])), (1.5, words(t["description"])), (0.35, words(str(t["schema"])))] for t in offered]
        scores = [0.0] * len(offered)
        for position in range(3):
            fields = [text[position][1] for text in texts]
            average = sum(map(len, fields)) / len(fields) if fields else 0
            for word in set(words(query)):
                holding = sum(word in field for field in fields)
                rarity = log(1 + (len(fields) - holding + 0.5) / (holding + 0.5))
                for index, field in enumerate(fields):
                    count = field.count(word)
                    if count:
                        length = 1 - 0.75 + 0.75 * len(field) / average
                        scores[index] += texts[index][position][0] * rarity * count * 2.2 / (count + 1.2 * length)
        ranked = sorted(((score, index) for index, score in enumerate(scores) if score), key=lambda pair: (-pair[0], pair[1]))
        found = []
        for score, index in ranked[:limit]:
            if score < 0.15 * ranked[0][0]:
                break
            tool = offered[index]
            entry = {"name": tool["name"], "description": tool["description"], "score": round(score, 4)}
            if detail == "full":
                entry["input_schema"] = tool["schema"]
            found.append(entry)
        return found

    def run(directory, code):
        os.chdir(directory)
        linecache.cache["<exec>"] = (len(code), None, code.splitlines(True), "<exec>")
        try:
            exec(compile(code, "<exec>", "exec"), __main__.__dict__)
        except SystemExit:
            raise
        except BaseException as error:
            trace = error.__traceback__
            while trace is not None and trace.tb_frame.f_code.co_filename != "<exec>":
                trace = trace.tb_next
            traceback.print_exception(type(error), error, trace)
            sys.exit(1)

    module = types.ModuleType("host_tools", "Functions of the program around the sandbox.")
    module.call, module.search = call, search
    sys.modules["host_tools"] = module
    runner = types.ModuleType("_localsandbox")
    runner.run = run
    sys.modules["_localsandbox"] = runner

_install()
del _install
'''

_INTERPRETER = "localsandbox"
_BASH_TIMEOUT_MS = 30_000
_PYTHON_TIMEOUT_MS = 60_000
_DESTROYED = "LocalSandbox instance has been destroyed"

# A message of a program names its file in one of these ways.
_NOT_FOUND = (
    re.compile(r":\s*([^\s:]+):\s*No such file or directory"),
    re.compile(r"cannot (?:access|open|stat) ['\u2018]([^'\u2019]+)['\u2019].*No such file or directory"),
    re.compile(r"([^\s:]+):\s*not found"),
)
_DENIED = (
    re.compile(r":\s*([^\s:]+):\s*Permission denied"),
    re.compile(r"cannot [\w ]+ ['\u2018]([^'\u2019]+)['\u2019].*Permission denied"),
)
_LIMITS = {"loop_iterations": "loop_iterations", "commands": "command_count"}


def _below_data(path: str) -> str:
    """``/x`` is ``/data/x``; a path without a slash starts at the root."""
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
    for pattern in _NOT_FOUND:
        found = pattern.search(err)
        if found:
            raise FileNotFoundError(f"File not found: {found[1]}", code, out, err, found[1])
    for pattern in _DENIED:
        found = pattern.search(err)
        if found:
            raise PermissionError(f"Permission denied: {found[1]}", code, out, err, found[1])
    said = f": {err.strip()}" if err.strip() else ""
    raise CommandError(f"Command failed with exit code {code}{said}", code, out, err)


def _python_result(result: Result) -> PythonResult:
    if result.limit is not None:
        if result.limit.name == "wall":
            raise TimeoutError(f"Python execution timed out after {result.limit.value}", _PYTHON_TIMEOUT_MS)
        said = f"{result.stderr}{result.limit.message}\n"
        return PythonResult(result.stdout, said, 1, result.limit.message)
    if result.exit_code == 0:
        return PythonResult(result.stdout, result.stderr, 0)
    error = result.stderr.strip() or f"exit code {result.exit_code}"
    return PythonResult(result.stdout, result.stderr, 1, error)


def _history(text: str) -> list[HistoryEntry]:
    rows = json.loads(text)
    return [_entry(row) for row in rows if not str(row["command"]).startswith("# sandlite.localsandbox\n")]


def _entry(row: Mapping[str, Any]) -> HistoryEntry:
    name = row["name"]
    parameters = dict(row.get("parameters") or {})
    result = dict(row["result"]) if isinstance(row.get("result"), dict) else None
    if name == "python":
        code = _RAN.match(parameters.get("command") or "")
        length = len(json.loads(code[2])) if code else len(parameters.get("command") or "")
        parameters = {"codeLength": length, "cwd": json.loads(code[1]) if code else parameters.get("cwd")}
    elif name == "tool":
        name = "python_tool_call"
        preview = json.dumps(parameters.get("arguments"))[:200]
        parameters = {"toolName": parameters.get("tool"), "requestPreview": preview}
        failed = row.get("error")
        answer = {"responsePreview": json.dumps(row.get("result"))[:200]}
        result = {"success": not failed, **({"errorType": str(failed).partition(":")[0]} if failed else answer)}
    elif "path" in parameters:
        parameters["path"] = _below_data(str(parameters["path"])).rstrip("/")
    elif "paths" in parameters:
        parameters["paths"] = [_below_data(str(path)) for path in parameters["paths"]]
    if result is None and name not in ("python", "bash"):
        result = {"success": not row.get("error")}
    started = row["started"] // 1_000_000
    completed = started if row["completed"] is None else row["completed"] // 1_000_000
    return HistoryEntry(row["id"], name, started, completed, parameters, result)


_RAN = re.compile(r'__import__\("_localsandbox"\)\.run\(("(?:[^"\\]|\\.)*"), ("(?:[^"\\]|\\.)*")\)\Z', re.DOTALL)


def _run_text(cwd: str, code: str) -> str:
    return f'__import__("_localsandbox").run({json.dumps(cwd)}, {json.dumps(code)})'


class KVStore:
    """Values by name, beside the files."""

    def __init__(self, sandbox: "LocalSandbox") -> None:
        self._sandbox = sandbox

    def _ask(self, make: Callable[[_native.Sandbox], Call[T]]) -> T:
        return self._sandbox._finish(make)

    def get(self, key: str) -> Any:
        """The value of a key, or ``None``."""
        return self._ask(lambda box: _calls.kv_get(box, key))

    def set(self, key: str, value: Any) -> None:
        """Keeps a value."""
        self._ask(lambda box: _calls.kv_set(box, key, value))

    def delete(self, key: str) -> None:
        """Removes a key, if it is there."""
        self._ask(lambda box: _calls.kv_delete(box, key))

    def keys(self, prefix: str = "") -> list[str]:
        """The keys that begin with a prefix."""
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
    """A sandbox as LocalSandbox has it. All files are below ``/data``, which is another name of the root directory.

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
        self._files = {_below_data(path): _calls.content(content) for path, content in (files or {}).items()}
        self._snapshot = snapshot
        self._cwd = cwd
        self._preset = preset
        self._opened: Optional[_native.Sandbox] = None
        self._destroyed = False
        self._kv = KVStore(self)

    # As in LocalSandbox nothing is started before it is needed.
    def _opening(self) -> Opening:
        env = {"HOME": "/", "TMPDIR": "/tmp"}
        arguments = (None, self._files, self._snapshot, self._cwd, self._preset.value, env, None, None, None)
        return Opening(*arguments, root_alias="data")

    def _box(self) -> _native.Sandbox:
        if self._destroyed:
            raise RuntimeError(_DESTROYED)
        if self._opened is None:
            opening = self._opening()
            try:
                self._opened = opening.ask(None)
            except errors.SandliteError as error:
                raise SubprocessCrashed(f"Corrupt database or snapshot: {error}") from error
            finally:
                opening.forget()
            self._files = {}
            self._snapshot = None
        return self._opened

    async def _abox(self) -> _native.Sandbox:
        if self._opened is None and not self._destroyed:
            opening = self._opening()
            try:
                opened = await _native_answer(opening.ask)
            except errors.SandliteError as error:
                raise SubprocessCrashed(f"Corrupt database or snapshot: {error}") from error
            finally:
                opening.forget()
            if self._opened is None:
                self._opened = opened
        return self._box()

    def _finish(self, make: Callable[[_native.Sandbox], Call[T]], path: Optional[str] = None) -> T:
        box = self._box()
        try:
            call = make(box)
            return call.read(call.ask(None))
        except errors.SandliteError as error:
            raise self._translated(error, path) from error

    async def _afinish(self, make: Callable[[_native.Sandbox], Call[T]], path: Optional[str] = None) -> T:
        box = await self._abox()
        try:
            call = make(box)
            return call.read(await _native_answer(call.ask))
        except errors.SandliteError as error:
            raise self._translated(error, path) from error

    def _translated(self, error: errors.SandliteError, path: Optional[str]) -> Exception:
        if isinstance(error, errors.ClosedError):
            return RuntimeError(_DESTROYED)
        missing = (errors.FileNotFoundError, errors.NotADirectoryError, errors.IsADirectoryError)
        if path is not None and isinstance(error, missing):
            return FileNotFoundError(f"File not found: {path}", 1, "", "", path)
        return SubprocessCrashed(str(error))

    @property
    def kv(self) -> KVStore:
        """The key-value store."""
        return self._kv

    def _bash(self, command: str, cwd: Optional[str]) -> Callable[[_native.Sandbox], Call[BashResult]]:
        def make(box: _native.Sandbox) -> Call[BashResult]:
            call = _calls.run(box, "bash", command, cwd=cwd)
            return Call(call.ask, lambda answer: _bash_result(call.read(answer)))

        return make

    def bash(self, command: str, cwd: Optional[str] = None) -> BashResult:
        """Runs a bash command line; raises unless it exits with 0."""
        return self._finish(self._bash(command, cwd))

    async def abash(self, command: str, cwd: Optional[str] = None) -> BashResult:
        """:meth:`bash`, for ``asyncio``: a cancelled command is killed."""
        return await self._afinish(self._bash(command, cwd))

    def _python(self, box: _native.Sandbox, text: str) -> Call[Result]:
        return _calls.run(box, "python", text, session=_INTERPRETER)

    def _tools(
        self,
        box: _native.Sandbox,
        packages: Optional[list[str]],
        toolset: Optional[ToolsetInput],
        loop: Any,
    ) -> _native.Sandbox:
        if packages:
            warnings.warn(f"nothing is loaded from the network, so not {', '.join(packages)} either", stacklevel=4)
        if toolset is None:
            return box
        checked = _checked(toolset)
        parts = [_tool_parts(tool, checked.handlers[tool.name], loop) for tool in checked.definitions]
        return box.with_tools(parts)

    def execute_python(
        self,
        code: str,
        cwd: Optional[str] = None,
        preload_packages: Optional[list[str]] = None,
        toolset: Optional[ToolsetInput] = None,
    ) -> PythonResult:
        """Runs Python code in an interpreter that remembers its globals. Code that raises is a result.

        ``toolset`` are functions that it may call: ``from host_tools import call, search``."""
        box = self._tools(self._box(), preload_packages, toolset, None)
        if not box.is_python_live(_INTERPRETER):
            self._finish(lambda _: self._python(box, _PRELUDE))
        return _python_result(self._finish(lambda _: self._python(box, _run_text(cwd or self._cwd, code))))

    async def aexecute_python(
        self,
        code: str,
        cwd: Optional[str] = None,
        preload_packages: Optional[list[str]] = None,
        toolset: Optional[ToolsetInput] = None,
    ) -> PythonResult:
        """:meth:`execute_python`, for ``asyncio``; ``async`` tools run in the caller's loop."""
        import asyncio

        box = self._tools(await self._abox(), preload_packages, toolset, asyncio.get_running_loop())
        if not box.is_python_live(_INTERPRETER):
            await self._afinish(lambda _: self._python(box, _PRELUDE))
        return _python_result(await self._afinish(lambda _: self._python(box, _run_text(cwd or self._cwd, code))))

    def read_file(self, path: str) -> str:
        """The text of a file; what is no UTF-8 is replaced."""
        return self._finish(lambda box: _calls.read_file(box, _below_data(path)), path)

    def read_file_bytes(self, path: str) -> bytes:
        """The bytes of a file."""
        return self._finish(lambda box: _calls.read_bytes(box, _below_data(path)), path)

    def write_file(self, path: str, content: str) -> None:
        """Writes a whole file, creating the directories above it."""
        self._finish(lambda box: _calls.write_file(box, _below_data(path), content, None))

    def write_file_bytes(self, path: str, data: bytes) -> None:
        """Writes a whole file of bytes."""
        self._finish(lambda box: _calls.write_file(box, _below_data(path), data, None))

    def _listing(self, path: str) -> Callable[[_native.Sandbox], Call[list[str]]]:
        # LocalSandbox begins with nothing at all; here there is a directory for temporary files.
        place = _below_data(path)
        unless_empty = "tmp" if place == "/data" else None
        return lambda box: Call(
            lambda done: box.list_names(place, unless_empty, done),
            lambda answer: sorted(json.loads(answer)),
        )

    def list_files(self, path: str = "/data") -> list[str]:
        """The names in a directory, sorted."""
        return self._finish(self._listing(path), path)

    def exists(self, path: str) -> bool:
        """Whether a path leads somewhere."""
        return self._finish(lambda box: _calls.exists(box, _below_data(path)))

    def _deletion(self, path: str) -> Callable[[_native.Sandbox], Call[None]]:
        return lambda box: Call(lambda done: box.remove_file(_below_data(path), done), lambda answer: None)

    def delete_file(self, path: str) -> None:
        """Deletes a file."""
        self._finish(self._deletion(path), path)

    def export_snapshot(self) -> bytes:
        """Everything as the bytes of a ``.db`` file, in LocalSandbox 0.3's own layout."""
        return self._finish(lambda box: _calls.export_snapshot(box, "localsandbox"))

    def _rows(self, limit: int) -> Callable[[_native.Sandbox], Call[list[HistoryEntry]]]:
        # Rows of our own are left out, so there must be some to spare.
        asked = limit * 2 + 8
        return lambda box: Call(
            lambda done: box.history(asked, None, None, None, None, done),
            lambda answer: _history(answer)[:limit],
        )

    def history(self, limit: int = 100) -> list[HistoryEntry]:
        """What was done, newest first."""
        return self._finish(self._rows(limit))

    async def aread_file(self, path: str) -> str:
        """:meth:`read_file`, for ``asyncio``."""
        return await self._afinish(lambda box: _calls.read_file(box, _below_data(path)), path)

    async def aread_file_bytes(self, path: str) -> bytes:
        """:meth:`read_file_bytes`, for ``asyncio``."""
        return await self._afinish(lambda box: _calls.read_bytes(box, _below_data(path)), path)

    async def awrite_file(self, path: str, content: str) -> None:
        """:meth:`write_file`, for ``asyncio``."""
        await self._afinish(lambda box: _calls.write_file(box, _below_data(path), content, None))

    async def awrite_file_bytes(self, path: str, data: bytes) -> None:
        """:meth:`write_file_bytes`, for ``asyncio``."""
        await self._afinish(lambda box: _calls.write_file(box, _below_data(path), data, None))

    async def alist_files(self, path: str = "/data") -> list[str]:
        """:meth:`list_files`, for ``asyncio``."""
        return await self._afinish(self._listing(path), path)

    async def aexists(self, path: str) -> bool:
        """:meth:`exists`, for ``asyncio``."""
        return await self._afinish(lambda box: _calls.exists(box, _below_data(path)))

    async def adelete_file(self, path: str) -> None:
        """:meth:`delete_file`, for ``asyncio``."""
        await self._afinish(self._deletion(path), path)

    async def aexport_snapshot(self) -> bytes:
        """:meth:`export_snapshot`, for ``asyncio``."""
        return await self._afinish(lambda box: _calls.export_snapshot(box, "localsandbox"))

    async def ahistory(self, limit: int = 100) -> list[HistoryEntry]:
        """:meth:`history`, for ``asyncio``."""
        return await self._afinish(self._rows(limit))

    def destroy(self) -> None:
        """Ends it, with all that is in it. Twice is fine."""
        self._destroyed = True
        if self._opened is not None:
            self._opened.close()

    async def adestroy(self) -> None:
        """:meth:`destroy`, for ``asyncio``."""
        self.destroy()

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
        self.destroy()
