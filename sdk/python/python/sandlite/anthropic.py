"""The sandbox as tools of Anthropic's messages interface; the package ``anthropic`` itself is not needed.

>>> from sandlite import Sandbox
>>> from sandlite.anthropic import SandboxTools
>>> tools = SandboxTools(Sandbox())
>>> tools.tools[0]["name"]
'bash'

``client.messages.create(…, tools=tools.tools)``; then ``messages.append(tools.answer(message))`` answers all calls of a message.
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Optional

from . import _toolkit
from ._sandbox import Sandbox
from ._toolkit import AnySandbox

__all__ = ["SandboxTools"]


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


class SandboxTools:
    """A sandbox's tools, and the answers to their calls. ``names`` chooses among them."""

    def __init__(self, box: AnySandbox, names: Optional[Iterable[str]] = None) -> None:
        self._box = box
        self._specs = _toolkit.chosen(names)

    @property
    def tools(self) -> "list[Any]":
        """For ``messages.create(tools=…)``."""
        return [
            {"name": spec.name, "description": spec.description, "input_schema": dict(spec.schema)} for spec in self._specs
        ]

    def dispatch(self, block: Any) -> "Any":
        """Does what a ``tool_use`` block asks; returns the ``tool_result`` block. Nothing a model says makes it raise."""
        if not isinstance(self._box, Sandbox):
            raise TypeError("an AsyncSandbox is asked with `await tools.adispatch(block)`")
        name = str(_field(block, "name"))
        return self._result(block, self._refused(name) or _toolkit.call(self._box, name, _field(block, "input")))

    async def adispatch(self, block: Any) -> "Any":
        """The same, for ``asyncio``."""
        name = str(_field(block, "name"))
        return self._result(block, self._refused(name) or await _toolkit.acall(self._box, name, _field(block, "input")))

    def answer(self, message: Any) -> "Any":
        """The user's message that answers every call of an assistant's message; ``None`` if it has none."""
        blocks = [self.dispatch(block) for block in self._calls(message)]
        return {"role": "user", "content": blocks} if blocks else None

    async def aanswer(self, message: Any) -> "Any":
        """The same, for ``asyncio``."""
        blocks = [await self.adispatch(block) for block in self._calls(message)]
        return {"role": "user", "content": blocks} if blocks else None

    @staticmethod
    def _calls(message: Any) -> "list[Any]":
        return [block for block in _field(message, "content") or [] if _field(block, "type") == "tool_use"]

    def _refused(self, name: str) -> Optional[_toolkit.Answer]:
        known = any(spec.name == name for spec in self._specs)
        return None if known else _toolkit.Answer(f"error: there is no tool `{name}`", True)

    @staticmethod
    def _result(block: Any, answer: _toolkit.Answer) -> "Any":
        made = {"type": "tool_result", "tool_use_id": _field(block, "id"), "content": answer.text}
        return {**made, "is_error": True} if answer.is_error else made
