"""Packs the wheel as maturin would, with the library that the workspace has already built.

maturin builds its crate alone, with other features than the workspace: that is another wasmtime, and a quarter of an hour.
`cargo xtask wheel` calls this; nothing but the standard library is needed.
"""

import argparse
import base64
import hashlib
import lzma
import platform
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

try:
    import tomllib
except ImportError:  # before Python 3.11
    from pip._vendor import tomli as tomllib

HERE = Path(__file__).resolve().parent
#: The oldest Python whose stable interface the library uses: `abi3-py39` in Cargo.toml.
TAG = "cp39-abi3"
#: Files of a wheel have one date, so that the same content is the same wheel.
DATE = (2020, 1, 1, 0, 0, 0)


def system_tag(library: bytes) -> str:
    """The oldest glibc that has everything the library asks for."""
    versions = [tuple(map(int, found)) for found in re.findall(rb"GLIBC_(\d+)\.(\d+)", library)]
    major, minor = max(versions, default=(2, 17))
    return f"manylinux_{major}_{minor}_{platform.machine()}"


def stripped(path: Path) -> bytes:
    """The library without the names that only a debugger needs, where there is a tool for it."""
    if shutil.which("strip") is None:
        return path.read_bytes()
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / path.name
        subprocess.run(["strip", "--strip-unneeded", "-o", str(copy), str(path)], check=True)
        return copy.read_bytes()


def packed(path: Path) -> bytes:
    """A compiled guest, packed once."""
    archive = path.with_name(path.name + ".xz")
    if not archive.exists() or archive.stat().st_mtime < path.stat().st_mtime:
        part = archive.with_suffix(".part")
        part.write_bytes(lzma.compress(path.read_bytes(), preset=6))
        part.rename(archive)
    return archive.read_bytes()


def metadata(project: dict, version: str) -> str:
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {version}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        f"Keywords: {','.join(project['keywords'])}",
        *(f"Classifier: {classifier}" for classifier in project["classifiers"]),
        "License-File: LICENSE",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + (HERE / project["readme"]).read_text()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", required=True)
    parser.add_argument("--library", type=Path, required=True, help="the built lib_native.so")
    parser.add_argument("--compiled", type=Path, nargs="*", default=[], help="compiled guests")
    parser.add_argument("--out", type=Path, required=True, help="where the wheel goes")
    given = parser.parse_args()

    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    library = stripped(given.library)
    tag = f"{TAG}-{system_tag(library)}"
    info = f"sandlite-{given.version}.dist-info"
    files = {
        path.relative_to(HERE / "python").as_posix(): path.read_bytes()
        for path in sorted((HERE / "python").rglob("*"))
        if path.suffix in (".py", ".pyi") or path.name == "py.typed"
    }
    files["sandlite/_native.abi3.so"] = library
    for path in given.compiled:
        files[f"sandlite/compiled/{path.name}.xz"] = packed(path)
    files[f"{info}/licenses/LICENSE"] = (HERE.parent.parent / "LICENSE").read_bytes()
    files[f"{info}/METADATA"] = metadata(project, given.version).encode()
    scripts = "".join(f"{name} = {entry}\n" for name, entry in project["scripts"].items())
    files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{scripts}".encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: sandlite\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = "".join(f"{name},sha256={digest(content)},{len(content)}\n" for name, content in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()

    given.out.mkdir(parents=True, exist_ok=True)
    for old in given.out.glob("sandlite-*.whl"):
        old.unlink()
    path = given.out / f"sandlite-{given.version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, DATE)
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            kind = zipfile.ZIP_STORED if name.endswith(".xz") else zipfile.ZIP_DEFLATED
            archive.writestr(entry, content, kind, compresslevel=None if kind == zipfile.ZIP_STORED else 9)
    print(path)


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    main()
