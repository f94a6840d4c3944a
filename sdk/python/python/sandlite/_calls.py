"""How each method calls the native half and reads its result, shared by the synchronous and the async sandbox."""

from __future__ import annotations

import os

# `collections.abc` is the same, but importing it takes a millisecond.
from _collections_abc import Mapping as AnyMapping

from . import _native, _results
from ._results import Result
from ._typing import TYPE_CHECKING, Any, Callable, Generic, Mapping, Optional, Sequence, TypeAlias, TypeVar, Union

if TYPE_CHECKING:
    import json

    from ._commands import CommandLike, ProgramLike
    from ._host_tools import Approve, ToolLike
    from ._records import (
        Answer,
        Applied,
        Bisection,
        BlamedLine,
        Checkpoint,
        Commit,
        Compacted,
        Diff,
        Edited,
        Event,
        FileEntry,
        FileStat,
        FileWindow,
        GitExported,
        GitImported,
        HistoryEntry,
        Info,
        Match,
        McpServer,
        Mount,
        Replayed,
        ShownRun,
        TreeCopy,
        Updated,
        Version,
        Written,
    )

else:

    class _Json:
        """:mod:`json`, imported on first use: running a command does not need it."""

        def __getattr__(self, name):
            global json
            import json

            return getattr(json, name)

    json = _Json()

T = TypeVar("T")

#: Text, bytes, or a file on this machine.
Content: TypeAlias = "Union[str, bytes, os.PathLike[str]]"
#: One replacement: ``(old, new)``, or a mapping with ``old``, ``new`` and ``replace_all``.
EditLike: TypeAlias = "Union[tuple[str, str], Mapping[str, Any]]"
#: A callback that receives each piece of output as text.
OnOutput: TypeAlias = "Callable[[str], Any]"
#: Text or bytes.
Text: TypeAlias = "Union[str, bytes]"
#: A mount, or its form on the command line: ``"HOST:GUEST"``, ``"db:FILE.db:GUEST"`` or ``"at:VERSION:GUEST"``, each optionally followed
#: by ``:ro`` or ``:overlay``.
MountLike: TypeAlias = "Union[Mount, str]"


def _mount(given: MountLike) -> "Union[str, tuple[str, str, bool, bool]]":
    if isinstance(given, str):
        return given
    if given.mode not in ("ro", "overlay"):
        raise ValueError(f"invalid mount mode `{given.mode}`: expected `ro` or `overlay`")
    return os.fspath(given.host), given.guest, given.mode == "overlay", given.allow_sensitive


class Call(Generic[T]):
    """A call: ``ask`` receives the completion callback, or ``None``; ``read`` converts the native result."""

    __slots__ = ("ask", "read")

    def __init__(self, ask: 'Callable[[Optional["_native.Done"]], Any]', read: Callable[[Any], T]) -> None:
        self.ask = ask
        self.read = read


def _same(value: Any) -> Any:
    return value


def content(value: Content) -> bytes:
    """The bytes of text, bytes, or a file on this machine."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if not isinstance(value, os.PathLike):
        raise TypeError(f"content must be str, bytes or os.PathLike, not {type(value).__name__}")
    with open(os.fspath(value), "rb") as file:
        return file.read()


def encoded(value: Text) -> bytes:
    """Text or bytes as bytes. ``bytes(5)`` would be five zero bytes."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"data must be str or bytes, not {type(value).__name__}")


#: Limits that are numbers; the others are amounts of bytes or time.
_COUNTS = ("compute", "inodes", "processes", "process_starts", "descriptors", "loop_iterations", "commands")


def _limit(name: str, value: Any) -> Any:
    """A limit as limits files have it: a number of bytes or seconds becomes an amount, and the text of a number a number."""
    if name in _COUNTS:
        return int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(value, float):
        return f"{round(value * 1000)} ms"
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _limits(preset: str, limits: LimitsLike) -> str:
    """The text of a limits file; missing limits are the preset's."""
    if not isinstance(limits, AnyMapping):
        # Not ``open(limits)``: a number would be a descriptor of this process.
        with open(os.fspath(limits), encoding="utf-8") as file:
            return file.read()
    lines = [f"{name} = {json.dumps(_limit(name, value))}" for name, value in limits.items()]
    return "\n".join([f"base = {json.dumps(preset)}", *lines])


#: A policy file, an equivalent mapping (``{"rules": [{"path": "/secret", "access": "hidden"}]}``), or only its rules.
PolicyLike: TypeAlias = "Union[Mapping[str, Any], Sequence[Mapping[str, Any]], os.PathLike[str], str]"


def policy_text(policy: PolicyLike) -> str:
    """The text of a policy for the native half."""
    if isinstance(policy, (str, os.PathLike)):
        with open(policy, encoding="utf-8") as file:
            text = file.read()
        # A brace marks JSON there.
        return "\n" + text if text.startswith("{") else text
    return json.dumps(dict(policy) if isinstance(policy, AnyMapping) else {"rules": [dict(rule) for rule in policy]})


#: MCP servers by name, as ``{"command": …, "args": […], "env": {…}}`` or ``{"url": "http://…", "headers": {…}}``; or a file of the usual
#: format, ``{"mcpServers": {…}}``.
McpServersLike: TypeAlias = "Union[Mapping[str, Mapping[str, Any]], os.PathLike[str], str]"


def _mcp_text(servers: McpServersLike) -> str:
    if isinstance(servers, (str, os.PathLike)):
        with open(servers, encoding="utf-8") as file:
            return file.read()
    return json.dumps({"mcpServers": {name: dict(server) for name, server in servers.items()}})


def mcp_servers(box: _native.Sandbox) -> "list[McpServer]":
    return [
        _results.McpServer(row["name"], row["module"], tuple(_results.McpTool(**tool) for tool in row["tools"]))
        for row in json.loads(_native.mcp_servers(box))
    ]


def connect_mcp(
    box: _native.Sandbox, servers: McpServersLike, approve: Optional[Approve], timeout: Optional[float], loop: Any = None
) -> Call[None]:
    from ._approval import timed
    from ._host_tools import gate

    given = (_mcp_text(servers), gate(timed(approve, timeout), loop))
    return Call(lambda done: _native.connect_mcp(box, given, done), _same)


def confirm_mcp(box: _native.Sandbox, name: str) -> Call[None]:
    return Call(lambda done: _native.confirm_mcp(box, name, done), _same)


class Opening:
    """The arguments for opening a sandbox; a snapshot given as bytes is stored in a temporary file until then."""

    def __init__(
        self,
        db: Optional[Union[str, "os.PathLike[str]"]],
        files: Optional[Mapping[str, Content]],
        snapshot: Optional[Union[bytes, str, "os.PathLike[str]"]],
        cwd: Optional[str],
        preset: str,
        env: Optional[Mapping[str, str]],
        mounts: Optional[Sequence[MountLike]],
        tools: Optional[Sequence[ToolLike]],
        approve: Optional[Approve],
        loop: Any = None,
        root_alias: Optional[str] = None,
        python: str = "core",
        approve_timeout: Optional[float] = None,
        read_only: bool = False,
        wait: Optional[float] = None,
        limits: Optional[LimitsLike] = None,
        programs: Optional[Mapping[str, ProgramLike]] = None,
        commands: Optional[Mapping[str, CommandLike]] = None,
        base: Optional[HostPath] = None,
        allow_host: Optional[Sequence[str]] = None,
        policy: Optional[PolicyLike] = None,
        mcp_servers: Optional[McpServersLike] = None,
    ) -> None:
        self._temporary: Optional[str] = None
        own, servers, offered = None, None, []
        # These modules are imported only if they are needed.
        if approve is not None:
            from ._approval import timed

            approve = timed(approve, approve_timeout)
        if programs or commands or allow_host:
            from ._commands import own_parts

            own = own_parts(programs, commands, allow_host, loop)
        if mcp_servers is not None or tools:
            from ._host_tools import gate, parts

            servers = None if mcp_servers is None else (_mcp_text(mcp_servers), gate(approve, loop))
            offered = parts(tools, approve, loop)
        self._more = (
            read_only,
            wait,
            None if limits is None else _limits(preset, limits),
            own,
            base,
            None if policy is None else policy_text(policy),
            servers,
        )
        mounted = [_mount(mount) for mount in mounts or ()]
        written = [(name, content(value)) for name, value in (files or {}).items()]
        variables = dict(env or {})
        path = snapshot
        # Last: nothing after it raises, so the temporary file is always removed.
        if isinstance(snapshot, (bytes, bytearray)):
            import tempfile

            handle, self._temporary = tempfile.mkstemp(prefix="sandlite-", suffix=".db")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(snapshot)
            except BaseException:
                self.forget()
                raise
            path = self._temporary
        self._arguments = (
            db,
            written,
            path,
            cwd,
            str(preset),
            variables,
            mounted,
            offered,
            root_alias,
            python,
        )

    def ask(self, done: Optional["_native.Done"]) -> Any:
        return _native.Sandbox.open(*self._arguments, done, *self._more)  # type: ignore[arg-type]

    def forget(self) -> None:
        """Removes the temporary file."""
        if self._temporary is not None:
            os.unlink(self._temporary)
            self._temporary = None


def stdin_bytes(stdin: Optional[Text]) -> Optional[bytes]:
    """Standard input for the native half."""
    if stdin is None or isinstance(stdin, bytes):
        return stdin
    if isinstance(stdin, str):
        return stdin.encode()
    if isinstance(stdin, (bytearray, memoryview)):
        return bytes(stdin)
    raise TypeError(f"stdin must be str or bytes, not {type(stdin).__name__}")


def run(
    box: _native.Sandbox,
    kind: str,
    text: str,
    *,
    session: Optional[str] = None,
    cwd: Optional[str] = None,
    env: Optional[Mapping[str, str]] = None,
    stdin: Optional[Text] = None,
    timeout: Optional[float] = None,
    rollback_on_failure: bool = False,
    seed: Optional[int] = None,
    record: bool = False,
    echo: bool = False,
    check: bool = False,
) -> Call[Result]:
    """Runs a command to completion."""
    options = (session, cwd, None if env is None else dict(env), timeout, rollback_on_failure, seed, record)
    given = stdin_bytes(stdin)
    return Call(
        lambda done: box.run(kind, text, options, given, done, echo),
        lambda answer: _results.result(answer, check, text),
    )


def start(
    box: _native.Sandbox,
    kind: str,
    text: str,
    *,
    session: Optional[str] = None,
    cwd: Optional[str] = None,
    env: Optional[Mapping[str, str]] = None,
    stdin: Optional[Text] = None,
    timeout: Optional[float] = None,
    rollback_on_failure: bool = False,
    seed: Optional[int] = None,
    record: bool = False,
    echo: bool = False,
    interactive: bool = False,
    waits: bool = True,
) -> _native.Running:
    """Starts a command for streaming or, if ``interactive``, as a handle whose standard input stays open unless it is given.

    ``waits`` blocks until it has its turn, unless another command runs."""
    options = (session, cwd, None if env is None else dict(env), timeout, rollback_on_failure, seed, record)
    return box.start(kind, text, options, stdin_bytes(stdin), not interactive, echo, waits)


def _json(given: Mapping[str, Any]) -> str:
    return json.dumps({key: value for key, value in given.items() if value is not None})


def _act(box: _native.Sandbox, name: str, request: Mapping[str, Any], read: Callable[[Any], T]) -> Call[T]:
    text = _json(request)
    return Call(lambda done: box.perform_action(name, text, done), lambda answer: read(json.loads(answer)["data"]))


def call_action(box: _native.Sandbox, name: str, arguments: Mapping[str, Any]) -> Call[Answer]:
    text = json.dumps(dict(arguments))
    return Call(lambda done: box.call_action(name, text, done), lambda answer: _results.Answer(**json.loads(answer)))


def tool_text(box: _native.Sandbox, name: str, request: Mapping[str, Any]) -> Call[str]:
    text = _json(request)
    return Call(lambda done: box.perform_action(name, text, done), lambda answer: str(json.loads(answer)["text"]))


def read_window(
    box: _native.Sandbox, path: str, offset: Optional[int], limit: Optional[int]
) -> Call[FileWindow]:
    request = {"path": path, "offset": offset, "limit": limit}
    return _act(box, "read_file", request, lambda answer: _results.FileWindow(**answer))


def read_bytes(box: _native.Sandbox, path: str) -> Call[bytes]:
    return Call(lambda done: box.read_bytes(path, done), _same)


def read_file(box: _native.Sandbox, path: str) -> Call[str]:
    return Call(lambda done: box.read_bytes(path, done), lambda answer: answer.decode("utf-8", "replace"))


def write_file(
    box: _native.Sandbox, path: str, value: Content, expected_version: Optional[str]
) -> Call[Optional[Written]]:
    data = content(value)
    if expected_version is None:
        return Call(lambda done: box.write_bytes(path, data, done), _same)
    import base64

    request = {
        "path": path,
        "content": base64.b64encode(data).decode(),
        "encoding": "base64",
        "expected_version": expected_version,
    }
    return _act(box, "write_file", request, lambda answer: _results.Written(**answer))


def edit_file(
    box: _native.Sandbox, path: str, edits: Sequence[EditLike], expected_version: Optional[str]
) -> Call[Edited]:
    given = [
        dict(edit) if isinstance(edit, AnyMapping) else {"old": edit[0], "new": edit[1]} for edit in edits
    ]
    request = {"path": path, "edits": given, "expected_version": expected_version}
    return _act(box, "edit_file", request, lambda answer: _results.Edited(**answer))


def _read(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Warns of what could not be read: a mounted directory without permission, a function that fails. Other notes are about limits."""
    for note in answer["notes"]:
        if note.startswith("cannot read "):
            import warnings

            warnings.warn(note, stacklevel=2)
    return answer


def list_files(box: _native.Sandbox, path: Optional[str], depth: int, hidden: bool) -> Call[list[FileEntry]]:
    request = {"path": path, "depth": depth, "hidden": hidden}
    return _act(box, "list_files", request, lambda answer: [_results.FileEntry(**entry) for entry in _read(answer)["entries"]])


def glob(box: _native.Sandbox, pattern: str, path: Optional[str], hidden: bool) -> Call[list[str]]:
    request = {"pattern": pattern, "path": path, "hidden": hidden}
    return _act(box, "glob", request, lambda answer: list(_read(answer)["paths"]))


def grep(box: _native.Sandbox, pattern: str, request: Mapping[str, Any]) -> Call[list[Match]]:
    whole = {"pattern": pattern, **request}
    return _act(box, "grep", whole, lambda answer: [_results.Match(**match) for match in _read(answer)["matches"]])


def delete_file(box: _native.Sandbox, path: str, recursive: bool, expected_version: Optional[str]) -> Call[None]:
    request = {"path": path, "recursive": recursive, "expected_version": expected_version}
    return _act(box, "delete_file", request, lambda answer: None)


def move_file(
    box: _native.Sandbox, from_path: str, to_path: str, overwrite: bool, expected_version: Optional[str]
) -> Call[None]:
    request = {"from": from_path, "to": to_path, "overwrite": overwrite, "expected_version": expected_version}
    return _act(box, "move_file", request, lambda answer: None)


def mkdir(box: _native.Sandbox, path: str) -> Call[None]:
    return _act(box, "make_directory", {"path": path}, lambda answer: None)


def stat(box: _native.Sandbox, path: str, follow_symlinks: bool) -> Call[FileStat]:
    return _act(box, "file_info", {"path": path, "follow": follow_symlinks}, lambda answer: _results.file_stat(answer))


def append(box: _native.Sandbox, path: str, value: Content, expected_version: Optional[str]) -> Call[None]:
    data = content(value)
    if expected_version is not None:
        import base64

        request = {"path": path, "content": base64.b64encode(data).decode(), "encoding": "base64", "expected_version": expected_version}
        return _act(box, "append_file", request, lambda answer: None)
    return Call(lambda done: box.append_bytes(path, data, done), _same)


def write_files(
    box: _native.Sandbox, files: Mapping[str, Content], expected_versions: Optional[Mapping[str, str]]
) -> Call[None]:
    given = [(path, content(value)) for path, value in files.items()]
    if not expected_versions:
        return Call(lambda done: box.write_all(given, done), _same)
    unknown = [path for path in expected_versions if path not in files]
    if unknown:
        raise ValueError(f"expected_versions names {unknown[0]!r}, which is not written")
    import base64

    rows = [
        {
            "path": path,
            "content": base64.b64encode(data).decode(),
            "encoding": "base64",
            "expected_version": expected_versions.get(path),
        }
        for path, data in given
    ]
    return _act(box, "write_files", {"files": rows}, lambda answer: None)


def copy(
    box: _native.Sandbox, from_path: str, to_path: str, recursive: bool, expected_version: Optional[str]
) -> Call[str]:
    request = {"from": from_path, "to": to_path, "recursive": recursive, "expected_version": expected_version}
    return _act(box, "copy_files", request, lambda answer: str(answer["to"]))


def walk(box: _native.Sandbox, path: str) -> Call[list[FileStat]]:
    return Call(lambda done: box.walk(path, done), lambda answer: [_results.file_stat(row) for row in json.loads(answer)])


HostPath: TypeAlias = "Union[str, os.PathLike[str]]"
#: Limits by name, or a limits file.
LimitsLike: TypeAlias = "Union[Mapping[str, Any], HostPath]"


def upload(box: _native.Sandbox, host: HostPath, path: str) -> Call[int]:
    return Call(lambda done: box.upload(os.fspath(host), path, done), _same)


def download(box: _native.Sandbox, path: str, host: HostPath, overwrite: bool) -> Call[int]:
    return Call(lambda done: box.download(path, os.fspath(host), overwrite, done), _same)


def upload_dir(box: _native.Sandbox, host: HostPath, path: str) -> Call[TreeCopy]:
    return Call(lambda done: box.upload_dir(os.fspath(host), path, done), _copied)


def download_dir(box: _native.Sandbox, path: str, host: HostPath) -> Call[TreeCopy]:
    return Call(lambda done: box.download_dir(path, os.fspath(host), done), _copied)


def _copied(answer: str) -> TreeCopy:
    return _results.TreeCopy(**json.loads(answer))


def info(box: _native.Sandbox) -> Call[Info]:
    return Call(lambda done: box.info(done), lambda answer: _results.Info(**json.loads(answer)))


def exists(box: _native.Sandbox, path: str) -> Call[bool]:
    return Call(lambda done: box.exists(path, done), _same)


def history(
    box: _native.Sandbox,
    limit: int,
    since: Optional[float],
    before: Optional[int],
    name: Optional[str],
    grep: Optional[str],
    output: bool = False,
) -> Call[list[HistoryEntry]]:
    nanoseconds = None if since is None else int(since * 1e9)
    return Call(
        lambda done: box.history(limit, nanoseconds, before, name, grep, done, output),
        lambda answer: _results.history(answer),
    )


def log(
    box: _native.Sandbox, path: Optional[str], limit: int, before: Optional[int], digest: bool, stat: bool
) -> Call[list[Version]]:
    request = {"path": path, "limit": limit, "before": before, "digest": digest, "stat": stat}
    return _act(box, "log", request, lambda answer: [_results.Version(**version) for version in answer["versions"]])


def set_policy(box: _native.Sandbox, policy: Optional[PolicyLike]) -> Call[None]:
    text = None if policy is None else policy_text(policy)
    return Call(lambda done: _native.set_policy(box, text, done), _same)


def policy(box: _native.Sandbox) -> "Optional[dict[str, Any]]":
    text = _native.stored_policy(box)
    return None if text is None else json.loads(text)


def on_commit(box: _native.Sandbox, path: str, function: "Callable[[Commit], Any]") -> None:
    from ._records import Commit, FileChange

    def ask(text: str, contents: "dict[str, bytes]") -> Optional[str]:
        about = json.loads(text)
        changes = [FileChange(change.pop("from"), change.pop("type"), **change) for change in about.pop("changes")]
        answer = function(Commit(changes=changes, contents=contents, **about))
        if answer is None or answer is True:
            return None
        return answer if isinstance(answer, str) else "refused"

    _native.on_commit(box, path, ask)


def events(
    box: _native.Sandbox, after: Optional[int], consumer: Optional[str], path: Optional[str], wait: float
) -> "Call[tuple[list[Event], int, bool]]":
    request = {"after": after, "consumer": consumer, "path": path, "wait": wait}
    return _act(box, "events", request, _events)


def _events(answer: Any) -> "tuple[list[Event], int, bool]":
    from ._records import Event

    listed = [Event(event.pop("from"), event.pop("type"), **event) for event in answer["events"]]
    return listed, int(answer["version"]), bool(answer["more"])


def acknowledge(box: _native.Sandbox, consumer: str, version: Optional[int]) -> Call[None]:
    return _act(box, "acknowledge_events", {"consumer": consumer, "version": version}, lambda answer: None)


def diff(box: _native.Sandbox, start: str, end: str, paths: Sequence[str], names_only: bool) -> Call[Diff]:
    request = {"from": str(start), "to": str(end), "paths": list(paths), "names_only": names_only}
    return _act(box, "diff", request, _diff)


def show(box: _native.Sandbox, run: str) -> Call[ShownRun]:
    return _act(box, "show", {"run": run}, _shown)


def _shown(answer: Any) -> ShownRun:
    changes = answer["changes"]
    return _results.ShownRun(
        run=None if answer["run"] is None else _results.history_entry(answer["run"]),
        version=answer["version"],
        checkpoints=answer["checkpoints"],
        changes=None if changes is None else _diff(changes),
    )


def blame(box: _native.Sandbox, path: str, offset: int, limit: Optional[int]) -> Call[list[BlamedLine]]:
    return _act(box, "blame", {"path": path, "offset": offset, "limit": limit}, _blamed)


def _blamed(answer: Any) -> list[BlamedLine]:
    versions = {row["version"]: _results.Version(**row) for row in answer["versions"]}
    return [_results.BlamedLine(line["line"], line["text"], versions[line["version"]]) for line in answer["lines"]]


def bisect(box: _native.Sandbox, good: str, bad: str, command: str) -> Call[Bisection]:
    return _act(box, "bisect", {"good": good, "bad": bad, "command": command}, _bisection)


def _bisection(answer: Any) -> Bisection:
    changes = answer["changes"]
    return _results.Bisection(
        first_bad=_results.Version(**answer["first_bad"]),
        suspects=answer["suspects"],
        changes=None if changes is None else _diff(changes),
        tried=[(step["version"], step["verdict"]) for step in answer["steps"]],
    )


def replay(box: _native.Sandbox, start: Optional[str]) -> Call[Replayed]:
    return _act(box, "replay", {"from": start}, _replayed)


def _replayed(answer: Any) -> Replayed:
    difference = answer.pop("difference")
    found = None if difference is None else _results.ReplayDifference(**difference)
    return _results.Replayed(start=answer["from"], runs=answer["runs"], given=answer["given"], notes=answer["notes"], difference=found)


def changes(box: _native.Sandbox, since: Optional[str], paths: Sequence[str], names_only: bool) -> Call[Diff]:
    return _act(box, "changes", {"since": since, "paths": list(paths), "names_only": names_only}, _diff)


def apply(
    box: _native.Sandbox, directory: Union[str, "os.PathLike[str]"], since: Optional[str], path: Optional[str], dry_run: bool
) -> Call[Applied]:
    request = {"directory": os.fspath(directory), "since": since, "path": path, "dry_run": dry_run}
    return _act(box, "apply", request, _applied)


def _applied(answer: Any) -> Applied:
    refusals = {name: [_results.Refusal(**one) for one in answer[name]] for name in ("conflicts", "left_out")}
    files = [_results.AppliedFile(**file) for file in answer["files"]]
    return _results.Applied(files=files, unchanged=answer["unchanged"], is_applied=answer["is_applied"], **refusals)


def undo(box: _native.Sandbox, runs: int, dry_run: bool) -> Call[Diff]:
    return _act(box, "undo", {"runs": runs, "dry_run": dry_run}, _diff)


def restore(box: _native.Sandbox, version: str, paths: Sequence[str], dry_run: bool) -> Call[Diff]:
    return _act(box, "restore", {"version": str(version), "paths": list(paths), "dry_run": dry_run}, _diff)


def update(box: _native.Sandbox, path: str, to: Optional[str], keep: Optional[str]) -> Call[Updated]:
    def read(answer: Any) -> Updated:
        return _results.Updated(answer["path"], answer["from"], answer["to"], answer["changes"], answer["conflicts"])

    return _act(box, "update", {"path": path, "to": None if to is None else str(to), "keep": keep}, read)


def mount_function(
    box: _native.Sandbox, path: str, function: Callable[..., Any], is_directory: bool, overlay: bool
) -> Call[None]:
    return Call(lambda done: _native.mount_function(box, path, function, is_directory, overlay, done), _same)


def unmount(box: _native.Sandbox, path: str) -> Call[bool]:
    return Call(lambda done: _native.unmount(box, path, done), _same)


def _diff(answer: Any) -> Diff:
    files = [_results.Difference(**file) for file in answer["files"]]
    values = [_results.ValueDifference(**value) for value in answer.get("values", [])]
    unknown = answer.get("values_unknown", False)
    return _results.Diff(files, answer["total"], answer["patch"], answer["truncated"], values, unknown)


def checkpoint(box: _native.Sandbox, name: str, message: Optional[str]) -> Call[Checkpoint]:
    return _act(box, "checkpoint", {"name": name, "message": message}, lambda answer: _results.Checkpoint(**answer))


def checkpoints(box: _native.Sandbox) -> Call[list[Checkpoint]]:
    return _act(box, "checkpoints", {}, lambda answer: [_results.Checkpoint(**row) for row in answer["checkpoints"]])


def prune_versions(
    box: _native.Sandbox, versions: Optional[int], seconds: Optional[float], size: Optional[int]
) -> Call[int]:
    age = None if seconds is None else int(seconds)
    request = {"keep_versions": versions, "keep_seconds": age, "keep_bytes": size}
    return _act(box, "prune_versions", request, lambda answer: int(answer["versions"]))


def compact(box: _native.Sandbox) -> Call[Compacted]:
    return _act(box, "compact", {}, lambda answer: _results.Compacted(**answer))


def export_snapshot(box: _native.Sandbox, compat: Optional[str]) -> Call[bytes]:
    return Call(lambda done: box.export_snapshot(compat, done), _same)


def export_to(box: _native.Sandbox, path: Union[str, "os.PathLike[str]"], compat: Optional[str]) -> Call[None]:
    return Call(lambda done: box.export_to(path, compat, done), _same)


def git_export(box: _native.Sandbox, to: HostPath, path: str, bare: bool, checkpoints: bool) -> Call[GitExported]:
    form = (bare, checkpoints)
    return Call(lambda done: box.git_export(os.fspath(to), path, form, done), lambda answer: _results.GitExported(**json.loads(answer)))


def git_import(box: _native.Sandbox, source: HostPath, ref: Optional[str], into: str, depth: Optional[int]) -> Call[GitImported]:
    return Call(lambda done: box.git_import(os.fspath(source), ref, into, depth, done), lambda answer: _results.GitImported(**json.loads(answer)))


def sessions(box: _native.Sandbox) -> Call[list[str]]:
    return Call(lambda done: box.sessions(done), json.loads)


def session_directory(box: _native.Sandbox, name: str) -> Call[str]:
    return Call(lambda done: box.session_directory(name, done), json.loads)


def end_session(box: _native.Sandbox, name: str) -> Call[bool]:
    return Call(lambda done: box.end_session(name, done), _same)


def kv_get(box: _native.Sandbox, key: str, default: Any = None) -> Call[Any]:
    return Call(lambda done: box.kv_get(key, done), lambda answer: default if answer is None else json.loads(answer))


def kv_contains(box: _native.Sandbox, key: str) -> Call[bool]:
    return Call(lambda done: box.kv_get(key, done), lambda answer: answer is not None)


def kv_items(box: _native.Sandbox, prefix: str) -> "Call[list[tuple[str, Any]]]":
    return Call(lambda done: box.kv_items(prefix, done), lambda answer: [(key, value) for key, value in json.loads(answer)])


def kv_set(box: _native.Sandbox, key: str, value: Any) -> Call[int]:
    # ``None`` is a value too.
    text = json.dumps({"key": key, "value": value})
    return Call(lambda done: box.perform_action("kv_set", text, done), lambda answer: int(json.loads(answer)["data"]["version"]))


def kv_delete(box: _native.Sandbox, key: str) -> Call[bool]:
    return _act(box, "kv_delete", {"key": key}, lambda answer: bool(answer["found"]))


def kv_keys(box: _native.Sandbox, prefix: str) -> Call[list[str]]:
    return Call(lambda done: box.kv_keys(prefix, done), json.loads)
