"""Operations of several calls, written once for synchronous and ``asyncio`` code.

An operation is a generator: it yields each :class:`Call`, receives its result (or its error), and returns its own."""

from __future__ import annotations

from typing import Any, Generator, TypeVar

from ._async import _native_answer
from ._calls import Call
from .errors import SandliteError

T = TypeVar("T")

Steps = Generator[Call[Any], Any, T]


def run(steps: "Steps[T]") -> T:
    """Runs an operation on the calling thread."""
    try:
        call = next(steps)
        while True:
            try:
                value = call.read(call.ask(None))
            except SandliteError as error:
                call = steps.throw(error)
            else:
                call = steps.send(value)
    except StopIteration as end:
        result: T = end.value
        return result


async def arun(steps: "Steps[T]") -> T:
    """Runs an operation in the running loop; cancellation kills its command."""
    try:
        call = next(steps)
        while True:
            try:
                value = call.read(await _native_answer(call.ask))
            except SandliteError as error:
                call = steps.throw(error)
            else:
                call = steps.send(value)
    except StopIteration as end:
        result: T = end.value
        return result
