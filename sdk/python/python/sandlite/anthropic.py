"""The sandbox as tools of Anthropic's Messages API; the package ``anthropic`` itself is not required.

>>> from sandlite import Sandbox
>>> from sandlite.anthropic import SandboxTools
>>> tools = SandboxTools(Sandbox())
>>> tools.tools[0]["name"]
'bash'

Pass ``client.messages.create(…, tools=tools.tools)``; then ``messages.append(tools.answer(message))`` returns the results of all
calls in a message.
"""

from __future__ import annotations

from typing import Any

from ._results import Answer
from ._toolkit import Calls, SkillCalls, field

__all__ = ["SandboxTools", "SkillTools"]


class SandboxTools(Calls):
    """A sandbox's tools, and the results of their calls. ``names`` selects tools; ``session`` is the default session of ``bash``
    and ``python``, which keeps its state between calls."""

    _unit = "block"

    @property
    def tools(self) -> "list[Any]":
        """For ``messages.create(tools=…)``."""
        return [
            {"name": spec.name, "description": spec.description, "input_schema": dict(spec.schema)} for spec in self._specs
        ]

    def dispatch(self, block: Any) -> "Any":
        """Performs a ``tool_use`` block and returns the ``tool_result`` block. Input from a model never makes it raise."""
        return self._result(block, self._do(str(field(block, "name")), field(block, "input")))

    async def adispatch(self, block: Any) -> "Any":
        """Same, for ``asyncio``."""
        return self._result(block, await self._ado(str(field(block, "name")), field(block, "input")))

    def answer(self, message: Any) -> "Any":
        """Returns the user message with the results of every call in an assistant message; ``None`` if it has none."""
        blocks = [self.dispatch(block) for block in self._calls(message)]
        return {"role": "user", "content": blocks} if blocks else None

    async def aanswer(self, message: Any) -> "Any":
        """Same, for ``asyncio``."""
        blocks = [await self.adispatch(block) for block in self._calls(message)]
        return {"role": "user", "content": blocks} if blocks else None

    @staticmethod
    def _calls(message: Any) -> "list[Any]":
        return [block for block in field(message, "content") or [] if field(block, "type") == "tool_use"]

    @staticmethod
    def _result(block: Any, answer: Answer) -> "Any":
        made = {"type": "tool_result", "tool_use_id": field(block, "id"), "content": answer.text}
        return {**made, "is_error": True} if answer.is_error else made


class SkillTools(SkillCalls, SandboxTools):
    """Each skill of a catalog, by default the user's own, as a tool, and the results of their calls. ``names`` selects skills.

    >>> from sandlite import Skills
    >>> from sandlite.anthropic import SkillTools
    >>> skills = Skills(":memory:")
    >>> _ = skills.push({"SKILL.md": "---\\nname: hello\\ndescription: Says hello.\\n---\\n", "main.sh": "echo '1' > out/output.json"})
    >>> [tool["name"] for tool in SkillTools(skills).tools]
    ['skill_hello']
    """
