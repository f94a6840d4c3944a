"""The command ``sandlite``: ``python -m sandlite``, ``uvx sandlite``. It runs the same code as the program of that name."""

from __future__ import annotations

import signal
import sys

from . import _native


def main() -> None:
    """Runs the command line of this process and exits."""
    # Ctrl-C belongs to the command: Python would raise KeyboardInterrupt after the command has handled it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.cli(["sandlite", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
