"""LocalSandbox 0.3.2 beside Sandlite, in one run: a warm `echo hello`, and a new sandbox with its first command.

    python3.12 -m venv v && v/bin/pip install localsandbox==0.3.2 deno
    PATH=$PWD/v/bin:$PATH v/bin/python benches/beside_localsandbox.py target/release/sandlite

Prints medians in milliseconds, and ratios. Theirs goes through its Python package, as its users do. Ours is the library (the
row `echo` of `sandlite bench`, which also commits a row of history) and, for a new sandbox, the whole command line: a process
each. If the packages in LocalSandbox's lock file are not available, replace its `shim/deno.lock` by `npm install`
of near versions in `shim/` and `"nodeModulesDir": "manual"`.
"""

import json
import statistics
import subprocess
import sys
import time

from localsandbox import LocalSandbox

WARM, NEW = 300, 7


def milliseconds(work):
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def echo(sandbox):
    result = sandbox.bash("echo hello")
    assert result.stdout == "hello\n", result


def first_command():
    with LocalSandbox() as sandbox:
        echo(sandbox)


def theirs():
    with LocalSandbox() as sandbox:
        echo(sandbox)
        warm = statistics.median(milliseconds(lambda: echo(sandbox)) for _ in range(WARM))
    return warm, statistics.median(milliseconds(first_command) for _ in range(NEW))


def ours(program):
    def run():
        done = subprocess.run([program, "bash", "-c", "echo hello"], capture_output=True, check=True)
        assert done.stdout == b"hello\n", done

    run()
    bench = json.loads(subprocess.run([program, "bench", "--json"], capture_output=True, check=True).stdout)
    (row,) = (row for row in bench["rows"] if (row["language"], row["workload"]) == ("bash", "echo"))
    warm = statistics.median(cell["micros"] for cell in row["cells"]) / 1000
    return warm, statistics.median(milliseconds(run) for _ in range(NEW * 3))


def main():
    (their_warm, their_new), (warm, new) = theirs(), ours(sys.argv[1])
    print("| | LocalSandbox ms | Sandlite ms | times faster |\n|---|---|---|---|")
    print(f"| warm `echo hello` | {their_warm:.3f} | {warm:.3f} | {their_warm / warm:.1f} |")
    print(f"| new sandbox, first command | {their_new:.1f} | {new:.1f} | {their_new / new:.1f} |")


main()
