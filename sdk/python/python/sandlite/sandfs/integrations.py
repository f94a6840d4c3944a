"""Functions called when a path is created, updated or deleted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Callable, Dict, List, Optional

if TYPE_CHECKING:
    from .vfs import VirtualFileSystem


@dataclass(frozen=True)
class PathEvent:
    """A change of a path: ``create``, ``update`` or ``delete``."""

    path: str
    event: str
    content: Optional[str]


PathHook = Callable[[PathEvent], None]


@dataclass
class InboxRecorder:
    """Collects the events below a path."""

    events: List[Dict[str, Optional[str]]] = field(default_factory=list)

    def attach(self, vfs: "VirtualFileSystem", prefix: str) -> None:
        """Records the events at ``prefix`` or below it from now on."""
        vfs.register_path_hook(
            prefix, lambda event: self.events.append({"path": event.path, "event": event.event, "content": event.content})
        )


__all__ = ["InboxRecorder", "PathEvent", "PathHook"]
