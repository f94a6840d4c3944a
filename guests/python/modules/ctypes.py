"""The sizes of C's types. There are no shared libraries in the sandbox, and nothing to call in them."""

import struct

__version__ = "1.1.0"


class _SimpleCData:
    """A value of a C type."""

    _type_ = "i"

    def __init__(self, value=None):
        if value is not None:
            self.value = value
        elif self._type_ in "fd":
            self.value = 0.0
        elif self._type_ == "c":
            self.value = b"\0"
        else:
            self.value = False if self._type_ == "?" else 0

    def __setattr__(self, name, value):
        # As in C: what is too large loses its upper bits.
        if name == "value" and self._type_ not in "fdc?":
            bits = 8 * struct.calcsize(self._type_)
            value = int(value) & ((1 << bits) - 1)
            if self._type_.islower() and value >> (bits - 1):
                value -= 1 << bits
        object.__setattr__(self, name, value)

    def __repr__(self):
        return f"{type(self).__name__}({self.value!r})"

    def __bool__(self):
        return bool(self.value)


def _type(name, code):
    return type(name, (_SimpleCData,), {"_type_": code, "__module__": "ctypes"})


c_bool = _type("c_bool", "?")
c_char = _type("c_char", "c")
c_byte, c_ubyte = _type("c_byte", "b"), _type("c_ubyte", "B")
c_short, c_ushort = _type("c_short", "h"), _type("c_ushort", "H")
c_int, c_uint = _type("c_int", "i"), _type("c_uint", "I")
c_long, c_ulong = _type("c_long", "l"), _type("c_ulong", "L")
c_longlong, c_ulonglong = _type("c_longlong", "q"), _type("c_ulonglong", "Q")
c_size_t, c_ssize_t = _type("c_size_t", "N"), _type("c_ssize_t", "n")
c_float, c_double = _type("c_float", "f"), _type("c_double", "d")
c_int8, c_uint8, c_int16, c_uint16 = c_byte, c_ubyte, c_short, c_ushort
c_int32, c_uint32, c_int64, c_uint64 = c_int, c_uint, c_longlong, c_ulonglong


class ArgumentError(Exception):
    """An argument that a function of C would not take."""


def sizeof(kind, /):
    """The size of a C type or of a value, in bytes."""
    code = getattr(kind, "_type_", None)
    if code is None:
        raise TypeError("this type has no size")
    return struct.calcsize(code)


alignment = sizeof


class CDLL:
    """A shared library, which the sandbox does not have."""

    def __init__(self, name=None, *args, **kwargs):
        raise OSError(f"cannot load {name!r}: there are no shared libraries in the sandbox")


PyDLL = CDLL


def __getattr__(name):
    raise AttributeError(f"module 'ctypes' has no attribute {name!r}: there are no shared libraries in the sandbox")
