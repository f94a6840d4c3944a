"""The sandbox from Python: run with pytest against the built wheel."""

import os
import signal
import tempfile
import threading

from pathlib import Path

import pytest

import sandlite
from sandlite import CommandError, LimitError, Mount, Sandbox, SandliteError, errors


@pytest.fixture
def box():
    with Sandbox() as made:
        yield made


def test_commands_share_files_and_failures_are_results(box):
    assert box.bash("echo 41 > n").ok
    assert box.python("print(int(open('n').read()) + 1)").stdout == "42\n"
    result = box.bash("echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.stdout, result.stderr, result.ok) == (3, "out\n", "err\n", False)
    with pytest.raises(CommandError) as caught:
        box.bash("echo no >&2; exit 3", check=True)
    assert caught.value.result.exit_code == 3 and "no" in str(caught.value)


def test_options_of_a_command(box):
    assert box.bash("cat; echo $X; pwd", stdin="in ", env={"X": "x"}, cwd="/tmp").stdout == "in x\n/tmp\n"
    box.bash("echo kept > f")
    box.bash("rm f; false", rollback_on_failure=True)
    assert box.read_file("f") == "kept\n"
    assert box.bash("echo $RANDOM", seed=1).stdout == box.bash("echo $RANDOM", seed=1).stdout


def test_a_limit_is_a_result_with_the_output_so_far(box):
    result = box.bash("echo before; while :; do :; done", timeout=0.3)
    assert result.stdout == "before\n" and result.limit is not None and result.limit.hint
    with pytest.raises(LimitError):
        result.check()


def test_files(box):
    box.write_file("src/a.py", "import os\nx = 1\n")
    box.write_file("raw", b"\x00\xff")
    assert box.read_bytes("raw") == b"\x00\xff" and box.exists("raw") and not box.exists("none")
    window = box.read_window("src/a.py", offset=2)
    assert (window.content, window.total_lines) == ("x = 1\n", 2)
    assert box.edit_file("src/a.py", [("x = 1", "x = 2")], expected_version=window.version).replacements == 1
    with pytest.raises(errors.StaleFileError):
        box.edit_file("src/a.py", [("x = 2", "x = 3")], expected_version=window.version)
    with pytest.raises(errors.InvalidError):
        box.edit_file("src/a.py", [("nowhere", "x")])
    assert [entry.name for entry in box.list_files()] == ["raw", "src"]
    assert box.glob("**/*.py") == ["/home/user/src/a.py"]
    assert box.grep("^x")[0].text == "x = 2"
    box.move_file("raw", "kept/raw")
    box.delete_file("kept", recursive=True)
    assert not box.exists("kept")


def test_errors_are_python_s_own_too(box):
    with pytest.raises(FileNotFoundError) as caught:
        box.read_file("none")
    assert isinstance(caught.value, errors.FileNotFoundError) and caught.value.path == "/home/user/none"
    with pytest.raises(IsADirectoryError):
        box.read_file("/home")
    with pytest.raises(ValueError):
        Sandbox(preset="loose")


def test_values_and_history(box):
    box.kv.set("plan/1", {"a": [1, None]})
    assert box.kv.get("plan/1") == {"a": [1, None]} and box.kv.get("none") is None
    assert box.kv.keys("plan/") == ["plan/1"] and box.kv.delete("plan/1")
    box.bash("true")
    newest = box.history(1)[0]
    assert (newest.name, newest.command, newest.exit_code) == ("bash", "true", 0)


def test_snapshots_and_forks(box, tmp_path):
    box.write_file("/plan", "A")
    with box.fork() as fork, Sandbox(snapshot=box.export_snapshot()) as other:
        fork.write_file("/plan", "B")
        assert (box.read_file("/plan"), fork.read_file("/plan"), other.read_file("/plan")) == ("A", "B", "A")
    path = tmp_path / "agent.db"
    with Sandbox(path, files={"/seed": "s", "/bytes": b"\x01"}) as kept:
        assert kept.bash("cat /seed").stdout == "s"
    with Sandbox(str(path)) as again:
        assert again.read_bytes("/bytes") == b"\x01"


def test_a_closed_sandbox_raises_a_clear_error(box):
    box.close()
    box.close()
    assert box.closed
    with pytest.raises(errors.ClosedError):
        box.bash("true")


def test_other_threads_run_meanwhile():
    asked, go = threading.Event(), threading.Event()

    def wait() -> bool:
        asked.set()
        return go.wait(60)

    with Sandbox(tools=[wait]) as box:
        seen = []
        thread = threading.Thread(target=lambda: seen.append(box.bash("tool wait '{}'").stdout))
        thread.start()
        assert asked.wait(60), "the command runs while this thread does"
        go.set()
        thread.join()
        assert seen == ["true\n"]


@pytest.fixture
def interruptible():
    """Python's own answer to Ctrl-C, also where the tests were started by something that had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_the_command(interruptible):
    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with Sandbox(preset="permissive", tools=[interrupt]) as box:
        with pytest.raises(KeyboardInterrupt):
            box.bash("tool interrupt '{}'; sleep 200")
        assert box.bash("echo next").stdout == "next\n"


def used():
    """Descriptors, threads and kilobytes of this process."""
    pages = int(open("/proc/self/statm").read().split()[1])
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), pages * os.sysconf("SC_PAGE_SIZE") // 1024


def test_a_thousand_sandboxes_leave_nothing_behind():
    def once():
        with Sandbox() as box:
            box.kv.set("k", 1)
            assert box.bash("echo $((6 * 7)) | cat").stdout == "42\n"

    for _ in range(100):
        once()
    descriptors, threads, memory = used()
    for _ in range(1000):
        once()
    after = used()
    assert after[0] == descriptors and after[1] <= threads + 2 and after[2] < memory + 20_000, (after, descriptors, threads, memory)


def test_sessions_remember(box):
    session = box.session("work")
    session.bash("cd /tmp; name=ada; greet() { echo hello $name; }")
    assert session.bash("greet; pwd").stdout == "hello ada\n/tmp\n" and session.directory() == "/tmp"
    session.python("import math; x = 20")
    assert session.python("print(math.floor(x + 1.5))").stdout == "21\n"
    assert box.sessions() == ["work"] and box.bash("pwd").stdout == "/home/user\n"
    with Sandbox(snapshot=box.export_snapshot()) as copy:
        assert copy.session("work").bash("greet").stdout == "hello ada\n"
    assert session.end() and not session.end() and session.bash("pwd").stdout == "/home/user\n"


def test_directories_of_this_machine_are_seen_and_stay_as_they_are(tmp_path):
    (tmp_path / "f").write_text("host")
    with Sandbox(mounts=[f"{tmp_path}:/ro", Mount(tmp_path, "/rw", mode="overlay")]) as box:
        assert box.bash("cat /ro/f; echo new > /rw/f; cat /rw/f").stdout == "hostnew\n"
        assert "Read-only" in box.bash("echo x > /ro/f").stderr
    assert (tmp_path / "f").read_text() == "host"
    with pytest.raises(ValueError):
        Sandbox(mounts=[Mount(tmp_path, "/x", mode="rw")])
    with pytest.raises(errors.SandliteError) as caught:
        Sandbox(mounts=["/etc:/etc2"])
    assert caught.value.hint


def test_relative_paths_start_in_the_directory():
    with Sandbox(cwd="/work", files={"a/b": "ab", "/c": b"c"}, env={"X": "1"}) as box:
        assert box.bash("pwd; cat a/b /c; echo $X").stdout == "/work\nabc1\n"
        assert box.read_file("a/b") == "ab" and box.bash("pwd", cwd="a").stdout == "/work/a\n"


def test_the_version_exists():
    assert sandlite.__version__


@pytest.mark.parametrize("value", [0, 1, 5, True, False, 1.5, None, ["x"]])
def test_content_is_never_a_descriptor_of_this_process(value):
    reader, writer = os.pipe()
    try:
        with Sandbox() as box:
            for given in (value, reader):
                with pytest.raises(TypeError, match="content must be str, bytes or os.PathLike"):
                    box.write_file("/f", given)
                with pytest.raises(TypeError, match="content must be str, bytes or os.PathLike"):
                    Sandbox(files={"/f": given})
        os.fstat(reader)  # it is still open
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("option", [lambda number: {"limits": number}, lambda number: {"programs": {"own": number}}], ids=["limits", "programs"])
def test_files_of_options_are_never_descriptors_of_this_process(option):
    reader, writer = os.pipe()
    os.close(writer)
    try:
        with pytest.raises(TypeError):
            Sandbox(**option(reader))
        os.fstat(reader)  # it is still open
    finally:
        os.close(reader)


def test_a_rejected_argument_leaves_no_temporary_file(tmp_path, monkeypatch):
    with Sandbox() as box:
        snapshot = box.export_snapshot()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for wrong in ({"files": {"a": 5}}, {"mounts": [5]}, {"env": 5}, {"limits": 5}, {"preset": "lax"}):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            Sandbox(snapshot=snapshot, **wrong)
    assert list(tmp_path.iterdir()) == []


def test_a_number_is_never_that_many_zero_bytes(box):
    def write(call):
        with pytest.raises(TypeError, match="data must be str or bytes, not int"):
            call.files.write_file("f", 5)
        with pytest.raises(TypeError, match="data must be str or bytes, not int"):
            call.files.append("f", 5)

    with Sandbox(commands={"own": write}) as other:
        assert other.bash("own; ls").stdout == ""
    with box.start("cat") as process:
        with pytest.raises(TypeError, match="data must be str or bytes, not int"):
            process.send_stdin(5)
        process.send_stdin(memoryview(b"ab"))
        assert process.wait().stdout == "ab"


def test_a_zero_byte_is_refused_everywhere():
    with Sandbox() as box:
        for attempt in (
            lambda: box.bash("echo a\0b"),
            lambda: box.python("print(1)\0"),
            lambda: box.bash("true", env={"A": "x\0y"}),
            lambda: box.bash("true", env={"A\0": "x"}),
            lambda: box.bash("true", env={"": "x"}),
            lambda: box.bash("true", env={"A=B": "x"}),
            lambda: box.bash("true", cwd="/tmp\0x"),
        ):
            with pytest.raises(SandliteError, match="invalid"):
                attempt()
    with pytest.raises(SandliteError, match="its name is empty"):
        Sandbox(env={"": "x"})


def test_an_owner_sets_any_limit_and_callers_only_tighten(tmp_path: Path) -> None:
    script = "n=0; while ((n < 12000)); do ((n += 1)); done; echo $n"
    with Sandbox(preset="strict", limits={"loop_iterations": 50_000, "compute": 50_000_000_000, "wall": "60 s"}) as box:
        assert box.bash(script).stdout == "12000\n"
        assert box.limits["loop_iterations"] == "50000"
    file = tmp_path / "mine.toml"
    file.write_text('base = "normal"\nloop_iterations = 10\n')
    with Sandbox(limits=file) as box:
        assert box.bash(script).limit is not None
    with pytest.raises(SandliteError, match="loops"):
        Sandbox(limits={"loops": 1})


def test_limits_are_numbers_or_amounts() -> None:
    with Sandbox(limits={"memory": 512 << 20, "wall": 5, "commands": "70"}) as box:
        assert [box.limits[name] for name in ("memory", "wall", "commands")] == ["512 MB", "5 s", "70"]
        with Sandbox(limits={**box.limits, "wall": 0.25}) as same:
            assert same.limits == {**box.limits, "wall": "250 ms"}
    for limits in ({"memory": -1}, {"wall": True}, {"commands": "many"}, {"wall": None}):
        with pytest.raises(SandliteError):
            Sandbox(limits=limits)


def test_every_past_version_can_be_read_and_brought_back() -> None:
    with Sandbox() as box:
        box.write_file("/plan", "A\n")
        box.kv.set("step", 1)
        box.checkpoint("first", "the plan")
        box.bash("echo B > /plan; touch /more")
        assert [file.path for file in box.diff("first").files] == ["/more", "/plan"]
        assert "-A\n+B\n" in box.diff("first", paths=["/plan"]).patch
        past = box.at("first")
        assert (past.read_file("/plan"), past.kv.get("step")) == ("A\n", 1)
        with pytest.raises(SandliteError, match="cannot be changed"):
            past.write_file("/plan", "C")
        assert past.bash("cat /plan; echo x > /plan; cat /plan").stdout == "A\nx\n"
        assert box.restore("first").total == 2
        assert (box.read_file("/plan"), bool(box.diff("first"))) == ("A\n", False)
        box.undo()
        assert box.read_file("/plan") == "B\n"
        assert [one.name for one in box.checkpoints()] == ["first"]
        assert box.log("/more")[-1].command == "echo B > /plan; touch /more"
        assert box.log()[0].digest is None
        digests = [version.digest for version in box.log(digest=True)]
        assert len(digests[0] or "") == 64 and digests[0] == digests[2] and digests[0] != digests[1]
        assert [version.digest for version in box.log()] == digests
        with pytest.raises(SandliteError, match="invalid version"):
            box.at("nothing")
