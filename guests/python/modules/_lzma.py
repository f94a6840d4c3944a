"""What CPython's `lzma` needs of compiled code, by the sandbox's own programs.

The formats .xz and .lzma are there, with presets; chains of filters of one's own and raw streams are not.
"""

from _sandlite_streams import Compressor, Decoder

FORMAT_AUTO, FORMAT_XZ, FORMAT_ALONE, FORMAT_RAW = range(4)
CHECK_NONE, CHECK_CRC32, CHECK_CRC64, CHECK_SHA256, CHECK_ID_MAX, CHECK_UNKNOWN = 0, 1, 4, 10, 15, 16
FILTER_LZMA1, FILTER_LZMA2, FILTER_DELTA = 0x4000000000000001, 0x21, 3
FILTER_X86, FILTER_POWERPC, FILTER_IA64, FILTER_ARM, FILTER_ARMTHUMB, FILTER_SPARC = range(4, 10)
MF_HC3, MF_HC4, MF_BT2, MF_BT3, MF_BT4 = 3, 4, 0x12, 0x13, 0x14
MODE_FAST, MODE_NORMAL = 1, 2
PRESET_DEFAULT, PRESET_EXTREME = 6, 1 << 31

_CHECKS = {CHECK_NONE: "none", CHECK_CRC32: "crc32", CHECK_CRC64: "crc64", CHECK_SHA256: "sha256"}
_MAGIC = b"\xfd7zXZ\0"
# The shorter of the two headers.
_HEADER = 12


class LZMAError(Exception):
    """Call to liblzma failed."""


def is_check_supported(check_id, /):
    """Whether an integrity check can be asked for."""
    return check_id in _CHECKS


def _encode_filter_properties(filter, /):
    raise LZMAError("filters of one's own are not supported in the sandbox")


def _decode_filter_properties(filter_id, encoded_props, /):
    raise LZMAError("filters of one's own are not supported in the sandbox")


# A .lzma file has no magic: as liblzma does, take only what a compressor would write.
def _is_alone(begin):
    dictionary = int.from_bytes(begin[1:5], "little")
    power = 1 << dictionary.bit_length() >> 1
    return begin[0] < 225 and dictionary > 0 and dictionary in (power, power + (power >> 1), 0xFFFFFFFF)


class LZMACompressor(Compressor):
    """Compresses to one .xz or .lzma stream."""

    def __init__(self, format=FORMAT_XZ, check=-1, preset=None, filters=None):
        if preset is not None and filters is not None:
            raise ValueError("Cannot specify both preset and filter chain")
        if format not in (FORMAT_XZ, FORMAT_ALONE, FORMAT_RAW):
            raise ValueError(f"Invalid container format: {format}")
        if format != FORMAT_XZ and check not in (-1, CHECK_NONE):
            raise ValueError("Integrity checks are only supported by FORMAT_XZ")
        if format == FORMAT_RAW and filters is None:
            raise ValueError("Must specify filters for FORMAT_RAW")
        if filters is not None:
            _encode_filter_properties(filters)
        preset = PRESET_DEFAULT if preset is None else preset
        if preset & ~PRESET_EXTREME > 9:
            raise LZMAError("Invalid or unsupported options")
        if check != -1 and check not in _CHECKS:
            raise LZMAError("Unsupported integrity check")
        args = ["/bin/xz", "-c", f"-{preset & ~PRESET_EXTREME}"]
        if preset & PRESET_EXTREME:
            args.append("-e")
        if format == FORMAT_ALONE:
            args.append("--format=lzma")
        elif check != -1:
            args.append("--check=" + _CHECKS[check])
        super().__init__(args)


class LZMADecompressor(Decoder):
    """Unpacks one .xz or .lzma stream, piece by piece."""

    def __init__(self, format=FORMAT_AUTO, memlimit=None, filters=None):
        if format == FORMAT_RAW:
            if memlimit is not None:
                raise ValueError("Cannot specify memory limit with FORMAT_RAW")
            if filters is None:
                raise ValueError("Must specify filters for FORMAT_RAW")
        elif filters is not None:
            raise ValueError("Cannot specify filters except with FORMAT_RAW")
        if format not in (FORMAT_AUTO, FORMAT_XZ, FORMAT_ALONE, FORMAT_RAW):
            raise ValueError(f"Invalid container format: {format}")
        if filters is not None:
            _encode_filter_properties(filters)
        self._container = format
        self.check = CHECK_NONE if format == FORMAT_ALONE else CHECK_UNKNOWN
        super().__init__(LZMAError("Corrupt input data"))

    def _format(self, begin):
        if self._container == FORMAT_AUTO:
            is_xz = begin[0] == _MAGIC[0]
        else:
            is_xz = self._container == FORMAT_XZ
        if len(begin) < _HEADER:
            return None
        if is_xz != begin.startswith(_MAGIC) or not (is_xz or _is_alone(begin)):
            raise LZMAError("Input format not supported by decoder")
        self.check = begin[7] & 15 if is_xz else CHECK_NONE
        return "xz" if is_xz else "lzma"
