"""Every Python block of the README and the book runs, and prints what the page shows.

The block ``text output`` below a block is its output; ``…`` stands for any text in a line. A comment
``<!-- needs: MODULE -->`` above a block names modules without which it is skipped.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def blocks(text):
    """Yields the blocks of a page: line, words after the fence, modules that it needs, text."""
    needs, opened = [], None
    for number, line in enumerate(text.splitlines(), 1):
        if opened is not None:
            if line == "```":
                yield opened
                opened = None
            else:
                opened[3].append(line)
        elif line.startswith("```"):
            opened = (number, line[3:].split(), needs, [])
            needs = []
        else:
            named = re.fullmatch(r"<!-- needs: (.*) -->", line)
            needs = named.group(1).split(", ") if named else []


def examples():
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        found = list(blocks(path.read_text(encoding="utf-8")))
        for (number, words, needs, lines), below in zip(found, [*found[1:], None]):
            if words[:1] == ["python"] and "ignore" not in words:
                shown = below[3] if below and below[1] == ["text", "output"] else []
                name = f"{path.relative_to(ROOT)}:{number}"
                yield pytest.param(needs, "\n".join(lines), shown, id=name)


def agrees(shown, seen):
    return re.fullmatch(".*".join(re.escape(part) for part in shown.split("…")), seen) is not None


@pytest.mark.parametrize("needs,code,shown", list(examples()))
def test_the_block_prints_what_the_page_shows(needs, code, shown, tmp_path):
    for module in needs:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    # The program `sandlite` of the same package.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, done.stderr
    seen = done.stdout.splitlines()
    assert len(seen) == len(shown) and all(map(agrees, shown, seen)), f"shown: {shown}\nnow: {seen}"


def test_there_are_blocks():
    assert len(list(examples())) >= 20
