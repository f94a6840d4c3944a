"""Programs of the owner: modules for wasm32-wasip1, and functions of Python as commands."""

import asyncio
import threading

import pytest

from sandlite import AsyncSandbox, BusyError, CommandCall, Sandbox
from sandlite.errors import SandliteError

#: Copies standard input to standard output in capitals; its text is in tests/behaviour/programs.rs.
UPPER = bytes.fromhex(
    "0061736d01000000010c0260047f7f7f7f017f60000002440216776173695f736e617073686f745f70726576696577310766645f7265616400001677"
    "6173695f736e617073686f745f70726576696577310866645f77726974650000030201010503010001071302066d656d6f72790200065f7374617274"
    "00020a8b0101880101037f0340410041800836020041044180203602004100410041014108100004400f0b41082802004504400f0b41800821004180"
    "0841082802006a2101034020002d00002102200241e1004f200241fa004d7104402000200241206b3a00000b200041016a210020002001490d000b41"
    "044108280200360200410141004101410c10011a0c000b0b003e046e616d65010e020004726561640105777269746502130102030001690103656e64"
    "02066c6574746572031201020200046d6f726503076c657474657273"
)


def test_a_module_is_a_program_of_the_sandbox(tmp_path):
    file = tmp_path / "upper.wasm"
    file.write_bytes(UPPER)
    with Sandbox(programs={"upper": UPPER, "also": file}) as box:
        assert box.bash("echo hello | upper; echo you | also").stdout == "HELLO\nYOU\n"
        assert box.python("import subprocess; print(subprocess.check_output('upper', input=b'py'))").stdout == "b'PY'\n"
        with box.fork() as fork:
            assert fork.bash("echo fork | upper").stdout == "FORK\n"
    with Sandbox() as box:
        assert box.bash("upper").exit_code == 127


def test_an_invalid_module_is_rejected():
    with pytest.raises(SandliteError, match="cannot use the program `x`: it is not a WebAssembly module"):
        Sandbox(programs={"x": b"text"})
    with pytest.raises(SandliteError, match="it is not installed"):
        Sandbox(programs={"not-installed-anywhere": None})


def test_a_function_is_a_command():
    with Sandbox() as box:

        @box.command("count")
        def count(call: CommandCall) -> int:
            lines = [line.rstrip() for line in call.stdin]
            print(len(lines), *call.args[1:], call.cwd, call.env.get("WHO"), file=call.stdout)
            print("noted", file=call.stderr)
            return 3

        result = box.bash("cd /tmp; printf 'a\\nb\\n' | WHO=me count x 'y z' | cat; echo ${PIPESTATUS[1]}")
        assert (result.stdout, result.stderr) == ("2 x y z /tmp me\n3\n", "noted\n")
        assert box.bash("echo 1 2 | xargs -n 1 count 2> /dev/null").stdout == "0 1 /home/user None\n0 2 /home/user None\n"
        code = "import subprocess; p = subprocess.run(['count'], input=b'1', capture_output=True); print(p.returncode, p.stdout)"
        assert box.python(code).stdout == "3 b'1 /home/user None\\n'\n"
        assert box.bash("command -v count; which count").stdout == "/usr/local/bin/count\n" * 2
        calls = [run for run in box.history() if run.name == "command"]
        assert (len(calls), calls[-1].command) == (4, "count x y z")


def test_files_of_a_command_are_those_of_the_run():
    def stamp(call: CommandCall) -> None:
        text = call.files.read_file(call.args[1])
        call.files.mkdir("out")
        call.files.write_file("out/stamped", text + "!")
        call.files.append("out/stamped", b"?")
        assert call.files.list_files("out") == ["stamped"] and call.files.exists("/tmp")

    with Sandbox(commands={"stamp": stamp}) as box:
        assert box.bash("echo -n new > f; stamp f; cat out/stamped").stdout == "new!?"
        assert box.read_file("out/stamped") == "new!?"
        box.bash("echo x > g; stamp g; false", rollback_on_failure=True)
        assert box.read_file("out/stamped") == "new!?" and not box.exists("g")


def test_an_error_is_an_exit_status():
    def broken(call: CommandCall) -> None:
        raise ValueError("no such thing")

    def leaves(call: CommandCall) -> None:
        print("so far", file=call.stdout)
        raise SystemExit("bye")

    def status(call: CommandCall) -> int:
        raise SystemExit(4)

    with Sandbox(commands={"broken": broken, "leaves": leaves, "status": status, "text": lambda call: "text"}) as box:
        result = box.bash("broken")
        assert (result.exit_code, result.stderr) == (1, "broken: no such thing\n")
        result = box.bash("leaves")
        assert (result.exit_code, result.stdout, result.stderr) == (1, "so far\n", "bye\n")
        assert box.bash("status").exit_code == 4
        assert "must return an exit status or None, not str" in box.bash("text").stderr


def test_a_command_ends_with_its_run():
    seen = threading.Event()

    def slow(call: CommandCall) -> None:
        while not call.is_cancelled:
            seen.wait(0.01)
        with pytest.raises(BrokenPipeError):
            call.stdin.read()
        seen.set()

    with Sandbox(commands={"slow": slow}) as box:
        result = box.bash("slow; echo never", timeout=0.3)
        assert result.exit_code == 124 and result.stdout == ""
        assert seen.wait(10)


def test_a_command_does_not_wait_for_its_own_run():
    with Sandbox() as box:

        @box.command("inner")
        def inner(call: CommandCall) -> None:
            with pytest.raises(BusyError):
                box.write_file("x", "y")
            print("refused", file=call.stdout)

        assert box.bash("inner").stdout == "refused\n"


def test_async_commands_run_in_the_loop_of_the_caller():
    async def main() -> None:
        loop = asyncio.get_running_loop()

        async def first(call: CommandCall) -> int:
            assert asyncio.get_running_loop() is loop
            await asyncio.sleep(0)
            print("first", file=call.stdout)
            return 2

        async with AsyncSandbox(commands={"first": first}, programs={"upper": UPPER}) as box:

            @box.command("second")
            async def second(call: CommandCall) -> None:
                print("second", file=call.stdout)

            result = await box.bash("first | upper; second; first")
            assert (result.stdout, result.exit_code) == ("FIRST\nsecond\nfirst\n", 2)

    asyncio.run(main())


def test_a_granted_program_of_the_host_works_on_a_copy():
    try:
        box = Sandbox(files={"/work/a": "a\n"}, cwd="/work", allow_host=["dash"])
    except SandliteError as error:
        pytest.skip(str(error))
    with box:
        assert box.bash("dash -c 'cat a; echo b > b; pwd'").stdout == "a\n/work\n"
        assert box.read_file("b") == "b\n"
        assert box.bash("host cat a").exit_code == 126
    with pytest.raises(TypeError):
        Sandbox(allow_host="git")
