"""Functions called after a write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class WriteEvent:
    """A file that was written."""

    path: str
    content: str
    version: int
    append: bool


WriteHook = Callable[[WriteEvent], None]

__all__ = ["WriteEvent", "WriteHook"]
