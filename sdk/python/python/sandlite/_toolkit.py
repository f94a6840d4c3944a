"""The tools for models: the actions of the native half, for every framework."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar, Iterable, Mapping, Optional, Union

from . import _native
from ._async import AsyncSandbox
from ._results import Answer
from ._sandbox import Sandbox
from .errors import SandliteError
from .skills import Skills

AnySandbox = Union[Sandbox, AsyncSandbox]


@dataclass(frozen=True)
class Spec:
    """A tool: its name, description and schema."""

    name: str
    description: str
    schema: Mapping[str, Any]


#: Every tool, in the order presented to models.
ALL = tuple(
    Spec(action["name"], action["description"], action["input_schema"])
    for action in json.loads(_native.actions())
    if action["audience"] == "models"
)


#: Tools whose truncated results refer to another tool that returns the rest.
_CUT_BY = {"bash": "history", "python": "history"}


def chosen(names: Optional[Iterable[str]]) -> "list[Spec]":
    """The tools with these names, in our order, with those that their results refer to; all of them if no names are given."""
    if names is None:
        return list(ALL)
    wanted = list(names)
    wanted += [_CUT_BY[name] for name in wanted if name in _CUT_BY]
    unknown = sorted(set(wanted) - {spec.name for spec in ALL})
    if unknown:
        raise ValueError(f"unknown tool {', '.join(unknown)}: expected {', '.join(spec.name for spec in ALL)}")
    return [spec for spec in ALL if spec.name in wanted]


def arguments_of(given: Union[str, Mapping[str, Any], None]) -> "dict[str, Any]":
    """The arguments from a model: JSON text, or a mapping."""
    if isinstance(given, str):
        given = json.loads(given or "{}")
    if given is not None and not isinstance(given, Mapping):
        raise ValueError("the arguments are not an object")
    return dict(given or {})


#: The exceptions that input from a model can cause; ``RecursionError`` is that of deeply nested JSON.
_EXPECTED = (SandliteError, ValueError, TypeError, RecursionError)


def _failed(error: Exception) -> Answer:
    return Answer(f"error: {error}", is_error=True)


#: Tools that can resume a session.
_WITH_SESSIONS = frozenset(spec.name for spec in ALL if "session" in spec.schema.get("properties", {}))


def _asked(name: str, given: Union[str, Mapping[str, Any], None], session: Optional[str]) -> "dict[str, Any]":
    arguments = arguments_of(given)
    if session is not None and name in _WITH_SESSIONS and arguments.get("session") is None:
        arguments["session"] = session
    return arguments


def call(
    box: Sandbox, name: str, given: Union[str, Mapping[str, Any], None], session: Optional[str] = None
) -> Answer:
    """Calls a tool, in ``session`` unless the model names another. Every error becomes a result that the model can read."""
    try:
        return box.call_action(name, _asked(name, given, session))
    except _EXPECTED as error:
        return _failed(error)


async def acall(
    box: AnySandbox, name: str, given: Union[str, Mapping[str, Any], None], session: Optional[str] = None
) -> Answer:
    """Same for an :class:`AsyncSandbox`: cancelling it kills the command. A synchronous sandbox runs on another thread."""
    if isinstance(box, Sandbox):
        import asyncio

        return await asyncio.get_running_loop().run_in_executor(None, call, box, name, given, session)
    try:
        return await box.call_action(name, _asked(name, given, session))
    except _EXPECTED as error:
        return _failed(error)


def field(value: Any, name: str) -> Any:
    """Returns a field of an object or a mapping; ``None`` if it has none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


class Calls:
    """The selected tools of a sandbox, called by name: the common part of the APIs that pass tool calls."""

    #: The name of a call in the API.
    _unit: ClassVar[str]

    def __init__(
        self, box: AnySandbox, names: Optional[Iterable[str]] = None, *, session: Optional[str] = None
    ) -> None:
        self._box = box
        self._specs = chosen(names)
        self._session = session

    def _do(self, name: str, given: Any) -> Answer:
        if not isinstance(self._box, Sandbox):
            raise TypeError(f"use `await tools.adispatch({self._unit})` for an AsyncSandbox")
        return self._refused(name) or call(self._box, name, given, self._session)

    async def _ado(self, name: str, given: Any) -> Answer:
        return self._refused(name) or await acall(self._box, name, given, self._session)

    def _refused(self, name: str) -> Optional[Answer]:
        known = any(spec.name == name for spec in self._specs)
        return None if known else Answer(f"error: unknown tool `{name}`", is_error=True)


class SkillCalls(Calls):
    """Each skill of a catalog as a tool: the common part of the APIs that pass tool calls."""

    def __init__(
        self, skills: Optional[Skills] = None, names: Optional[Iterable[str]] = None, *, prefix: str = "skill_"
    ) -> None:
        self._tools = {tool.name: tool for tool in (skills or Skills()).tools(prefix, names)}
        self._specs = [Spec(tool.name, tool.description, tool.input_schema) for tool in self._tools.values()]

    def _do(self, name: str, given: Any) -> Answer:
        refused = self._refused(name)
        if refused is not None:
            return refused
        try:
            return self._tools[name].answer(arguments_of(given))
        except _EXPECTED as error:
            return _failed(error)

    async def _ado(self, name: str, given: Any) -> Answer:
        refused = self._refused(name)
        if refused is not None:
            return refused
        try:
            return await self._tools[name].aanswer(arguments_of(given))
        except _EXPECTED as error:
            return _failed(error)
