"""sandfs's exceptions."""

from __future__ import annotations


class SandboxError(RuntimeError):
    """Base class of sandfs's exceptions."""


class NodeNotFound(SandboxError):
    """There is no such file or directory."""


class NodeExists(SandboxError):
    """The path exists."""


class InvalidOperation(SandboxError):
    """The operation is not possible, or a policy forbids it."""


class ProviderError(SandboxError):
    """A provider raised an exception."""


__all__ = ["InvalidOperation", "NodeExists", "NodeNotFound", "ProviderError", "SandboxError"]
