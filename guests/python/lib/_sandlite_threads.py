"""Threads that take turns: one runs while another waits.

There is one stack. A thread that waits runs the others on top of itself, and continues when they have ended. A started thread therefore
begins when another one first waits (`join`, `result`, `get`, `sleep`, the end of the program), and no thread is interrupted. A
thread that would have to wait for one below it cannot: it raises an error, unless it only takes work from a queue; then it starts again later.
"""

import _thread
import asyncio.base_events
import asyncio.events
import asyncio.unix_events
import collections
import concurrent.futures.thread
import os
import queue
import sys
import threading
import time
import _threading_local

_sleep, _monotonic = time.sleep, time.monotonic
_MAIN = _thread.get_ident()
# How often a thread may sleep while one below it should have continued: what sleeps more often waits to be stopped.
_SLEEPS = 10
_DEADLOCK = "this thread waits for one that waits for it: threads take turns in the sandbox"


class _Started:
    """A thread that was started and has not ended."""

    def __init__(self, function, handle, ident):
        self.function, self.handle, self.ident = function, handle, ident
        self.thread = getattr(function, "__self__", None)
        thread = self.thread
        self.work = (thread._target, thread._args, thread._kwargs) if hasattr(thread, "_target") else None
        self._due = _monotonic() + thread.interval if isinstance(thread, threading.Timer) else None
        self.daemon = bool(getattr(thread, "daemon", False))
        self.unwound = False
        self.sleeps = 0


    @property
    def due(self):
        """When a timer's time comes; None for other threads, and once it was cancelled."""
        return None if self._due is None or self.thread.finished.is_set() else self._due


class _Wait:
    __slots__ = ("ready", "deadline")

    def __init__(self, ready, deadline):
        self.ready, self.deadline = ready, deadline

    def over(self):
        return self.ready() or (self.deadline is not None and _monotonic() >= self.deadline)


_pending = collections.deque()
_parked = []
# From the bottom of the stack to its top: the waits, and the threads that run on them.
_waits, _running = [], []
_count = 0


def get_ident():
    return _running[-1].ident if _running else _MAIN


def _next(deadline):
    """Remove and return the thread to run next. A timer whose time has not come by `deadline` is left."""
    for entry in _pending:
        if entry.due is None:
            _pending.remove(entry)
            return entry
    timers = [entry for entry in _pending if deadline is None or entry.due <= deadline]
    if not timers:
        return None
    entry = min(timers, key=lambda entry: entry.due)
    _pending.remove(entry)
    return entry


def _run(entry):
    entry.unwound = False
    _running.append(entry)
    loop = asyncio.events._get_running_loop()
    asyncio.events._set_running_loop(None)
    try:
        entry.function()
    except SystemExit:
        pass
    finally:
        asyncio.events._set_running_loop(loop)
        _running.pop()
    if entry.unwound:
        thread = entry.thread
        thread._target, thread._args, thread._kwargs = entry.work
        threading._limbo[thread] = thread
        _parked.append(entry)
    else:
        entry.handle._done = True


def _takes_work(entry):
    """Return whether the running thread waits in a `get` that its own function calls: it can start again."""
    if entry.work is None or entry.work[0] is None or isinstance(entry.thread, threading.Timer):
        return False
    target = entry.work[0]
    code = getattr(getattr(target, "__func__", target), "__code__", None)
    frame, get = sys._getframe(1), False
    while frame is not None and frame.f_globals.get("__name__") in (__name__, "threading", "queue"):
        get = get or (frame.f_globals["__name__"] == "queue" and frame.f_code.co_name == "get")
        frame = frame.f_back
    return get and frame is not None and frame.f_code is code


def _give_up(timed):
    """End the running thread, which cannot continue: silently if it can start again, or if nobody counts on it."""
    entry = _running[-1]
    entry.unwound = _takes_work(entry)
    if entry.unwound or entry.daemon or timed:
        raise SystemExit
    raise RuntimeError(_DEADLOCK)


def _wait(ready, timeout=None):
    """Run other threads until `ready`; return False after `timeout` seconds."""
    global _parked
    deadline = None if timeout is None else _monotonic() + timeout
    wait = _Wait(ready, deadline)
    _waits.append(wait)
    try:
        while not ready():
            if deadline is not None and _monotonic() >= deadline:
                return False
            entry = _next(deadline)
            if entry is not None:
                _run(entry)
                continue
            below = _waits[:-1]
            if _running and any(other.over() for other in below):
                _give_up(deadline is not None)
            if not _running and _parked:
                parked, _parked = _parked, []
                seen = len(parked)
                _pending.extend(parked)
                while not ready() and (entry := _next(deadline)) is not None:
                    _run(entry)
                if not ready() and len(_parked) == seen and deadline is None:
                    raise RuntimeError("all threads wait for each other")
                continue
            ends = [other.deadline for other in _waits if other.deadline is not None]
            if ends:
                _sleep(max(min(ends) - _monotonic(), 0))
            elif _running:
                _give_up(False)
            elif _count:
                raise RuntimeError("all threads wait for each other")
            else:
                # As elsewhere: nobody will ever wake it, except a signal.
                _sleep(3600)
        return True
    finally:
        _waits.pop()


def sleep(seconds, /):
    """Sleep, while started threads run."""
    if _running:
        entry = _running[-1]
        if any(other.over() for other in _waits):
            entry.sleeps += 1
            if entry.sleeps > _SLEEPS:
                raise SystemExit
        return _sleep(seconds)
    if not _pending or seconds < 0:
        return _sleep(seconds)
    _wait(lambda: False, seconds)


class Lock:
    """A lock that runs other threads while it waits."""

    __slots__ = ("_held", "__weakref__")

    def __init__(self):
        self._held = False

    def acquire(self, blocking=True, timeout=-1):
        if not self._held:
            self._held = True
            return True
        if not blocking:
            if timeout != -1:
                raise ValueError("can't specify a timeout for a non-blocking call")
            return False
        if timeout < 0 and timeout != -1:
            raise ValueError("timeout value must be a non-negative number")
        if not _wait(self._free, None if timeout == -1 else timeout):
            return False
        self._held = True
        return True

    acquire_lock = acquire

    def release(self):
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._held = False

    release_lock = release

    def locked(self):
        return self._held

    locked_lock = locked

    def _free(self):
        return not self._held

    def __enter__(self):
        return self.acquire()

    def __exit__(self, kind, error, traceback):
        self.release()

    def _at_fork_reinit(self):
        self._held = False

    def __repr__(self):
        state = "locked" if self._held else "unlocked"
        return f"<{state} _thread.lock object at {id(self):#x}>"


Lock.__name__ = Lock.__qualname__ = "lock"
Lock.__module__ = "_thread"


class _Handle:
    """Stands for `_thread._ThreadHandle`."""

    def __init__(self):
        self.ident, self._done = 0, False

    def is_done(self):
        return self._done

    def _set_done(self):
        self._done = True

    def join(self, timeout=None):
        if self.ident == get_ident():
            raise RuntimeError("Cannot join current thread")
        if not self._done:
            _wait(self.is_done, None if timeout is None or timeout < 0 else timeout)


def start_joinable_thread(function, handle=None, daemon=True):
    global _count
    if threading._SHUTTING_DOWN:
        raise RuntimeError("can't create new thread at interpreter shutdown")
    _count += 1
    handle = handle or _Handle()
    handle.ident = _MAIN + (_count << 8)
    entry = _Started(function, handle, handle.ident)
    if isinstance(entry.thread, threading.Thread):
        entry.thread._ident = handle.ident
        entry.thread._started.set()
    _pending.append(entry)
    return handle


def start_new_thread(function, args, kwargs=None, /):
    def work():
        try:
            function(*args, **(kwargs or {}))
        except SystemExit:
            raise
        except BaseException:
            sys.unraisablehook(_Unraisable(function))

    return start_joinable_thread(work).ident


class _Unraisable:
    def __init__(self, function):
        self.exc_type, self.exc_value, self.exc_traceback = sys.exc_info()
        self.err_msg, self.object = "Exception ignored in thread started by", function


def run_pending():
    """Run the threads that have been started, until each has ended or waits for this one."""
    if _pending and not _running:
        _wait(lambda: not any(entry.due is None for entry in _pending), 0.001)


def _finish():
    # As at the end of Python: daemons are not waited for.
    def left():
        return [entry for entry in _pending if not entry.daemon]

    while left():
        for entry in [entry for entry in _pending if entry.daemon]:
            _pending.remove(entry)
        entry = _next(None)
        if (due := entry.due) is not None:
            _sleep(max(due - _monotonic(), 0))
        _run(entry)


_put = queue.Queue.put


def put(self, item, block=True, timeout=None):
    """Put an item into the queue; more than it should hold rather than wait for a thread that cannot run."""
    if not (block and timeout is None and _count and 0 < self.maxsize <= self._qsize()) or self.is_shutdown:
        return _put(self, item, block, timeout)
    with self.not_full:
        self._put(item)
        self.unfinished_tasks += 1
        self.not_empty.notify()


def _worker(executor_reference, ctx, work_queue):
    """The thread of a ThreadPoolExecutor, which ends when there is nothing to do."""
    thread = concurrent.futures.thread
    try:
        ctx.initialize()
    except BaseException:
        thread._base.LOGGER.critical("Exception in initializer:", exc_info=True)
        executor = executor_reference()
        if executor is not None:
            executor._initializer_failed()
        return
    try:
        while True:
            try:
                item = work_queue.get_nowait()
            except queue.Empty:
                return
            if item is not None:
                item.run(ctx)
                del item
    finally:
        ctx.finalize()


def _adjust_thread_count(self):
    self._threads = {thread for thread in self._threads if thread.is_alive()}
    if len(self._threads) >= self._max_workers:
        return
    self._sandlite_count = count = getattr(self, "_sandlite_count", 0) + 1
    worker = threading.Thread(
        name=f"{self._thread_name_prefix or self}_{(count - 1) % self._max_workers}",
        target=_worker,
        args=(lambda: self, self._create_worker_context(), self._work_queue),
    )
    worker.start()
    self._threads.add(worker)


def _run_timer(self):
    if not self.finished.is_set():
        due = _running[-1].due if _running else None
        self.finished.wait(self.interval if due is None else max(due - _monotonic(), 0))
    if not self.finished.is_set():
        self.function(*self.args, **self.kwargs)
    self.finished.set()


_run_once = asyncio.base_events.BaseEventLoop._run_once


def _run_loop_once(self):
    run_pending()
    _run_once(self)


class _ChildWatcher:
    """Asks for the end of a child from time to time, because nobody can wait for it elsewhere."""

    def add_child_handler(self, pid, callback, *args):
        self._look(asyncio.events.get_running_loop(), 0.001, pid, callback, args)

    def _look(self, loop, pause, pid, callback, args):
        try:
            found, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return callback(pid, 255, *args)
        if found == 0:
            return loop.call_later(pause, self._look, loop, min(pause * 2, 0.02), pid, callback, args)
        callback(pid, os.waitstatus_to_exitcode(status), *args)


# Of what a pipe holds, so that a write for which the pipe has room does not block: pipes always block here.
_PIECE = 4096


def _write(self, data):
    if self._conn_lost or self._closing or not data:
        self._conn_lost += bool(self._conn_lost)
        return
    if not self._buffer:
        self._loop._add_writer(self._fileno, self._write_ready)
    self._buffer += data
    self._maybe_pause_protocol()


def _write_ready(self):
    try:
        count = os.write(self._fileno, self._buffer[:_PIECE])
    except OSError as error:
        self._buffer.clear()
        self._conn_lost += 1
        self._loop._remove_writer(self._fileno)
        return self._fatal_error(error, "Fatal write error on pipe transport")
    del self._buffer[:count]
    if self._buffer:
        return
    self._loop._remove_writer(self._fileno)
    self._maybe_resume_protocol()
    if self._closing:
        self._loop._remove_reader(self._fileno)
        self._call_connection_lost(None)


def _read_ready(self):
    # The writing end of a pipe counts as readable here. That the other end was closed shows when it is written to.
    self._loop._remove_reader(self._fileno)


def install():
    """Put these into `threading` and the modules that build on it."""
    _thread.allocate_lock = _thread.allocate = Lock
    _thread.lock = _thread.LockType = Lock
    _thread.RLock = threading._PyRLock
    _thread.start_joinable_thread = start_joinable_thread
    _thread.start_new_thread = _thread.start_new = start_new_thread
    _thread.get_ident = get_ident
    threading._allocate_lock = threading.Lock = threading._LockType = Lock
    threading._CRLock = None
    threading._start_joinable_thread = start_joinable_thread
    threading._ThreadHandle = _Handle
    threading.get_ident = get_ident
    threading.local = _threading_local.local
    threading._thread_shutdown = _finish
    threading._active_limbo_lock = threading.RLock()
    threading.Timer.run = _run_timer
    queue.SimpleQueue = queue._PySimpleQueue
    queue.Queue.put = put
    time.sleep = sleep
    concurrent.futures.thread._worker = _worker
    concurrent.futures.thread.ThreadPoolExecutor._adjust_thread_count = _adjust_thread_count
    concurrent.futures.thread._global_shutdown_lock = Lock()
    asyncio.base_events.BaseEventLoop._run_once = _run_loop_once
    pipe = asyncio.unix_events._UnixWritePipeTransport
    pipe.write, pipe._write_ready, pipe._read_ready = _write, _write_ready, _read_ready
    asyncio.unix_events._ThreadedChildWatcher = asyncio.unix_events._PidfdChildWatcher = _ChildWatcher
