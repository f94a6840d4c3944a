"""Stores for directories."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Mapping


@dataclass
class StorageEntry:
    """The content of a path in a store, and its version there."""

    content: str
    version: int = 0


class StorageAdapter:
    """A store. Subclasses implement its methods."""

    def read(self, path: str) -> StorageEntry:
        """Returns an entry, or raises :class:`FileNotFoundError`."""
        raise NotImplementedError

    def write(self, path: str, content: str, *, version: int) -> StorageEntry:
        """Writes an entry that still has this version, or raises :class:`ValueError`."""
        raise NotImplementedError

    def list(self) -> Dict[str, StorageEntry]:
        """Returns all entries by path."""
        raise NotImplementedError

    def delete(self, path: str) -> None:
        """Deletes an entry."""
        raise NotImplementedError


@dataclass
class MemoryStorageAdapter(StorageAdapter):
    """A store in memory."""

    initial: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._entries = {path: StorageEntry(text) for path, text in self.initial.items()}

    def read(self, path: str) -> StorageEntry:
        if path not in self._entries:
            raise FileNotFoundError(path)
        entry = self._entries[path]
        return StorageEntry(entry.content, entry.version)

    def write(self, path: str, content: str, *, version: int) -> StorageEntry:
        entry = self._entries.get(path)
        if entry is not None and entry.version != version:
            raise ValueError("version mismatch")
        self._entries[path] = StorageEntry(content, version + 1)
        return StorageEntry(content, version + 1)

    def list(self) -> Dict[str, StorageEntry]:
        return {path: StorageEntry(entry.content, entry.version) for path, entry in self._entries.items()}

    def delete(self, path: str) -> None:
        self._entries.pop(path, None)


__all__ = ["MemoryStorageAdapter", "StorageAdapter", "StorageEntry"]
