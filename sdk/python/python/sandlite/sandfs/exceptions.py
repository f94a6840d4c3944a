"""sandfs's exceptions."""

from __future__ import annotations


class SandboxError(RuntimeError):
    """Base class of sandfs's exceptions."""


class NodeNotFound(SandboxError):
    """The file or directory does not exist."""


class NodeExists(SandboxError):
    """The path already exists."""


class InvalidOperation(SandboxError):
    """The operation is not possible, or a policy forbids it."""


class ProviderError(SandboxError):
    """A provider raised an exception."""


__all__ = ["InvalidOperation", "NodeExists", "NodeNotFound", "ProviderError", "SandboxError"]
