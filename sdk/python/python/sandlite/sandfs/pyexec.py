"""``PythonExecutor``: Python code in the sandbox, with ``vfs`` and ``fs`` available."""

from __future__ import annotations

import builtins
import contextlib
import json
from dataclasses import dataclass
from typing import Any, Dict, Optional

from .exceptions import InvalidOperation
from .policies import VisibilityView
from .vfs import VirtualFileSystem

#: The object ``vfs`` of code in the sandbox: the methods that need only files.
_PRELUDE = '''
import json as _json, os as _os, shutil as _shutil, types as _types
class _Vfs:
    def pwd(self): return _os.getcwd()
    def cd(self, path): _os.chdir(path); return _os.getcwd()
    def ls(self, path="."):
        names = [name for name in _os.listdir(path) if _os.path.abspath(path) != "/" or name not in _FIXED]
        entries = [_types.SimpleNamespace(name=name, path=_os.path.join(_os.path.abspath(path), name), is_dir=_os.path.isdir(_os.path.join(path, name))) for name in names]
        return sorted(entries, key=lambda entry: (not entry.is_dir, entry.name))
    def read_file(self, path):
        with open(path) as file: return file.read()
    def write_file(self, path, data, append=False):
        _os.makedirs(_os.path.dirname(_os.path.abspath(path)), exist_ok=True)
        with open(path, "a" if append else "w") as file: file.write(data)
    def append_file(self, path, data): self.write_file(path, data, append=True)
    def touch(self, path): self.append_file(path, "")
    def mkdir(self, path, parents=False, exist_ok=False):
        _os.makedirs(path, exist_ok=exist_ok) if parents else _os.mkdir(path)
    def remove(self, path, recursive=False):
        _shutil.rmtree(path) if recursive and _os.path.isdir(path) else (_os.rmdir if _os.path.isdir(path) else _os.remove)(path)
    def exists(self, path): return _os.path.exists(path)
    def is_dir(self, path): return _os.path.isdir(path)
    def is_file(self, path): return _os.path.isfile(path)
    def iter_files(self, path="."):
        for top, _, names in _os.walk(path):
            for name in sorted(names): yield _os.path.join(_os.path.abspath(top), name)
_FIXED = {"bin", "dev", "etc", "lib", "proc", "sbin", "usr"}
_globals = {"vfs": _Vfs(), **_given}
_globals["fs"] = _globals["vfs"]
exec(compile(_code, _name, "exec"), _globals)
def _plain(value):
    try: _json.dumps(value)
    except (TypeError, ValueError): return False
    return True
_kept = {name: value for name, value in _globals.items() if not name.startswith("__") and _plain(value)}
print("\\0" + _json.dumps(_kept), end="")
'''


def _literals(given: Dict[str, Any]) -> str:
    """Returns the names for code in the sandbox, as entries of a dictionary in Python."""
    entries = []
    for name, value in given.items():
        own = str(getattr(value, "__name__", ""))
        if callable(value) and vars(builtins).get(own) is value:
            entries.append(f"{name!r}: __import__('builtins').{own}")
            continue
        try:
            entries.append(f"{name!r}: __import__('json').loads({json.dumps(value)!r})")
        except (TypeError, ValueError):
            raise InvalidOperation(
                f"cannot use {name!r} in the sandbox: expected data that JSON can represent, or one of Python's own functions"
            ) from None
    return ", ".join(entries)


def _raised(line: str) -> InvalidOperation:
    """Returns the exception for the last line of a traceback, which is also the one of Python that it names."""
    named = vars(builtins).get(line.partition(":")[0])
    if isinstance(named, type) and issubclass(named, Exception):
        with contextlib.suppress(TypeError):
            both: InvalidOperation = type(named.__name__, (InvalidOperation, named), {"__str__": lambda _: line})(line)
            return both
    return InvalidOperation(line)


@dataclass
class PythonExecutionResult:
    """The output of code, and its global names: ``vfs``, ``fs``, and those that JSON can represent."""

    stdout: str
    globals: Dict[str, Any]


class PythonExecutor:
    """Runs Python code in the sandbox of a :class:`VirtualFileSystem`. Names are not kept between runs.

    The code has all of Python's own functions, but cannot call functions of this program: the names in ``builtins``,
    ``globals_template`` and ``extra_globals`` are data that JSON can represent, or Python's own functions.
    """

    def __init__(
        self,
        vfs: VirtualFileSystem,
        *,
        builtins: Optional[Dict[str, Any]] = None,
        globals_template: Optional[Dict[str, Any]] = None,
    ) -> None:
        self.vfs = vfs
        self._given = {**(builtins or {}), **(globals_template or {})}

    def run(
        self,
        code: str,
        *,
        filename: str = "<sandbox>",
        extra_globals: Optional[Dict[str, Any]] = None,
        view: Optional[VisibilityView] = None,
    ) -> PythonExecutionResult:
        """Runs code. Raises :class:`InvalidOperation` with the last line of its traceback if it fails; the exception is also an
        instance of the class of Python that the line names.
        """
        given = _literals({**self._given, **(extra_globals or {})})
        head = f"_given = {{{given}}}\n_code = {code!r}\n_name = {filename!r}\n"
        after = max((version.version for version in self.vfs.box.log(limit=1)), default=0)
        bound = self.vfs.box.with_policy(self.vfs._rules(view))
        result = bound.python(head + _PRELUDE, cwd=self.vfs.pwd(), echo=False)
        self.vfs._notice(after)
        if result.exit_code != 0:
            lines = result.stderr.strip().splitlines()
            raise _raised(lines[-1] if lines else f"Python ended with exit code {result.exit_code}")
        printed, _, kept = result.stdout.rpartition("\0")
        return PythonExecutionResult(printed, {"vfs": self.vfs, "fs": self.vfs, **json.loads(kept or "{}")})


__all__ = ["PythonExecutionResult", "PythonExecutor"]
