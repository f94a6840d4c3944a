"""The sandbox as a backend of deepagents (``pip install deepagents``).

>>> from deepagents import create_deep_agent
>>> from sandlite import Sandbox
>>> from sandlite.deepagents import SandliteBackend
>>> backend = SandliteBackend(Sandbox("agent.db"))
>>> agent = create_deep_agent(model=…, backend=backend)

File tools work on the database directly, without a process for each call; ``execute`` runs bash. A cancelled call is killed.
"""

from __future__ import annotations

import base64
import codecs
import posixpath
import shlex
import uuid
from datetime import datetime, timezone
from typing import Any, Optional

from deepagents.backends.protocol import (
    FILE_NOT_FOUND,
    INVALID_PATH,
    IS_DIRECTORY,
    PERMISSION_DENIED,
    DeleteResult,
    EditResult,
    ExecuteResponse,
    FileData,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    SandboxBackendProtocol,
    WriteResult,
)
from deepagents.backends.utils import (
    compile_grep_include_glob,
    normalize_read_bounds,
    perform_string_replacement,
)

from . import _calls, _files, _native, _steps
from ._async import AsyncSandbox
from ._results import Result
from ._steps import Steps
from ._toolkit import AnySandbox
from .errors import (
    FileError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
    SandliteError,
    StaleFileError,
)

__all__ = ["SandliteBackend"]

#: Maximum size that deepagents' own sandboxes return of a binary file.
_MAX_BINARY_BYTES = 500 * 1024
#: Maximum size that they return of a text at once.
_MAX_TEXT_BYTES = 500 * 1024
#: Size of the prefix that decides whether a file is text.
_PROBED_BYTES = 8192
#: File types that are never treated as text.
_BINARY_ENDINGS = frozenset(
    ".png .jpeg .jpg .webp .gif .heic .heif .mp4 .mpeg .mov .avi .flv .mpg .webm .wmv .3gpp .mkv .wav .mp3 .aiff .aac .ogg "
    ".flac .pdf .ppt .pptx".split()
)
_CUT = "\n\n[The output was truncated at {} bytes. Continue with a larger offset or a smaller limit.]"


class SandliteBackend(SandboxBackendProtocol):
    """Files and commands of a sandbox for a deep agent.

    ``session`` names a shell that keeps its directory and variables between calls of ``execute``; without it each call starts
    afresh. An :class:`~sandlite.AsyncSandbox` supports the methods for ``asyncio``, a :class:`~sandlite.Sandbox` all of them."""

    def __init__(self, box: AnySandbox, *, session: Optional[str] = None, id: Optional[str] = None) -> None:
        self._box = box
        self._session = session
        self._id = id or f"sandlite-{uuid.uuid4().hex[:12]}"

    @property
    def id(self) -> str:
        """The name of this backend."""
        return self._id

    @property
    def _native(self) -> _native.Sandbox:
        return self._box._native

    def _run(self, steps: "Steps[Any]") -> Any:
        if isinstance(self._box, AsyncSandbox):
            raise TypeError("an AsyncSandbox supports only async methods: use `await backend.aread(…)`")
        return _steps.run(steps)

    # Each operation, written once.

    def _execute(self, command: str, timeout: Optional[int]) -> "Steps[ExecuteResponse]":
        # Both streams in the order in which they were written, on the command's own line.
        whole = f"exec 2>&1; {command}"
        # 0 means no limit, which is the sandbox's own.
        result = yield _calls.run(self._native, "bash", whole, timeout=timeout or None, session=self._session)
        return _response(result)

    def _ls(self, path: str) -> "Steps[LsResult]":
        try:
            found = yield _files.entries(self._native, _absolute(path))
        except SandliteError as error:
            return LsResult(error=_message("list", path, error))
        return LsResult(entries=[_info(entry) for entry in found])

    def _read(self, path: str, offset: int, limit: int) -> "Steps[ReadResult]":
        try:
            raw = yield _files.read(self._native, _absolute(path))
        except SandliteError as error:
            return ReadResult(error=_message("read", path, error))
        return _window(path, raw, offset, limit)

    def _write(self, path: str, content: str) -> "Steps[WriteResult]":
        try:
            yield _files.write(self._native, _absolute(path), content.encode())
        except SandliteError as error:
            return WriteResult(error=_message("write", path, error))
        return WriteResult(path=path)

    def _edit(self, path: str, old: str, new: str, replace_all: bool) -> "Steps[EditResult]":
        while True:
            try:
                # The version is read first, so that a later change of the file is not overwritten.
                version = yield _version(self._native, _absolute(path))
                raw = yield _files.read(self._native, _absolute(path))
                content = raw.decode()
                replaced = perform_string_replacement(content, old, new, replace_all)
                if isinstance(replaced, str):
                    # The messages of deepagents' own sandboxes, which its agents know.
                    times = content.count(old) if old else 0
                    several = f"Error: String '{old}' appears multiple times. Use replace_all=True to replace all occurrences."
                    return EditResult(error=several if times > 1 else replaced)
                text, count = replaced
                yield _calls.write_file(self._native, _absolute(path), text, version)
                return EditResult(path=path, occurrences=count)
            except StaleFileError:
                continue
            except UnicodeDecodeError:
                return EditResult(error=f"Error: File '{path}' is not a text file")
            except SandliteError as error:
                return EditResult(error=_message("edit", path, error))

    def _delete(self, path: str) -> "Steps[DeleteResult]":
        try:
            yield _files.remove_tree(self._native, _absolute(path))
        except FileNotFoundError:
            return DeleteResult(error=f"Error: '{path}' not found")
        except SandliteError as error:
            return DeleteResult(error=_message("delete", path, error))
        return DeleteResult(path=path)

    def _glob(self, pattern: str, path: Optional[str]) -> "Steps[GlobResult]":
        root = path or self._box.cwd
        try:
            root = _absolute(root)
            fits = compile_grep_include_glob(pattern)
            found = yield _files.walk(self._native, root)
        except ValueError as error:
            return GlobResult(error=str(error))
        except SandliteError as error:
            return GlobResult(error=_message("search", path or root, error))
        files = [entry for entry in found if entry.is_file and fits(posixpath.relpath(entry.path, root))]
        return GlobResult(matches=[_info(entry) for entry in files])

    def _grep(
        self, pattern: str, path: Optional[str], glob: Optional[str], max_count: Optional[int]
    ) -> "Steps[GrepResult]":
        root = path or self._box.cwd
        try:
            root = _absolute(root)
            fits = compile_grep_include_glob(glob) if glob else None
            yield _files.stat(self._native, root)
        except ValueError as error:
            return GrepResult(error=str(error))
        except SandliteError as error:
            return GrepResult(error=_message("search", path or root, error))
        # A zero byte ends the file name, whatever it contains.
        search = f"grep -rIHnFZ -e {shlex.quote(pattern)} -- {shlex.quote(root)}"
        result = yield _calls.run(self._native, "bash", search)
        if result.exit_code > 1 or result.limit is not None:
            return GrepResult(error=f"Path '{path or root}': {_response(result).output.strip()}")
        matches: list[GrepMatch] = []
        truncated = result.truncated
        lines = result.stdout.split("\n")
        # The last line is empty, or truncated by the limit on output.
        for line in lines[:-1]:
            name, _, rest = line.partition("\0")
            number, _, text = rest.partition(":")
            if not number.isdigit() or (fits is not None and not fits(_below(name, root))):
                continue
            if max_count is not None and len(matches) == max_count:
                truncated = True
                break
            matches.append(GrepMatch(path=name, line=int(number), text=text))
        return GrepResult(matches=matches, truncated=truncated)

    def _upload(self, files: "list[tuple[str, bytes]]") -> "Steps[list[FileUploadResponse]]":
        responses = []
        for path, content in files:
            if not _is_absolute(path):
                responses.append(FileUploadResponse(path=path, error=INVALID_PATH))
                continue
            try:
                yield _files.write(self._native, path, content)
                responses.append(FileUploadResponse(path=path))
            except SandliteError as error:
                responses.append(FileUploadResponse(path=path, error=_code(error)))
        return responses

    def _download(self, paths: "list[str]") -> "Steps[list[FileDownloadResponse]]":
        responses = []
        for path in paths:
            if not _is_absolute(path):
                responses.append(FileDownloadResponse(path=path, error=INVALID_PATH))
                continue
            try:
                content = yield _files.read(self._native, path)
                responses.append(FileDownloadResponse(path=path, content=content))
            except SandliteError as error:
                responses.append(FileDownloadResponse(path=path, error=_code(error)))
        return responses

    # The methods that deepagents calls.

    def execute(self, command: str, *, timeout: Optional[int] = None) -> ExecuteResponse:
        """Runs a bash command line."""
        return self._run(self._execute(command, timeout))  # type: ignore[no-any-return]

    async def aexecute(self, command: str, *, timeout: Optional[int] = None) -> ExecuteResponse:
        """:meth:`execute`, for ``asyncio``: a cancelled command is killed."""
        return await _steps.arun(self._execute(command, timeout))

    def ls(self, path: str) -> LsResult:
        """Returns the content of a directory."""
        return self._run(self._ls(path))  # type: ignore[no-any-return]

    async def als(self, path: str) -> LsResult:
        """:meth:`ls`, for ``asyncio``."""
        return await _steps.arun(self._ls(path))

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Returns some lines of a text, or the whole of a binary file in base64."""
        return self._run(self._read(file_path, offset, limit))  # type: ignore[no-any-return]

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """:meth:`read`, for ``asyncio``."""
        return await _steps.arun(self._read(file_path, offset, limit))

    def write(self, file_path: str, content: str) -> WriteResult:
        """Writes a whole file, replacing an existing one."""
        return self._run(self._write(file_path, content))  # type: ignore[no-any-return]

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        """:meth:`write`, for ``asyncio``."""
        return await _steps.arun(self._write(file_path, content))

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        """Replaces a text that occurs once in the file, or all occurrences with ``replace_all``."""
        return self._run(self._edit(file_path, old_string, new_string, replace_all))  # type: ignore[no-any-return]

    async def aedit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        """:meth:`edit`, for ``asyncio``."""
        return await _steps.arun(self._edit(file_path, old_string, new_string, replace_all))

    def delete(self, file_path: str) -> DeleteResult:
        """Deletes a file, or a directory with its content."""
        return self._run(self._delete(file_path))  # type: ignore[no-any-return]

    async def adelete(self, file_path: str) -> DeleteResult:
        """:meth:`delete`, for ``asyncio``."""
        return await _steps.arun(self._delete(file_path))

    def glob(self, pattern: str, path: Optional[str] = None) -> GlobResult:
        """Returns files whose path matches a pattern; ``*.py`` matches at any depth."""
        return self._run(self._glob(pattern, path))  # type: ignore[no-any-return]

    async def aglob(self, pattern: str, path: Optional[str] = None) -> GlobResult:
        """:meth:`glob`, for ``asyncio``."""
        return await _steps.arun(self._glob(pattern, path))

    def grep(
        self, pattern: str, path: Optional[str] = None, glob: Optional[str] = None, *, max_count: Optional[int] = None
    ) -> GrepResult:
        """Returns lines that contain a text, which is not a regular expression."""
        return self._run(self._grep(pattern, path, glob, max_count))  # type: ignore[no-any-return]

    async def agrep(
        self, pattern: str, path: Optional[str] = None, glob: Optional[str] = None, *, max_count: Optional[int] = None
    ) -> GrepResult:
        """:meth:`grep`, for ``asyncio``."""
        return await _steps.arun(self._grep(pattern, path, glob, max_count))

    def upload_files(self, files: "list[tuple[str, bytes]]") -> "list[FileUploadResponse]":
        """Writes files, each with its own result."""
        return self._run(self._upload(files))  # type: ignore[no-any-return]

    async def aupload_files(self, files: "list[tuple[str, bytes]]") -> "list[FileUploadResponse]":
        """:meth:`upload_files`, for ``asyncio``."""
        return await _steps.arun(self._upload(files))

    def download_files(self, paths: "list[str]") -> "list[FileDownloadResponse]":
        """Reads files, each with its own result."""
        return self._run(self._download(paths))  # type: ignore[no-any-return]

    async def adownload_files(self, paths: "list[str]") -> "list[FileDownloadResponse]":
        """:meth:`download_files`, for ``asyncio``."""
        return await _steps.arun(self._download(paths))


def _is_absolute(path: str) -> bool:
    return path.startswith("/") and "\0" not in path


def _absolute(path: str) -> str:
    """Accepts only absolute paths, because agents of deepagents do not know the working directory."""
    if _is_absolute(path):
        return path.rstrip("/") or "/"
    raise FileNotFoundError(2, f"'{path}' is not an absolute path")


def _below(path: str, root: str) -> str:
    # A file that is searched directly matches by its name.
    return posixpath.basename(path) if path == root else posixpath.relpath(path, root)


def _version(box: _native.Sandbox, path: str) -> "_calls.Call[str]":
    window = _calls.read_window(box, path, 1, 1)
    return _calls.Call(window.ask, lambda answer: window.read(answer).version)


def _info(entry: _files.Entry) -> FileInfo:
    modified = datetime.fromtimestamp(entry.modified / 1e9, timezone.utc)
    size = 0 if entry.is_directory else entry.size
    return FileInfo(path=entry.path, is_dir=entry.is_directory, size=size, modified_at=modified.isoformat())


def _response(result: Result) -> ExecuteResponse:
    output = result.stdout + result.stderr
    for note in result.notes:
        end = "" if not output or output.endswith("\n") else "\n"
        output += f"{end}[{note}]\n"
    return ExecuteResponse(output=output, exit_code=result.exit_code, truncated=result.truncated)


def _code(error: SandliteError) -> str:
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return FILE_NOT_FOUND
    if isinstance(error, IsADirectoryError):
        return IS_DIRECTORY
    if isinstance(error, PermissionError):
        return PERMISSION_DENIED
    return str(error)


def _message(verb: str, path: str, error: SandliteError) -> str:
    code = _code(error) if isinstance(error, FileError) else None
    if code == FILE_NOT_FOUND:
        return f"Error: File '{path}' not found"
    if code == PERMISSION_DENIED:
        return f"Error: Permission denied: cannot {verb} '{path}'"
    if code == IS_DIRECTORY:
        return f"Error: '{path}' is a directory"
    return f"Error: cannot {verb} '{path}': {error}"


def _is_text(raw: bytes) -> bool:
    try:
        # A character that the probe splits is not an error.
        codecs.getincrementaldecoder("utf-8")().decode(raw[:_PROBED_BYTES])
    except UnicodeDecodeError:
        return False
    return True


def _window(path: str, raw: bytes, offset: int, limit: int) -> ReadResult:
    if posixpath.splitext(path)[1].lower() in _BINARY_ENDINGS or not _is_text(raw):
        if len(raw) > _MAX_BINARY_BYTES:
            return ReadResult(error=f"File '{path}': Binary file exceeds maximum preview size of {_MAX_BINARY_BYTES} bytes")
        return ReadResult(file_data=FileData(content=base64.b64encode(raw).decode(), encoding="base64"))
    if not raw:
        return ReadResult(file_data=FileData(content="", encoding="utf-8"))
    offset, limit = normalize_read_bounds(offset, limit)
    if limit == 0:
        return ReadResult(file_data=FileData(content="", encoding="utf-8"), no_lines_requested=True)
    lines = raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    if offset >= len(lines):
        return ReadResult(error=f"Line offset {offset} exceeds file length ({len(lines)} lines)")
    shown, room = [], _MAX_TEXT_BYTES
    for line in lines[offset : offset + limit]:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        shown.append(line)
    cut = len(shown) < len(lines[offset : offset + limit])
    if not shown:  # a line that does not fit: its beginning, so that the next read starts at the next line
        shown = [lines[offset].encode()[:_MAX_TEXT_BYTES].decode("utf-8", "ignore")]
    end = offset + len(shown)
    return ReadResult(
        file_data=FileData(content="\n".join(shown) + (_CUT.format(_MAX_TEXT_BYTES) if cut else ""), encoding="utf-8"),
        total_lines=len(lines),
        start_line=offset + 1,
        end_line=end,
        next_offset=end if end < len(lines) else None,
    )
