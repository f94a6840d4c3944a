"""Long output: whole, and in memory only as often as it must be."""

import subprocess
import sys

import pytest

from sandlite import Sandbox

PEAK = """
import re, sys
from sandlite import Sandbox

def kilobytes(name):
    return int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read()).group(1))

box = Sandbox(sys.argv[1] or None, preset="permissive")
box.bash("yes | head -c 1000 | tr y z")
open("/proc/self/clear_refs", "w").write("5")
before = kilobytes("VmRSS")
command = "yes 0123456789abcdef | head -c 10000000"
result = box.start(command).wait() if sys.argv[2] == "start" else box.bash(command)
assert len(result.stdout_bytes) == 10_000_000, result
print((kilobytes("VmHWM") - before) * 1024)
"""


@pytest.mark.parametrize("way", ["bash", "start"])
@pytest.mark.parametrize("name", ["", "a.db"])
def test_ten_megabytes_are_held_twice_at_the_most(name, way, tmp_path):
    path = str(tmp_path / name) if name else ""
    done = subprocess.run([sys.executable, "-c", PEAK, path, way], check=True, capture_output=True, text=True)
    # The result, and the history or the cache of SQLite; and some megabytes for pieces and everything else, of which a handle that
    # could be read from meanwhile has more. A third copy would be above both.
    assert int(done.stdout) <= (26_000_000 if way == "start" else 23_000_000)


def test_long_output_is_whole():
    with Sandbox(preset="permissive") as box:
        result = box.bash("seq 400000; seq 300000 >&2")
        assert result.stdout == "".join(f"{number}\n" for number in range(1, 400_001))
        assert result.stderr == "".join(f"{number}\n" for number in range(1, 300_001))
        entry = box.history(1, output=True)[0]
        assert (entry.stdout_bytes, entry.stderr_bytes) == (result.stdout_bytes, result.stderr_bytes)


def test_changes_of_the_history_are_parsed_when_they_are_read():
    with Sandbox() as box:
        box.bash("echo one > a; echo two > b")
        box.kv.set("k", 1)
        value, command = box.history(2)
        assert "changes" not in command.__dict__
        assert [change["path"] for change in command.changes] == ["/home/user/a", "/home/user/b"]
        assert command.changes is command.changes and not value.changes
        assert command == box.history(2)[1] and "changes=[{" in repr(command)
