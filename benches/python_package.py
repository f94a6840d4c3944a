"""The bars of the Python package, each with its figure: run by ``cargo xtask bench python`` with the package of a wheel.

Start-up is measured beside an empty program in the same round; memory is the peak of a process of its own, above what it has
after a first command.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import sandlite
from sandlite import Sandbox

ROUNDS = 25
MEGABYTE = 1_000_000

#: Whether every bar is met.
met = True


def report(what, figure, unit, bar, more=""):
    global met
    met = met and figure <= bar
    print(f"{what:<44} {figure:9.3f} {unit:<5} bar {bar:>6} {'met' if figure <= bar else 'MISSED':<7} {more}", flush=True)


def milliseconds(work):
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e3


def program(code):
    return lambda: subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def starts():
    empty, imported = program(""), program("import sandlite")
    first = program("import sandlite\nwith sandlite.Sandbox() as box: box.bash('echo hi')")
    for run in (empty, imported, first):
        run()
    rounds = [[milliseconds(run) for run in (empty, imported, first)] for _ in range(ROUNDS)]
    report("import, above Python's start", statistics.median(two - one for one, two, _ in rounds), "ms", 30)
    report("first command, above Python's start", statistics.median(three - one for one, _, three in rounds), "ms", 25)


def warm():
    with Sandbox() as box:
        for _ in range(300):
            box.bash("echo")
        times = sorted(milliseconds(lambda: box.bash("echo")) for _ in range(3000))
    report("warm bash(\"echo\"), median", times[len(times) // 2], "ms", 0.12, f"min {times[0]:.3f}")


def chunks():
    code = "import time\nfor _ in range(100): print(time.time_ns(), flush=True); time.sleep(0.003)"
    late = []
    with Sandbox() as box:
        box.python("1")
        box.python(code, on_stdout=lambda text: late.extend((time.time_ns() - int(line)) / 1e6 for line in text.split()))
    report("a chunk reaches on_stdout, median", statistics.median(late), "ms", 2, f"max {max(late):.3f}")


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


def memory(directory):
    for where, path in (("in memory", ""), ("in a file", "peak.db")):
        for way in ("bash", "start"):
            place = path and f"{directory}/{way}-{path}"
            done = subprocess.run([sys.executable, "-c", PEAK, place, way], check=True, capture_output=True, text=True)
            # Two copies: the result, and the history or its cache. Besides: a piece, and a cache of one megabyte.
            report(f"10 MB of output of {way}, {where}, peak", int(done.stdout) / MEGABYTE / 10, "x", 2.3)


def files(directory):
    times = []
    with Sandbox(f"{directory}/files.db") as box:
        box.write_files({"first": "x"})
        for number in range(15):
            many = {f"d{number}/{name}": "x" * 100 for name in range(1000)}
            times.append(milliseconds(lambda: box.write_files(many)))
    report("1 000 files, durable, median", statistics.median(times), "ms", 15, f"min {min(times):.1f}")


def callback():
    calls = []
    with Sandbox() as box:
        box.mount_file("/srv/now", lambda: calls.append(None) or "generated\n")
        for _ in range(100):
            assert box.read_file("/srv/now") == "generated\n"
        times = sorted(milliseconds(lambda: box.read_file("/srv/now")) for _ in range(2000))
    # Each read calls the function.
    assert len(calls) == 2100, len(calls)
    more = f"99 % {times[len(times) * 99 // 100]:.3f}"
    report("a file behind a Python function, median", times[len(times) // 2], "ms", 0.5, more)


class Mcp:
    """A client of ``sandlite mcp``."""

    def __init__(self, database):
        words = [sys.executable, "-m", "sandlite", "--db", database, "mcp"]
        self._child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._last = 0
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.receive(self.send("initialize", client))

    def send(self, method, params):
        self._last += 1
        print(json.dumps({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}), file=self._child.stdin, flush=True)
        return self._last

    def receive(self, number):
        while True:
            answer = json.loads(self._child.stdout.readline())
            if answer.get("id") == number:
                return answer["result"]

    def call(self, name, arguments):
        result = self.receive(self.send("tools/call", {"name": name, "arguments": arguments}))
        assert not result["isError"], result

    def close(self):
        self._child.stdin.close()
        self._child.wait()


#: The reading actions, with their arguments.
READS = {
    "read_file": {"path": "/d0/5"},
    "glob": {"pattern": "d1/*9", "path": "/"},
    "grep": {"pattern": "line 1", "path": "/few"},
    "list_files": {"path": "/d3"},
    "kv_get": {"key": "k"},
    "history": {},
}


def filled(path):
    with Sandbox(path, preset="permissive") as box:
        for number in range(20):
            box.write_files({f"/d{number}/{name}": f"line {name}\n" for name in range(1000)})
        box.write_files({f"/few/{name}": f"line {name}\n" for name in range(20)})
        box.kv.set("k", {"a": 1})


def reads(directory):
    """Twenty runs with 1 000 changes each, and a command that runs meanwhile."""
    path = f"{directory}/reads.db"
    filled(path)
    with Sandbox(path, preset="permissive") as box:
        running = box.start("sleep 20")
        ways = {
            "read_file": lambda: box.read_file("/d0/5"),
            "glob": lambda: box.glob("d1/*9", "/"),
            "grep": lambda: box.grep("line 1", "/few"),
            "list_files": lambda: box.list_files("/d3"),
            "kv_get": lambda: box.kv.get("k"),
            "history": lambda: box.history(20),
        }
        for name, work in ways.items():
            report(f"Python, while a command runs: {name}", statistics.median(milliseconds(work) for _ in range(20)), "ms", 5)
        running.kill()
        running.wait()
    client = Mcp(path)
    running = client.send("tools/call", {"name": "bash", "arguments": {"command": "sleep 10"}})
    time.sleep(0.3)
    for name, arguments in READS.items():
        times = [milliseconds(lambda: client.call(name, arguments)) for _ in range(20)]
        report(f"MCP, while a command runs: {name}", statistics.median(times), "ms", 5)
    client.close()


def main():
    print(f"sandlite {sandlite.__version__}, Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.2f}")
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        parts = [("starts", starts), ("warm", warm), ("chunks", chunks), ("memory", lambda: memory(directory))]
        parts += [("files", lambda: files(directory)), ("callback", callback), ("reads", lambda: reads(directory))]
        for name, part in parts:
            if not wanted or name in wanted:
                part()
    sys.exit(0 if met else 1)


main()
