"""The synchronous sandbox."""

from __future__ import annotations

import os

from . import _calls, _native
from ._calls import (
    Call,
    Content,
    EditLike,
    HostPath,
    LimitsLike,
    McpServersLike,
    MountLike,
    OnOutput,
    Opening,
    PolicyLike,
    Text,
)
from ._results import Result, result
from ._typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence, TypeVar, Union

if TYPE_CHECKING:
    from types import TracebackType

    from ._commands import CommandLike, ProgramLike
    from ._host_tools import Approve, ToolLike
    from ._pip import Installation, Package, PathLike
    from ._process import Process, Stream
    from ._providers import DirectoryProvider, FileProvider
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
        Replayed,
        ShownRun,
        TreeCopy,
        Updated,
        Version,
    )

T = TypeVar("T")


def _finish(call: Call[T]) -> T:
    return call.read(call.ask(None))


def _run(
    native: _native.Sandbox,
    kind: str,
    text: str,
    on_stdout: Optional[OnOutput],
    on_stderr: Optional[OnOutput],
    check: bool,
    session: Optional[str] = None,
    cwd: Optional[str] = None,
    env: Optional[Mapping[str, str]] = None,
    stdin: Optional[Text] = None,
    timeout: Optional[float] = None,
    rollback_on_failure: bool = False,
    seed: Optional[int] = None,
    record: bool = False,
    echo: bool = False,
) -> Result:
    options = (session, cwd, None if env is None else dict(env), timeout, rollback_on_failure, seed, record)
    given = _calls.stdin_bytes(stdin)
    if on_stdout is None and on_stderr is None:
        return result(native.run(kind, text, options, given, None, echo), check, text)
    from ._process import follow

    followed = follow(native.start(kind, text, options, given, True, echo), text, on_stdout, on_stderr)
    return followed.check() if check else followed


def _process(running: _native.Running, command: str) -> Process:
    from ._process import Process

    return Process(running, command)


def _stream(running: _native.Running, command: str) -> Stream:
    from ._process import Stream

    return Stream(running, command)


class Kv:
    """Small JSON values by name, stored separately from files.

    >>> box.kv.set("plan", {"step": 1})
    1
    >>> box.kv.get("plan"), "plan" in box.kv
    ({'step': 1}, True)
    """

    def __init__(self, native: _native.Sandbox) -> None:
        self._native = native

    def get(self, key: str, default: Any = None) -> Any:
        """Returns the value of a key, or ``default``.

        >>> box.kv.get("missing", 0)
        0
        """
        return _finish(_calls.kv_get(self._native, key, default))

    def set(self, key: str, value: Any) -> int:
        """Stores a value that JSON can represent and returns the key's new version.

        >>> box.kv.set("tries", 3)
        1
        """
        return _finish(_calls.kv_set(self._native, key, value))

    def delete(self, key: str) -> bool:
        """Deletes a key and returns whether it existed.

        >>> box.kv.delete("missing")
        False
        """
        return _finish(_calls.kv_delete(self._native, key))

    def keys(self, prefix: str = "") -> list[str]:
        """Returns the keys with a prefix, sorted.

        >>> box.kv.set("plan/1", "think"), box.kv.set("plan/2", "act")
        (1, 1)
        >>> box.kv.keys("plan/")
        ['plan/1', 'plan/2']
        """
        return _finish(_calls.kv_keys(self._native, prefix))

    def items(self, prefix: str = "") -> "list[tuple[str, Any]]":
        """Returns the keys with a prefix and their values, sorted by key, all from one state of the store.

        >>> box.kv.set("plan/1", "think")
        1
        >>> box.kv.items("plan/")
        [('plan/1', 'think')]
        """
        return _finish(_calls.kv_items(self._native, prefix))

    def contains(self, key: str) -> bool:
        """Returns whether a key exists; ``key in box.kv`` is the same.

        >>> box.kv.contains("missing")
        False
        """
        return _finish(_calls.kv_contains(self._native, key))

    def __contains__(self, key: str) -> bool:
        return self.contains(key)


class Session:
    """A shell and a Python interpreter that continue where their last calls ended: directory, variables, functions; globals and
    imports.

    The shell's state is stored in the database. The Python interpreter lives as long as the sandbox is open; if it has to be
    restarted, the result's ``restarted`` is true.

    >>> session = box.session("work")
    >>> session.bash("cd /tmp; name=ada")
    Result(exit_code=0, stdout='', stderr='')
    >>> session.bash("echo $name in $PWD").stdout
    'ada in /tmp\\n'
    """

    def __init__(self, native: _native.Sandbox, name: str) -> None:
        self._native = native
        #: The name of the session.
        self.name = name

    def bash(
        self,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Text] = None,
        timeout: Optional[float] = None,
        rollback_on_failure: bool = False,
        check: bool = False,
        on_stdout: Optional[OnOutput] = None,
        on_stderr: Optional[OnOutput] = None,
    ) -> Result:
        """Runs a bash command line where the last one ended, with the options of :meth:`Sandbox.bash`.

        >>> session.bash("greet() { echo hello $1; }").ok
        True
        >>> session.bash("greet ada").stdout
        'hello ada\\n'
        """
        return _run(
            self._native,
            "bash",
            command,
            on_stdout,
            on_stderr,
            check,
            session=self.name,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout=timeout,
            rollback_on_failure=rollback_on_failure,
        )

    def python(
        self,
        code: str,
        *,
        stdin: Optional[Text] = None,
        timeout: Optional[float] = None,
        echo: bool = True,
        check: bool = False,
        on_stdout: Optional[OnOutput] = None,
        on_stderr: Optional[OnOutput] = None,
    ) -> Result:
        """Runs Python code in the session's persistent interpreter.

        As in a notebook, the value of a last expression is printed. It is also the result's ``value`` if JSON can represent it,
        and images are in ``images``. ``echo=False`` turns that off.

        >>> session.python("x = 20").ok
        True
        >>> session.python("x + 1").stdout
        '21\\n'
        """
        return _run(
            self._native,
            "python",
            code,
            on_stdout,
            on_stderr,
            check,
            session=self.name,
            stdin=stdin,
            timeout=timeout,
            echo=echo,
        )

    def start(
        self,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Text] = None,
        timeout: Optional[float] = None,
        rollback_on_failure: bool = False,
    ) -> Process:
        """Starts a bash command line in this session; see :meth:`Sandbox.start`.

        >>> session.start("echo later").wait().stdout
        'later\\n'
        """
        running = _calls.start(
            self._native,
            "bash",
            command,
            session=self.name,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout=timeout,
            rollback_on_failure=rollback_on_failure,
            interactive=True,
        )
        return _process(running, command)

    def start_python(
        self, code: str, *, stdin: Optional[Text] = None, timeout: Optional[float] = None, echo: bool = True
    ) -> Process:
        """Starts Python code in this session; see :meth:`Sandbox.start`.

        >>> session.start_python("6 * 7").wait().stdout
        '42\\n'
        """
        running = _calls.start(
            self._native, "python", code, session=self.name, stdin=stdin, timeout=timeout, echo=echo, interactive=True
        )
        return _process(running, code)

    def stream(
        self,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Text] = None,
        timeout: Optional[float] = None,
        rollback_on_failure: bool = False,
    ) -> Stream:
        """Runs a bash command line in this session and yields its output as it arrives; see :meth:`Sandbox.stream`.

        >>> [chunk.text for chunk in session.stream("echo hi")]
        ['hi\\n']
        """
        running = _calls.start(
            self._native,
            "bash",
            command,
            session=self.name,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout=timeout,
            rollback_on_failure=rollback_on_failure,
        )
        return _stream(running, command)

    def stream_python(
        self, code: str, *, stdin: Optional[Text] = None, timeout: Optional[float] = None, echo: bool = True
    ) -> Stream:
        """Runs Python code in this session and yields its output as it arrives; see :meth:`Sandbox.stream`.

        >>> [chunk.text for chunk in session.stream_python("print(6 * 7)")]
        ['42\\n']
        """
        running = _calls.start(
            self._native, "python", code, session=self.name, stdin=stdin, timeout=timeout, echo=echo
        )
        return _stream(running, code)

    def directory(self) -> str:
        """Returns the directory in which the shell's next call starts.

        >>> session.directory()
        '/home/user'
        """
        return _finish(_calls.session_directory(self._native, self.name))

    def end(self) -> bool:
        """Deletes the shell's state, ends the Python interpreter, and returns whether there was either. The next call starts
        afresh.

        >>> session.end()
        False
        """
        return _finish(_calls.end_session(self._native, self.name))

    def __repr__(self) -> str:
        return f"<sandlite.Session {self.name!r} of {self._native.label}>"


class Sandbox:
    """A small computer in one database: files, bash, Python, a key-value store and the history of all runs.

    >>> from sandlite import Sandbox
    >>> with Sandbox(files={"data.txt": "3\\n4\\n"}) as box:
    ...     box.bash("paste -sd+ data.txt | bc").stdout
    '7\\n'

    ``db`` is the database file; without one the sandbox is in memory. ``files`` are written into it, ``snapshot`` (bytes or a
    path) is its initial state, and ``read_only=True`` opens an existing file for reading. Several processes can have one file
    open: their commands take turns, and each sees the committed changes of the others. A command waits ``wait`` seconds (default:
    10) for another process, and then raises :class:`~sandlite.errors.BusyError`.

    ``preset`` limits commands: ``strict``, ``normal`` or ``permissive``. ``limits`` overrides single limits, also to higher
    values: ``{"wall": "5 min", "memory": "2 GB"}``, numbers of seconds and bytes, or a file as for ``--preset`` of the command
    line. Commands have no network, no environment variables of this machine except ``env``, and no directory of this machine
    except ``mounts`` (``"./src:/src"``, or a :class:`Mount`), which are never written to. A mount can also be another sandbox's
    database (``"db:base.db:/base"``) or a past version (``"at:HEAD~1:/before"``). ``base`` lays the sandbox over the whole tree of
    another one (``"base.db"``, ``"base.db@v3"``), which is only read and can be shared by many; :meth:`update` moves it onto a
    newer version. ``python`` selects ``python3``: ``core``, or ``sci`` for NumPy, pandas, Matplotlib and more, after
    ``sandlite guests add python-sci``.

    ``policy`` controls access: a policy file, a mapping such as ``{"rules": [{"path": "/secret", "access": "hidden"}]}``, or only
    its rules. It applies to commands, files and tools, in addition to the policy stored in the sandbox; :meth:`owner` returns a
    handle without restrictions.

    ``tools`` are functions that programs in the sandbox may call. ``approve`` decides about each call: it receives a
    :class:`ToolCall` and returns ``True`` or ``False``. The command's clock is paused meanwhile; after ``approve_timeout``
    seconds (default: 600) the command ends. A tool can read the sandbox that called it, in its state before the command; changing
    it raises :class:`~sandlite.errors.BusyError`.

    ``programs`` are programs for ``wasm32-wasip1`` or ``wasm32-wasip2`` in ``/usr/local/bin``: bytes, a file on this machine, or
    ``None`` for one installed with ``sandlite guests add``. ``commands`` are functions that appear as programs: each receives a
    :class:`CommandCall` and returns its exit status; see :meth:`command`. ``allow_host`` names programs of this machine that the
    sandbox may run, such as ``["git"]``: on a copy of the current directory, under bubblewrap, without a network; their changes
    are copied back.

    ``mcp_servers`` are servers of the Model Context Protocol whose tools the sandbox may call: by name
    ``{"command": "npx", "args": […], "env": {…}}`` or ``{"url": "http://…", "headers": {…}}``, or a file of that format. The client runs
    here; inside, a server is a module (``from servers.NAME import TOOL``), ``/servers/NAME/SKILL.md`` and the command ``mcp NAME TOOL JSON``.
    ``approve`` decides about these calls too. The descriptions of a server's tools are pinned in the sandbox: a tool whose description changes
    later is disabled until :meth:`confirm_mcp`.

    One command or change runs at a time; others wait for their turn. Reading never waits and returns the last committed state, so any
    number of threads and processes can read while one writes. Calls release the interpreter lock, and Ctrl-C kills a running command.
    Relative paths start in ``cwd``. Sandboxes do not survive ``os.fork()``: use the start method ``spawn`` of :mod:`multiprocessing`.
    """

    def __init__(
        self,
        db: Optional[HostPath] = None,
        *,
        files: Optional[Mapping[str, Content]] = None,
        snapshot: Optional[Union[bytes, HostPath]] = None,
        cwd: str = "/home/user",
        preset: str = "normal",
        env: Optional[Mapping[str, str]] = None,
        mounts: Optional[Sequence[MountLike]] = None,
        tools: Optional[Sequence[ToolLike]] = None,
        approve: Optional[Approve] = None,
        approve_timeout: Optional[float] = None,
        python: str = "core",
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
        opening = Opening(
            db,
            files,
            snapshot,
            cwd,
            preset,
            env,
            mounts,
            tools,
            approve,
            python=python,
            approve_timeout=approve_timeout,
            read_only=read_only,
            wait=wait,
            limits=limits,
            programs=programs,
            commands=commands,
            base=base,
            allow_host=allow_host,
            policy=policy,
            mcp_servers=mcp_servers,
        )
        try:
            self._native: _native.Sandbox = opening.ask(None)
        finally:
            opening.forget()

    @classmethod
    def _of(cls, native: _native.Sandbox) -> "Sandbox":
        made = cls.__new__(cls)
        made._native = native
        return made

    def command(self, name: str) -> "Callable[[CommandLike], CommandLike]":
        """Makes a function a program of the sandbox, for all commands started from now on.

        >>> @box.command("greet")
        ... def greet(call):
        ...     print("hello", *call.args[1:], file=call.stdout)
        >>> box.bash("greet you | tr a-z A-Z").stdout
        'HELLO YOU\\n'

        The function receives a :class:`CommandCall` and runs on its own thread. It returns its exit status, or ``None`` for 0; an
        exception is printed to standard error, and the status is then 1. Each call is recorded in the history.
        """

        from ._commands import wrapped

        def add(function: CommandLike) -> CommandLike:
            _native.add_command(self._native, name, wrapped(function))
            return function

        return add

    def mcp_servers(self) -> "list[McpServer]":
        """Returns the MCP servers of the sandbox with their tools, and why a tool is off.

        >>> [server.name for server in box.mcp_servers()]
        []
        """
        return _calls.mcp_servers(self._native)

    def connect_mcp(
        self, servers: McpServersLike, *, approve: Optional[Approve] = None, approve_timeout: Optional[float] = None
    ) -> None:
        """Gives the sandbox MCP servers, as the argument ``mcp_servers`` does, for all commands that are started from here on.

        >>> box.connect_mcp({"files": {"command": "mcp-files", "args": ["/srv"]}})  # doctest: +SKIP
        """
        _finish(_calls.connect_mcp(self._native, servers, approve, approve_timeout))

    def confirm_mcp(self, name: str) -> None:
        """Confirms the current descriptions of an MCP server's tools: tools that have changed since they were granted are enabled again.

        >>> box.confirm_mcp("files")  # doctest: +SKIP
        """
        _finish(_calls.confirm_mcp(self._native, name))

    @property
    def kv(self) -> Kv:
        """The key-value store."""
        return Kv(self._native)

    @property
    def path(self) -> Optional[str]:
        """The database file; ``None`` in memory."""
        return self._native.path

    @property
    def preset(self) -> str:
        """The name of the preset."""
        return self._native.preset

    @property
    def limits(self) -> "dict[str, str]":
        """The limits of a command, by their names in the preset files."""
        return dict(self._native.limits)

    @property
    def read_only(self) -> bool:
        """Whether it was opened read-only, or shows a past version."""
        return self._native.read_only

    @property
    def cwd(self) -> str:
        """The directory in which commands start."""
        return self._native.cwd

    @property
    def import_notes(self) -> list[str]:
        """What was omitted or changed when the snapshot was imported."""
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
        stdin: Optional[Text] = None,
        timeout: Optional[float] = None,
        rollback_on_failure: bool = False,
        seed: Optional[int] = None,
        record: bool = False,
        check: bool = False,
        on_stdout: Optional[OnOutput] = None,
        on_stderr: Optional[OnOutput] = None,
    ) -> Result:
        """Runs a bash command line. A non-zero exit code is a result; ``check=True`` raises :class:`CommandError` instead.

        ``timeout`` (seconds) lowers the preset's time limit; ``rollback_on_failure`` rolls back the file changes of a command
        that fails; ``seed`` makes the run repeatable; ``record`` records its inputs for :meth:`replay`. ``on_stdout`` and
        ``on_stderr`` are called with each piece of output as text while the command runs, on this thread; the command waits while
        they run. They can read the sandbox, but changing it or running a command in it raises :class:`BusyError`.

        >>> box.bash("echo hello | tr a-z A-Z").stdout
        'HELLO\\n'
        >>> box.bash("echo working; exit 3", on_stdout=print).exit_code
        working
        <BLANKLINE>
        3
        """
        return _run(
            self._native,
            "bash",
            command,
            on_stdout,
            on_stderr,
            check,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout=timeout,
            rollback_on_failure=rollback_on_failure,
            seed=seed,
            record=record,
        )

    def python(
        self,
        code: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Text] = None,
        timeout: Optional[float] = None,
        rollback_on_failure: bool = False,
        seed: Optional[int] = None,
        record: bool = False,
        echo: bool = False,
        check: bool = False,
        on_stdout: Optional[OnOutput] = None,
        on_stderr: Optional[OnOutput] = None,
    ) -> Result:
        """Runs Python code in a new interpreter, with the options of :meth:`bash`. Code that raises returns a result.

        With ``echo`` the value of a last expression is printed, as in a notebook; see :meth:`Session.python`.

        >>> box.python("print(6 * 7)").stdout
        '42\\n'
        """
        return _run(
            self._native,
            "python",
            code,
            on_stdout,
            on_stderr,
            check,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout=timeout,
            rollback_on_failure=rollback_on_failure,
            seed=seed,
            record=record,
            echo=echo,
        )

    def start(
        self,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Text] = None,
        timeout: Optional[float] = None,
        rollback_on_failure: bool = False,
        seed: Optional[int] = None,
    ) -> Process:
        """Starts a bash command line and returns at once, with a :class:`Process` to write to, read from, kill and wait for.

        Without ``stdin`` its standard input stays open until :meth:`Process.close_stdin` or :meth:`Process.wait`.

        >>> process = box.start("sort")
        >>> process.send_stdin("b\\na\\n")
        >>> process.wait().stdout
        'a\\nb\\n'
        """
        running = _calls.start(
            self._native,
            "bash",
            command,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout=timeout,
            rollback_on_failure=rollback_on_failure,
            seed=seed,
            interactive=True,
        )
        return _process(running, command)

    def start_python(
        self,
        code: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Text] = None,
        timeout: Optional[float] = None,
        rollback_on_failure: bool = False,
        seed: Optional[int] = None,
        echo: bool = False,
    ) -> Process:
        """Starts Python code and returns at once; see :meth:`start`.

        >>> process = box.start_python("print(input().upper())")
        >>> process.send_stdin("hello\\n")
        >>> process.wait().stdout
        'HELLO\\n'
        """
        running = _calls.start(
            self._native,
            "python",
            code,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout=timeout,
            rollback_on_failure=rollback_on_failure,
            seed=seed,
            echo=echo,
            interactive=True,
        )
        return _process(running, code)

    def stream(
        self,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Text] = None,
        timeout: Optional[float] = None,
        rollback_on_failure: bool = False,
        seed: Optional[int] = None,
    ) -> Stream:
        """Runs a bash command line and yields its output as it arrives, in :class:`Chunk` objects.

        The command waits while you process a chunk. Meanwhile the sandbox can be read, but changing it raises :class:`BusyError`.
        Closing the stream kills the command.

        >>> stream = box.stream("echo out; sleep 0.01; echo err >&2")
        >>> [(chunk.stream, chunk.text) for chunk in stream]
        [('stdout', 'out\\n'), ('stderr', 'err\\n')]
        >>> stream.result.exit_code
        0
        """
        running = _calls.start(
            self._native,
            "bash",
            command,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout=timeout,
            rollback_on_failure=rollback_on_failure,
            seed=seed,
        )
        return _stream(running, command)

    def stream_python(
        self,
        code: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Text] = None,
        timeout: Optional[float] = None,
        rollback_on_failure: bool = False,
        seed: Optional[int] = None,
        echo: bool = False,
    ) -> Stream:
        """Runs Python code and yields its output as it arrives; see :meth:`stream`.

        >>> "".join(chunk.text for chunk in box.stream_python("print(1); print(2)"))
        '1\\n2\\n'
        """
        running = _calls.start(
            self._native,
            "python",
            code,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout=timeout,
            rollback_on_failure=rollback_on_failure,
            seed=seed,
            echo=echo,
        )
        return _stream(running, code)

    def read_file(self, path: str) -> str:
        """Returns the text of a file; bytes that are not UTF-8 are replaced.

        >>> box.write_file("notes.txt", "hello")
        >>> box.read_file("notes.txt")
        'hello'
        """
        return _finish(_calls.read_file(self._native, path))

    def read_bytes(self, path: str) -> bytes:
        """Returns the bytes of a file.

        >>> box.write_file("raw", b"\\x00\\xff")
        >>> box.read_bytes("raw")
        b'\\x00\\xff'
        """
        return _finish(_calls.read_bytes(self._native, path))

    def read_window(self, path: str, offset: Optional[int] = None, limit: Optional[int] = None) -> FileWindow:
        """Returns some lines of a file (``offset`` counts from 1) and its version.

        >>> box.write_file("f", "one\\ntwo\\nthree\\n")
        >>> box.read_window("f", offset=2, limit=1).content
        'two\\n'
        """
        return _finish(_calls.read_window(self._native, path, offset, limit))

    def write_file(self, path: str, content: Content, *, expected_version: Optional[str] = None) -> None:
        """Writes a whole file from text, bytes or a path on this machine, creating missing parent directories.

        With ``expected_version`` it raises :class:`~sandlite.errors.StaleFileError` if the file has changed since that version
        was read; ``"none"`` requires that the file does not exist.

        >>> box.write_file("src/main.py", "print(1)\\n")
        """
        _finish(_calls.write_file(self._native, path, content, expected_version))

    def write_files(
        self, files: Mapping[str, Content], *, expected_versions: Optional[Mapping[str, str]] = None
    ) -> None:
        """Writes many files in one transaction, all or none. Each path in ``expected_versions`` must have that version.

        >>> box.write_files({"a.txt": "a", "b/c.bin": b"\\x00"})
        >>> box.glob("**/*")
        ['/home/user/a.txt', '/home/user/b/c.bin']
        """
        _finish(_calls.write_files(self._native, files, expected_versions))

    def append(self, path: str, content: Content, *, expected_version: Optional[str] = None) -> None:
        """Appends text, bytes or a file on this machine to a file, which is created if missing. With ``expected_version`` the
        file must have that version.

        >>> box.append("log", "one\\n")
        >>> box.append("log", "two\\n")
        >>> box.read_file("log")
        'one\\ntwo\\n'
        """
        _finish(_calls.append(self._native, path, content, expected_version))

    def edit_file(
        self,
        path: str,
        edits: Sequence[EditLike],
        *,
        expected_version: Optional[str] = None,
    ) -> Edited:
        """Replaces exact pieces of text, all or none: ``[(old, new), …]``. Each old text must occur exactly once.

        >>> box.write_file("f", "x = 1\\n")
        >>> box.edit_file("f", [("x = 1", "x = 2")]).replacements
        1
        """
        return _finish(_calls.edit_file(self._native, path, edits, expected_version))

    def list_files(
        self,
        path: Optional[str] = None,
        *,
        depth: int = 1,
        hidden: bool = False,
    ) -> list[FileEntry]:
        """Lists a directory to a given depth; at most 1000 entries. :meth:`walk` lists everything.

        >>> box.write_file("f", "x")
        >>> [entry.name for entry in box.list_files()]
        ['f']
        """
        return _finish(_calls.list_files(self._native, path, depth, hidden))

    def walk(self, path: str = ".") -> list[FileStat]:
        """Returns the metadata of a directory and of everything below it, each directory before its content.

        >>> box.write_file("a/b", "x")
        >>> [found.path for found in box.walk("a")]
        ['/home/user/a', '/home/user/a/b']
        """
        return _finish(_calls.walk(self._native, path))

    def glob(self, pattern: str, path: Optional[str] = None, *, hidden: bool = False) -> list[str]:
        """Returns the files that match a pattern such as ``src/**/*.{py,toml}``; at most 1000.

        >>> box.write_file("src/main.py", "")
        >>> box.glob("**/*.py")
        ['/home/user/src/main.py']
        """
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
        """Returns the lines that match a regular expression (in Rust's syntax); at most 200.

        >>> box.write_file("f", "one\\ntwo\\n")
        >>> [(match.line, match.text) for match in box.grep("^t")]
        [(2, 'two')]
        """
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
        """Returns whether a path exists.

        >>> box.exists("/tmp"), box.exists("/missing")
        (True, False)
        """
        return _finish(_calls.exists(self._native, path))

    def stat(self, path: str, *, follow_symlinks: bool = True) -> FileStat:
        """Returns the metadata of a path.

        >>> box.write_file("f", "five!")
        >>> found = box.stat("f")
        >>> found.kind, found.size, oct(found.mode)
        ('file', 5, '0o644')
        """
        return _finish(_calls.stat(self._native, path, follow_symlinks))

    def mkdir(self, path: str) -> None:
        """Creates a directory and its missing parents. An existing directory is not an error.

        >>> box.mkdir("a/b")
        """
        _finish(_calls.mkdir(self._native, path))

    def copy(
        self, from_path: str, to_path: str, *, recursive: bool = False, expected_version: Optional[str] = None
    ) -> str:
        """Copies a file, or a directory with everything below it if ``recursive``, in one transaction, and returns the copy's path.

        If the destination is an existing directory, the copy is placed inside it. With ``expected_version`` it copies only if the
        file at ``to_path`` has that version.

        >>> box.write_file("f", "x")
        >>> box.copy("f", "g")
        '/home/user/g'
        """
        return _finish(_calls.copy(self._native, from_path, to_path, recursive, expected_version))

    def move(
        self, from_path: str, to_path: str, *, overwrite: bool = False, expected_version: Optional[str] = None
    ) -> None:
        """Moves a file or a directory; replaces a file only if ``overwrite``. With ``expected_version`` the file must have that version.

        >>> box.write_file("f", "x")
        >>> box.move("f", "g")
        """
        _finish(_calls.move_file(self._native, from_path, to_path, overwrite, expected_version))

    def remove(self, path: str, *, recursive: bool = False, expected_version: Optional[str] = None) -> None:
        """Deletes a file, a link or an empty directory; a directory with everything below it if ``recursive``. With
        ``expected_version`` the file must have that version.

        >>> box.write_file("d/f", "x")
        >>> box.remove("d", recursive=True)
        """
        _finish(_calls.delete_file(self._native, path, recursive, expected_version))

    def delete_file(self, path: str, *, recursive: bool = False) -> None:
        """Same as :meth:`remove`, under its name for models.

        >>> box.write_file("f", "x")
        >>> box.delete_file("f")
        """
        self.remove(path, recursive=recursive)

    def move_file(self, from_path: str, to_path: str, *, overwrite: bool = False) -> None:
        """Same as :meth:`move`, under its name for models.

        >>> box.write_file("f", "x")
        >>> box.move_file("f", "g")
        """
        self.move(from_path, to_path, overwrite=overwrite)

    def upload(self, host_path: HostPath, path: str) -> int:
        """Copies a file from this machine into the sandbox and returns its size. It is streamed.

        >>> open("report.csv", "w").write("a,b\\n")
        4
        >>> box.upload("report.csv", "data/report.csv")
        4
        """
        return _finish(_calls.upload(self._native, host_path, path))

    def download(self, path: str, host_path: HostPath, *, overwrite: bool = False) -> int:
        """Copies a file from the sandbox to this machine and returns its size. The file is created atomically.

        Raises :class:`FileExistsError` if the file exists, unless ``overwrite``.

        >>> box.write_file("f", "five!")
        >>> box.download("f", "out.txt")
        5
        """
        return _finish(_calls.download(self._native, path, host_path, overwrite))

    def upload_dir(self, host_path: HostPath, path: str) -> TreeCopy:
        """Copies a directory from this machine with everything below it into the sandbox, in one transaction.

        Links are copied as links. Directories that may contain secrets (``/etc``, ``~/.ssh``, …) are rejected.

        >>> os.makedirs("project/src")
        >>> box.upload_dir("project", "/work").directories
        1
        """
        return _finish(_calls.upload_dir(self._native, host_path, path))

    def download_dir(self, path: str, host_path: HostPath) -> TreeCopy:
        """Copies a directory from the sandbox with everything below it to this machine. Existing files are not overwritten.

        >>> box.write_file("out/a.txt", "a")
        >>> box.download_dir("out", "result").files
        1
        """
        return _finish(_calls.download_dir(self._native, path, host_path))

    def history(
        self,
        limit: int = 100,
        *,
        since: Optional[float] = None,
        before: Optional[int] = None,
        name: Optional[str] = None,
        grep: Optional[str] = None,
        output: bool = False,
    ) -> list[HistoryEntry]:
        """Returns past runs, newest first. With ``output`` the rows include the output of commands.

        >>> box.bash("echo hi").ok
        True
        >>> [(row.command, row.exit_code, row.stdout) for row in box.history(1, output=True)]
        [('echo hi', 0, 'hi\\n')]
        """
        return _finish(_calls.history(self._native, limit, since, before, name, grep, output))

    def info(self) -> Info:
        """Returns a summary of the sandbox: files, keys and runs, and the usage of each limit.

        >>> box.write_file("f", "five!")
        >>> info = box.info()
        >>> info.files, info.used["disk"]
        (1, 5)
        """
        return _finish(_calls.info(self._native))

    def pip_install(
        self,
        *packages: HostPath,
        requirements: Optional[Union[HostPath, Sequence[HostPath]]] = None,
        find_links: Optional[Union[HostPath, Sequence[HostPath]]] = None,
        offline: bool = False,
        no_deps: bool = False,
    ) -> Installation:
        """Installs Python packages by name (``"requests>=2"``) or from wheel files, with their dependencies.

        >>> box.pip_install("jinja2", "pyyaml")  # doctest: +SKIP
        >>> box.pip_install(requirements="requirements.txt", find_links="wheels/", offline=True)  # doctest: +SKIP

        This interpreter's pip downloads them without running any of their code. Packages with native code are tried without it.
        Raises :class:`~sandlite.PackageError` if some cannot be installed; the others are installed."""
        from . import _pip

        return _finish(_pip.install(self._native, packages, requirements, find_links, offline, no_deps))

    def packages(self) -> "list[Package]":
        """Returns the installed Python packages, sorted by name.

        >>> box.packages()
        []
        """
        from . import _pip

        return _finish(_pip.installed(self._native))

    def export_snapshot(self, *, compat: Optional[str] = None) -> bytes:
        """Returns everything (files, values, history) as the bytes of a ``.db`` file.

        ``compat="localsandbox"`` uses the layout of LocalSandbox 0.3, which can then open it.

        >>> with Sandbox(snapshot=box.export_snapshot()) as copy:
        ...     copy.bash("echo resumed").stdout
        'resumed\\n'
        """
        return _finish(_calls.export_snapshot(self._native, compat))

    def export_to(self, path: HostPath, *, compat: Optional[str] = None) -> None:
        """Writes the same to a new file on this machine.

        >>> box.export_to("snapshot.db")
        """
        _finish(_calls.export_to(self._native, path, compat))

    def git_export(
        self, to: HostPath, *, path: str = "/", bare: bool = False, checkpoints: bool = False
    ) -> GitExported:
        """Writes the versions as commits of a new git repository: a directory with files and ``.git``, ``NAME.git`` without
        files, or ``NAME.bundle``, one file that can be cloned. Checkpoints become tags, and ``path`` its root. With ``checkpoints`` they are the
        commits instead, with their messages.

        >>> box.write_file("/src/plan", "A")
        >>> box.git_export("plan.bundle", path="/src").commits
        1
        """
        return _finish(_calls.git_export(self._native, to, path, bare, checkpoints))

    def git_import(
        self, source: HostPath, *, ref: Optional[str] = None, into: str = ".", depth: Optional[int] = None
    ) -> GitImported:
        """Imports the commits of a git repository or bundle as versions: its first-parent history. Tags become checkpoints. If
        the repository is invalid, nothing is changed.

        >>> box.write_file("/src/plan", "A")
        >>> box.git_export("plan.bundle", path="/src").commits
        1
        >>> box.git_import("plan.bundle", into="/copy").versions
        1
        >>> box.read_file("/copy/plan")
        'A'
        """
        return _finish(_calls.git_import(self._native, source, ref, into, depth))

    def session(self, name: str = "main") -> "Session":
        """Returns a shell and a Python interpreter that keep their state between calls.

        >>> session = box.session("work")
        >>> session.bash("cd /tmp").ok, session.bash("pwd").stdout
        (True, '/tmp\\n')
        """
        return Session(self._native, name)

    def sessions(self) -> list[str]:
        """Returns the names of the sessions with shell state.

        >>> box.sessions()
        []
        """
        return _finish(_calls.sessions(self._native))

    def tool_text(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Performs an action and returns its text for a model; raises if it fails.

        >>> box.tool_text("bash", {"command": "echo hi"})
        'hi'
        """
        return _finish(_calls.tool_text(self._native, name, arguments))

    def call_action(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Performs one of :func:`sandlite.actions` as a model does: a failure is also a result.

        >>> box.call_action("read_file", {"path": "missing"}).is_error
        True
        """
        return _finish(_calls.call_action(self._native, name, arguments))

    def log(
        self, path: Optional[str] = None, *, limit: int = 20, before: Optional[int] = None, digest: bool = False, stat: bool = False
    ) -> list[Version]:
        """Returns the versions, newest first: each run that changed something created one. ``path`` selects those that changed
        it.

        ``digest`` computes the digest of each version's files. Equal trees have equal digests. ``stat`` counts the lines that each
        version added to and removed from its files.

        >>> box.write_file("/plan", "A")
        >>> [(version.command, version.changed) for version in box.log("/plan")]
        [('write_file /plan', ['/plan'])]
        """
        return _finish(_calls.log(self._native, path, limit, before, digest, stat))

    def diff(
        self, start: Union[str, int], end: Union[str, int] = "HEAD", paths: Sequence[str] = (), *, names_only: bool = False
    ) -> Diff:
        """Returns the differences between two versions: a run's number, ``"HEAD~3"``, a checkpoint or ``"@{2 hours ago}"``.

        >>> box.write_file("/plan", "A")
        >>> box.write_file("/plan", "B")
        >>> [(file.path, file.kind) for file in (box.diff("HEAD~1")).files]
        [('/plan', 'modified')]
        """
        return _finish(_calls.diff(self._native, str(start), str(end), paths, names_only))

    def show(self, run: Union[str, int] = "HEAD") -> ShownRun:
        """Returns one run with its output and changes. Any run's number is a reference, and so is a version.

        >>> box.write_file("/plan", "A")
        >>> (box.show("HEAD")).changes.files[0].path
        '/plan'
        """
        return _finish(_calls.show(self._native, str(run)))

    def blame(self, path: str, *, offset: int = 1, limit: Optional[int] = None) -> list[BlamedLine]:
        """Returns the lines of a text file, each with the version of the run that wrote it.

        >>> box.write_file("/plan", "A\\n")
        >>> [(line.text, line.version.command) for line in box.blame("/plan")]
        [('A', 'write_file /plan')]
        """
        return _finish(_calls.blame(self._native, path, offset, limit))

    def bisect(self, command: str, good: Union[str, int], bad: Union[str, int] = "HEAD") -> Bisection:
        """Finds the run that broke something: runs a bash command at versions between ``good`` and ``bad``.

        Each version is tested in a temporary copy. Exit code 0 means good, 125 skips the version, any other code below 128 means
        bad.

        >>> box.write_file("/state", "fine")
        >>> box.write_file("/state", "broken")
        >>> (box.bisect("grep -q fine /state", "HEAD~1")).first_bad.command
        'write_file /state'
        """
        return _finish(_calls.bisect(self._native, str(good), str(bad), command))

    def replay(self, start: Union[str, int, None] = None) -> Replayed:
        """Replays every run made with ``record=True`` in a copy, and compares exit code, output, files, keys and sessions after each.

        >>> result = box.bash("echo $RANDOM > /number; cat /number", record=True)
        >>> (box.replay()).difference is None
        True
        """
        return _finish(_calls.replay(self._native, None if start is None else str(start)))

    def changes(
        self, since: Union[str, int, None] = None, paths: Sequence[str] = (), *, names_only: bool = False
    ) -> Diff:
        """Returns the changes since a version; defaults to the mounted directories, or to the first run.

        >>> box.write_file("/plan", "A")
        >>> [(file.path, file.kind) for file in (box.changes()).files]
        [('/plan', 'added')]
        """
        return _finish(_calls.changes(self._native, None if since is None else str(since), paths, names_only))

    def apply(
        self,
        directory: HostPath,
        *,
        since: Union[str, int, None] = None,
        path: Optional[str] = None,
        dry_run: bool = False,
    ) -> Applied:
        """Applies the sandbox's changes to a directory on this machine, all or none.

        ``path`` is the corresponding directory in the sandbox; defaults to the overlay mount. A file that was edited in the
        directory meanwhile raises :class:`~sandlite.errors.ConflictError`, and nothing is changed.

        >>> import tempfile
        >>> box.write_file("/out/report.md", "done")
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     [file.path for file in (box.apply(directory, path="/out")).files]
        ['report.md']
        """
        version = None if since is None else str(since)
        return _finish(_calls.apply(self._native, directory, version, path, dry_run))

    def undo(self, runs: int = 1, *, dry_run: bool = False) -> Diff:
        """Undoes the last runs that changed something. Undoing an undo is a redo.

        >>> box.write_file("/plan", "A")
        >>> box.write_file("/plan", "B")
        >>> bool(box.undo())
        True
        >>> box.read_file("/plan")
        'A'
        """
        return _finish(_calls.undo(self._native, runs, dry_run))

    def restore(self, version: Union[str, int], paths: Sequence[str] = (), *, dry_run: bool = False) -> Diff:
        """Restores some paths, or all files, keys and sessions, to their state at a version. It can be undone.

        >>> box.write_file("/plan", "A")
        >>> (box.checkpoint("start")).name
        'start'
        >>> box.delete_file("/plan")
        >>> (box.restore("start", ["/plan"])).total
        1
        """
        return _finish(_calls.restore(self._native, str(version), paths, dry_run))

    def mount_file(self, path: str, function: FileProvider) -> None:
        """Mounts a file that ``function`` generates each time it is opened: it receives a :class:`NodeContext` and returns text
        or bytes.

        Programs read it like any other file and cannot change it. An exception becomes an input/output error for the reader; its
        message is printed to the command's standard error. The function must not change this sandbox.

        >>> box.mount_file("/srv/greeting", lambda context: f"hello from {context.path}\\n")
        >>> (box.bash("cat /srv/greeting")).stdout
        'hello from /srv/greeting\\n'
        """
        self._mount(path, function, False, False)

    def mount_directory(self, path: str, function: DirectoryProvider, *, overlay: bool = False) -> None:
        """Mounts a directory that ``function`` generates, once for a command and again whenever the directory is listed.

        It returns a mapping of names, or a :class:`ProvidedNode`: text and bytes are files, mappings are directories, and
        functions are files that are generated when they are opened. With ``overlay=True`` programs can change it, and the changes
        are stored in the sandbox.

        >>> box.mount_directory("/srv/users", lambda: {"ada": "1815\\n", "old": {"bob": b"1900\\n"}})
        >>> (box.bash("ls /srv/users; cat /srv/users/old/bob")).stdout
        'ada\\nold\\n1900\\n'
        """
        self._mount(path, function, True, overlay)

    def _mount(self, path: str, function: Any, is_directory: bool, overlay: bool) -> None:
        import weakref

        from ._providers import native

        # The native half holds the function, which must not hold the native half.
        this = weakref.ref(self)

        def sandbox() -> _native.Sandbox:
            alive = this()
            if alive is None:
                raise RuntimeError("the sandbox is closed")
            return alive._native

        called = native(function, is_directory, sandbox, None)
        _finish(_calls.mount_function(self._native, path, called, is_directory, overlay))

    def unmount(self, path: str) -> bool:
        """Removes a mount, and returns whether there was one. Changes made in an overlay are kept.

        >>> box.mount_file("/srv/now", lambda: "now")
        >>> box.unmount("/srv/now")
        True
        """
        return _finish(_calls.unmount(self._native, path))

    def update(self, path: str = "/", to: Optional[Union[str, int]] = None, *, keep: Optional[str] = None) -> Updated:
        """Moves an overlay over a database (``/`` for ``base``) onto its newest version, or onto ``to``, keeping this sandbox's
        changes.

        If both sides changed a path, ``keep="ours"`` or ``keep="theirs"`` selects a side; without it an exception lists those
        paths, and nothing is changed.

        >>> with Sandbox(db="base.db", files={"/plan": "A"}) as base:
        ...     pass
        >>> with Sandbox(base="base.db") as other:
        ...     (other.update()).changes
        0
        """
        return _finish(_calls.update(self._native, path, None if to is None else str(to), keep))

    def checkpoint(self, name: str, message: Optional[str] = None) -> Checkpoint:
        """Names the current version.

        >>> box.write_file("/plan", "A")
        >>> (box.checkpoint("start", "the first plan")).message
        'the first plan'
        """
        return _finish(_calls.checkpoint(self._native, name, message))

    def checkpoints(self) -> list[Checkpoint]:
        """Returns the checkpoints, newest first.

        >>> box.write_file("/plan", "A")
        >>> (box.checkpoint("start")).name
        'start'
        >>> [one.name for one in box.checkpoints()]
        ['start']
        """
        return _finish(_calls.checkpoints(self._native))

    def prune_versions(
        self, *, versions: Optional[int] = None, seconds: Optional[float] = None, size: Optional[int] = None
    ) -> int:
        """Deletes old versions and returns their number; keeps this many versions, those of the last seconds, or this many bytes.

        >>> box.prune_versions(versions=100)
        0
        """
        return _finish(_calls.prune_versions(self._native, versions, seconds, size))

    def compact(self) -> Compacted:
        """Returns free space of the database to the disk; this also happens by itself, bit by bit.

        >>> compacted = box.compact()
        >>> compacted.after_bytes <= compacted.before_bytes
        True
        """
        return _finish(_calls.compact(self._native))

    def at(self, version: Union[str, int]) -> "Sandbox":
        """Returns the sandbox as it was at a version. It cannot be changed; a command runs in a temporary copy.

        >>> box.write_file("/plan", "A")
        >>> box.write_file("/plan", "B")
        >>> box.at("HEAD~1").read_file("/plan")
        'A'
        """
        return Sandbox._of(self._native.at(str(version)))

    def view(self, principal: str, labels: Iterable[str] = ()) -> "Sandbox":
        """Returns the sandbox as seen by a principal with some labels. Paths that the policy hides from this view do not exist
        for it; it sees only its own runs and sessions.

        >>> box.set_policy([{"path": "/payroll", "label": "finance"}])
        >>> box.owner().write_file("/payroll/may.csv", "1,2")
        >>> box.view("ann", ["finance"]).exists("/payroll/may.csv"), box.view("bob").exists("/payroll")
        (True, False)
        """
        return Sandbox._of(_native.view(self._native, principal, list(labels)))

    def with_policy(self, policy: PolicyLike) -> "Sandbox":
        """Returns the sandbox with an additional policy. If policies differ, the stricter decision applies.

        >>> box.write_file("/notes", "one")
        >>> reader = box.with_policy([{"path": "/", "access": "read"}])
        >>> reader.bash("echo two > /notes").exit_code
        1
        """
        return Sandbox._of(_native.with_policy(self._native, _calls.policy_text(policy)))

    def owner(self) -> "Sandbox":
        """Returns the sandbox without any policy. Raises :class:`InvalidError` for a view and for the result of
        :meth:`with_policy`.

        >>> bound = box.with_policy([{"path": "/keys", "access": "hidden"}])
        >>> box.owner().exists("/keys")
        False
        """
        return Sandbox._of(_native.owner(self._native))

    @property
    def policy(self) -> "Optional[dict[str, Any]]":
        """The policy stored in the sandbox."""
        return _calls.policy(self._native)

    def set_policy(self, policy: Optional[PolicyLike]) -> None:
        """Stores a policy in the sandbox, replacing the previous one; ``None`` removes it. It takes effect at once.

        >>> box.set_policy([{"path": "/log", "access": "append"}])
        >>> box.policy
        {'rule': [{'path': '/log', 'access': 'append'}]}
        >>> box.set_policy(None)
        """
        _finish(_calls.set_policy(self._native, policy))

    def on_commit(
        self, path: str, function: "Optional[Callable[[Commit], Any]]" = None
    ) -> Any:
        """Calls a function before every commit that changes something at a path or below it; use it as a decorator, or pass the
        function.

        If it raises, or returns ``False`` or a message, the changes are rejected: a command ends with the message, a method
        raises :class:`RefusedError`. The function must not change the sandbox, which waits for it.

        >>> @box.on_commit("/src")
        ... def small(commit):
        ...     if any(change.size > 1000 for change in commit.changes):
        ...         return "too large"
        >>> box.bash("mkdir /src; seq 1000 > /src/n").stderr
        'sandlite: changes rejected by a hook: too large\\n'
        """

        def register(function: "Callable[[Commit], Any]") -> "Callable[[Commit], Any]":
            _calls.on_commit(self._native, path, function)
            return function

        return register if function is None else register(function)

    def events(
        self,
        consumer: Optional[str] = None,
        *,
        path: Optional[str] = None,
        after: Optional[int] = None,
        follow: bool = False,
    ) -> "Iterator[Event]":
        """Yields committed changes, in order: from the oldest existing version, after the version ``after``, or from where
        ``consumer`` stopped.

        A consumer's position is stored when the next version starts, so its last version is repeated after a crash. ``follow``
        waits for more.

        >>> box.write_file("/plan", "A")
        >>> [event.kind for event in box.events("index", path="/plan")]
        ['created']
        >>> list(box.events("index"))
        []
        """
        wait = 0.0
        while True:
            name = consumer if after is None else None
            events, version, more = _finish(_calls.events(self._native, after, name, path, wait))
            for event, following in zip(events, [*events[1:], None]):
                yield event
                if consumer is not None and (following is None or following.version != event.version):
                    _finish(_calls.acknowledge(self._native, consumer, event.version))
            if consumer is not None and version != (events[-1].version if events else after):
                _finish(_calls.acknowledge(self._native, consumer, version))
            if not more and not follow:
                return
            after, wait = version, 0.0 if more else 1.0

    def fork(self, path: Optional[HostPath] = None, *, at: Optional[Union[str, int]] = None) -> "Sandbox":
        """Returns a second sandbox that continues from here, in memory or in a new file; ``at`` continues from a version.

        >>> box.write_file("/plan", "A")
        >>> with box.fork() as other:
        ...     other.write_file("/plan", "B")
        >>> box.read_file("/plan")
        'A'
        """
        return Sandbox._of(self._native.fork(path, None if at is None else str(at)))

    def close(self) -> None:
        """Closes the sandbox; all data is in its file. Closing it again has no effect.

        >>> box.close()
        >>> box.closed
        True
        """
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
        return f"<sandlite.Sandbox {self._native.label}>"
