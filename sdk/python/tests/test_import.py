"""Importing the package and running a command import only what they need, and nothing is missing because of that."""

import copy
import dataclasses
import json
import pickle
import subprocess
import sys
import typing

import pytest

import sandlite
from sandlite import Result, Sandbox, Usage

#: Each of them takes longer to import than the package.
SLOW = ["asyncio", "dataclasses", "enum", "inspect", "json", "pathlib", "re", "typing"]


def output_of(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("code", ["import sandlite", "from sandlite import Sandbox; Sandbox().bash('echo hi').stdout"])
def test_slow_modules_are_not_imported(code):
    imported = output_of(f"import sys; before = set(sys.modules)\n{code}\nprint(*(set(sys.modules) - before))").split()
    assert "sandlite._native" in imported
    assert [name for name in SLOW if name in imported] == []


def test_every_name_exists():
    for name in sandlite.__all__:
        assert getattr(sandlite, name) is not None, name
        assert name in dir(sandlite)
    everything: "dict[str, object]" = {}
    exec("from sandlite import *", everything)
    assert set(sandlite.__all__) <= set(everything)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        sandlite.nothing
    assert output_of("import sandlite; print(sandlite.errors.BusyError.__name__, sandlite.skills.__name__)") == (
        "BusyError sandlite.skills\n"
    )


def test_an_exception_can_be_caught_by_its_lazy_name():
    code = "import sandlite\ntry:\n    sandlite.Sandbox().bash('exit 3', check=True)\nexcept sandlite.CommandError as error:\n    print(error.exit_code)"
    assert output_of(code) == "3\n"


@pytest.mark.parametrize("name", ["bash", "python", "read_file", "glob", "exists", "delete_file", "session"])
def test_hints_are_those_of_typing(name):
    hints = typing.get_type_hints(getattr(Sandbox, name))
    assert str in hints.values()
    if name == "bash":
        assert hints["return"] is Result
        assert hints["timeout"] == typing.Optional[float]
        assert hints["env"] == typing.Optional[typing.Mapping[str, str]]
        assert hints["stdin"] == typing.Union[str, bytes, None]


def test_a_result_is_a_dataclass():
    with Sandbox() as box:
        result, again = box.bash("echo hi"), box.bash("echo ho")
    assert dataclasses.is_dataclass(Result) and dataclasses.is_dataclass(result)
    assert [field.name for field in dataclasses.fields(Usage)][:2] == ["fuel", "memory_peak"]
    assert dataclasses.asdict(result)["usage"]["commands"] == 1
    assert dataclasses.asdict(result)["stdout_bytes"] == b"hi\n"
    changed = dataclasses.replace(result, exit_code=4)
    assert (changed.exit_code, changed.stdout, changed.ok) == (4, "hi\n", False)
    assert pickle.loads(pickle.dumps(result)) == copy.copy(result) == result != again
    assert hash(copy.deepcopy(result)) == hash(result)
    assert {field.name: field.default for field in dataclasses.fields(Result)}["notes"] == ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.exit_code = 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        del result.usage.fuel
    assert repr(result.usage).startswith("Usage(fuel=")
    made = Result(0, b"a", b"", False, 0.5, 1, Usage(1, 2, 3, 4, 5, 6, 7))
    assert (made.stdout, made.limit, made.usage.bytes_written, made.notes) == ("a", None, 7, ())


def test_standard_input_is_text_or_bytes():
    with Sandbox() as box:
        for stdin in ("ab", b"ab", bytearray(b"ab"), memoryview(b"ab")):
            assert box.bash("cat", stdin=stdin).stdout == "ab"
        for wrong in (0, 5.5, ["a"]):
            with pytest.raises(TypeError, match="stdin must be str or bytes, not"):
                box.bash("cat", stdin=wrong)
            with pytest.raises(TypeError, match="stdin must be str or bytes, not"):
                box.start("cat", stdin=wrong)


def test_a_timeout_is_a_number_of_seconds():
    with Sandbox() as box:
        assert box.bash("echo", timeout=float("inf")).notes[0].endswith("the limit of this sandbox")
        assert box.bash("sleep 5", timeout=0.05).limit.name == "wall"
        with pytest.raises(ValueError, match="invalid timeout: NaN is not a number of seconds"):
            box.bash("echo", timeout=float("nan"))
        with pytest.raises(TypeError):
            box.bash("echo", timeout="5")


def test_a_missing_file_cannot_be_opened_read_only(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing.db"):
        Sandbox(tmp_path / "missing.db", read_only=True)


def test_compacting_returns_free_space(tmp_path):
    with Sandbox(tmp_path / "a.db") as box:
        box.bash("head -c 3000000 /dev/urandom > big")
        box.bash("rm big")
        box.prune_versions(versions=1)
        compacted = box.compact()
        assert compacted.after_bytes < 1_000_000
        assert compacted.after_bytes <= compacted.before_bytes


def test_long_output_is_in_the_history():
    with Sandbox() as box:
        box.bash("head -c 200000 /dev/zero | tr '\\0' x; head -c 70000 /dev/zero | tr '\\0' y >&2")
        row = box.history(limit=1, output=True)[0]
        assert (row.stdout_bytes, row.stderr_bytes) == (b"x" * 200_000, b"y" * 70_000)


def test_values_and_limits_reach_the_result():
    with Sandbox() as box:
        result = box.python("[1, {'a': None}]", echo=True)
        assert (result.value, result.text) == ([1, {"a": None}], "[1, {'a': None}]")
        assert json.loads(json.dumps(result.value)) == result.value
        limit = box.bash("sleep 5", timeout=0.05).limit
        assert dataclasses.asdict(limit)["name"] == "wall" and limit.rolled_back is False
