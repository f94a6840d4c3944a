"""The sandbox as tools of LangChain (``pip install langchain-core``).

>>> from sandlite import Sandbox
>>> from sandlite.langchain import sandbox_tools
>>> tools = sandbox_tools(Sandbox())
>>> [tool.name for tool in tools][:2]
['bash', 'python']

Give them to ``model.bind_tools(tools)`` or to an agent. A plain :class:`~sandlite.Sandbox` serves ``invoke`` and ``ainvoke``; an
:class:`~sandlite.AsyncSandbox` serves ``ainvoke``, and a cancelled call is killed.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, Optional

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from . import _toolkit
from ._results import Answer
from ._sandbox import Sandbox
from ._toolkit import AnySandbox, Spec

__all__ = ["sandbox_tools"]


def sandbox_tools(
    box: AnySandbox, names: Optional[Iterable[str]] = None, *, session: Optional[str] = None
) -> "list[BaseTool]":
    """The tools of a sandbox. ``names`` chooses among them; ``session`` is the default session of
    ``bash`` and ``python``, which keeps its state from call to call."""
    return [_tool(box, spec, session) for spec in _toolkit.chosen(names)]


def _text(answer: Answer) -> str:
    if answer.is_error:
        # The model reads it, as the answer of a tool that failed.
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
