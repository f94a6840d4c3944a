"""File operations for compatibility layers: metadata, whole trees, and history rows with custom names."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Mapping, Optional

from . import _native
from ._calls import Call


@dataclass(frozen=True)
class Entry:
    """A file or directory. Links are followed, except for dangling ones."""

    path: str
    kind: str
    size: int
    mode: int
    #: Nanoseconds since 1970.
    modified: int

    @property
    def is_directory(self) -> bool:
        return self.kind == "directory"

    @property
    def is_file(self) -> bool:
        return self.kind == "file"


def decoded_entry(answer: str) -> Entry:
    """The result of ``stat``."""
    return Entry(*json.loads(answer))


def decoded_entries(answer: str) -> "list[Entry]":
    """The result of ``entries`` and ``walk``."""
    return [Entry(*row) for row in json.loads(answer)]


def decoded_path(answer: str) -> str:
    """The result of ``real_path``."""
    path: str = json.loads(answer)
    return path


def _call(
    box: _native.Sandbox, verb: str, path: str, read: Any, content: Optional[bytes] = None, recorded: Optional[str] = None
) -> Call[Any]:
    return Call(lambda done: _native.file_call(box, verb, path, recorded, content, done), read)


def _recorded(parameters: Optional[Mapping[str, Any]]) -> Optional[str]:
    return None if parameters is None else json.dumps(parameters)


def read(box: _native.Sandbox, path: str, recorded: Optional[Mapping[str, Any]] = None) -> Call[bytes]:
    """The bytes of a regular file that its permissions allow reading."""
    return _call(box, "read", path, lambda answer: answer, None, _recorded(recorded))


def write(
    box: _native.Sandbox, path: str, content: bytes, recorded: Optional[Mapping[str, Any]] = None
) -> Call[None]:
    """Writes a whole file, following a link and creating missing parent directories."""
    return _call(box, "write", path, lambda answer: None, content, _recorded(recorded))


def remove(box: _native.Sandbox, path: str, recorded: Optional[Mapping[str, Any]] = None) -> Call[None]:
    """Removes a file or a link."""
    return _call(box, "remove", path, lambda answer: None, None, _recorded(recorded))


def remove_tree(box: _native.Sandbox, path: str) -> Call[None]:
    """Removes a file, a link, or a directory with its content."""
    return _call(box, "remove_tree", path, lambda answer: None)


def make_directory(box: _native.Sandbox, path: str) -> Call[None]:
    """Creates a directory and its missing parents."""
    return _call(box, "make_directory", path, lambda answer: None)


def exists(box: _native.Sandbox, path: str, recorded: Optional[Mapping[str, Any]] = None) -> Call[bool]:
    """Whether a path exists."""
    return _call(box, "exists", path, bool, None, _recorded(recorded))


def names(box: _native.Sandbox, path: str, recorded: Optional[Mapping[str, Any]] = None) -> Call["list[str]"]:
    """The names in a directory, sorted."""
    return _call(box, "names", path, json.loads, None, _recorded(recorded))


def stat(box: _native.Sandbox, path: str) -> Call[Entry]:
    """The metadata of a path."""
    return _call(box, "stat", path, decoded_entry)


def entries(box: _native.Sandbox, path: str) -> Call["list[Entry]"]:
    """The content of a directory, with metadata."""
    return _call(box, "entries", path, decoded_entries)


def walk(box: _native.Sandbox, path: str) -> Call["list[Entry]"]:
    """Everything below a directory; links are not followed."""
    return _call(box, "walk", path, decoded_entries)


def real_path(box: _native.Sandbox, path: str) -> Call[str]:
    """The path without links; missing components are kept as written."""
    return _call(box, "real_path", path, decoded_path)
