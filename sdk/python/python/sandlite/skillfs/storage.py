"""``skillfs.storage``: where the bundles of workspaces are."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Union

__all__ = ["BundleStore", "LocalBundleStore"]


class BundleStore(ABC):
    """A place for bundles."""

    @abstractmethod
    def key_for_agent(self, agent_id: str) -> str:
        """The name of an agent's bundle in the store."""

    @abstractmethod
    def download_bundle(self, agent_id: str, dest: Path) -> bool:
        """Copies an agent's bundle to ``dest``, and returns whether there is one."""

    @abstractmethod
    def upload_bundle(self, agent_id: str, src: Path) -> None:
        """Stores an agent's bundle."""


class LocalBundleStore(BundleStore):
    """Bundles in a directory of this machine, in its subdirectory ``prefix`` if that is given.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     LocalBundleStore(directory).list_agents()
    []
    """

    def __init__(self, directory: Union[str, Path], prefix: str = "") -> None:
        self.directory = Path(directory)
        self.prefix = prefix.strip("/")
        self._place.mkdir(parents=True, exist_ok=True)

    @property
    def _place(self) -> Path:
        return self.directory / self.prefix if self.prefix else self.directory

    def _path(self, agent_id: str) -> Path:
        name = self.key_for_agent(agent_id)
        # SkillFS would leave its directory here.
        if "/" in name or "\\" in name or name.startswith("."):
            raise ValueError(f"invalid name of a workspace: {agent_id!r}")
        return self._place / name

    def key_for_agent(self, agent_id: str) -> str:
        """The file's name."""
        return f"{agent_id}.bundle"

    def download_bundle(self, agent_id: str, dest: Path) -> bool:
        """Copies the bundle to ``dest``, and returns whether there is one."""
        source = self._path(agent_id)
        if not source.exists():
            return False
        try:
            Path(dest).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, dest)
        except OSError as error:
            raise RuntimeError(f"cannot copy the bundle of {agent_id!r}: {error}") from error
        return True

    def upload_bundle(self, agent_id: str, src: Path) -> None:
        """Stores a bundle; it appears whole or not at all."""
        if not Path(src).exists():
            raise FileNotFoundError(f"there is no bundle {str(src)!r}")
        target = self._path(agent_id)
        new = target.with_name(f".{target.name}.new")
        try:
            self._place.mkdir(parents=True, exist_ok=True)
            shutil.copy2(src, new)
            new.replace(target)
        except OSError as error:
            raise RuntimeError(f"cannot store the bundle of {agent_id!r}: {error}") from error

    def exists(self, agent_id: str) -> bool:
        """Whether there is a bundle."""
        return self._path(agent_id).exists()

    def delete(self, agent_id: str) -> bool:
        """Deletes a bundle, and returns whether there was one."""
        path = self._path(agent_id)
        if not path.exists():
            return False
        path.unlink()
        return True

    def list_agents(self) -> "list[str]":
        """The names of all agents with bundles, sorted."""
        return sorted(path.name[: -len(".bundle")] for path in self._place.glob("*.bundle"))
