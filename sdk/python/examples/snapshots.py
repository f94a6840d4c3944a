"""Snapshots: a whole sandbox as bytes or as a file, to resume later, elsewhere, or once more from the same point."""

import tempfile
from pathlib import Path

from sandlite import Sandbox

directory = Path(tempfile.mkdtemp())

with Sandbox() as box:
    box.session("work").bash("mkdir -p ~/project && cd ~/project && git_like=1 && echo v1 > state")
    before = box.export_snapshot()
    box.bash("rm -r ~/project", check=True)
    print("after the accident:", box.exists("project/state"))

# The same point again: files, sessions, values and history.
with Sandbox(snapshot=before) as box:
    print("restored:", box.session("work").bash("cat state; echo $git_like").stdout.split())
    box.export_to(directory / "snapshot.db")

with Sandbox(directory / "agent.db", snapshot=directory / "snapshot.db") as box:
    box.session("work").bash("echo v2 > state", check=True)

with Sandbox(directory / "agent.db", read_only=True) as box:
    print("in a file:", box.read_file("project/state").strip(), box.info().runs, "runs")
