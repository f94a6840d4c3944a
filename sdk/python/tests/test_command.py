"""The command ``sandlite`` of this package."""

import importlib.metadata
import json
import os
import signal
import subprocess
import sys

import pytest

import sandlite

COMMAND = [sys.executable, "-m", "sandlite"]


def run(*words, **options):
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, **options)


def test_it_runs_commands_and_exits_as_they_do(tmp_path):
    done = run("bash", "-c", "echo out; echo err >&2; exit 3", cwd=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 3)
    assert run("--version").stdout == f"sandlite {sandlite.__version__}\n"
    assert run("nonsense").returncode == 2
    assert run("bash", "-c", "cat", input="from outside", cwd=tmp_path).stdout == "from outside"


def test_the_core_promises_hold(tmp_path):
    # One of its checks starts the command once more, inside another Python and in another directory.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sandlite").write_text("from sandlite.__main__ import main\n\nmain()\n")
    words = [sys.executable, "bin/sandlite", "--json", "self-test"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (done.returncode, found["failed"]) == (0, 0), found
    assert {"crash", "isolation"} <= {check["name"] for check in found["checks"]}


def test_a_variable_names_the_file(tmp_path):
    environment = {**os.environ, "SANDLITE_DB": str(tmp_path / "agent.db")}
    assert run("bash", "-c", "echo kept > f", env=environment, cwd=tmp_path).returncode == 0
    with sandlite.Sandbox(tmp_path / "agent.db") as box:
        assert box.read_file("f") == "kept\n"
    other = ["--db", str(tmp_path / "other.db"), "--json", "info"]
    assert run(*other, env=environment, cwd=tmp_path).returncode != 0, "the option comes first"
    empty = run("--json", "bash", "-c", "ls", env={**environment, "SANDLITE_DB": ""}, cwd=tmp_path)
    assert json.loads(empty.stdout)["stdout"] == ""


def test_ctrl_c_is_for_the_command(tmp_path):
    child = subprocess.Popen([*COMMAND, "bash", "-c", "echo begun; sleep 100"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert child.stdout.readline() == "begun\n"
    child.send_signal(signal.SIGINT)
    _, complaint = child.communicate()
    assert child.returncode == 130 and "Traceback" not in complaint, complaint


@pytest.mark.skipif("SANDLITE_BIN" not in os.environ, reason="the program was not built")
def test_it_is_the_program():
    for words in (["--help"], ["bash", "--help"], ["presets"]):
        program = subprocess.run([os.environ["SANDLITE_BIN"], *words], capture_output=True, text=True)
        assert run(*words).stdout == program.stdout


def test_the_package_installs_it():
    try:
        scripts = importlib.metadata.distribution("sandlite").entry_points
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed")
    assert [(script.group, script.name, script.value) for script in scripts] == [
        ("console_scripts", "sandlite", "sandlite.__main__:main")
    ]
