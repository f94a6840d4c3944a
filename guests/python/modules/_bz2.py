"""What CPython's `bz2` needs of compiled code, by the sandbox's own programs."""

from _sandlite_decoder import Decoder, run


class BZ2Compressor:
    """Compresses what it is given; all of it comes out of `flush`."""

    def __init__(self, compresslevel=9, /):
        if not 1 <= compresslevel <= 9:
            raise ValueError("compresslevel must be between 1 and 9")
        self._level = compresslevel
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
        return run(["/bin/bzip2", "-c", f"-{self._level}"], data)

    def __reduce__(self):
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")


class BZ2Decompressor(Decoder):
    """Unpacks one bzip2 stream, piece by piece."""

    def __init__(self):
        super().__init__(OSError("Invalid data stream"))

    def _format(self, begin):
        return "bz2"
