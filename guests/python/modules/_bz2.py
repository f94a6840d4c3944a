"""What CPython's `bz2` needs of compiled code, by the sandbox's own programs."""

from _sandlite_streams import Compressor, Decoder


class BZ2Compressor(Compressor):
    """Compresses to one bzip2 stream."""

    def __init__(self, compresslevel=9, /):
        if not 1 <= compresslevel <= 9:
            raise ValueError("compresslevel must be between 1 and 9")
        super().__init__(["/bin/bzip2", "-c", f"-{compresslevel}"])


class BZ2Decompressor(Decoder):
    """Unpacks one bzip2 stream, piece by piece."""

    def __init__(self):
        super().__init__(OSError("Invalid data stream"))

    def _format(self, begin):
        return "bz2"
