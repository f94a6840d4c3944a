"""Running commands: handles and streams, synchronous and for ``asyncio``.

The native half buffers the output; a slow reader pauses the command, so that little is buffered.
"""

from __future__ import annotations

import codecs
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, AsyncIterator, Awaitable, Callable, Iterator, Optional, Union

from . import _calls, _results
from ._calls import OnOutput
from ._native import Running
from ._results import Result
from .errors import BusyError

if TYPE_CHECKING:
    from ._native import OutputScope

#: The marks of the output that this code processes; read by the native half.
READING: "ContextVar[tuple[OutputScope, ...]]" = ContextVar("sandlite_reading", default=())

#: The stream to read, as the native half numbers it.
_BOTH, _STDOUT, _STDERR = 0, 1, 2
_NAMES = {_STDOUT: "stdout", _STDERR: "stderr"}


@dataclass(frozen=True)
class Chunk:
    """A piece of output."""

    #: ``stdout`` or ``stderr``.
    stream: str
    data: bytes = field(repr=False)
    #: The same as text. A character that is split between two pieces is part of the second one.
    text: str

    def __str__(self) -> str:
        return self.text


class _Decoder:
    """Pieces of the two streams as text."""

    def __init__(self) -> None:
        make = codecs.getincrementaldecoder("utf-8")
        self._decoders = {number: make("replace") for number in _NAMES}

    def chunk(self, number: int, data: bytes) -> Chunk:
        return Chunk(_NAMES[number], data, self._decoders[number].decode(data))

    def rest(self) -> "list[Chunk]":
        """The rest of an incomplete character."""
        ends = ((number, decoder.decode(b"", True)) for number, decoder in self._decoders.items())
        return [Chunk(_NAMES[number], b"", text) for number, text in ends if text]


class _Reader:
    """Marks the code that processes a chunk: the command waits for it, so it cannot wait for the command."""

    def __init__(self) -> None:
        self._scope: "Optional[OutputScope]" = None

    def begin(self, running: Running) -> None:
        self._scope = running.output_scope()
        READING.set((*(scope for scope in READING.get() if not scope.is_over), self._scope))

    def end(self) -> None:
        if self._scope is not None:
            self._scope.end()
            self._scope = None


def _check_sent(sent: bool) -> None:
    if not sent:
        raise BrokenPipeError("the command no longer reads its standard input, or it was closed")


#: The result of a command that never had its turn.
_NEVER_STARTED = {
    "exit_code": 137,
    "stdout_bytes": b"",
    "stderr_bytes": b"",
    "truncated": False,
    "duration": 0.0,
    "run": 0,
    "limit": None,
    "restarted": False,
    "notes": ("the command was killed before it started",),
    "value": None,
    "text": None,
    "images": (),
}


class _Ended:
    """The result of a command, read once."""

    def __init__(self, running: Running, command: str) -> None:
        self.running = running
        self.command = command
        self.result: Optional[Result] = None
        self.is_killed = False

    def kill(self) -> None:
        self.is_killed = True
        self.running.kill()

    def read(self) -> Result:
        if self.result is None:
            self.result = _results.result(self._native(), False, self.command)
        return self.result

    def _native(self) -> Any:
        try:
            return self.running.result()
        except BusyError:
            # It waited for another command.
            if not self.is_killed:
                raise
            return {**_NEVER_STARTED, "usage": dict.fromkeys(_results.Usage.__annotations__, 0)}

    def exit_code(self) -> Optional[int]:
        return None if self.result is None else self.result.exit_code

    def __repr__(self) -> str:
        state = "running" if self.running.running else "ended"
        return f"{self.command!r} {state}"


class Output:
    """One output stream of a :class:`Process`, piece by piece, as text.

    >>> from sandlite import Sandbox
    >>> with Sandbox() as box, box.start("echo one; echo two") as process:
    ...     process.stdout.read()
    'one\\ntwo\\n'
    """

    def __init__(self, running: Running, number: int) -> None:
        self._running = running
        self._number = number
        self._decoder = _Decoder()

    def __iter__(self) -> Iterator[str]:
        for data in self.bytes():
            text = self._decoder.chunk(self._number, data).text
            if text:
                yield text
        yield from (chunk.text for chunk in self._decoder.rest())

    def bytes(self) -> "Iterator[bytes]":
        """Yields the same as bytes.

        >>> b"".join(box.start("printf hi").stdout.bytes())
        b'hi'
        """
        while True:
            taken = self._running.take_output(self._number)
            if taken is None:
                return
            if taken[0]:
                yield taken[1]
            else:
                self._running.wait_output(self._number)

    def read(self) -> str:
        """Returns everything up to the end of the command.

        >>> box.start("printf hi").stdout.read()
        'hi'
        """
        return "".join(self)


class Process:
    """A running command, as returned by :meth:`Sandbox.start`.

    It holds the sandbox's turn until it ends: reads return the state before it, other commands and changes wait. Leaving a
    ``with`` block kills it. A stream that you read applies back-pressure: if you stop reading, the command pauses too. Streams
    that you never read do not; their output is in the result.

    >>> from sandlite import Sandbox
    >>> with Sandbox() as box, box.start("tr a-z A-Z") as process:
    ...     process.send_stdin("hello")
    ...     process.close_stdin()
    ...     process.wait().stdout
    'HELLO'
    """

    def __init__(self, running: Running, command: str) -> None:
        self._running = running
        self._ended = _Ended(running, command)
        #: Standard output, as it arrives.
        self.stdout = Output(running, _STDOUT)
        #: Standard error, as it arrives.
        self.stderr = Output(running, _STDERR)

    @property
    def running(self) -> bool:
        """Whether it is still running."""
        return self._running.running

    @property
    def exit_code(self) -> Optional[int]:
        """Its exit code once :meth:`wait` has returned; ``None`` before."""
        return self._ended.exit_code()

    def send_stdin(self, data: Union[str, bytes]) -> None:
        """Writes to its standard input, and waits while 64 KB are unread. Raises :class:`BrokenPipeError` if the command no
        longer reads.

        >>> process.send_stdin("some text\\n")
        """
        _check_sent(self._running.send(_calls.encoded(data)))

    def close_stdin(self) -> None:
        """Closes its standard input.

        >>> process.close_stdin()
        """
        self._running.close_stdin()

    def wait(self, timeout: Optional[float] = None) -> Result:
        """Closes its standard input, waits for the command and returns its result. It can be called again.

        Raises :class:`TimeoutError` if the command is still running after ``timeout`` seconds.

        >>> process.wait().exit_code
        0
        """
        if self._ended.result is None:
            self._running.close_stdin()
            self._running.ignore_output()
            if not self._running.wait(timeout):
                raise TimeoutError(f"`{self._ended.command}` is still running after {timeout} s")
        return self._ended.result or self._ended.read()

    def kill(self) -> None:
        """Kills the command; :meth:`wait` returns its output until then.

        >>> process.kill()
        """
        self._ended.kill()

    def __enter__(self) -> "Process":
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._ended.result is None:
            self.kill()
            self.wait()

    def __repr__(self) -> str:
        return f"<sandlite.Process {self._ended!r}>"


class Stream:
    """The output of a running command, as returned by :meth:`Sandbox.stream`: an iterator of :class:`Chunk`.

    After the last chunk, :attr:`result` is the result. Closing it, or leaving its ``with`` block, kills a running command.
    Between two chunks the sandbox can be read; changing it raises :class:`~sandlite.errors.BusyError`.
    """

    def __init__(self, running: Running, command: str) -> None:
        self._running = running
        self._ended = _Ended(running, command)
        self._reader = _Reader()
        self._decoder = _Decoder()
        self._left: "list[Chunk]" = []

    @property
    def result(self) -> Optional[Result]:
        """The result once the command has ended; ``None`` before."""
        return self._ended.result

    def __iter__(self) -> "Stream":
        return self

    def __next__(self) -> Chunk:
        self._reader.end()
        while self._ended.result is None:
            taken = self._running.take_output(_BOTH)
            if taken is None:
                self._running.wait(None)
                self._ended.read()
                self._left = self._decoder.rest()
            elif taken[0]:
                self._reader.begin(self._running)
                return self._decoder.chunk(*taken)
            else:
                try:
                    self._running.wait_output(_BOTH)
                except KeyboardInterrupt:
                    self.close()
                    raise
        if self._left:
            return self._left.pop(0)
        raise StopIteration

    def close(self) -> None:
        """Kills the command if it is still running, and waits for its end.

        >>> stream = box.stream("sleep 100")
        >>> stream.close()
        """
        self._reader.end()
        if self._ended.result is None:
            self._ended.kill()
            self._running.ignore_output()
            self._running.wait(None)
            self._ended.read()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # A loop was left early. The end is not awaited here; the next command waits for it.
        running: Optional[Running] = getattr(self, "_running", None)
        if running is not None:
            running.kill()
        reader: Optional[_Reader] = getattr(self, "_reader", None)
        if reader is not None:
            reader.end()

    def __repr__(self) -> str:
        return f"<sandlite.Stream {self._ended!r}>"


def follow(running: Running, command: str, on_stdout: Optional[OnOutput], on_stderr: Optional[OnOutput]) -> Result:
    """Passes output to callbacks as it arrives, on this thread. An exception ends the command."""
    calls = {"stdout": on_stdout, "stderr": on_stderr}
    with Stream(running, command) as stream:
        for chunk in stream:
            call = calls[chunk.stream]
            if call is not None and chunk.text:
                call(chunk.text)
        assert stream.result is not None
        return stream.result


class AsyncOutput:
    """One output stream of an :class:`AsyncProcess`, piece by piece, as text: ``async for text in process.stdout``."""

    def __init__(self, running: Running, number: int) -> None:
        self._running = running
        self._number = number
        self._decoder = _Decoder()

    async def __aiter__(self) -> AsyncIterator[str]:
        async for data in self.bytes():
            text = self._decoder.chunk(self._number, data).text
            if text:
                yield text
        for chunk in self._decoder.rest():
            yield chunk.text

    async def bytes(self) -> "AsyncIterator[bytes]":
        """Yields the same as bytes.

        >>> [piece async for piece in (await box.start("printf hi")).stdout.bytes()]
        [b'hi']
        """
        while True:
            taken = self._running.take_output(self._number)
            if taken is None:
                return
            if taken[0]:
                yield taken[1]
            else:
                await _output(self._running, self._number)

    async def read(self) -> str:
        """Returns everything up to the end of the command.

        >>> await (await box.start("printf hi")).stdout.read()
        'hi'
        """
        return "".join([text async for text in self])


async def _output(running: Running, number: int) -> None:
    from ._async import _native_answer

    await _native_answer(lambda done: running.wait_output(number, done))


async def begun(running: Running) -> Running:
    """Waits until a new command has its turn, which later calls must not overtake; only shortly if another command runs."""
    from ._async import _native_answer

    if not running.has_turn:
        try:
            await _native_answer(running.wait_turn)
        except BaseException:
            # The caller does not get the handle.
            running.kill()
            raise
    return running


async def _end(ended: _Ended, timeout: Optional[float]) -> Result:
    from ._async import _native_answer

    if ended.result is None:
        running = ended.running
        if not await _native_answer(lambda done: running.wait(timeout, done)):
            raise TimeoutError(f"`{ended.command}` is still running after {timeout} s")
    # Another caller may have waited for it meanwhile.
    return ended.result or ended.read()


class AsyncProcess:
    """:class:`Process` for ``asyncio``, as returned by :meth:`AsyncSandbox.start`. Leaving an ``async with`` block kills it.

    Cancelling a call does not: only :meth:`kill` ends the command."""

    def __init__(self, running: Running, command: str) -> None:
        self._running = running
        self._ended = _Ended(running, command)
        #: Standard output, as it arrives.
        self.stdout = AsyncOutput(running, _STDOUT)
        #: Standard error, as it arrives.
        self.stderr = AsyncOutput(running, _STDERR)

    @property
    def running(self) -> bool:
        """Whether it is still running."""
        return self._running.running

    @property
    def exit_code(self) -> Optional[int]:
        """Its exit code once :meth:`wait` has returned; ``None`` before."""
        return self._ended.exit_code()

    async def send_stdin(self, data: Union[str, bytes]) -> None:
        """Writes to its standard input, and waits while 64 KB are unread. Raises :class:`BrokenPipeError` if it no longer reads.

        >>> await process.send_stdin("some text\\n")
        """
        from ._async import _native_answer

        given = _calls.encoded(data)
        _check_sent(await _native_answer(lambda done: self._running.send(given, done)))

    def close_stdin(self) -> None:
        """Closes its standard input.

        >>> process.close_stdin()
        """
        self._running.close_stdin()

    async def wait(self, timeout: Optional[float] = None) -> Result:
        """Closes its standard input, waits for the command and returns its result. It can be called again.

        Raises :class:`TimeoutError` if the command is still running after ``timeout`` seconds.

        >>> (await process.wait()).exit_code
        0
        """
        if self._ended.result is None:
            self._running.close_stdin()
            self._running.ignore_output()
        return await _end(self._ended, timeout)

    def kill(self) -> None:
        """Kills the command; :meth:`wait` returns its output until then.

        >>> process.kill()
        """
        self._ended.kill()

    async def __aenter__(self) -> "AsyncProcess":
        return self

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._ended.result is None:
            self.kill()
            await self.wait()

    def __repr__(self) -> str:
        return f"<sandlite.AsyncProcess {self._ended!r}>"


class AsyncStream:
    """:class:`Stream` for ``asyncio``, as returned by :meth:`AsyncSandbox.stream`: ``async for chunk in stream``.

    Cancelling the loop kills the command. Between two chunks the sandbox can be read; changing it raises
    :class:`~sandlite.errors.BusyError`."""

    def __init__(self, start: Callable[[], Running], command: str) -> None:
        self._start = start
        self._command = command
        self._ended: Optional[_Ended] = None
        self._reader = _Reader()
        self._decoder = _Decoder()
        self._left: "list[Chunk]" = []

    @property
    def result(self) -> Optional[Result]:
        """The result once the command has ended; ``None`` before."""
        return None if self._ended is None else self._ended.result

    def __aiter__(self) -> "AsyncStream":
        return self

    async def __anext__(self) -> Chunk:
        self._reader.end()
        if self._ended is None:
            self._ended = _Ended(self._start(), self._command)
        running = self._ended.running
        while self._ended.result is None:
            taken = running.take_output(_BOTH)
            if taken is None:
                await _end(self._ended, None)
                self._left = self._decoder.rest()
            elif taken[0]:
                self._reader.begin(running)
                return self._decoder.chunk(*taken)
            else:
                await self._more(running)
        if self._left:
            return self._left.pop(0)
        raise StopAsyncIteration

    async def _more(self, running: Running) -> None:
        import asyncio

        try:
            await _output(running, _BOTH)
        except asyncio.CancelledError:
            # The caller may rely on this: the command has ended when the cancellation completes.
            await asyncio.shield(asyncio.ensure_future(self.aclose()))
            raise

    async def aclose(self) -> None:
        """Kills the command if it is still running, and waits for its end.

        >>> stream = box.stream("sleep 100")
        >>> await stream.aclose()
        """
        self._reader.end()
        if self._ended is not None and self._ended.result is None:
            self._ended.kill()
            self._ended.running.ignore_output()
            await _end(self._ended, None)

    async def __aenter__(self) -> "AsyncStream":
        return self

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        ended: Optional[_Ended] = getattr(self, "_ended", None)
        if ended is not None:
            ended.running.kill()
        reader: Optional[_Reader] = getattr(self, "_reader", None)
        if reader is not None:
            reader.end()

    def __repr__(self) -> str:
        return f"<sandlite.AsyncStream {self._ended or self._command!r}>"


#: The same, or one that returns an awaitable.
AsyncOnOutput = Callable[[str], Union[None, Awaitable[Any]]]


async def follow_async(
    start: Callable[[], Running], command: str, on_stdout: Optional[AsyncOnOutput], on_stderr: Optional[AsyncOnOutput]
) -> Result:
    """Passes output to callbacks as it arrives, in the running loop, and awaits them. An exception ends the command."""
    import inspect

    calls = {"stdout": on_stdout, "stderr": on_stderr}
    async with AsyncStream(start, command) as stream:
        async for chunk in stream:
            call = calls[chunk.stream]
            if call is not None and chunk.text:
                made = call(chunk.text)
                if inspect.isawaitable(made):
                    await made
        assert stream.result is not None
        return stream.result
