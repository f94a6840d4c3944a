"""The door to the host: what WASI preview1 lacks, asked for by name.

Requests travel through the interpreter's own import for HTTP (there is no network here); `runtime/src/wasi/door.rs` answers.
"""

import os
from struct import Struct

import _bashkit

_one = Struct("<I")
_numbers = [Struct("<" + "I" * count).pack for count in range(4)]


def ask(operation, *numbers, rest=b"", timeout=None, path=None):
    """Ask the host for `operation`; an errno becomes an OSError that names `path`."""
    body = _numbers[len(numbers)](*[number & 0xFFFFFFFF for number in numbers])
    status, _, answer = _bashkit.http("sandlite", operation, (), body + rest, timeout)
    if status:
        if path is None:
            raise OSError(status, os.strerror(status))
        raise OSError(status, os.strerror(status), path)
    return answer


def ask_number(operation, *numbers, **options):
    """As `ask`, when the answer is one number."""
    return _one.unpack(ask(operation, *numbers, **options))[0]
