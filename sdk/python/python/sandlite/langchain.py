"""The sandbox as tools of LangChain (``pip install langchain-core``).

>>> from sandlite import Sandbox
>>> from sandlite.langchain import sandbox_tools
>>> tools = sandbox_tools(Sandbox())
>>> [tool.name for tool in tools][:2]
['bash', 'python']

Pass them to ``model.bind_tools(tools)`` or to an agent. A :class:`~sandlite.Sandbox` supports ``invoke`` and ``ainvoke``; an
:class:`~sandlite.AsyncSandbox` supports ``ainvoke``, and a cancelled call is killed.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Iterable, Optional

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from . import _toolkit
from ._results import Answer
from ._sandbox import Sandbox
from ._toolkit import AnySandbox, Spec
from .errors import SandliteError
from .skills import SkillResult, Skills, SkillTool, _answer

__all__ = ["sandbox_tools", "skill_tools"]


def sandbox_tools(
    box: AnySandbox, names: Optional[Iterable[str]] = None, *, session: Optional[str] = None
) -> "list[BaseTool]":
    """Returns the tools of a sandbox. ``names`` selects tools; ``session`` is the default session of
    ``bash`` and ``python``, which keeps its state from call to call."""
    return [_tool(box, spec, session) for spec in _toolkit.chosen(names)]


def _text(answer: Answer) -> str:
    if answer.is_error:
        # The model reads it as the result of a tool that failed.
        raise ToolException(answer.text)
    return answer.text


def _tool(box: AnySandbox, spec: Spec, session: Optional[str]) -> BaseTool:
    function: Optional[Callable[..., Any]] = None
    if isinstance(box, Sandbox):
        plain = box

        def function(**arguments: Any) -> str:
            return _text(_toolkit.call(plain, spec.name, arguments, session))

    async def coroutine(**arguments: Any) -> str:
        return _text(await _toolkit.acall(box, spec.name, arguments, session))

    return StructuredTool(
        name=spec.name,
        description=spec.description,
        args_schema=dict(spec.schema),
        func=function,
        coroutine=coroutine,
        handle_tool_error=True,
    )


def skill_tools(
    skills: Optional[Skills] = None, names: Optional[Iterable[str]] = None, *, prefix: str = "skillbox_"
) -> "list[BaseTool]":
    """Returns one tool per skill of a catalog, by default the user's own, like Skillbox's toolkit: ``skillbox_NAME`` with ``_`` for ``-``, the description and the
    instructions, and the skill's schema as arguments (``input`` if it has none). A tool returns the output as JSON text, or
    ``Error: …``; the artifact of its message is the :class:`~sandlite.SkillResult`, with the output files.

    >>> from sandlite import Skills
    >>> from sandlite.langchain import skill_tools
    >>> skills = Skills(":memory:")
    >>> _ = skills.push({"SKILL.md": "---\\nname: say-hi\\ndescription: Says hi.\\n---\\n", "main.sh": "echo '[1]' > out/output.json"})
    >>> [tool.name for tool in skill_tools(skills)]
    ['skillbox_say_hi']
    """
    return [_skill_tool(tool) for tool in (skills or Skills()).tools(prefix, names)]


def _skill_tool(tool: SkillTool) -> BaseTool:
    def function(**arguments: Any) -> "tuple[str, Optional[SkillResult]]":
        try:
            return _shown(tool.run(arguments))
        except SandliteError as error:
            return f"Error: {error}", None

    async def coroutine(**arguments: Any) -> "tuple[str, Optional[SkillResult]]":
        try:
            return _shown(await tool.arun(arguments))
        except SandliteError as error:
            return f"Error: {error}", None

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=dict(tool.input_schema),
        func=function,
        coroutine=coroutine,
        response_format="content_and_artifact",
    )


def _shown(result: SkillResult) -> "tuple[str, SkillResult]":
    # Only the output, which programs for Skillbox's toolkit parse.
    text = json.dumps(result.output, indent=2) if result.ok and result.output is not None else _answer(result).text
    return text, result
