"""Packages for a sandbox, downloaded by this interpreter's pip. No code of a package runs outside the sandbox."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterable, Optional, Sequence, TypeVar, Union

from . import _native
from ._calls import Call
from .errors import SandliteError

T = TypeVar("T")

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Package:
    """An installed package."""

    name: str
    version: str
    requires: "list[str]" = field(default_factory=list)
    programs: "list[str]" = field(default_factory=list)


@dataclass(frozen=True)
class Refused:
    """A package that could not be installed, and the reason."""

    name: str
    reason: str
    hint: Optional[str] = None


@dataclass(frozen=True)
class Installation:
    """The result of :meth:`Sandbox.pip_install`: the installed packages, and their missing dependencies."""

    installed: "list[Package]"
    missing: "list[str]"


class PackageError(SandliteError):
    """Some packages could not be installed; the others are installed. ``refused`` lists them with reasons, ``installed`` the
    others."""

    def __init__(self, refused: "list[Refused]", installed: "list[Package]") -> None:
        super().__init__("; ".join(f"cannot install `{one.name}`: {one.reason}" for one in refused))
        self.refused = refused
        self.installed = installed
        hints = sorted({one.hint for one in refused if one.hint})
        self.hint = "; ".join(hints) or None


def _run_pip(arguments: "list[str]") -> "tuple[list[tuple[str, bytes]], Optional[str]]":
    import subprocess
    import sys
    import tempfile

    with tempfile.TemporaryDirectory(prefix="sandlite-pip-") as directory:
        command = [sys.executable, "-c", _native.PIP_PROGRAM, "download", "--dest", directory, *arguments]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if "No module named 'pip'" in done.stderr:
            raise RuntimeError("this Python has no pip: pass wheel files, or install pip")
        if done.returncode != 0:
            return [], done.stderr
        return [(path.name, path.read_bytes()) for path in sorted(Path(directory).iterdir())], None


class Fetching:
    """Downloads with pip for the native half, which reports exceptions as texts; Ctrl-C stays an exception."""

    def __init__(self) -> None:
        self._interrupt: Optional[BaseException] = None

    def __call__(self, arguments: "list[str]") -> "tuple[list[tuple[str, bytes]], Optional[str]]":
        try:
            return _run_pip(arguments)
        except Exception:
            raise
        except BaseException as error:
            self._interrupt = error
            raise

    def during(self, work: Callable[[], T]) -> T:
        """Runs a function that downloads with this object, and raises the exception that interrupted it."""
        try:
            return work()
        finally:
            if self._interrupt is not None:
                raise self._interrupt from None


def _read(directory: str, name: str) -> str:
    return Path(directory, name).read_text()


def _is_file(package: str) -> bool:
    return ("/" in package or package.endswith(".whl")) and "://" not in package


def install(
    box: _native.Sandbox,
    packages: Sequence[PathLike],
    requirements: Union[PathLike, Iterable[PathLike], None],
    find_links: Union[PathLike, Iterable[PathLike], None],
    offline: bool,
    no_deps: bool,
) -> Call[Installation]:
    """The call of :meth:`Sandbox.pip_install`."""
    names = [package for package in packages if isinstance(package, str) and not _is_file(package)]
    files = [Path(package) for package in packages if package not in names]
    texts = [(str(path.parent), path.read_text()) for path in _paths(requirements)]
    links = [str(path) for path in _paths(find_links)]
    wheels = [(path.name, path.read_bytes()) for path in files]
    sources = (no_deps, links, offline)
    fetching = Fetching()

    def ask(done: Optional["_native.Done"]) -> Any:
        return fetching.during(lambda: _native.install_packages(box, names, texts, wheels, sources, fetching, _read, done))

    return Call(ask, _installation)


def installed(box: _native.Sandbox) -> Call["list[Package]"]:
    """The call of :meth:`Sandbox.packages`."""
    return Call(lambda done: _native.packages(box, done), lambda answer: [Package(**one) for one in json.loads(answer)])


def _paths(given: Union[PathLike, Iterable[PathLike], None]) -> "list[Path]":
    if given is None:
        return []
    return [Path(given)] if isinstance(given, (str, os.PathLike)) else [Path(one) for one in given]


def _installation(answer: Any) -> Installation:
    said = json.loads(answer)
    done = [Package(**one) for one in said["installed"]]
    if said["refused"]:
        raise PackageError([Refused(**one) for one in said["refused"]], done)
    return Installation(done, said["missing"])
