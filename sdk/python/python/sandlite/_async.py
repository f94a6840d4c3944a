"""The sandbox for ``asyncio``: cancelling a call kills its command."""

from __future__ import annotations

import os
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Mapping,
    Optional,
    Sequence,
    TypeVar,
    Union,
)

from . import _calls, _pip, _process
from . import _native as native_half
from ._calls import (
    Call,
    Content,
    EditLike,
    HostPath,
    LimitsLike,
    McpServersLike,
    MountLike,
    Opening,
    PolicyLike,
    Text,
)
from ._commands import CommandLike, ProgramLike, wrapped
from ._host_tools import Approve, ToolLike
from ._pip import Installation, Package
from ._process import AsyncOnOutput, AsyncProcess, AsyncStream
from ._results import Result

if TYPE_CHECKING:
    from ._providers import DirectoryProvider, FileProvider
    import asyncio

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


async def _native_answer(ask: Any) -> Any:
    # Imported on first use, because the import takes time.
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
        # The caller may rely on this: the command has ended when the cancellation completes.
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


async def _run(
    native: native_half.Sandbox,
    kind: str,
    text: str,
    on_stdout: Optional[AsyncOnOutput],
    on_stderr: Optional[AsyncOnOutput],
    check: bool,
    **options: Any,
) -> Result:
    if on_stdout is None and on_stderr is None:
        return await _finish(_calls.run(native, kind, text, check=check, **options))
    result = await _process.follow_async(
        lambda: _calls.start(native, kind, text, waits=False, **options), text, on_stdout, on_stderr
    )
    return result.check() if check else result


class AsyncKv:
    """Small JSON values by name, stored separately from files.

    >>> await box.kv.set("plan", {"step": 1})
    1
    >>> await box.kv.get("plan"), await box.kv.contains("plan")
    ({'step': 1}, True)
    """

    def __init__(self, native: native_half.Sandbox) -> None:
        self._native = native

    async def get(self, key: str, default: Any = None) -> Any:
        """Returns the value of a key, or ``default``.

        >>> await box.kv.get("missing", 0)
        0
        """
        return await _finish(_calls.kv_get(self._native, key, default))

    async def set(self, key: str, value: Any) -> int:
        """Stores a value that JSON can represent and returns the key's new version.

        >>> await box.kv.set("tries", 3)
        1
        """
        return await _finish(_calls.kv_set(self._native, key, value))

    async def delete(self, key: str) -> bool:
        """Deletes a key and returns whether it existed.

        >>> await box.kv.delete("missing")
        False
        """
        return await _finish(_calls.kv_delete(self._native, key))

    async def keys(self, prefix: str = "") -> list[str]:
        """Returns the keys with a prefix, sorted.

        >>> await box.kv.set("plan/1", "think"), await box.kv.set("plan/2", "act")
        (1, 1)
        >>> await box.kv.keys("plan/")
        ['plan/1', 'plan/2']
        """
        return await _finish(_calls.kv_keys(self._native, prefix))

    async def items(self, prefix: str = "") -> "list[tuple[str, Any]]":
        """Returns the keys with a prefix and their values, sorted by key, all from one state of the store.

        >>> await box.kv.set("plan/1", "think")
        1
        >>> await box.kv.items("plan/")
        [('plan/1', 'think')]
        """
        return await _finish(_calls.kv_items(self._native, prefix))

    async def contains(self, key: str) -> bool:
        """Returns whether a key exists.

        >>> await box.kv.contains("missing")
        False
        """
        return await _finish(_calls.kv_contains(self._native, key))


class AsyncSession:
    """A shell and a Python interpreter that continue where their last calls ended: directory, variables, functions; globals and
    imports.

    The shell's state is stored in the database. The Python interpreter lives as long as the sandbox is open; if it has to be
    restarted, the result's ``restarted`` is true.

    >>> session = box.session("work")
    >>> await session.bash("cd /tmp; name=ada")
    Result(exit_code=0, stdout='', stderr='')
    >>> (await session.bash("echo $name in $PWD")).stdout
    'ada in /tmp\\n'
    """

    def __init__(self, native: native_half.Sandbox, name: str) -> None:
        self._native = native
        #: The name of the session.
        self.name = name

    async def bash(
        self,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Text] = None,
        timeout: Optional[float] = None,
        rollback_on_failure: bool = False,
        check: bool = False,
        on_stdout: Optional[AsyncOnOutput] = None,
        on_stderr: Optional[AsyncOnOutput] = None,
    ) -> Result:
        """Runs a bash command line where the last one ended, with the options of :meth:`AsyncSandbox.bash`.

        >>> (await session.bash("greet() { echo hello $1; }")).ok
        True
        >>> (await session.bash("greet ada")).stdout
        'hello ada\\n'
        """
        return await _run(
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

    async def python(
        self,
        code: str,
        *,
        stdin: Optional[Text] = None,
        timeout: Optional[float] = None,
        echo: bool = True,
        check: bool = False,
        on_stdout: Optional[AsyncOnOutput] = None,
        on_stderr: Optional[AsyncOnOutput] = None,
    ) -> Result:
        """Runs Python code in the session's persistent interpreter.

        As in a notebook, the value of a last expression is printed. It is also the result's ``value`` if JSON can represent it,
        and images are in ``images``. ``echo=False`` turns that off.

        >>> (await session.python("x = 20")).ok
        True
        >>> (await session.python("x + 1")).stdout
        '21\\n'
        """
        return await _run(
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

    async def start(
        self,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Text] = None,
        timeout: Optional[float] = None,
        rollback_on_failure: bool = False,
    ) -> AsyncProcess:
        """Starts a bash command line in this session; see :meth:`AsyncSandbox.start`.

        >>> (await (await session.start("echo later")).wait()).stdout
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
            waits=False,
        )
        return AsyncProcess(await _process.begun(running), command)

    async def start_python(
        self, code: str, *, stdin: Optional[Text] = None, timeout: Optional[float] = None, echo: bool = True
    ) -> AsyncProcess:
        """Starts Python code in this session; see :meth:`AsyncSandbox.start`.

        >>> (await (await session.start_python("6 * 7")).wait()).stdout
        '42\\n'
        """
        running = _calls.start(
            self._native, "python", code, session=self.name, stdin=stdin, timeout=timeout, echo=echo, interactive=True, waits=False
        )
        return AsyncProcess(await _process.begun(running), code)

    def stream(
        self,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Text] = None,
        timeout: Optional[float] = None,
        rollback_on_failure: bool = False,
    ) -> AsyncStream:
        """Runs a bash command line in this session and yields its output as it arrives; see :meth:`AsyncSandbox.stream`.

        >>> [chunk.text async for chunk in session.stream("echo hi")]
        ['hi\\n']
        """

        def start() -> native_half.Running:
            return _calls.start(
                self._native,
                "bash",
                command,
                session=self.name,
                cwd=cwd,
                env=env,
                stdin=stdin,
                timeout=timeout,
                rollback_on_failure=rollback_on_failure,
                waits=False,
            )

        return AsyncStream(start, command)

    def stream_python(
        self, code: str, *, stdin: Optional[Text] = None, timeout: Optional[float] = None, echo: bool = True
    ) -> AsyncStream:
        """Runs Python code in this session and yields its output as it arrives; see :meth:`AsyncSandbox.stream`.

        >>> [chunk.text async for chunk in session.stream_python("print(6 * 7)")]
        ['42\\n']
        """

        def start() -> native_half.Running:
            return _calls.start(
                self._native, "python", code, session=self.name, stdin=stdin, timeout=timeout, echo=echo, waits=False
            )

        return AsyncStream(start, code)

    async def directory(self) -> str:
        """Returns the directory in which the shell's next call starts.

        >>> await session.directory()
        '/home/user'
        """
        return await _finish(_calls.session_directory(self._native, self.name))

    async def end(self) -> bool:
        """Deletes the shell's state, ends the Python interpreter, and returns whether there was either. The next call starts
        afresh.

        >>> await session.end()
        False
        """
        return await _finish(_calls.end_session(self._native, self.name))

    def __repr__(self) -> str:
        return f"<sandlite.AsyncSession {self.name!r} of {self._native.label}>"


class AsyncSandbox:
    """:class:`Sandbox` for ``asyncio``, with the same arguments and methods.

    >>> async with AsyncSandbox(files={"data.txt": "3\\n4\\n"}) as box:
    ...     result = await box.bash("paste -sd+ data.txt | bc")
    >>> result.stdout
    '7\\n'

    ``box = await AsyncSandbox()`` works too. Each call runs on a thread of the native half; cancelling it kills its command and waits for
    its end. ``async`` tools and an ``async`` ``approve`` run in the loop that opened the sandbox.
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
        self._opening = (db, files, snapshot, cwd, preset, env, mounts, tools, approve)
        self._more_opening: "dict[str, Any]" = {
            "python": python,
            "approve_timeout": approve_timeout,
            "read_only": read_only,
            "wait": wait,
            "limits": limits,
            "programs": programs,
            "commands": commands,
            "base": base,
            "allow_host": allow_host,
            "policy": policy,
            "mcp_servers": mcp_servers,
        }
        self._opened: Optional[native_half.Sandbox] = None
        # The loop that opens it, and the turn of its tasks: those that come first at the same time share one sandbox.
        self._opening_turn: "Optional[tuple[Any, asyncio.Lock]]" = None

    @property
    def _native(self) -> native_half.Sandbox:
        if self._opened is None:
            raise RuntimeError("the sandbox is not open: use `async with`, or await it")
        return self._opened

    async def open(self) -> "AsyncSandbox":
        """Opens the sandbox; ``async with`` and ``await`` do that too.

        >>> other = await AsyncSandbox().open()
        >>> await other.close()
        """
        if self._opened is None:
            import asyncio

            loop = asyncio.get_running_loop()
            if self._opening_turn is None or self._opening_turn[0] is not loop:
                self._opening_turn = (loop, asyncio.Lock())
            async with self._opening_turn[1]:
                if self._opened is None:
                    await self._open_in(loop)
        return self

    async def _open_in(self, loop: Any) -> None:
        opening = Opening(*self._opening, loop=loop, **self._more_opening)
        try:
            self._opened = await _native_answer(opening.ask)
        finally:
            opening.forget()

    def __await__(self) -> Generator[Any, None, "AsyncSandbox"]:
        return self.open().__await__()

    def command(self, name: str) -> "Callable[[CommandLike], CommandLike]":
        """Makes a function a program of the sandbox, for all commands started from now on. An ``async`` function runs in the
        caller's loop.

        >>> @box.command("greet")
        ... async def greet(call):
        ...     print("hello", *call.args[1:], file=call.stdout)
        >>> (await box.bash("greet you | tr a-z A-Z")).stdout
        'HELLO YOU\\n'
        """
        import asyncio

        loop = asyncio.get_running_loop()

        def add(function: CommandLike) -> CommandLike:
            native_half.add_command(self._native, name, wrapped(function, loop))
            return function

        return add

    def mcp_servers(self) -> "list[McpServer]":
        """Returns the MCP servers of the sandbox with their tools, and why a tool is off.

        >>> [server.name for server in box.mcp_servers()]
        []
        """
        return _calls.mcp_servers(self._native)

    async def connect_mcp(
        self, servers: McpServersLike, *, approve: Optional[Approve] = None, approve_timeout: Optional[float] = None
    ) -> None:
        """Gives the sandbox MCP servers, as the argument ``mcp_servers`` does, for all commands that are started from here on.

        >>> await box.connect_mcp({"files": {"command": "mcp-files", "args": ["/srv"]}})  # doctest: +SKIP
        """
        import asyncio

        await _finish(_calls.connect_mcp(self._native, servers, approve, approve_timeout, asyncio.get_running_loop()))

    async def confirm_mcp(self, name: str) -> None:
        """Confirms the current descriptions of an MCP server's tools: tools that have changed since they were granted are enabled again.

        >>> await box.confirm_mcp("files")  # doctest: +SKIP
        """
        await _finish(_calls.confirm_mcp(self._native, name))

    @property
    def kv(self) -> AsyncKv:
        """The key-value store."""
        return AsyncKv(self._native)

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
        """Whether it is closed, or was never opened."""
        return self._opened is None or self._opened.closed

    async def bash(
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
        on_stdout: Optional[AsyncOnOutput] = None,
        on_stderr: Optional[AsyncOnOutput] = None,
    ) -> Result:
        """Runs a bash command line. A non-zero exit code is a result; ``check=True`` raises :class:`CommandError` instead.

        ``timeout`` (seconds) lowers the preset's time limit; ``rollback_on_failure`` rolls back the file changes of a command that
        fails; ``seed`` makes the run repeatable; ``record`` records its inputs for :meth:`replay`. ``on_stdout`` and ``on_stderr`` are
        called with each piece of output as text while the command runs, in this loop, and awaited if they are ``async``; the command
        waits while they run. They can read the sandbox, but changing it or running a command in it raises :class:`BusyError`.

        >>> (await box.bash("echo hello | tr a-z A-Z")).stdout
        'HELLO\\n'
        >>> (await box.bash("echo working; exit 3", on_stdout=print)).exit_code
        working
        <BLANKLINE>
        3
        """
        return await _run(
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

    async def python(
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
        on_stdout: Optional[AsyncOnOutput] = None,
        on_stderr: Optional[AsyncOnOutput] = None,
    ) -> Result:
        """Runs Python code in a new interpreter, with the options of :meth:`bash`. Code that raises returns a result.

        With ``echo`` the value of a last expression is printed, as in a notebook; see :meth:`AsyncSession.python`.

        >>> (await box.python("print(6 * 7)")).stdout
        '42\\n'
        """
        return await _run(
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

    async def start(
        self,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[Text] = None,
        timeout: Optional[float] = None,
        rollback_on_failure: bool = False,
        seed: Optional[int] = None,
    ) -> AsyncProcess:
        """Starts a bash command line and returns at once, with an :class:`AsyncProcess` to write to, read from, kill and wait for.

        Without ``stdin`` its standard input stays open until :meth:`AsyncProcess.close_stdin` or :meth:`AsyncProcess.wait`.

        >>> process = await box.start("sort")
        >>> await process.send_stdin("b\\na\\n")
        >>> (await process.wait()).stdout
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
            waits=False,
        )
        return AsyncProcess(await _process.begun(running), command)

    async def start_python(
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
    ) -> AsyncProcess:
        """Starts Python code and returns at once; see :meth:`start`.

        >>> process = await box.start_python("print(input().upper())")
        >>> await process.send_stdin("hello\\n")
        >>> (await process.wait()).stdout
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
            waits=False,
        )
        return AsyncProcess(await _process.begun(running), code)

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
    ) -> AsyncStream:
        """Runs a bash command line and yields its output as it arrives, in :class:`Chunk` objects.

        The command waits while you process a chunk. Closing the stream kills the command.

        >>> stream = box.stream("echo out; sleep 0.01; echo err >&2")
        >>> [(chunk.stream, chunk.text) async for chunk in stream]
        [('stdout', 'out\\n'), ('stderr', 'err\\n')]
        >>> stream.result.exit_code
        0
        """

        def start() -> native_half.Running:
            return _calls.start(
                self._native,
                "bash",
                command,
                cwd=cwd,
                env=env,
                stdin=stdin,
                timeout=timeout,
                rollback_on_failure=rollback_on_failure,
                seed=seed,
                waits=False,
            )

        return AsyncStream(start, command)

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
    ) -> AsyncStream:
        """Runs Python code and yields its output as it arrives; see :meth:`stream`.

        >>> "".join([chunk.text async for chunk in box.stream_python("print(1); print(2)")])
        '1\\n2\\n'
        """

        def start() -> native_half.Running:
            return _calls.start(
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
                waits=False,
            )

        return AsyncStream(start, code)

    async def read_file(self, path: str) -> str:
        """Returns the text of a file; bytes that are not UTF-8 are replaced.

        >>> await box.write_file("notes.txt", "hello")
        >>> await box.read_file("notes.txt")
        'hello'
        """
        return await _finish(_calls.read_file(self._native, path))

    async def read_bytes(self, path: str) -> bytes:
        """Returns the bytes of a file.

        >>> await box.write_file("raw", b"\\x00\\xff")
        >>> await box.read_bytes("raw")
        b'\\x00\\xff'
        """
        return await _finish(_calls.read_bytes(self._native, path))

    async def read_window(self, path: str, offset: Optional[int] = None, limit: Optional[int] = None) -> FileWindow:
        """Returns some lines of a file (``offset`` counts from 1) and its version.

        >>> await box.write_file("f", "one\\ntwo\\nthree\\n")
        >>> (await box.read_window("f", offset=2, limit=1)).content
        'two\\n'
        """
        return await _finish(_calls.read_window(self._native, path, offset, limit))

    async def write_file(self, path: str, content: Content, *, expected_version: Optional[str] = None) -> None:
        """Writes a whole file from text, bytes or a path on this machine, creating missing parent directories.

        With ``expected_version`` it raises :class:`~sandlite.errors.StaleFileError` if the file has changed since that version
        was read; ``"none"`` requires that the file does not exist.

        >>> await box.write_file("src/main.py", "print(1)\\n")
        """
        await _finish(_calls.write_file(self._native, path, content, expected_version))

    async def write_files(
        self, files: Mapping[str, Content], *, expected_versions: Optional[Mapping[str, str]] = None
    ) -> None:
        """Writes many files in one transaction, all or none. Each path in ``expected_versions`` must have that version.

        >>> await box.write_files({"a.txt": "a", "b/c.bin": b"\\x00"})
        >>> await box.glob("**/*")
        ['/home/user/a.txt', '/home/user/b/c.bin']
        """
        await _finish(_calls.write_files(self._native, files, expected_versions))

    async def append(self, path: str, content: Content, *, expected_version: Optional[str] = None) -> None:
        """Appends text, bytes or a file on this machine to a file, which is created if missing. With ``expected_version`` the
        file must have that version.

        >>> await box.append("log", "one\\n")
        >>> await box.append("log", "two\\n")
        >>> await box.read_file("log")
        'one\\ntwo\\n'
        """
        await _finish(_calls.append(self._native, path, content, expected_version))

    async def edit_file(
        self,
        path: str,
        edits: Sequence[EditLike],
        *,
        expected_version: Optional[str] = None,
    ) -> Edited:
        """Replaces exact pieces of text, all or none: ``[(old, new), …]``. Each old text must occur exactly once.

        >>> await box.write_file("f", "x = 1\\n")
        >>> (await box.edit_file("f", [("x = 1", "x = 2")])).replacements
        1
        """
        return await _finish(_calls.edit_file(self._native, path, edits, expected_version))

    async def list_files(
        self,
        path: Optional[str] = None,
        *,
        depth: int = 1,
        hidden: bool = False,
    ) -> list[FileEntry]:
        """Lists a directory to a given depth; at most 1000 entries. :meth:`walk` lists everything.

        >>> await box.write_file("f", "x")
        >>> [entry.name for entry in await box.list_files()]
        ['f']
        """
        return await _finish(_calls.list_files(self._native, path, depth, hidden))

    async def walk(self, path: str = ".") -> list[FileStat]:
        """Returns the metadata of a directory and of everything below it, each directory before its content.

        >>> await box.write_file("a/b", "x")
        >>> [found.path for found in await box.walk("a")]
        ['/home/user/a', '/home/user/a/b']
        """
        return await _finish(_calls.walk(self._native, path))

    async def glob(self, pattern: str, path: Optional[str] = None, *, hidden: bool = False) -> list[str]:
        """Returns the files that match a pattern such as ``src/**/*.{py,toml}``; at most 1000.

        >>> await box.write_file("src/main.py", "")
        >>> await box.glob("**/*.py")
        ['/home/user/src/main.py']
        """
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
        """Returns the lines that match a regular expression (in Rust's syntax); at most 200.

        >>> await box.write_file("f", "one\\ntwo\\n")
        >>> [(match.line, match.text) for match in await box.grep("^t")]
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
        return await _finish(_calls.grep(self._native, pattern, options))

    async def exists(self, path: str) -> bool:
        """Returns whether a path exists.

        >>> await box.exists("/tmp"), await box.exists("/missing")
        (True, False)
        """
        return await _finish(_calls.exists(self._native, path))

    async def stat(self, path: str, *, follow_symlinks: bool = True) -> FileStat:
        """Returns the metadata of a path.

        >>> await box.write_file("f", "five!")
        >>> found = await box.stat("f")
        >>> found.kind, found.size, oct(found.mode)
        ('file', 5, '0o644')
        """
        return await _finish(_calls.stat(self._native, path, follow_symlinks))

    async def mkdir(self, path: str) -> None:
        """Creates a directory and its missing parents. An existing directory is not an error.

        >>> await box.mkdir("a/b")
        """
        await _finish(_calls.mkdir(self._native, path))

    async def copy(
        self, from_path: str, to_path: str, *, recursive: bool = False, expected_version: Optional[str] = None
    ) -> str:
        """Copies a file, or a directory with everything below it if ``recursive``, in one transaction, and returns the copy's path.

        If the destination is an existing directory, the copy is placed inside it. With ``expected_version`` it copies only if the
        file at ``to_path`` has that version.

        >>> await box.write_file("f", "x")
        >>> await box.copy("f", "g")
        '/home/user/g'
        """
        return await _finish(_calls.copy(self._native, from_path, to_path, recursive, expected_version))

    async def move(
        self, from_path: str, to_path: str, *, overwrite: bool = False, expected_version: Optional[str] = None
    ) -> None:
        """Moves a file or a directory; replaces a file only if ``overwrite``. With ``expected_version`` the file must have that version.

        >>> await box.write_file("f", "x")
        >>> await box.move("f", "g")
        """
        await _finish(_calls.move_file(self._native, from_path, to_path, overwrite, expected_version))

    async def remove(self, path: str, *, recursive: bool = False, expected_version: Optional[str] = None) -> None:
        """Deletes a file, a link or an empty directory; a directory with everything below it if ``recursive``. With
        ``expected_version`` the file must have that version.

        >>> await box.write_file("d/f", "x")
        >>> await box.remove("d", recursive=True)
        """
        await _finish(_calls.delete_file(self._native, path, recursive, expected_version))

    async def delete_file(self, path: str, *, recursive: bool = False) -> None:
        """Same as :meth:`remove`, under its name for models.

        >>> await box.write_file("f", "x")
        >>> await box.delete_file("f")
        """
        await self.remove(path, recursive=recursive)

    async def move_file(self, from_path: str, to_path: str, *, overwrite: bool = False) -> None:
        """Same as :meth:`move`, under its name for models.

        >>> await box.write_file("f", "x")
        >>> await box.move_file("f", "g")
        """
        await self.move(from_path, to_path, overwrite=overwrite)

    async def upload(self, host_path: HostPath, path: str) -> int:
        """Copies a file from this machine into the sandbox and returns its size. It is streamed.

        >>> open("report.csv", "w").write("a,b\\n")
        4
        >>> await box.upload("report.csv", "data/report.csv")
        4
        """
        return await _finish(_calls.upload(self._native, host_path, path))

    async def download(self, path: str, host_path: HostPath, *, overwrite: bool = False) -> int:
        """Copies a file from the sandbox to this machine and returns its size. The file is created atomically.

        Raises :class:`FileExistsError` if the file exists, unless ``overwrite``.

        >>> await box.write_file("f", "five!")
        >>> await box.download("f", "out.txt")
        5
        """
        return await _finish(_calls.download(self._native, path, host_path, overwrite))

    async def upload_dir(self, host_path: HostPath, path: str) -> TreeCopy:
        """Copies a directory from this machine with everything below it into the sandbox, in one transaction.

        Links are copied as links. Directories that may contain secrets (``/etc``, ``~/.ssh``, …) are rejected.

        >>> os.makedirs("project/src")
        >>> (await box.upload_dir("project", "/work")).directories
        1
        """
        return await _finish(_calls.upload_dir(self._native, host_path, path))

    async def download_dir(self, path: str, host_path: HostPath) -> TreeCopy:
        """Copies a directory from the sandbox with everything below it to this machine. Existing files are not overwritten.

        >>> await box.write_file("out/a.txt", "a")
        >>> (await box.download_dir("out", "result")).files
        1
        """
        return await _finish(_calls.download_dir(self._native, path, host_path))

    async def history(
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

        >>> (await box.bash("echo hi")).ok
        True
        >>> [(row.command, row.exit_code, row.stdout) for row in await box.history(1, output=True)]
        [('echo hi', 0, 'hi\\n')]
        """
        return await _finish(_calls.history(self._native, limit, since, before, name, grep, output))

    async def info(self) -> Info:
        """Returns a summary of the sandbox: files, keys and runs, and the usage of each limit.

        >>> await box.write_file("f", "five!")
        >>> info = await box.info()
        >>> info.files, info.used["disk"]
        (1, 5)
        """
        return await _finish(_calls.info(self._native))

    async def pip_install(
        self,
        *packages: HostPath,
        requirements: Optional[Union[HostPath, Sequence[HostPath]]] = None,
        find_links: Optional[Union[HostPath, Sequence[HostPath]]] = None,
        offline: bool = False,
        no_deps: bool = False,
    ) -> Installation:
        """Installs Python packages by name or from wheel files, like :meth:`Sandbox.pip_install`.

        >>> await box.pip_install("jinja2", "pyyaml")  # doctest: +SKIP
        """
        return await _finish(_pip.install(self._native, packages, requirements, find_links, offline, no_deps))

    async def packages(self) -> "list[Package]":
        """Returns the installed Python packages, sorted by name.

        >>> await box.packages()
        []
        """
        return await _finish(_pip.installed(self._native))

    async def export_snapshot(self, *, compat: Optional[str] = None) -> bytes:
        """Returns everything (files, values, history) as the bytes of a ``.db`` file.

        ``compat="localsandbox"`` uses the layout of LocalSandbox 0.3, which can then open it.

        >>> async with AsyncSandbox(snapshot=await box.export_snapshot()) as copy:
        ...     (await copy.bash("echo resumed")).stdout
        'resumed\\n'
        """
        return await _finish(_calls.export_snapshot(self._native, compat))

    async def export_to(self, path: HostPath, *, compat: Optional[str] = None) -> None:
        """Writes the same to a new file on this machine.

        >>> await box.export_to("snapshot.db")
        """
        await _finish(_calls.export_to(self._native, path, compat))

    async def git_export(
        self, to: HostPath, *, path: str = "/", bare: bool = False, checkpoints: bool = False
    ) -> GitExported:
        """Writes the versions as commits of a new git repository: a directory with files and ``.git``, ``NAME.git`` without
        files, or ``NAME.bundle``, one file that can be cloned. Checkpoints become tags, and ``path`` its root. With ``checkpoints`` they are the
        commits instead, with their messages.

        >>> await box.write_file("/src/plan", "A")
        >>> (await box.git_export("plan.bundle", path="/src")).commits
        1
        """
        return await _finish(_calls.git_export(self._native, to, path, bare, checkpoints))

    async def git_import(
        self, source: HostPath, *, ref: Optional[str] = None, into: str = ".", depth: Optional[int] = None
    ) -> GitImported:
        """Imports the commits of a git repository or bundle as versions: its first-parent history. Tags become checkpoints. If
        the repository is invalid, nothing is changed.

        >>> await box.write_file("/src/plan", "A")
        >>> (await box.git_export("plan.bundle", path="/src")).commits
        1
        >>> (await box.git_import("plan.bundle", into="/copy")).versions
        1
        >>> await box.read_file("/copy/plan")
        'A'
        """
        return await _finish(_calls.git_import(self._native, source, ref, into, depth))

    def session(self, name: str = "main") -> "AsyncSession":
        """Returns a shell and a Python interpreter that keep their state between calls.

        >>> session = box.session("work")
        >>> (await session.bash("cd /tmp")).ok, (await session.bash("pwd")).stdout
        (True, '/tmp\\n')
        """
        return AsyncSession(self._native, name)

    async def sessions(self) -> list[str]:
        """Returns the names of the sessions with shell state.

        >>> await box.sessions()
        []
        """
        return await _finish(_calls.sessions(self._native))

    async def tool_text(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Performs an action and returns its text for a model; raises if it fails.

        >>> await box.tool_text("bash", {"command": "echo hi"})
        'hi'
        """
        return await _finish(_calls.tool_text(self._native, name, arguments))

    async def call_action(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Performs one of :func:`sandlite.actions` as a model does: a failure is also a result.

        >>> (await box.call_action("read_file", {"path": "missing"})).is_error
        True
        """
        return await _finish(_calls.call_action(self._native, name, arguments))

    async def log(
        self, path: Optional[str] = None, *, limit: int = 20, before: Optional[int] = None, digest: bool = False, stat: bool = False
    ) -> list[Version]:
        """Returns the versions, newest first: each run that changed something created one. ``path`` selects those that changed
        it.

        ``digest`` computes the digest of each version's files. Equal trees have equal digests. ``stat`` counts the lines that each
        version added to and removed from its files.

        >>> await box.write_file("/plan", "A")
        >>> [(version.command, version.changed) for version in await box.log("/plan")]
        [('write_file /plan', ['/plan'])]
        """
        return await _finish(_calls.log(self._native, path, limit, before, digest, stat))

    async def diff(
        self, start: Union[str, int], end: Union[str, int] = "HEAD", paths: Sequence[str] = (), *, names_only: bool = False
    ) -> Diff:
        """Returns the differences between two versions: a run's number, ``"HEAD~3"``, a checkpoint or ``"@{2 hours ago}"``.

        >>> await box.write_file("/plan", "A")
        >>> await box.write_file("/plan", "B")
        >>> [(file.path, file.kind) for file in (await box.diff("HEAD~1")).files]
        [('/plan', 'modified')]
        """
        return await _finish(_calls.diff(self._native, str(start), str(end), paths, names_only))

    async def show(self, run: Union[str, int] = "HEAD") -> ShownRun:
        """Returns one run with its output and changes. Any run's number is a reference, and so is a version.

        >>> await box.write_file("/plan", "A")
        >>> (await box.show("HEAD")).changes.files[0].path
        '/plan'
        """
        return await _finish(_calls.show(self._native, str(run)))

    async def blame(self, path: str, *, offset: int = 1, limit: Optional[int] = None) -> list[BlamedLine]:
        """Returns the lines of a text file, each with the version of the run that wrote it.

        >>> await box.write_file("/plan", "A\\n")
        >>> [(line.text, line.version.command) for line in await box.blame("/plan")]
        [('A', 'write_file /plan')]
        """
        return await _finish(_calls.blame(self._native, path, offset, limit))

    async def bisect(self, command: str, good: Union[str, int], bad: Union[str, int] = "HEAD") -> Bisection:
        """Finds the run that broke something: runs a bash command at versions between ``good`` and ``bad``.

        Each version is tested in a temporary copy. Exit code 0 means good, 125 skips the version, any other code below 128 means
        bad.

        >>> await box.write_file("/state", "fine")
        >>> await box.write_file("/state", "broken")
        >>> (await box.bisect("grep -q fine /state", "HEAD~1")).first_bad.command
        'write_file /state'
        """
        return await _finish(_calls.bisect(self._native, str(good), str(bad), command))

    async def replay(self, start: Union[str, int, None] = None) -> Replayed:
        """Replays every run made with ``record=True`` in a copy, and compares exit code, output, files, keys and sessions after each.

        >>> result = await box.bash("echo $RANDOM > /number; cat /number", record=True)
        >>> (await box.replay()).difference is None
        True
        """
        return await _finish(_calls.replay(self._native, None if start is None else str(start)))

    async def changes(
        self, since: Union[str, int, None] = None, paths: Sequence[str] = (), *, names_only: bool = False
    ) -> Diff:
        """Returns the changes since a version; defaults to the mounted directories, or to the first run.

        >>> await box.write_file("/plan", "A")
        >>> [(file.path, file.kind) for file in (await box.changes()).files]
        [('/plan', 'added')]
        """
        return await _finish(_calls.changes(self._native, None if since is None else str(since), paths, names_only))

    async def apply(
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
        >>> await box.write_file("/out/report.md", "done")
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     [file.path for file in (await box.apply(directory, path="/out")).files]
        ['report.md']
        """
        version = None if since is None else str(since)
        return await _finish(_calls.apply(self._native, directory, version, path, dry_run))

    async def undo(self, runs: int = 1, *, dry_run: bool = False) -> Diff:
        """Undoes the last runs that changed something. Undoing an undo is a redo.

        >>> await box.write_file("/plan", "A")
        >>> await box.write_file("/plan", "B")
        >>> bool(await box.undo())
        True
        >>> await box.read_file("/plan")
        'A'
        """
        return await _finish(_calls.undo(self._native, runs, dry_run))

    async def restore(self, version: Union[str, int], paths: Sequence[str] = (), *, dry_run: bool = False) -> Diff:
        """Restores some paths, or all files, keys and sessions, to their state at a version. It can be undone.

        >>> await box.write_file("/plan", "A")
        >>> (await box.checkpoint("start")).name
        'start'
        >>> await box.delete_file("/plan")
        >>> (await box.restore("start", ["/plan"])).total
        1
        """
        return await _finish(_calls.restore(self._native, str(version), paths, dry_run))

    async def mount_file(self, path: str, function: FileProvider) -> None:
        """Mounts a file that ``function`` generates each time it is opened: it receives a :class:`NodeContext` and returns text
        or bytes.

        Programs read it like any other file and cannot change it. An exception becomes an input/output error for the reader; its
        message is printed to the command's standard error. An ``async`` function runs in this loop. The function must not change this sandbox.

        >>> await box.mount_file("/srv/greeting", lambda context: f"hello from {context.path}\\n")
        >>> (await box.bash("cat /srv/greeting")).stdout
        'hello from /srv/greeting\\n'
        """
        await self._mount(path, function, False, False)

    async def mount_directory(self, path: str, function: DirectoryProvider, *, overlay: bool = False) -> None:
        """Mounts a directory that ``function`` generates, once for a command and again whenever the directory is listed.

        It returns a mapping of names, or a :class:`ProvidedNode`: text and bytes are files, mappings are directories, and
        functions are files that are generated when they are opened. With ``overlay=True`` programs can change it, and the changes
        are stored in the sandbox.

        >>> await box.mount_directory("/srv/users", lambda: {"ada": "1815\\n", "old": {"bob": b"1900\\n"}})
        >>> (await box.bash("ls /srv/users; cat /srv/users/old/bob")).stdout
        'ada\\nold\\n1900\\n'
        """
        await self._mount(path, function, True, overlay)

    async def _mount(self, path: str, function: Any, is_directory: bool, overlay: bool) -> None:
        import asyncio
        import weakref

        from ._providers import native

        # The native half holds the function, which must not hold the native half.
        this = weakref.ref(self)

        def sandbox() -> native_half.Sandbox:
            alive = this()
            if alive is None:
                raise RuntimeError("the sandbox is closed")
            return alive._native

        called = native(function, is_directory, sandbox, asyncio.get_running_loop())
        await _finish(_calls.mount_function(self._native, path, called, is_directory, overlay))

    async def unmount(self, path: str) -> bool:
        """Removes a mount, and returns whether there was one. Changes made in an overlay are kept.

        >>> await box.mount_file("/srv/now", lambda: "now")
        >>> await box.unmount("/srv/now")
        True
        """
        return await _finish(_calls.unmount(self._native, path))

    async def update(self, path: str = "/", to: Optional[Union[str, int]] = None, *, keep: Optional[str] = None) -> Updated:
        """Moves an overlay over a database (``/`` for ``base``) onto its newest version, or onto ``to``, keeping this sandbox's
        changes.

        If both sides changed a path, ``keep="ours"`` or ``keep="theirs"`` selects a side; without it an exception lists those
        paths, and nothing is changed.

        >>> async with AsyncSandbox(db="base.db", files={"/plan": "A"}) as base:
        ...     pass
        >>> async with AsyncSandbox(base="base.db") as other:
        ...     (await other.update()).changes
        0
        """
        return await _finish(_calls.update(self._native, path, None if to is None else str(to), keep))

    async def checkpoint(self, name: str, message: Optional[str] = None) -> Checkpoint:
        """Names the current version.

        >>> await box.write_file("/plan", "A")
        >>> (await box.checkpoint("start", "the first plan")).message
        'the first plan'
        """
        return await _finish(_calls.checkpoint(self._native, name, message))

    async def checkpoints(self) -> list[Checkpoint]:
        """Returns the checkpoints, newest first.

        >>> await box.write_file("/plan", "A")
        >>> (await box.checkpoint("start")).name
        'start'
        >>> [one.name for one in await box.checkpoints()]
        ['start']
        """
        return await _finish(_calls.checkpoints(self._native))

    async def prune_versions(
        self, *, versions: Optional[int] = None, seconds: Optional[float] = None, size: Optional[int] = None
    ) -> int:
        """Deletes old versions and returns their number; keeps this many versions, those of the last seconds, or this many bytes.

        >>> await box.prune_versions(versions=100)
        0
        """
        return await _finish(_calls.prune_versions(self._native, versions, seconds, size))

    async def compact(self) -> Compacted:
        """Returns free space of the database to the disk; this also happens by itself, bit by bit.

        >>> compacted = await box.compact()
        >>> compacted.after_bytes <= compacted.before_bytes
        True
        """
        return await _finish(_calls.compact(self._native))

    async def at(self, version: Union[str, int]) -> "AsyncSandbox":
        """Returns the sandbox as it was at a version. It cannot be changed; a command runs in a temporary copy.

        >>> await box.write_file("/plan", "A")
        >>> await box.write_file("/plan", "B")
        >>> await (await box.at("HEAD~1")).read_file("/plan")
        'A'
        """
        native = self._native
        made = AsyncSandbox()
        made._opened = await _native_answer(lambda done: native.at(str(version), done))
        return made

    @classmethod
    def _of(cls, native: native_half.Sandbox) -> "AsyncSandbox":
        made = cls()
        made._opened = native
        return made

    def view(self, principal: str, labels: Iterable[str] = ()) -> "AsyncSandbox":
        """Returns the sandbox as seen by a principal with some labels; see :meth:`Sandbox.view`.

        >>> await box.set_policy([{"path": "/payroll", "label": "finance"}])
        >>> await box.owner().write_file("/payroll/may.csv", "1,2")
        >>> await box.view("ann", ["finance"]).exists("/payroll"), await box.view("bob").exists("/payroll")
        (True, False)
        """
        return AsyncSandbox._of(native_half.view(self._native, principal, list(labels)))

    def with_policy(self, policy: PolicyLike) -> "AsyncSandbox":
        """Returns the sandbox with an additional policy. If policies differ, the stricter decision applies.

        >>> reader = box.with_policy([{"path": "/", "access": "read"}])
        >>> (await reader.bash("echo two > /notes")).exit_code
        1
        """
        return AsyncSandbox._of(native_half.with_policy(self._native, _calls.policy_text(policy)))

    def owner(self) -> "AsyncSandbox":
        """Returns the sandbox without any policy. Raises :class:`InvalidError` for a view and for the result of
        :meth:`with_policy`.

        >>> await box.owner().exists("/keys")
        False
        """
        return AsyncSandbox._of(native_half.owner(self._native))

    @property
    def policy(self) -> "Optional[dict[str, Any]]":
        """The policy stored in the sandbox."""
        return _calls.policy(self._native)

    async def set_policy(self, policy: Optional[PolicyLike]) -> None:
        """Stores a policy in the sandbox, replacing the previous one; ``None`` removes it. It takes effect at once.

        >>> await box.set_policy([{"path": "/log", "access": "append"}])
        >>> await box.set_policy(None)
        """
        await _finish(_calls.set_policy(self._native, policy))

    def on_commit(
        self, path: str, function: "Optional[Callable[[Commit], Any]]" = None
    ) -> Any:
        """Calls a function before every commit that changes something at a path or below it; see :meth:`Sandbox.on_commit`. An
        ``async`` function runs in the loop that registers it.

        >>> @box.on_commit("/src")
        ... async def closed(commit):
        ...     return "closed"
        >>> (await box.bash("mkdir /src")).stderr
        'sandlite: changes rejected by a hook: closed\\n'
        """
        import asyncio
        import inspect

        def register(function: "Callable[[Commit], Any]") -> "Callable[[Commit], Any]":
            asked = function
            if inspect.iscoroutinefunction(function):
                loop = asyncio.get_running_loop()

                def asked(commit: "Commit") -> Any:
                    return asyncio.run_coroutine_threadsafe(function(commit), loop).result()

            _calls.on_commit(self._native, path, asked)
            return function

        return register if function is None else register(function)

    async def events(
        self,
        consumer: Optional[str] = None,
        *,
        path: Optional[str] = None,
        after: Optional[int] = None,
        follow: bool = False,
    ) -> "AsyncIterator[Event]":
        """Yields committed changes, in order; see :meth:`Sandbox.events`.

        >>> await box.write_file("/plan", "A")
        >>> [event.kind async for event in box.events("index", path="/plan")]
        ['created']
        """
        wait = 0.0
        while True:
            name = consumer if after is None else None
            events, version, more = await _finish(_calls.events(self._native, after, name, path, wait))
            for event, following in zip(events, [*events[1:], None]):
                yield event
                if consumer is not None and (following is None or following.version != event.version):
                    await _finish(_calls.acknowledge(self._native, consumer, event.version))
            if consumer is not None and version != (events[-1].version if events else after):
                await _finish(_calls.acknowledge(self._native, consumer, version))
            if not more and not follow:
                return
            after, wait = version, 0.0 if more else 1.0

    async def fork(self, path: Optional[HostPath] = None, *, at: Optional[Union[str, int]] = None) -> "AsyncSandbox":
        """Returns a second sandbox that continues from here, in memory or in a new file; ``at`` continues from a version.

        >>> await box.write_file("/plan", "A")
        >>> async with await box.fork() as other:
        ...     await other.write_file("/plan", "B")
        >>> await box.read_file("/plan")
        'A'
        """
        native, version = self._native, None if at is None else str(at)
        made = AsyncSandbox()
        made._opened = await _native_answer(lambda done: native.fork(path, version, done))
        return made

    async def close(self) -> None:
        """Closes the sandbox; all data is in its file. Closing it again has no effect.

        >>> await box.close()
        >>> box.closed
        True
        """
        if self._opened is not None:
            await _native_answer(self._opened.close)

    async def __aenter__(self) -> "AsyncSandbox":
        return await self.open()

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if kind is GeneratorExit and self._opened is not None:
            # A coroutine that is closed cannot wait.
            self._opened.close()
        else:
            await self.close()

    def __repr__(self) -> str:
        label = "not open" if self._opened is None else self._opened.label
        return f"<sandlite.AsyncSandbox {label}>"
