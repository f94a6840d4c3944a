"""Commands that run beside the program: callbacks, streams and handles, plain and async."""

import asyncio
import threading
import time

import pytest

from sandlite import AsyncSandbox, BusyError, Sandbox

#: More than a command writes before it waits for its reader.
LONG = "head -c 300000 /dev/zero"


@pytest.fixture
def box():
    with Sandbox() as made:
        yield made


def run_async(work):
    """Runs a function with an open sandbox in a loop."""

    async def main():
        async with AsyncSandbox() as box:
            await work(box)

    asyncio.run(main())


def test_callbacks_see_the_output_while_the_command_runs():
    seen = []

    def count() -> int:
        return len(seen)

    with Sandbox(tools=[count]) as box:
        # The command continues only after the first line was passed on.
        script = "echo one; while [ $(tool count {}) = 0 ]; do :; done; echo two >&2"
        result = box.bash(script, on_stdout=seen.append, on_stderr=lambda text: seen.append(("err", text)))
    assert seen == ["one\n", ("err", "two\n")]
    assert (result.exit_code, result.stdout, result.stderr) == (0, "one\n", "two\n")


def test_callbacks_run_on_the_calling_thread(box):
    threads = []
    box.python("print(1)", on_stdout=lambda text: threads.append(threading.get_ident()))
    assert threads == [threading.get_ident()]


def test_a_callback_that_raises_ends_the_command(box):
    def refuse(text):
        raise LookupError(text)

    with pytest.raises(LookupError, match="first"):
        box.bash("echo first; sleep 1000; echo never", on_stdout=refuse, timeout=20)
    row = box.history(1)[0]
    assert row.exit_code == 137
    assert box.bash("echo next").stdout == "next\n"


def test_a_stream_yields_chunks_and_then_has_the_result(box):
    stream = box.stream("echo out; sleep 0.02; echo err >&2; exit 3")
    assert stream.result is None
    assert [(chunk.stream, chunk.data, str(chunk)) for chunk in stream] == [
        ("stdout", b"out\n", "out\n"),
        ("stderr", b"err\n", "err\n"),
    ]
    assert (stream.result.exit_code, stream.result.command) == (3, "echo out; sleep 0.02; echo err >&2; exit 3")


def test_a_character_is_never_cut_in_two(box):
    chunks = list(box.stream(r"printf 'a\xc3'; sleep 0.02; printf '\xa9\xe2'"))
    assert "".join(chunk.text for chunk in chunks) == "a\u00e9\ufffd"
    assert b"".join(chunk.data for chunk in chunks) == b"a\xc3\xa9\xe2"


def test_leaving_a_stream_kills_its_command(box):
    with box.stream("echo one; sleep 1000", timeout=25) as stream:
        assert next(stream).text == "one\n"
    assert stream.result.exit_code == 137
    for chunk in box.stream("echo one; sleep 1000", timeout=25):
        break
    assert box.bash("echo next").stdout == "next\n"


def test_a_slow_reader_stops_the_command():
    finished = threading.Event()

    def done() -> None:
        finished.set()

    with Sandbox(tools=[done]) as box:
        stream = box.stream("head -c 1000000 /dev/zero; tool done {} > /dev/null")
        read = len(next(stream).data)
        # Left alone, it takes milliseconds.
        assert not finished.wait(0.3) and stream.result is None
        read += sum(len(chunk.data) for chunk in stream)
    assert finished.is_set() and read == 1_000_000


def test_output_that_nobody_reads_does_not_stop_the_command(box):
    process = box.start("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; echo end")
    result = process.wait()
    assert len(result.stdout_bytes) == 1_000_004 and len(result.stderr_bytes) == 1_000_000
    # One stream is read, the other is not.
    with box.start("head -c 1000000 /dev/zero >&2; echo end") as process:
        assert process.stdout.read() == "end\n"
        assert len(process.wait().stderr_bytes) == 1_000_000


def test_a_handle_can_be_written_to_and_waited_for(box):
    process = box.start("while read -r line; do echo got $line; done; exit 4")
    process.send_stdin("a\n")
    lines = iter(process.stdout)
    assert next(lines) == "got a\n"
    process.send_stdin(b"b\n")
    assert next(lines) == "got b\n"
    assert process.running and process.exit_code is None
    result = process.wait()
    assert (result.stdout, result.exit_code, process.exit_code, process.running) == ("got a\ngot b\n", 4, 4, False)
    assert process.wait() is result
    with pytest.raises(BrokenPipeError):
        process.send_stdin("late")


def test_more_input_than_a_pipe_holds_is_waited_for(box):
    process = box.start("wc -c")
    process.send_stdin(b"x" * 300_000)
    assert process.wait().stdout == "300000\n"
    with box.start("exec 0<&-; sleep 1000", timeout=25) as process:
        with pytest.raises(BrokenPipeError):
            process.send_stdin(b"x" * 300_000)


def test_a_handle_can_be_killed(box):
    process = box.start("echo so far; sleep 1000", timeout=25)
    assert next(iter(process.stdout)) == "so far\n"
    with pytest.raises(TimeoutError):
        process.wait(0.01)
    process.kill()
    result = process.wait()
    assert (result.stdout, result.exit_code, result.ok) == ("so far\n", 137, False)
    assert repr(process) == "<sandlite.Process 'echo so far; sleep 1000' ended>"


def test_python_code_and_sessions_have_handles_too(box):
    process = box.start_python("print(input().upper())")
    process.send_stdin("hi\n")
    assert process.wait().stdout == "HI\n"
    assert [chunk.text for chunk in box.stream_python("print('a')")] == ["a\n"]
    session = box.session("work")
    assert session.start("cd /tmp").wait().ok
    assert [chunk.text for chunk in session.stream("pwd")] == ["/tmp\n"]
    assert session.start_python("x = 20").wait().ok
    assert [chunk.text for chunk in session.stream_python("x + 1")] == ["21\n"]
    assert session.python("x + 2", on_stdout=lambda text: None).stdout == "22\n"


def test_a_command_that_cannot_start_is_an_error_of_its_handle(box):
    with pytest.raises(ValueError):
        box.start("true", env={"A=B": "x"}).wait()
    with pytest.raises(ValueError):
        list(box.stream("true", env={"A=B": "x"}))


def test_a_handle_outlives_its_closed_sandbox():
    with Sandbox() as box:
        process = box.start("read line; echo got $line")
    process.send_stdin("it\n")
    assert process.wait().stdout == "got it\n"


def test_async_callbacks_streams_and_handles():
    async def work(box):
        seen = []

        async def keep(text):
            seen.append(text)

        result = await box.bash("echo a; echo b >&2", on_stdout=keep, on_stderr=seen.append)
        assert result.ok and sorted(seen) == ["a\n", "b\n"]
        assert [chunk.text async for chunk in box.stream("echo out")] == ["out\n"]
        process = await box.start("cat")
        await process.send_stdin("x" * 200_000)
        process.close_stdin()
        assert len(await process.stdout.read()) == 200_000
        assert (await process.wait()).exit_code == 0
        async with await box.start("sleep 1000", timeout=25) as process:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(process.wait(), 0.01)
            assert process.running, "a cancelled wait does not kill"
        assert (await process.wait()).exit_code == 137
        session = box.session("work")
        await session.python("x = 20")
        assert [chunk.text async for chunk in session.stream_python("x + 1")] == ["21\n"]

    run_async(work)


def test_a_slow_async_reader_stops_the_command():
    async def main():
        finished = asyncio.Event()

        async def done() -> None:
            finished.set()

        async with AsyncSandbox(tools=[done]) as box:
            stream = box.stream("head -c 1000000 /dev/zero; tool done {} > /dev/null")
            read = len((await stream.__anext__()).data)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(finished.wait(), 0.3)
            async for chunk in stream:
                read += len(chunk.data)
        assert finished.is_set() and read == 1_000_000

    asyncio.run(main())


def test_a_later_call_does_not_overtake_a_started_command(box):
    for number in range(30):
        box.start(f"echo {number} > f")
        assert box.bash("cat f").stdout == f"{number}\n"


def test_a_command_that_is_killed_before_its_turn_has_a_result(box):
    with box.start("sleep 1000", timeout=25) as first:
        waiting = box.start("echo never")
        waiting.kill()
        result = waiting.wait()
        assert (result.exit_code, result.stdout, result.notes) == (137, "", ("the command was killed before it started",))
        with box.start("echo never"), box.stream("echo never"):
            pass
        first.kill()
        assert first.wait().exit_code == 137
    assert [row.command for row in box.history()] == ["sleep 1000"]


def test_python_code_that_waits_for_its_session_can_be_killed(box):
    session = box.session("work")
    with session.start_python("print('up', flush=True); import time; time.sleep(1000)", timeout=25) as first:
        assert next(iter(first.stdout)) == "up\n"
        with session.start_python("1") as waiting:
            waiting.kill()
            # Not the end of the first one.
            assert waiting.wait(10).exit_code == 137
            assert first.running
    assert session.python("6 * 7").stdout == "42\n"


def test_a_cancelled_call_does_not_wait_for_its_session():
    async def work(box):
        session = box.session("work")
        code = "print('up', flush=True); import time; time.sleep(1000)"
        async with await session.start_python(code, timeout=25) as first:
            async for text in first.stdout:
                assert text == "up\n"
                break
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(session.python("1"), 0.1)
            assert first.running

    run_async(work)


def test_an_async_command_that_is_killed_before_its_turn_has_a_result():
    async def work(box):
        async with await box.start("sleep 1000", timeout=25):
            async with await box.start("echo never") as waiting:
                waiting.kill()
                assert (await waiting.wait()).exit_code == 137

    run_async(work)


def test_cancelling_an_async_stream_kills_its_command():
    async def work(box):
        seen = asyncio.Event()

        async def read():
            async for _ in box.stream("echo one; sleep 1000", timeout=25):
                seen.set()

        task = asyncio.ensure_future(read())
        await seen.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await box.history(1))[0].exit_code == 137

    run_async(work)


def test_a_cancelled_call_with_callbacks_kills_its_command():
    async def work(box):
        seen = asyncio.Event()
        task = asyncio.ensure_future(box.bash("echo one; sleep 1000", timeout=25, on_stdout=lambda text: seen.set()))
        await seen.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await box.history(1))[0].exit_code == 137

    run_async(work)


def test_a_callback_can_read_its_sandbox_but_not_change_it(box):
    box.write_file("/f", "before")
    owner = box.owner()
    seen = set()

    def callback(text):
        seen.add(box.read_file("/f"))
        for change in (
            lambda: box.write_file("/f", "x"),
            lambda: box.bash("true"),
            lambda: box.start("true"),
            lambda: box.session("s").python("1"),
            lambda: owner.write_file("/f", "x"),
        ):
            with pytest.raises(BusyError) as caught:
                change()
            assert "after the command" in caught.value.hint

    result = box.bash(LONG, on_stdout=callback, timeout=25)
    assert (result.ok, len(result.stdout), seen) == (True, 300_000, {"before"})
    box.write_file("/f", "after")
    assert box.read_file("/f") == "after"


def test_a_loop_over_a_stream_can_read_its_sandbox_but_not_change_it(box):
    for chunk in box.stream(LONG, timeout=25):
        with pytest.raises(BusyError):
            box.write_file("/f", "x")
        assert not box.exists("/f")
    box.write_file("/f", "x")
    with box.stream("echo one; sleep 1000", timeout=25) as stream:
        assert next(stream).text == "one\n"
        with pytest.raises(BusyError):
            box.bash("true")
        with Sandbox() as other:
            assert other.bash("true").ok
    assert box.bash("true").ok
    for chunk in box.stream("echo one; sleep 1000", timeout=25):
        break
    assert box.bash("true").ok
    writers = []
    for chunk in box.stream("echo one"):
        # Another thread waits for the end of the command.
        writers.append(threading.Thread(target=lambda: box.write_file("/late", "x")))
        writers[-1].start()
    for writer in writers:
        writer.join()
    assert writers and box.read_file("/late") == "x"


def test_async_readers_can_read_their_sandbox_but_not_change_it():
    async def work(box):
        async def callback(text):
            with pytest.raises(BusyError):
                await box.write_file("/f", "x")
            with pytest.raises(BusyError):
                await asyncio.gather(box.bash("true"))
            assert not await box.exists("/f")

        assert (await box.bash(LONG, on_stdout=callback, timeout=25)).ok
        async for chunk in box.stream(LONG, timeout=25):
            with pytest.raises(BusyError):
                await box.write_file("/f", "x")
        await box.write_file("/f", "x")
        async for chunk in box.stream("echo one; sleep 1000", timeout=25):
            break
        assert (await box.bash("true")).ok
        # A task that outlives the callback waits for the end of the command.
        tasks = []
        await box.bash("echo one", on_stdout=lambda text: tasks.append(asyncio.ensure_future(box.write_file("/late", "x"))))
        await asyncio.gather(*tasks)
        assert tasks and await box.read_file("/late") == "x"

    run_async(work)


def test_starting_a_command_does_not_block_the_loop():
    async def work(box):
        turns = 0

        async def count():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.ensure_future(count())
        async with await box.start("sleep 1000", timeout=25):
            before = turns
            waiting = await box.start("echo never")
            assert turns > before
            waiting.kill()
            assert (await waiting.wait()).exit_code == 137
        counting.cancel()
        for number in range(10):
            await box.start(f"echo {number} > f")
            assert (await box.bash("cat f")).stdout == f"{number}\n"

    run_async(work)


def test_output_can_be_read_after_the_end(box):
    process = box.start("seq 100000; echo err >&2", timeout=25)
    first = next(process.stdout.bytes())
    result = process.wait()
    assert first and first + process.stdout.read().encode() == result.stdout_bytes
    assert (process.stderr.read(), process.stdout.read()) == ("err\n", "")
    process = box.start("seq 30000", timeout=25)
    while process.running:
        time.sleep(0.01)
    expected = "".join(f"{number}\n" for number in range(1, 30001))
    assert process.stdout.read() == process.wait().stdout == expected
