"""Waiting for a person: the command's clock stands still while ``approve`` decides."""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from ._host_tools import Approve, ToolCall
    from ._native import ToolScope

#: How long a person may take by default, in seconds.
APPROVE_TIMEOUT = 600.0

#: The call of a tool that this code works for; set by the native half.
CURRENT: "ContextVar[Optional[ToolScope]]" = ContextVar("sandlite_tool", default=None)


def timed(approve: "Optional[Approve]", timeout: Optional[float]) -> "Optional[Approve]":
    """The same ``approve``, whose time is not the command's: a limit of its own ends the command instead."""
    if approve is None:
        return None
    given, seconds = approve, APPROVE_TIMEOUT if timeout is None else timeout
    if not seconds > 0:
        raise ValueError("approve_timeout must be greater than 0")

    def ask(call: "ToolCall") -> Any:
        scope = CURRENT.get()
        if scope is None:
            return given(call)
        scope.pause(seconds)
        try:
            answer = given(call)
            if inspect.isawaitable(answer):
                return resumed(answer, scope)
        except BaseException:
            scope.resume()
            raise
        scope.resume()
        return answer

    async def resumed(answer: Any, scope: "ToolScope") -> Any:
        try:
            return await answer
        finally:
            scope.resume()

    return ask
