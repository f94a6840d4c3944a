"""Functions that generate files and directories of a sandbox when they are opened."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Mapping, Optional, Union

from ._host_tools import _awaited

if TYPE_CHECKING:
    import asyncio

    from . import _native

#: The content of a file.
FileContent = Union[str, bytes]
#: A file, a directory of nodes, or a function that returns a file when it is opened.
NodeLike = Union["ProvidedNode", str, bytes, Mapping[str, Any], Callable[..., Any]]
FileProvider = Callable[..., Union[FileContent, "ProvidedNode", Awaitable[Any]]]
DirectoryProvider = Callable[..., Union[Mapping[str, NodeLike], "ProvidedNode", Awaitable[Any]]]


@dataclass(frozen=True)
class ProvidedNode:
    """The return value of a function of :meth:`Sandbox.mount_file` or :meth:`Sandbox.mount_directory`.

    >>> tree = ProvidedNode.directory({"README": ProvidedNode.file("read me"), "users": {"1": "{}"}})
    >>> tree.is_directory
    True
    """

    content: Any
    is_directory: bool = False

    @classmethod
    def file(cls, content: FileContent) -> "ProvidedNode":
        """Creates a file with this content.

        >>> box.mount_file("/now", lambda: ProvidedNode.file("noon"))
        >>> box.bash("cat /now").stdout
        'noon'
        """
        return cls(content)

    @classmethod
    def directory(cls, children: Mapping[str, NodeLike]) -> "ProvidedNode":
        """Creates a directory. A child that is a function is a file that is generated when it is opened.

        >>> box.mount_directory("/docs", lambda: ProvidedNode.directory({"a": "text", "b": lambda: "made"}))
        >>> box.bash("ls /docs; cat /docs/b").stdout
        'a\\nb\\nmade'
        """
        return cls(dict(children), True)


class NodeView:
    """Read access to the files as seen by the reader of the node: those of the running command, or those of the sandbox."""

    def __init__(self, call: Any, sandbox: "_native.Sandbox") -> None:
        self._call = call
        self._sandbox = sandbox

    def _look(self, verb: str, path: str, otherwise: Callable[[], Any]) -> Any:
        seen = self._call.look(verb, path) if self._call.run else None
        return otherwise() if seen is None else seen

    def read_bytes(self, path: str) -> bytes:
        """Returns the bytes of a file; the path is absolute.

        >>> box.write_file("/tmp/a", "hello")
        >>> box.mount_file("/made", lambda context: context.view.read_bytes("/tmp/a")[:2])
        >>> box.read_file("/made")
        'he'
        """
        content: bytes = self._look("read", path, lambda: self._sandbox.read_bytes(path))
        return content

    def read_file(self, path: str) -> str:
        """Returns the text of a file; invalid UTF-8 is replaced.

        >>> box.write_file("/tmp/a", "hello")
        >>> box.mount_file("/made", lambda context: context.view.read_file("/tmp/a").upper())
        >>> box.read_file("/made")
        'HELLO'
        """
        return self.read_bytes(path).decode("utf-8", "replace")

    def exists(self, path: str) -> bool:
        """Returns whether a path exists.

        >>> box.write_file("/tmp/a", "hello")
        >>> box.mount_file("/made", lambda context: str(context.view.exists("/tmp/a")))
        >>> box.read_file("/made")
        'True'
        """
        return bool(self._look("exists", path, lambda: self._sandbox.exists(path)))

    def list_files(self, path: str) -> "list[str]":
        """Returns the names in a directory, sorted.

        >>> box.write_file("/tmp/a", "hello")
        >>> box.mount_file("/made", lambda context: str(context.view.list_files("/tmp")))
        >>> box.read_file("/made")
        "['a']"
        """
        names: list[str] = json.loads(self._look("names", path, lambda: self._sandbox.list_names(path)))
        return names


@dataclass(frozen=True)
class NodeContext:
    """The context of a generated node."""

    path: str
    """The path in the sandbox."""
    run: Optional[int]
    """The number of the command that opens the node in the history; ``None`` if this program itself opens it."""
    view: NodeView
    """The files as seen by the reader of the node."""
    cancel: Callable[[], bool]
    """Returns whether the content is no longer needed."""


def native(
    function: Callable[..., Any],
    is_directory: bool,
    sandbox: Callable[[], "_native.Sandbox"],
    loop: Optional["asyncio.AbstractEventLoop"],
) -> Callable[[str, Any], Any]:
    """Wraps the function for the native half; an ``async`` one runs in ``loop``, or in its own loop."""
    takes_context = _takes_context(function)

    def call(path: str, scope: Any) -> Any:
        context = NodeContext(path, scope.run or None, NodeView(scope, sandbox()), scope)
        returned = _awaited(function(context) if takes_context else function(), loop)
        return _node(returned, is_directory, sandbox, loop)

    return call


def _takes_context(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    positional = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
    return any(parameter.kind in positional for parameter in parameters)


def _node(
    value: Any, is_directory: bool, sandbox: Callable[[], "_native.Sandbox"], loop: Optional["asyncio.AbstractEventLoop"]
) -> Any:
    """Converts a node for the native half: ``bytes``, a ``dict``, or a pair for a function."""
    if isinstance(value, ProvidedNode):
        value = value.content
    if isinstance(value, str) and not is_directory:
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)) and not is_directory:
        return bytes(value)
    if isinstance(value, Mapping) and is_directory:
        return {name: _child(child, sandbox, loop) for name, child in value.items()}
    wanted = "a mapping of names" if is_directory else "str or bytes"
    raise TypeError(f"expected {wanted}, not {type(value).__name__}")


def _child(value: Any, sandbox: Callable[[], "_native.Sandbox"], loop: Optional["asyncio.AbstractEventLoop"]) -> Any:
    if isinstance(value, ProvidedNode):
        return _node(value, value.is_directory, sandbox, loop)
    if callable(value):
        return (False, native(value, False, sandbox, loop))
    return _node(value, isinstance(value, Mapping), sandbox, loop)
