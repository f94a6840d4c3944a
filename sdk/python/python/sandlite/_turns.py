"""Turns that threads and tasks take alike, in the order in which they ask."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future
from types import TracebackType
from typing import Optional

from .errors import BusyError


class _Place(Future[None]):
    """A place in the queue, of a task if it has a loop; it is done once it has the turn."""

    def __init__(self, loop: Optional[asyncio.AbstractEventLoop]) -> None:
        super().__init__()
        self.loop = loop


def _running_loop() -> Optional[asyncio.AbstractEventLoop]:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Turns:
    """A lock for ``with`` and ``async with``; a waiting task does not block its loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The first one has the turn.
        self._places: "deque[_Place]" = deque()

    def _join(self, is_task: bool) -> _Place:
        loop = _running_loop()
        place = _Place(loop if is_task else None)
        with self._lock:
            if not is_task and loop is not None and any(other.loop is loop for other in self._places):
                error = BusyError("cannot wait for a task of the same loop, which waits for this call")
                error.hint = "await the asynchronous method instead"
                raise error
            self._places.append(place)
            if self._places[0] is place:
                place.set_result(None)
        return place

    def _leave(self, place: _Place) -> None:
        with self._lock:
            had_turn = self._places[0] is place
            self._places.remove(place)
            if had_turn and self._places:
                self._places[0].set_result(None)

    def __enter__(self) -> None:
        place = self._join(False)
        try:
            place.result()
        except BaseException:
            self._leave(place)
            raise

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._leave(self._places[0])

    async def __aenter__(self) -> None:
        place = self._join(True)
        try:
            # Cancelling the task must not cancel the place, which may have the turn already.
            await asyncio.shield(asyncio.wrap_future(place))
        except BaseException:
            self._leave(place)
            raise

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._leave(self._places[0])
