"""What the glue of the core interpreter asks of its package (`_bashkit`), on the scientific one."""

import os
import sys
from struct import Struct

import _host
import _reactor

_head = Struct("<qI").pack
_number = Struct("<I").pack
_answer = Struct("<III").unpack_from
_NO_TIMEOUT = -1

_argv, _environ = [], {}


def http(method, url, headers, body, timeout):
    """One request through the door (`runtime/src/wasi/door.rs`): status, headers and body of the answer."""
    method, url = method.encode(), url.encode()
    milliseconds = _NO_TIMEOUT if timeout is None else int(timeout * 1000)
    answer = _host.call(
        _head(milliseconds, len(method)) + method + _number(len(url)) + url + _number(0) + _number(len(body)) + body
    )
    status, _, _ = _answer(answer)
    return status, (), answer[12:]


def argv():
    """The arguments of this process."""
    return _argv


def load_environ():
    """The environment of this process, as bytes."""
    return {os.fsencode(name): os.fsencode(value) for name, value in _environ.items()}


def immortalize(objects):
    """The scientific interpreter has no way to; its objects are only frozen."""


main = None


def _turn(source, told):
    global _argv, _environ
    argv, _environ = told
    _argv = [os.fsdecode(arg) for arg in argv]
    return main()


def settle():
    """From now on the interpreter's entry is `main`. The function is known to C, so it stays; what it does is new."""
    _reactor._sandlite_turn = _turn
    _reactor.turn.__code__ = (lambda source, environ: _sandlite_turn(source, environ)).__code__
    sys.modules["_bashkit_boot"] = sys.modules[__name__]
