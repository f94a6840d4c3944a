"""The sandbox as a toolset of Pydantic AI (``pip install pydantic-ai-slim``).

>>> from pydantic_ai import Agent
>>> from sandlite import Sandbox
>>> from sandlite.pydantic_ai import sandbox_toolset
>>> agent = Agent(toolsets=[sandbox_toolset(Sandbox())])

A call that goes wrong is given back to the model to try again.
"""

from __future__ import annotations

from typing import Any, Iterable, Optional

from pydantic_ai import ModelRetry
from pydantic_ai.tools import Tool
from pydantic_ai.toolsets import FunctionToolset

from . import _toolkit
from ._toolkit import AnySandbox, Spec

__all__ = ["sandbox_toolset"]


def sandbox_toolset(box: AnySandbox, names: Optional[Iterable[str]] = None) -> "FunctionToolset[Any]":
    """The tools of a sandbox as one toolset; ``names`` chooses among them."""
    return FunctionToolset[Any](tools=[_tool(box, spec) for spec in _toolkit.chosen(names)])


def _tool(box: AnySandbox, spec: Spec) -> "Tool[Any]":
    async def call(**arguments: Any) -> str:
        answer = await _toolkit.acall(box, spec.name, arguments)
        if answer.is_error:
            raise ModelRetry(answer.text)
        return answer.text

    made: Tool[Any] = Tool.from_schema(
        function=call, name=spec.name, description=spec.description, json_schema=dict(spec.schema), takes_ctx=False
    )
    return made
