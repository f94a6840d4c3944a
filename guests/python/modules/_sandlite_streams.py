"""Packing and unpacking by the sandbox's own programs: what `_bz2` and `_lzma` have in common.

Unpacking is a conversation over two pipes with `sandlite-decoder` (`guests/text/src/decoder.rs` has the other side): pieces go there,
what comes out comes back.
"""

import os
import subprocess
from struct import Struct

_number = Struct("<I")
_WANT, _END, _WRONG = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_PIECE = 1 << 20


class Compressor:
    """Compresses what it is given, by a program; all of it comes out of `flush`."""

    def __init__(self, args):
        self._args = args
        self._parts = []

    def compress(self, data, /):
        """Take `data` in."""
        if self._parts is None:
            raise ValueError("Compressor has been flushed")
        self._parts.append(bytes(data))
        return b""

    def flush(self):
        """The compressed stream."""
        if self._parts is None:
            raise ValueError("Repeated call to flush()")
        data, self._parts = b"".join(self._parts), None
        return subprocess.run(self._args, input=data, stdout=subprocess.PIPE, check=True).stdout

    def __reduce__(self):
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")


class Decoder:
    """A stream that is unpacked piece by piece, as much at a time as is asked for."""

    def __init__(self, error):
        self._error = error
        self._program = None
        self._waiting = b""  # given, but not sent yet
        self._ready = b""  # unpacked, but not asked for yet
        self._wants = False
        self.eof = False
        self.needs_input = True
        self.unused_data = b""

    def decompress(self, data, max_length=-1):
        """Unpack `data`, or what is left of earlier data, to at most `max_length` bytes."""
        if self.eof:
            raise EOFError("End of stream already reached")
        self._waiting += bytes(data)
        if self._program is None:
            name = self._format(self._waiting) if self._waiting else None
            if name is None:
                return b""
            self._start(name)
        parts, length = [self._ready], len(self._ready)
        while max_length < 0 or length < max_length:
            part = self._next()
            if part is None:
                break
            parts.append(part)
            length += len(part)
        out = b"".join(parts)
        if 0 <= max_length < len(out):
            out, self._ready = out[:max_length], out[max_length:]
        else:
            self._ready = b""
        self.needs_input = self._wants and not (self._waiting or self._ready or self.eof)
        return out

    # The next bytes that come out; None when more must go in, or nothing comes any more.
    def _next(self):
        while not self.eof:
            if self._wants:
                if not self._waiting:
                    return None
                self._sent, self._waiting = self._waiting[:_PIECE], self._waiting[_PIECE:]
                self._write(_number.pack(len(self._sent)) + self._sent)
                self._wants = False
            word = self._read_number()
            if word == _WANT:
                self._wants = True
            elif word == _END:
                unused = self._read_number()
                self.unused_data = self._sent[len(self._sent) - unused :] + self._waiting
                self._waiting = b""
                self.eof = True
                self._stop()
            elif word == _WRONG:
                self._read(self._read_number())
                self._stop()
                raise self._error
            else:
                return self._read(word)
        return None

    def _start(self, name):
        self._program = subprocess.Popen(
            ["/bin/sandlite-decoder", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )

    def _stop(self):
        program, self._program = self._program, None
        if program is not None:
            program.stdin.close()
            program.stdout.close()
            program.wait()

    def __del__(self):
        self._stop()

    def __reduce__(self):
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    def _write(self, data):
        data, fd = memoryview(data), self._program.stdin.fileno()
        while data:
            data = data[os.write(fd, data) :]

    def _read(self, length):
        parts, fd = [], self._program.stdout.fileno()
        while length:
            part = os.read(fd, length)
            if not part:
                raise self._error
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def _read_number(self):
        return _number.unpack(self._read(4))[0]
