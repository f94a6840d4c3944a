"""The command ``sandlite``: ``python -m sandlite``, ``uvx sandlite``. It runs the code of the program of that name."""

from __future__ import annotations

import signal
import sys

from . import _native


def main() -> None:
    """Runs the words of this process's command line and exits."""
    # Ctrl-C is for the command: Python would raise KeyboardInterrupt after the command has dealt with it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.cli(["sandlite", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
