"""Typed Python functions as tools: a JSON schema from their type hints, arguments and results as JSON.

Programs in the sandbox call them: ``from sandlite import tools; tools.add(a=1, b=2)`` in Python; ``add --a 1 --b 2``, or
``tool add '{"a": 1, "b": 2}'``, in bash.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import inspect
import json
import typing
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Mapping, Optional, Sequence, Union

if TYPE_CHECKING:
    import asyncio


@dataclasses.dataclass(frozen=True)
class ToolCall:
    """A call that requires approval: the tool's name and its arguments."""

    name: str
    arguments: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Tool:
    """A tool with its own schema. ``function`` is called with the arguments by name; it may be ``async``.

    ``schema`` defaults to one generated from the function's type hints, ``description`` to the first paragraph of its docstring."""

    function: Callable[..., Any]
    name: str = ""
    description: str = ""
    schema: Optional[Mapping[str, Any]] = None


class ToolContext:
    """The context of a tool call. It is passed to a function with a parameter of this type; programs in the sandbox do not see
    it.

    >>> def preview(path: str, context: ToolContext) -> str:
    ...     return context.read_file(path)[:80]

    Its files are those of the calling command, including its changes so far."""

    def __init__(self, native: Any) -> None:
        self._native = native

    @property
    def run(self) -> int:
        """The number of the calling command in the history."""
        return int(self._native.run)

    @property
    def is_cancelled(self) -> bool:
        """Whether that command has ended, by itself, by a limit or by cancellation, so that the result is no longer needed."""
        return bool(self._native())

    def _look(self, verb: str, path: str) -> Any:
        seen = self._native.look(verb, path)
        if seen is None:
            raise NotApproved("the command has ended")
        return seen

    def read_bytes(self, path: str) -> bytes:
        """Returns the bytes of a file; the path is absolute.

        >>> def peek(context: ToolContext) -> int:
        ...     return len(context.read_bytes('/tmp/a'))
        >>> Sandbox(tools=[peek]).bash('printf hello > /tmp/a; peek').stdout
        '5\\n'
        """
        content: bytes = self._look("read", path)
        return content

    def read_file(self, path: str) -> str:
        """Returns the text of a file; invalid UTF-8 is replaced.

        >>> def peek(context: ToolContext) -> dict:
        ...     return {'text': context.read_file('/tmp/a')}
        >>> Sandbox(tools=[peek]).bash('printf hello > /tmp/a; peek').stdout
        '{"text":"hello"}\\n'
        """
        return self.read_bytes(path).decode("utf-8", "replace")

    def exists(self, path: str) -> bool:
        """Returns whether a path exists.

        >>> def peek(context: ToolContext) -> bool:
        ...     return context.exists('/tmp/a')
        >>> Sandbox(tools=[peek]).bash('touch /tmp/a; peek').stdout
        'true\\n'
        """
        return bool(self._look("exists", path))

    def list_files(self, path: str) -> "list[str]":
        """Returns the names in a directory, sorted.

        >>> def peek(context: ToolContext) -> list:
        ...     return context.list_files('/tmp')
        >>> Sandbox(tools=[peek]).bash('touch /tmp/b /tmp/a; peek').stdout
        '["a","b"]\\n'
        """
        names: list[str] = json.loads(self._look("names", path))
        return names


class NotApproved(Exception):
    """The error that the sandbox receives for a call that was not approved."""


Approve = Callable[[ToolCall], Union[bool, Awaitable[bool]]]
ToolLike = Union[Tool, Callable[..., Any]]


def parts(
    tools: Optional[Sequence[ToolLike]],
    approve: Optional[Approve],
    loop: Optional["asyncio.AbstractEventLoop"],
) -> "list[tuple[str, str, str, Callable[..., str]]]":
    """Converts the tools for the native half; ``async`` functions run in ``loop``, or in their own loop."""
    return [_part(tool if isinstance(tool, Tool) else Tool(tool), approve, loop) for tool in tools or ()]


def _part(
    tool: Tool, approve: Optional[Approve], loop: Optional["asyncio.AbstractEventLoop"]
) -> "tuple[str, str, str, Callable[..., str]]":
    function = tool.function
    name = tool.name or getattr(function, "__name__", type(function).__name__)
    description = tool.description or (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
    hints = _hints(function)
    schema = dict(tool.schema) if tool.schema is not None else schema_of(function)
    takes_context = [key for key, hint in hints.items() if _is_context(hint) and key != "return"]

    def call(text: str, is_over: Any = lambda: False) -> str:
        arguments = json.loads(text)
        if approve is not None:
            _check_approval(_awaited(approve(ToolCall(name, arguments)), loop))
        # A person may have taken longer than the command had: the call is not started if its command has ended.
        if is_over():
            raise NotApproved("the command has ended")
        given = {key: _from_json(hints.get(key, Any), value) for key, value in arguments.items()}
        given.update({key: ToolContext(is_over) for key in takes_context})
        return json.dumps(_awaited(function(**given), loop), default=to_json)

    return name, description, json.dumps(schema), call


def gate(
    approve: Optional[Approve], loop: Optional["asyncio.AbstractEventLoop"]
) -> "Optional[Callable[[str, Any], str]]":
    """``approve`` for tools that are not functions of Python: it is given name and arguments as JSON, and raises unless they are approved."""
    if approve is None:
        return None
    given = approve

    def ask(text: str, _scope: Any) -> str:
        asked = json.loads(text)
        _check_approval(_awaited(given(ToolCall(asked["name"], asked["arguments"])), loop))
        return ""

    return ask


def _check_approval(answer: Any) -> None:
    """Only ``True`` approves: a text, a pair or a mapping that means no would also be truthy."""
    if answer is True:
        return
    if answer is False:
        raise NotApproved("the call was not approved")
    raise NotApproved(f"the call was not approved: approve must return True or False, not {type(answer).__name__}")


def _awaited(value: Any, loop: Optional["asyncio.AbstractEventLoop"]) -> Any:
    if not inspect.isawaitable(value):
        return value
    import asyncio

    async def whole() -> Any:
        return await value

    # A tool runs on its own thread, so the caller's loop is not blocked.
    if loop is not None and loop.is_running():
        return asyncio.run_coroutine_threadsafe(whole(), loop).result()
    return asyncio.run(whole())


def _hints(function: Callable[..., Any]) -> "dict[str, Any]":
    target = function if inspect.isroutine(function) else getattr(function, "__call__", function)
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError):
        return {}


def _is_context(hint: Any) -> bool:
    """Whether a parameter is given the context, which programs in the sandbox must not choose; it may be ``Optional``."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated or is_union(origin):
        return any(_is_context(argument) for argument in arguments)
    return hint is ToolContext


def schema_of(function: Callable[..., Any]) -> "dict[str, Any]":
    """The JSON schema of a function's parameters. A parameter without a type hint accepts anything."""
    hints = _hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    others = False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            others = True
            continue
        if _is_context(hints.get(name)):
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise TypeError(f"tools are called by name, so {function!r} cannot have the parameter {name!r}")
        schema = schema_of_type(hints.get(name, Any))
        if parameter.default is parameter.empty:
            required.append(name)
        elif parameter.default is not None:
            try:
                schema = {**schema, "default": json.loads(json.dumps(parameter.default, default=to_json))}
            except TypeError:
                pass
        properties[name] = schema
    schema = {"type": "object", "properties": properties, "required": required}
    return schema if others else {**schema, "additionalProperties": False}


_PLAIN: "dict[Any, dict[str, Any]]" = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    bytes: {"type": "string"},
    dict: {"type": "object"},
    list: {"type": "array"},
    set: {"type": "array"},
    frozenset: {"type": "array"},
    tuple: {"type": "array"},
    Any: {},
    object: {},
}

_LISTS = (list, set, frozenset, tuple, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Set)
_MAPS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def schema_of_type(hint: Any) -> "dict[str, Any]":
    """The JSON schema of a type hint; an unknown one accepts anything."""
    try:
        if hint in _PLAIN:
            return dict(_PLAIN[hint])
    except TypeError:
        return {}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        said = [note for note in arguments[1:] if isinstance(note, str)]
        inner = schema_of_type(arguments[0])
        return {**inner, "description": said[0]} if said else inner
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if is_union(origin):
        choices = [schema_of_type(argument) for argument in arguments]
        return {"anyOf": choices} if all(choices) else {}
    if origin in _LISTS:
        items = [argument for argument in arguments if argument is not Ellipsis]
        inner = schema_of_type(items[0]) if len(set(map(repr, items))) == 1 else {}
        return {"type": "array", "items": inner} if inner else {"type": "array"}
    if origin in _MAPS:
        inner = schema_of_type(arguments[1]) if len(arguments) == 2 else {}
        return {"type": "object", "additionalProperties": inner} if inner else {"type": "object"}
    if isinstance(hint, type):
        return _schema_of_class(hint)
    return {}


def is_union(origin: Any) -> bool:
    return origin is Union or getattr(origin, "__name__", "") == "UnionType"


def _schema_of_class(hint: type) -> "dict[str, Any]":
    if issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if hasattr(hint, "model_json_schema"):  # a model of pydantic
        return dict(hint.model_json_schema())
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        fields = dataclasses.fields(hint)
        missing = dataclasses.MISSING
        return {
            "type": "object",
            "properties": {field.name: schema_of_type(hints[field.name]) for field in fields},
            "required": [f.name for f in fields if f.default is missing and f.default_factory is missing],
            "additionalProperties": False,
        }
    if hasattr(hint, "__total__") and hasattr(hint, "__annotations__"):  # a TypedDict
        hints = typing.get_type_hints(hint)
        return {
            "type": "object",
            "properties": {name: schema_of_type(inner) for name, inner in hints.items()},
            "required": sorted(getattr(hint, "__required_keys__", hints)),
        }
    if issubclass(hint, (str, int, float)):
        return next(dict(_PLAIN[plain]) for plain in (str, bool, int, float) if issubclass(hint, plain))
    return {}


def _from_json(hint: Any, value: Any) -> Any:
    """Converts a JSON value to the type that a function expects."""
    if value is None or hint is Any:
        return value
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _from_json(arguments[0], value)
    if is_union(origin):
        kinds = [argument for argument in arguments if argument is not type(None)]
        return _from_json(kinds[0], value) if len(kinds) == 1 else value
    if origin in _LISTS and isinstance(value, list):
        inner = arguments[0] if arguments else Any
        wanted: Sequence[Any] = [inner] * len(value)
        if origin is tuple and arguments[-1:] != (Ellipsis,) and len(arguments) == len(value):
            wanted = arguments
        made = [_from_json(kind, item) for kind, item in zip(wanted, value)]
        return origin(made) if origin in (set, frozenset, tuple) else made
    if origin in _MAPS and isinstance(value, dict):
        return {key: _from_json(arguments[1], item) for key, item in value.items()}
    if not isinstance(hint, type):
        return value
    if issubclass(hint, enum.Enum):
        return hint(value)
    if hasattr(hint, "model_validate"):
        return hint.model_validate(value)
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        hints = typing.get_type_hints(hint)
        return hint(**{key: _from_json(hints.get(key, Any), item) for key, item in value.items()})
    if hint in (set, frozenset, tuple) and isinstance(value, list):
        return hint(value)
    if hint is bytes and isinstance(value, str):
        return value.encode()
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def to_json(value: Any) -> Any:
    """For ``json.dumps(default=…)``: converts return values that are not JSON types."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    raise TypeError(f"a tool cannot return {type(value).__name__}: it is not JSON")
