"""The sandbox as a toolset and as a workspace of Pydantic AI (``pip install pydantic-ai-slim``).

>>> from pydantic_ai import Agent
>>> from sandlite import Sandbox
>>> from sandlite.pydantic_ai import sandbox_toolset
>>> agent = Agent(toolsets=[sandbox_toolset(Sandbox())])

A call that fails returns a result with the error, which never ends the run. :class:`SandliteWorkspace` is the environment of an
agent's own tools for files and commands (``pydantic_ai.workspaces``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Optional

from pydantic_ai.tools import Tool
from pydantic_ai.toolsets import FunctionToolset

from . import _toolkit
from ._toolkit import AnySandbox, Spec
from .skills import Skills, SkillTool

if TYPE_CHECKING:
    from ._workspace import SandliteWorkspace

__all__ = ["SandliteWorkspace", "sandbox_toolset", "skill_toolset"]


def sandbox_toolset(
    box: AnySandbox, names: Optional[Iterable[str]] = None, *, session: Optional[str] = None
) -> "FunctionToolset[Any]":
    """Returns the tools of a sandbox as one toolset. ``names`` selects tools; ``session`` is the default session of
    ``bash`` and ``python``, which keeps its state from call to call."""
    return FunctionToolset[Any](tools=[_tool(box, spec, session) for spec in _toolkit.chosen(names)])


def _tool(box: AnySandbox, spec: Spec, session: Optional[str]) -> "Tool[Any]":
    async def call(**arguments: Any) -> str:
        # Not ``ModelRetry``: two of them in a row end the run.
        return (await _toolkit.acall(box, spec.name, arguments, session)).text

    made: Tool[Any] = Tool.from_schema(
        function=call, name=spec.name, description=spec.description, json_schema=dict(spec.schema), takes_ctx=False
    )
    return made


def skill_toolset(
    skills: Optional[Skills] = None, names: Optional[Iterable[str]] = None, *, prefix: str = "skill_"
) -> "FunctionToolset[Any]":
    """Returns each skill of a catalog, by default the user's own, as a tool, in one toolset. ``names`` selects skills."""
    return FunctionToolset[Any](tools=[_skill_tool(tool) for tool in (skills or Skills()).tools(prefix, names)])


def _skill_tool(tool: SkillTool) -> "Tool[Any]":
    async def call(**arguments: Any) -> str:
        return (await tool.aanswer(arguments)).text

    made: Tool[Any] = Tool.from_schema(
        function=call,
        name=tool.name,
        description=tool.description,
        json_schema=dict(tool.input_schema),
        takes_ctx=False,
    )
    return made


def __getattr__(name: str) -> Any:
    # Older releases of Pydantic AI have toolsets but no workspaces.
    if name == "SandliteWorkspace":
        from ._workspace import SandliteWorkspace

        return SandliteWorkspace
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
