from typing import TYPE_CHECKING as TYPE_CHECKING
from typing import Any as Any
from typing import Callable as Callable
from typing import Generic as Generic
from typing import Iterable as Iterable
from typing import Iterator as Iterator
from typing import Mapping as Mapping
from typing import Optional as Optional
from typing import Sequence as Sequence
from typing import TypeVar as TypeVar
from typing import Union as Union

from typing_extensions import TypeAlias as TypeAlias
