"""``PythonExecutor``: Python code in the sandbox, with ``vfs`` and ``fs`` available."""

from __future__ import annotations

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


@dataclass
class PythonExecutionResult:
    """The output of code, and its global names as far as JSON can represent them."""

    stdout: str
    globals: Dict[str, Any]


class PythonExecutor:
    """Runs Python code in the sandbox of a :class:`VirtualFileSystem`. Names are not kept between runs."""

    def __init__(self, vfs: VirtualFileSystem, *, globals_template: Optional[Dict[str, Any]] = None) -> None:
        self.vfs = vfs
        self._given = dict(globals_template or {})

    def run(
        self,
        code: str,
        *,
        filename: str = "<sandbox>",
        extra_globals: Optional[Dict[str, Any]] = None,
        view: Optional[VisibilityView] = None,
    ) -> PythonExecutionResult:
        """Runs code. Raises :class:`InvalidOperation` with the last line of its traceback if it fails."""
        given = json.dumps({**self._given, **(extra_globals or {})})
        head = f"_given = __import__('json').loads({given!r})\n_code = {code!r}\n_name = {filename!r}\n"
        after = max((version.version for version in self.vfs.box.log(limit=1)), default=0)
        bound = self.vfs.box.with_policy(self.vfs._rules(view))
        result = bound.python(head + _PRELUDE, cwd=self.vfs.pwd(), echo=False)
        self.vfs._notice(after)
        if result.exit_code != 0:
            lines = result.stderr.strip().splitlines()
            raise InvalidOperation(lines[-1] if lines else f"Python ended with exit code {result.exit_code}")
        printed, _, kept = result.stdout.rpartition("\0")
        return PythonExecutionResult(printed, json.loads(kept or "{}"))


__all__ = ["PythonExecutionResult", "PythonExecutor"]
