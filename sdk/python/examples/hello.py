"""A sandbox in a file: files, bash, Python, values and history."""

import tempfile
from pathlib import Path

from sandlite import Sandbox

path = Path(tempfile.mkdtemp()) / "agent.db"
with Sandbox(path) as box:
    box.write_file("data.csv", "name,score\nada,3\nbob,4\n")
    print(box.bash("cut -d, -f2 data.csv | tail -n +2 | paste -sd+ | bc", check=True).stdout.strip())
    print(box.python("import csv; print(sum(int(r['score']) for r in csv.DictReader(open('data.csv'))))").stdout.strip())
    box.kv.set("done", True)

with Sandbox(path) as box:
    print(box.kv.get("done"), [row.name for row in box.history()][:3])
