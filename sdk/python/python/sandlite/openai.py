"""The sandbox as tools of OpenAI's interfaces, chat completions and responses; the package ``openai`` itself is not needed.

>>> from sandlite import Sandbox
>>> from sandlite.openai import SandboxTools
>>> tools = SandboxTools(Sandbox())
>>> tools.chat[0]["function"]["name"]
'bash'

``client.chat.completions.create(…, tools=tools.chat)``; then for each call of the answer ``messages.append(tools.dispatch(call))``.
With ``client.responses.create(…, tools=tools.responses)`` the same: ``input.append(tools.dispatch(item))``.
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
    def chat(self) -> "list[Any]":
        """For ``chat.completions.create(tools=…)``."""
        return [
            {
                "type": "function",
                "function": {"name": spec.name, "description": spec.description, "parameters": dict(spec.schema)},
            }
            for spec in self._specs
        ]

    @property
    def responses(self) -> "list[Any]":
        """For ``responses.create(tools=…)``."""
        return [
            {
                "type": "function",
                "name": spec.name,
                "description": spec.description,
                "parameters": dict(spec.schema),
                "strict": False,
            }
            for spec in self._specs
        ]

    def dispatch(self, call: Any) -> "Any":
        """Does what a call asks; returns the message (or the item) that answers it. Nothing a model says makes it raise."""
        if not isinstance(self._box, Sandbox):
            raise TypeError("an AsyncSandbox is asked with `await tools.adispatch(call)`")
        name, arguments = self._asked(call)
        return self._answer(call, self._refused(name) or _toolkit.call(self._box, name, arguments))

    async def adispatch(self, call: Any) -> "Any":
        """The same, for ``asyncio``."""
        name, arguments = self._asked(call)
        return self._answer(call, self._refused(name) or await _toolkit.acall(self._box, name, arguments))

    def _refused(self, name: str) -> Optional[_toolkit.Answer]:
        known = any(spec.name == name for spec in self._specs)
        return None if known else _toolkit.Answer(f"error: there is no tool `{name}`", True)

    @staticmethod
    def _asked(call: Any) -> "tuple[str, Any]":
        function = _field(call, "function") or call
        return str(_field(function, "name")), _field(function, "arguments")

    @staticmethod
    def _answer(call: Any, answer: _toolkit.Answer) -> "Any":
        if _field(call, "type") == "function_call":
            return {"type": "function_call_output", "call_id": _field(call, "call_id"), "output": answer.text}
        return {"role": "tool", "tool_call_id": _field(call, "id"), "content": answer.text}
