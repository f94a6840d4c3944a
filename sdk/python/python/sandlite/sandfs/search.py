"""Queries of :meth:`VirtualFileSystem.search <sandlite.sandfs.VirtualFileSystem.search>` and their results."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Callable, Optional


@dataclass(frozen=True)
class SearchQuery:
    """A text, or a regular expression if ``regex``, to be found in the lines of the files at a path or below it."""

    query: str
    regex: bool = False
    ignore_case: bool = False
    path_prefix: Optional[PurePosixPath] = None

    def _matcher(self) -> "Callable[[str], bool]":
        pattern = re.compile(self.query if self.regex else re.escape(self.query), re.IGNORECASE if self.ignore_case else 0)
        return lambda line: pattern.search(line) is not None


@dataclass(frozen=True)
class SearchResult:
    """A matching line."""

    path: PurePosixPath
    line_no: int
    line_text: str


__all__ = ["SearchQuery", "SearchResult"]
