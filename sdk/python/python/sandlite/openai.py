"""The sandbox as tools of OpenAI's APIs, Chat Completions and Responses; the package ``openai`` itself is not required.

>>> from sandlite import Sandbox
>>> from sandlite.openai import SandboxTools
>>> tools = SandboxTools(Sandbox())
>>> tools.chat[0]["function"]["name"]
'bash'

Pass ``client.chat.completions.create(…, tools=tools.chat)``; then call ``messages.append(tools.dispatch(call))`` for each call of
the reply. With ``client.responses.create(…, tools=tools.responses)``, use ``input.append(tools.dispatch(item))``.
"""

from __future__ import annotations

from typing import Any

from ._results import Answer
from ._toolkit import Calls, SkillCalls, field

__all__ = ["SandboxTools", "SkillTools"]


class SandboxTools(Calls):
    """A sandbox's tools, and the results of their calls. ``names`` selects some of them; ``session`` is the default session of
    ``bash`` and ``python``, which keeps its state from call to call."""

    _unit = "call"

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
        """Performs a call and returns the message (or the item) with its result. Input from a model never makes it raise."""
        return self._answer(call, self._do(*self._asked(call)))

    async def adispatch(self, call: Any) -> "Any":
        """Same, for ``asyncio``."""
        return self._answer(call, await self._ado(*self._asked(call)))

    @staticmethod
    def _asked(call: Any) -> "tuple[str, Any]":
        function = field(call, "function") or call
        return str(field(function, "name")), field(function, "arguments")

    @staticmethod
    def _answer(call: Any, answer: Answer) -> "Any":
        if field(call, "type") == "function_call":
            return {"type": "function_call_output", "call_id": field(call, "call_id"), "output": answer.text}
        return {"role": "tool", "tool_call_id": field(call, "id"), "content": answer.text}


class SkillTools(SkillCalls, SandboxTools):
    """Each skill of a catalog, by default the user's own, as a tool, and the results of their calls. ``names`` selects skills.

    >>> from sandlite import Skills
    >>> from sandlite.openai import SkillTools
    >>> skills = Skills(":memory:")
    >>> _ = skills.push({"SKILL.md": "---\\nname: hello\\ndescription: Says hello.\\n---\\n", "main.sh": "echo '1' > out/output.json"})
    >>> [tool["function"]["name"] for tool in SkillTools(skills).chat]
    ['skill_hello']
    """
