"""Nodes whose content is provided by a function."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional

if TYPE_CHECKING:
    from .policies import NodePolicy
    from .vfs import VirtualFileSystem


@dataclass(frozen=True)
class NodeContext:
    """The argument of a provider."""

    path: PurePosixPath
    metadata: Mapping[str, Any]
    vfs: "Optional[VirtualFileSystem]" = None


ContentProvider = Callable[[NodeContext], str]
DirectorySnapshot = Mapping[str, "ProvidedNode"]
DirectoryProvider = Callable[[NodeContext], DirectorySnapshot]


@dataclass
class ProvidedNode:
    """A node returned by a provider of a directory."""

    kind: str
    content: Optional[str] = None
    content_provider: Optional[ContentProvider] = None
    directory_provider: Optional[DirectoryProvider] = None
    children: "Optional[Dict[str, ProvidedNode]]" = None
    metadata: Dict[str, Any] = field(default_factory=dict)
    policy: "Optional[NodePolicy]" = None

    @staticmethod
    def file(
        *,
        content: Optional[str] = None,
        content_provider: Optional[ContentProvider] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        policy: "Optional[NodePolicy]" = None,
    ) -> "ProvidedNode":
        """Returns a file with this content, or with content from a function."""
        return ProvidedNode("file", content, content_provider, metadata=dict(metadata or {}), policy=policy)

    @staticmethod
    def directory(
        *,
        children: "Optional[Mapping[str, ProvidedNode]]" = None,
        directory_provider: Optional[DirectoryProvider] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        policy: "Optional[NodePolicy]" = None,
    ) -> "ProvidedNode":
        """Returns a directory with these children, or with children from a function."""
        given = None if children is None else dict(children)
        return ProvidedNode(
            "dir", None, None, directory_provider, given, metadata=dict(metadata or {}), policy=policy
        )


__all__ = ["ContentProvider", "DirectoryProvider", "DirectorySnapshot", "NodeContext", "ProvidedNode"]
