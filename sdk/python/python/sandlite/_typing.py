"""The names of :mod:`typing` that annotations use, without importing it: that takes longer than the rest of the package.

Type checkers read ``_typing.pyi``, which has the real ones. ``typing.get_type_hints`` gets the real ones too, when it evaluates an
annotation. An alias is a string, so that it is evaluated only then.
"""

TYPE_CHECKING = False


class _Form:
    """``Optional``, ``Union`` and so on: ``Optional[int]`` is that of :mod:`typing`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getitem__(self, arguments: object) -> object:
        import typing

        return getattr(typing, self._name)[arguments]


class Generic:
    """A base class with type parameters, which mean nothing at run time."""

    __slots__ = ()

    def __class_getitem__(cls, arguments: object) -> type:
        return cls


def TypeVar(name: str) -> object:
    return name


Any = object
TypeAlias = object
Callable = _Form("Callable")
Iterable = _Form("Iterable")
Iterator = _Form("Iterator")
Mapping = _Form("Mapping")
Optional = _Form("Optional")
Sequence = _Form("Sequence")
Union = _Form("Union")
