"""Waiting for a person: the command's clock is paused while ``approve`` decides."""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from ._host_tools import Approve, ToolCall
    from ._native import ToolScope

#: Default time for a person to decide, in seconds.
APPROVE_TIMEOUT = 600.0

#: The tool call that this code works for; set by the native half.
CURRENT: "ContextVar[Optional[ToolScope]]" = ContextVar("sandlite_tool", default=None)


def timed(approve: "Optional[Approve]", timeout: Optional[float]) -> "Optional[Approve]":
    """Wraps ``approve`` so that its time does not count as the command's; a separate limit ends the command instead."""
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
