"""Client of a Sandlite server, in one file, with the standard library alone.

Sandboxes::

    from sandlite_client import Client

    client = Client("http://127.0.0.1:8080", "sk-…")
    box = client.create_sandbox("demo", files={"/data.csv": "a,b\\n1,2\\n"})
    print(box.bash("wc -l /data.csv").stdout)
    for event in box.stream_bash("for i in 1 2 3; do echo $i; done"):
        print(event.text, end="")
    box.write("/note.txt", "hello")
    box.undo()

Skills, with the names and types of Skillbox's client::

    client.register_skill("word-counter-1.0.0.zip")
    result = client.run("word-counter", input={"text": "one two"})
    print(result.status, result.output)
    client.download_files(result, "out")

In asyncio, :class:`AsyncClient` has the same methods as coroutines::

    async with AsyncClient("http://127.0.0.1:8080", "sk-…") as client:
        box = await client.create_sandbox()
        print((await box.bash("echo hi")).stdout)

A command that fails is a :class:`Result` with its exit code. A request that fails raises :class:`APIError`.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import functools
import http.client
import io
import json
import os
import select
import shutil
import ssl
import tarfile
import threading
import time
import uuid
import zipfile
from base64 import b64decode, b64encode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import (
    IO,
    TYPE_CHECKING,
    Any,
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Dict,
    Generic,
    Iterator,
    List,
    Mapping,
    Optional,
    Tuple,
    TypeVar,
    Union,
    cast,
)
from urllib.parse import quote, urlencode, urlsplit

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec, Self

    P = ParamSpec("P")

__all__ = [
    "APIError",
    "AsyncClient",
    "AsyncJob",
    "AsyncSandbox",
    "Client",
    "Event",
    "FileInfo",
    "Job",
    "Page",
    "Result",
    "RunResult",
    "Sandbox",
    "Skill",
]
__version__ = "0.1.0"

T = TypeVar("T")
Json = Any
Bytes = Union[bytes, bytearray, str, os.PathLike[str], IO[bytes]]

_CHUNK = 1 << 16
_IDLE_CONNECTIONS = 16
_LONGEST_RETRY = 30.0


# ---------------------------------------------------------------- types


class APIError(Exception):
    """A request that the server refused, or could not be reached for (``status_code`` 0).

    >>> try:
    ...     client.get_sandbox("nothing")
    ... except APIError as error:
    ...     error.status_code, error.error_code
    (404, 'not_found')
    """

    def __init__(self, status_code: int, error_code: str = "", message: str = "", details: Json = None) -> None:
        self.status_code = status_code
        self.error_code = error_code
        self.message = message
        self.details = details
        super().__init__(status_code, error_code, message)

    def __str__(self) -> str:
        head = " ".join(str(part) for part in ("skillbox:", self.status_code, self.error_code) if part != "")
        return f"{head}: {self.message}" if self.message else head


@dataclass
class RunResult:
    """How the run of a skill went."""

    execution_id: str = ""
    status: str = ""
    output: Json = None
    files_url: str = ""
    files_list: List[str] = field(default_factory=list)
    logs: str = ""
    duration_ms: int = 0
    error: str = ""

    @property
    def has_files(self) -> bool:
        """Whether the run left files that :meth:`Client.download_files` can fetch."""
        return bool(self.files_url)


@dataclass
class Skill:
    """A skill. Lists have the first fields, :meth:`Client.get_skill` has all of them."""

    name: str = ""
    version: str = ""
    description: str = ""
    lang: str = ""
    mode: str = ""
    status: str = ""
    instructions: str = ""
    image: str = ""
    timeout: str = ""
    resources: Dict[str, str] = field(default_factory=dict)
    input_schema: Json = None


@dataclass
class FileInfo:
    """A stored file. ``parent_id`` is the first version of one that was updated."""

    id: str = ""
    tenant_id: str = ""
    session_id: str = ""
    execution_id: str = ""
    name: str = ""
    content_type: str = ""
    size_bytes: int = 0
    s3_key: str = ""
    version: int = 0
    parent_id: Optional[str] = None
    created_at: str = ""
    updated_at: str = ""


@dataclass
class Result:
    """How a command went. ``usage`` has fuel, time, memory and bytes."""

    status: str = ""
    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""
    truncated: bool = False
    limit: Optional[Dict[str, Json]] = None
    cancelled: bool = False
    duration_ms: int = 0
    usage: Dict[str, int] = field(default_factory=dict)
    run: int = 0
    restarted: bool = False
    notes: List[str] = field(default_factory=list)
    value: Json = None
    text: Optional[str] = None
    images: List[Dict[str, str]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the exit code is 0."""
        return self.exit_code == 0


@dataclass
class Event:
    """A piece of a stream.

    Commands send ``stdout`` and ``stderr`` with ``data``, then ``result`` with ``result``. The timeline of a sandbox sends ``change``
    with ``change``, executions send ``log`` and ``result``.
    """

    kind: str
    data: bytes = b""
    result: Any = None
    change: Optional[Dict[str, Json]] = None
    id: str = ""

    @property
    def text(self) -> str:
        """``data`` as text."""
        return self.data.decode("utf-8", "replace")


@dataclass
class Page(Generic[T]):
    """A part of a list; ``next_cursor`` is for the next one, if there is more."""

    items: List[T]
    next_cursor: Optional[str] = None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def _fill(kind: Callable[..., T], data: Json) -> T:
    """An object from the fields that it knows; null is a field's default."""
    data = data if isinstance(data, dict) else {}
    names = {f.name for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in data.items() if name in names and value is not None})


# ---------------------------------------------------------------- connections

# The connections that the present call has open, so that a cancelled coroutine can close them.
_open_now: contextvars.ContextVar[Optional[List[http.client.HTTPConnection]]] = contextvars.ContextVar("open", default=None)


class _Answer:
    """A response that is read piece by piece. Closing it early closes its connection, which kills the run behind it."""

    def __init__(self, http_: _Http, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._http, self._connection, self.response = http_, connection, response
        self.status = response.status

    def header(self, name: str) -> str:
        return self.response.getheader(name) or ""

    def read(self) -> bytes:
        try:
            return self.response.read()
        finally:
            self.close()

    def chunks(self) -> Iterator[bytes]:
        try:
            while True:
                chunk = self.response.read(_CHUNK)
                if not chunk:
                    return
                yield chunk
        finally:
            self.close()

    def events(self) -> Iterator[Tuple[str, str, str]]:
        """Server-sent events as kind, data and id."""
        try:
            kind, last = "message", ""
            data: List[str] = []
            for raw in iter(self.response.readline, b""):
                line = raw.decode("utf-8", "replace").rstrip("\r\n")
                name, _, value = line.partition(":")
                value = value[1:] if value.startswith(" ") else value
                if not line:
                    if data:
                        yield kind, "\n".join(data), last
                    kind, data = "message", []
                elif name == "event":
                    kind = value
                elif name == "data":
                    data.append(value)
                elif name == "id":
                    last = value
        finally:
            self.close()

    def close(self) -> None:
        self._http.give_back(self._connection, self.response)


class _Http:
    """Requests over connections that are kept open between them."""

    def __init__(self, base_url: str, headers: Mapping[str, str], timeout: Optional[float], retries: int) -> None:
        url = urlsplit(base_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"invalid address of a server `{base_url}`: expected http://HOST:PORT or https://HOST")
        self._host, self._port, self._prefix = url.hostname, url.port, url.path.rstrip("/")
        self._tls = ssl.create_default_context() if url.scheme == "https" else None
        self._headers, self._timeout, self._retries = dict(headers), timeout, retries
        self._idle: List[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def _connection(self) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                break
            # A connection that can be read from while nothing was asked was closed by the server.
            if connection.sock is not None and not _is_readable(connection.sock):
                return connection
            connection.close()
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)

    def give_back(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        is_whole = response.isclosed() and not response.will_close
        response.close()
        with self._lock:
            if is_whole and len(self._idle) < _IDLE_CONNECTIONS and connection not in self._idle:
                self._idle.append(connection)
                return
            if connection in self._idle:
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        body: Union[None, bytes, IO[bytes], Iterator[bytes]] = None,
        headers: Optional[Mapping[str, str]] = None,
    ) -> _Answer:
        """Sends a request and returns the response, whatever its status; waits and retries when the server has no room."""
        asked = {name: _text(value) for name, value in (query or {}).items() if value is not None}
        target = self._prefix + path + ("?" + urlencode(asked) if asked else "")
        merged = {**self._headers, **(headers or {})}
        for attempt in range(self._retries + 1):
            answer = self._once(method, target, body, merged)
            after = answer.header("Retry-After")
            can_repeat = body is None or isinstance(body, (bytes, bytearray))
            if answer.status not in (429, 503) or not after.isdigit() or not can_repeat or attempt == self._retries:
                break
            answer.read()
            time.sleep(min(float(after), _LONGEST_RETRY))
        return answer

    def _once(self, method: str, target: str, body: Any, headers: Mapping[str, str]) -> _Answer:
        connection = self._connection()
        opened = _open_now.get()
        if opened is not None:
            opened.append(connection)
        try:
            connection.request(method, target, body=body, headers=dict(headers))
            return _Answer(self, connection, connection.getresponse())
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise APIError(0, "unreachable", f"{method} {self._host}{target.split('?')[0]}: {error}") from error

    def checked(self, method: str, path: str, **how: Any) -> _Answer:
        """Sends a request; a status that is not below 400 is an :class:`APIError`."""
        answer = self.send(method, path, **how)
        if answer.status < 400:
            return answer
        raw = answer.read()
        try:
            problem = json.loads(raw)
            raise APIError(
                answer.status, str(problem.get("error", "")), str(problem.get("message", "")), problem.get("details")
            )
        except (ValueError, AttributeError):
            raise APIError(answer.status, "", raw[:1000].decode("utf-8", "replace").strip()) from None

    def json(self, method: str, path: str, body: Json = None, **how: Any) -> Json:
        """Sends JSON and returns JSON, or ``None`` for an empty body."""
        headers = dict(how.pop("headers", None) or {})
        encoded = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            encoded = json.dumps(body).encode()
        raw = self.checked(method, path, body=encoded, headers=headers, **how).read()
        return json.loads(raw) if raw else None


def _is_readable(sock: Any) -> bool:
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([sock], [], [], 0)[0])


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _given(**fields: Any) -> Dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _segment(text: str) -> str:
    return quote(str(text), safe="")


def _content(data: Bytes) -> Union[bytes, IO[bytes]]:
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, (bytes, bytearray)):
        return bytes(data)
    if isinstance(data, os.PathLike):
        return Path(data).read_bytes()
    return data


def _multipart(fields: Mapping[str, str], name: str, content: bytes, content_type: str) -> Tuple[bytes, str]:
    boundary = uuid.uuid4().hex
    body = io.BytesIO()
    for key, value in fields.items():
        body.write(f'--{boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode())
    shown = name.replace("\\", "_").replace('"', "%22").replace("\r", "_").replace("\n", "_")
    body.write(f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{shown}"\r\n'.encode())
    body.write(f"Content-Type: {content_type}\r\n\r\n".encode() + content + f"\r\n--{boundary}--\r\n".encode())
    return body.getvalue(), f"multipart/form-data; boundary={boundary}"


class _Reader(io.RawIOBase):
    """Chunks as a file, for :mod:`tarfile`."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._left = chunks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._left = chunk
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count


def _unpack(chunks: Iterator[bytes], directory: Union[str, os.PathLike[str]], mode: str) -> List[str]:
    """Unpacks files and directories of a tar below ``directory``; any other entry, or a name that leads out, is refused."""
    root = Path(directory)
    root.mkdir(parents=True, exist_ok=True)
    real, written = root.resolve(), []
    with tarfile.open(fileobj=io.BufferedReader(_Reader(chunks), _CHUNK), mode=mode) as archive:  # type: ignore[call-overload]
        for member in archive:
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts or "\\" in member.name or ":" in member.name[:2]:
                raise ValueError(f"refused to unpack `{member.name}`: path traversal")
            target = real.joinpath(*name.parts)
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            if member.issym() or member.islnk():
                continue  # A link could lead out of the directory, now or when something is written through it.
            if not member.isfile():
                raise ValueError(f"refused to unpack `{member.name}`: not a file or directory")
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.parent.resolve().is_relative_to(real) or target.is_symlink():
                raise ValueError(f"refused to unpack `{member.name}`: a symbolic link leads out of the directory")
            source = archive.extractfile(member)
            if source is not None:
                with open(target, "wb") as out:
                    shutil.copyfileobj(source, out)
                written.append(member.name)
    return written


# ---------------------------------------------------------------- sandboxes


class Job:
    """A command that runs in the background."""

    def __init__(self, sandbox: Sandbox, data: Mapping[str, Json]) -> None:
        self._sandbox = sandbox
        self._set(data)

    def _set(self, data: Mapping[str, Json]) -> None:
        self.id: str = data["job"]
        self.status: str = data.get("status", "running")
        self.action: str = data.get("action", "")
        self.error: Json = data.get("error")
        self.result: Optional[Result] = _fill(Result, data["result"]) if data.get("result") else None

    def __repr__(self) -> str:
        return f"Job({self.id!r}, {self.status})"

    def refresh(self) -> Self:
        """Asks for the status."""
        self._set(self._sandbox._http.json("GET", f"{self._sandbox._path}/jobs/{_segment(self.id)}"))
        return self

    def wait(self, timeout: Optional[float] = None, interval: float = 0.1) -> Optional[Result]:
        """Waits until the command has ended and returns its result, or ``None`` if it was cancelled.

        >>> job = box.start_bash("sleep 1; echo done")
        >>> job.wait().stdout
        'done\\n'
        """
        end = None if timeout is None else time.monotonic() + timeout
        while self.refresh().status == "running":
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"job {self.id} still runs after {timeout} s")
            time.sleep(interval)
        if self.status == "failed":
            problem = self.error if isinstance(self.error, dict) else {"message": str(self.error)}
            raise APIError(0, str(problem.get("error", "job_failed")), str(problem.get("message", "")))
        return self.result

    def cancel(self) -> None:
        """Kills the command."""
        self._sandbox._http.checked("DELETE", f"{self._sandbox._path}/jobs/{_segment(self.id)}").read()


class Sandbox:
    """A sandbox on the server. ``name``, ``bytes`` and the times are as of the last request that returned them.

    Options of commands: ``cwd``, ``env``, ``stdin``, ``timeout_ms``, ``rollback_on_failure``, ``session``, ``seed`` and ``record``.
    """

    def __init__(self, http_: _Http, data: Mapping[str, Json]) -> None:
        self._http = http_
        self._set(data)

    def _set(self, data: Mapping[str, Json]) -> None:
        self.id: str = data["id"]
        self._path = f"/v1/sandboxes/{_segment(self.id)}"
        self.name: Optional[str] = data.get("name")
        self.preset: str = data.get("preset", "")
        self.created_at: Json = data.get("created_at")
        self.used_at: Json = data.get("used_at")
        self.expires_at: Json = data.get("expires_at")
        self.bytes: int = data.get("bytes") or 0

    def __repr__(self) -> str:
        return f"Sandbox({self.id!r}, name={self.name!r})"

    def refresh(self) -> Self:
        """Asks for the sandbox's fields again."""
        self._set(self._http.json("GET", self._path))
        return self

    def update(self, /, **fields: Json) -> Self:
        """Changes ``name`` or ``ttl_seconds``; ``ttl_seconds=None`` keeps the sandbox for ever."""
        self._set(self._http.json("PATCH", self._path, fields))
        return self

    def delete(self) -> None:
        """Deletes the sandbox."""
        self._http.checked("DELETE", self._path).read()

    def fork(self, name: Optional[str] = None, *, at: Optional[str] = None, ttl_seconds: Optional[int] = None) -> Sandbox:
        """Creates an independent copy, of the present state or of a version.

        >>> old = box.fork(at="HEAD~1")
        """
        at_ = None if at is None else str(at)
        return Sandbox(self._http, self._http.json("POST", f"{self._path}/fork", _given(name=name, at=at_, ttl_seconds=ttl_seconds)))

    def export(self, to: Union[str, os.PathLike[str]], *, history: bool = True) -> int:
        """Writes the sandbox as a database file that `sandlite` opens, and returns its bytes."""
        answer = self._http.checked("GET", f"{self._path}/export", query={"history": None if history else False})
        count = 0
        with open(to, "wb") as out:
            for chunk in answer.chunks():
                count += out.write(chunk)
        return count

    def action(self, name: str, arguments: Optional[Mapping[str, Json]] = None, *, idempotency_key: Optional[str] = None) -> Json:
        """Performs any action of the server by its name and returns its data."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else None
        return self._http.json("POST", f"{self._path}/actions/{_segment(name)}", dict(arguments or {}), headers=headers)

    # Commands

    def bash(self, /, command: str, **options: Json) -> Result:
        """Runs a bash command line.

        >>> box.bash("echo $WHO", env={"WHO": "you"}).stdout
        'you\\n'
        """
        return _fill(Result, self.action("bash", {"command": command, **options}))

    def python(self, /, code: str, **options: Json) -> Result:
        """Runs Python code; with ``echo=True``, or in a ``session``, the last expression's value is in ``value``.

        >>> box.python("6 * 7", echo=True).value
        42
        """
        return _fill(Result, self.action("python", {"code": code, **options}))

    def stream_bash(self, /, command: str, **options: Json) -> Iterator[Event]:
        """Runs a bash command line and yields its output as it comes, then ``result``. Closing the iterator kills the command.

        >>> for event in box.stream_bash("make"):
        ...     print(event.text, end="")
        """
        return self._stream("bash", {"command": command, **options})

    def stream_python(self, /, code: str, **options: Json) -> Iterator[Event]:
        """The same for Python code."""
        return self._stream("python", {"code": code, **options})

    def _stream(self, action: str, arguments: Mapping[str, Json]) -> Iterator[Event]:
        headers = {"Accept": "text/event-stream", "Content-Type": "application/json"}
        body = json.dumps(arguments).encode()
        answer = self._http.checked("POST", f"{self._path}/actions/{action}", body=body, headers=headers)
        for kind, raw, _ in answer.events():
            data = json.loads(raw)
            if kind in ("stdout", "stderr"):
                yield Event(kind, b64decode(data["base64"]) if "base64" in data else data.get("text", "").encode())
            elif kind == "result":
                yield Event(kind, result=_fill(Result, data))
            elif kind == "error":
                raise APIError(200, str(data.get("error", "")), str(data.get("message", "")), data.get("details"))

    def start_bash(self, /, command: str, **options: Json) -> Job:
        """Starts a bash command line in the background."""
        return self._start("bash", {"command": command, **options})

    def start_python(self, /, code: str, **options: Json) -> Job:
        """Starts Python code in the background."""
        return self._start("python", {"code": code, **options})

    def _start(self, action: str, arguments: Mapping[str, Json]) -> Job:
        started = self._http.json("POST", f"{self._path}/actions/{action}", arguments, headers={"Prefer": "respond-async"})
        return Job(self, {"action": action, **started})

    def jobs(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Page[Job]:
        """Lists the commands in the background."""
        page = self._http.json("GET", f"{self._path}/jobs", query={"limit": limit, "cursor": cursor})
        return Page([Job(self, item) for item in page["items"]], page.get("next_cursor"))

    def job(self, job_id: str) -> Job:
        """Returns a command in the background by its id."""
        return Job(self, self._http.json("GET", f"{self._path}/jobs/{_segment(job_id)}"))

    # Files

    def _file(self, path: str) -> str:
        return f"{self._path}/files/{quote(path.lstrip('/'), safe='/')}"

    def read(self, path: str, *, at: Optional[str] = None) -> bytes:
        """Reads a file, as it is or as it was at a version.

        >>> box.read("/note.txt", at="HEAD~1")
        """
        return self._http.checked("GET", self._file(path), query={"at": at}).read()

    def read_text(self, path: str, *, at: Optional[str] = None) -> str:
        """Reads a file as UTF-8."""
        return self.read(path, at=at).decode()

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Reads ``length`` bytes from ``start``."""
        headers = {"Range": f"bytes={start}-{start + length - 1}"}
        return self._http.checked("GET", self._file(path), headers=headers).read()

    def etag(self, path: str) -> str:
        """Returns a name for the file's content, for ``if_match``."""
        answer = self._http.checked("HEAD", self._file(path))
        answer.read()
        return answer.header("ETag")

    def write(self, path: str, data: Bytes, *, if_match: Optional[str] = None, create: bool = False) -> str:
        """Writes a whole file and returns its new etag. ``create`` refuses to replace a file, ``if_match`` one that has changed.

        >>> etag = box.write("/note.txt", "one")
        >>> box.write("/note.txt", "two", if_match=etag)
        """
        headers = _given(**{"If-Match": if_match, "If-None-Match": "*" if create else None})
        headers["Content-Type"] = "application/octet-stream"
        answer = self._http.checked("PUT", self._file(path), body=_content(data), headers=headers)
        answer.read()
        return answer.header("ETag")

    def upload(self, local: Union[str, os.PathLike[str]], path: str) -> str:
        """Writes a file of this machine to ``path``."""
        with open(local, "rb") as source:
            return self.write(path, source)

    def download(self, path: str, local: Union[str, os.PathLike[str]]) -> int:
        """Reads a file into one of this machine and returns its bytes."""
        count = 0
        answer = self._http.checked("GET", self._file(path))
        with open(local, "wb") as out:
            for chunk in answer.chunks():
                count += out.write(chunk)
        return count

    def remove(self, path: str, *, recursive: bool = False, if_match: Optional[str] = None) -> None:
        """Removes a file, or a directory with everything below it if ``recursive`` is set."""
        query = {"recursive": True} if recursive else None
        self._http.checked("DELETE", self._file(path), query=query, headers=_given(**{"If-Match": if_match})).read()

    def list(self, path: str = "/", *, depth: int = 1, hidden: bool = True, at: Optional[str] = None) -> List[Dict[str, Json]]:
        """Lists a directory: path, kind and size of each entry."""
        return self.action("list_files", _given(path=path, depth=depth, hidden=hidden, at=at))["entries"]

    def info(self, path: str) -> Dict[str, Json]:
        """Returns kind, size, permissions and time of a path."""
        return self.action("file_info", {"path": path})

    def make_directory(self, path: str) -> None:
        """Creates a directory and those above it."""
        self.action("make_directory", {"path": path})

    def move(self, source: str, to: str, *, overwrite: bool = False) -> None:
        """Moves or renames a file or a directory."""
        self.action("move_file", {"from": source, "to": to, "overwrite": overwrite})

    def copy(self, source: str, to: str, *, recursive: bool = False) -> None:
        """Copies a file, or a directory with everything below it."""
        self.action("copy_files", {"from": source, "to": to, "recursive": recursive})

    def write_files(self, files: Mapping[str, Bytes]) -> None:
        """Writes many files, all or none."""
        rows = []
        for path, data in files.items():
            content = _content(data)
            raw = content if isinstance(content, bytes) else content.read()
            rows.append({"path": path, "content": b64encode(raw).decode(), "encoding": "base64"})
        self.action("write_files", {"files": rows})

    def download_tree(self, path: str, directory: Union[str, os.PathLike[str]]) -> List[str]:
        """Copies a tree of the sandbox into a directory of this machine, and returns the names. Links and names that lead out are not followed."""
        answer = self._http.checked("GET", f"{self._path}/tree/{quote(path.lstrip('/'), safe='/')}")
        return _unpack(answer.chunks(), directory, "r|")

    def upload_tree(self, directory: Union[str, os.PathLike[str]], path: str) -> None:
        """Copies a directory of this machine into the sandbox, in one step."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for entry in sorted(Path(directory).rglob("*")):
                if entry.is_file() or entry.is_dir():
                    archive.add(entry, arcname=str(entry.relative_to(directory).as_posix()), recursive=False)
        headers = {"Content-Type": "application/x-tar"}
        url = f"{self._path}/tree/{quote(path.lstrip('/'), safe='/')}"
        self._http.checked("PUT", url, body=packed.getvalue(), headers=headers).read()

    # Keys and values

    def kv_get(self, key: str, default: Json = None) -> Json:
        """Returns the JSON value of a key, or ``default``."""
        found = self.action("kv_get", {"key": key})
        if not found["found"]:
            return default
        if found.get("part") is None:
            return found["value"]
        text, after = found["part"], found.get("next_offset")
        while after is not None:
            part = self.action("kv_get", {"key": key, "offset": after})
            text, after = text + part["part"], part.get("next_offset")
        return json.loads(text)

    def kv_set(self, key: str, value: Json) -> None:
        """Keeps a JSON value under a key."""
        self.action("kv_set", {"key": key, "value": value})

    def kv_delete(self, key: str) -> bool:
        """Removes a key and returns whether it existed."""
        return self.action("kv_delete", {"key": key})["found"]

    def kv_keys(self, prefix: str = "") -> List[str]:
        """Lists the keys with a prefix."""
        names: List[str] = []
        while True:
            page = self.action("kv_keys", _given(prefix=prefix, after=names[-1] if names else None))
            names += page["keys"]
            if not page["truncated"] or not page["keys"]:
                return names

    # History and versions

    def history(self, /, **which: Json) -> List[Dict[str, Json]]:
        """Lists what was done, newest first: ``limit``, ``before``, ``name``, ``grep``, or one ``run`` with its output."""
        return self.action("history", which)["runs"]

    def log(self, /, **which: Json) -> List[Dict[str, Json]]:
        """Lists the versions, newest first: ``path``, ``limit``, ``before``."""
        return self.action("log", which)["versions"]

    def diff(self, since: str, to: Optional[str] = None, *, paths: Optional[List[str]] = None) -> Dict[str, Json]:
        """Compares two versions, or a version and now: ``files`` and ``patch``.

        >>> print(box.diff("HEAD~1")["patch"])
        """
        return self.action("diff", _given(**{"from": str(since)}, to=to if to is None else str(to), paths=paths))

    def undo(self, runs: int = 1, *, dry_run: bool = False) -> Dict[str, Json]:
        """Takes the last changing runs back and returns what differs."""
        return self.action("undo", {"runs": runs, "dry_run": dry_run})

    def restore(self, version: str, *, paths: Optional[List[str]] = None, dry_run: bool = False) -> Dict[str, Json]:
        """Brings everything, or some paths, back to a version."""
        return self.action("restore", {"version": str(version), "paths": paths or [], "dry_run": dry_run})

    def checkpoint(self, name: str, message: Optional[str] = None) -> Dict[str, Json]:
        """Names the present version."""
        return self.action("checkpoint", _given(name=name, message=message))

    def checkpoints(self) -> List[Dict[str, Json]]:
        """Lists the checkpoints."""
        return self.action("checkpoints")["checkpoints"]

    def events(self, after: Optional[int] = None, *, follow: bool = True) -> Iterator[Event]:
        """Yields committed changes after a version as they come; without ``follow`` those that are there.

        >>> for event in box.events(after=0, follow=False):
        ...     print(event.change["kind"], event.change["path"])
        """
        if not follow:
            for change in self.action("events", _given(after=after))["events"]:
                yield Event("change", change=change, id=str(change.get("version", "")))
            return
        headers = {"Accept": "text/event-stream"}
        answer = self._http.checked("GET", f"{self._path}/events", query={"after": after}, headers=headers)
        for kind, raw, last in answer.events():
            if kind == "change":
                yield Event(kind, change=json.loads(raw), id=last)


# ---------------------------------------------------------------- client


class Client:
    """Speaks to a server. Threads can share it.

    ``api_key`` defaults to the variable ``SANDLITE_KEY``, then ``SKILLBOX_API_KEY``. ``timeout`` is how long a connection may be silent,
    in seconds; ``retries`` how often a request is repeated that the server had no room for (429 with `Retry-After`).
    """

    def __init__(
        self,
        base_url: str,
        api_key: str = "",
        *,
        tenant_id: Optional[str] = None,
        timeout: Optional[float] = 660.0,
        retries: int = 2,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.api_key = api_key or os.environ.get("SANDLITE_KEY") or os.environ.get("SKILLBOX_API_KEY", "")
        self.tenant_id = tenant_id or ""
        self.timeout = timeout
        headers = {"User-Agent": f"sandlite-client-python/{__version__}"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        if self.tenant_id:
            headers["X-Tenant-ID"] = self.tenant_id
        self._http = _Http(self.base_url, headers, timeout, retries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes idle connections; the client can be used again."""
        self._http.close()

    # The server

    def health(self) -> None:
        """Raises :class:`APIError` if the server cannot be reached."""
        self._http.json("GET", "/health")

    def whoami(self) -> Dict[str, Json]:
        """Returns tenant, role, id and view of the key."""
        return self._http.json("GET", "/v1/whoami")

    def usage(self) -> Dict[str, Json]:
        """Returns what the tenant uses, and its limits."""
        return self._http.json("GET", "/v1/usage")

    def list_keys(self) -> List[Dict[str, Json]]:
        """Lists the tenant's keys. Needs the role admin."""
        return self._http.json("GET", "/v1/keys")

    def create_key(
        self, role: str, *, name: str = "", view: Optional[str] = None, expires: Optional[str] = None
    ) -> Dict[str, str]:
        """Creates a key: ``id`` and ``key``, whose text is not shown again. ``expires`` is a time such as ``24h``."""
        return self._http.json("POST", "/v1/keys", _given(role=role, name=name, view=view, expires=expires))

    def revoke_key(self, key_id: str) -> None:
        """Revokes a key at once."""
        self._http.checked("DELETE", f"/v1/keys/{_segment(key_id)}").read()

    def list_audit(self, *, before: Optional[int] = None, limit: Optional[int] = None) -> List[Dict[str, Json]]:
        """Lists the audit log, newest first. Needs the role admin."""
        return self._http.json("GET", "/v1/audit", query={"before": before, "limit": limit})

    # Sandboxes

    def create_sandbox(
        self,
        name: Optional[str] = None,
        *,
        preset: Optional[str] = None,
        files: Optional[Mapping[str, Bytes]] = None,
        base: Optional[str] = None,
        snapshot: Optional[str] = None,
        policy: Optional[str] = None,
        ttl_seconds: Optional[int] = None,
        idempotency_key: Optional[str] = None,
    ) -> Sandbox:
        """Creates a sandbox.

        ``files`` are there from the start, ``base`` is the id of a sandbox below it, ``snapshot`` one to copy, ``policy`` TOML text.

        >>> box = client.create_sandbox("demo", preset="strict", files={"/in.txt": "text", "/in.bin": b"\\x00"})
        """
        given: Optional[Dict[str, Json]] = None
        if files is not None:
            given = {}
            for path, data in files.items():
                content = data if isinstance(data, str) else _content(data)
                raw = content if isinstance(content, (str, bytes)) else content.read()
                given[path] = raw if isinstance(raw, str) else {"base64": b64encode(raw).decode()}
        body = _given(
            name=name, preset=preset, files=given, base=base, snapshot=snapshot, policy=policy, ttl_seconds=ttl_seconds
        )
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else None
        return Sandbox(self._http, self._http.json("POST", "/v1/sandboxes", body, headers=headers))

    def get_sandbox(self, sandbox_id: str) -> Sandbox:
        """Returns a sandbox by its id."""
        return Sandbox(self._http, self._http.json("GET", f"/v1/sandboxes/{_segment(sandbox_id)}"))

    def list_sandboxes(
        self, *, limit: Optional[int] = None, cursor: Optional[str] = None, name: Optional[str] = None
    ) -> Page[Sandbox]:
        """Lists sandboxes, a page at a time."""
        page = self._http.json("GET", "/v1/sandboxes", query={"limit": limit, "cursor": cursor, "name": name})
        return Page([Sandbox(self._http, item) for item in page["items"]], page.get("next_cursor"))

    def sandboxes(self) -> Iterator[Sandbox]:
        """Yields every sandbox."""
        cursor = None
        while True:
            page = self.list_sandboxes(limit=200, cursor=cursor)
            yield from page
            cursor = page.next_cursor
            if cursor is None:
                return

    def delete_sandbox(self, sandbox_id: str) -> None:
        """Deletes a sandbox by its id."""
        self._http.checked("DELETE", f"/v1/sandboxes/{_segment(sandbox_id)}").read()

    def import_sandbox(self, database: Bytes, name: Optional[str] = None) -> Sandbox:
        """Creates a sandbox from a database file: its bytes, a path (``pathlib.Path``) or an open file.

        >>> box = client.import_sandbox(Path("demo.db"), "demo")
        """
        headers = {"Content-Type": "application/vnd.sqlite3"}
        body = _content(database)
        raw = self._http.checked("POST", "/v1/sandboxes/import", query={"name": name}, body=body, headers=headers).read()
        return Sandbox(self._http, json.loads(raw))

    # Skills, as Skillbox's client has them

    def run(
        self,
        skill: str,
        *,
        version: str = "",
        input: Json = None,
        env: Optional[Mapping[str, str]] = None,
        input_files: Optional[List[str]] = None,
        session_id: str = "",
        idempotency_key: Optional[str] = None,
    ) -> RunResult:
        """Runs a skill and waits for its result.

        >>> client.run("word-counter", input={"text": "one two"}).output
        {'words': 2, 'longest': 'one'}
        """
        body = self._execution(skill, version, input, env, input_files, session_id)
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else None
        return _fill(RunResult, self._http.json("POST", "/v1/executions", body, headers=headers))

    def start(
        self,
        skill: str,
        *,
        version: str = "",
        input: Json = None,
        env: Optional[Mapping[str, str]] = None,
        input_files: Optional[List[str]] = None,
        session_id: str = "",
    ) -> str:
        """Starts a skill in the background and returns the id of the execution."""
        body = {**self._execution(skill, version, input, env, input_files, session_id), "async": True}
        return self._http.json("POST", "/v1/executions", body)["execution_id"]

    @staticmethod
    def _execution(skill: str, version: str, input: Json, env: Any, files: Any, session: str) -> Dict[str, Json]:
        return _given(
            skill=skill, version=version or None, input=input, env=env or None, input_files=files or None, session_id=session or None
        )

    def get_execution(self, execution_id: str) -> RunResult:
        """Returns an execution by its id."""
        return _fill(RunResult, self._http.json("GET", f"/v1/executions/{_segment(execution_id)}"))

    def list_executions(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        skill: Optional[str] = None,
        status: Optional[str] = None,
    ) -> Page[Dict[str, Json]]:
        """Lists executions, newest first."""
        query = {"limit": limit, "cursor": cursor, "skill": skill, "status": status}
        page = self._http.json("GET", "/v1/executions", query=query)
        return Page(page["items"], page.get("next_cursor"))

    def cancel_execution(self, execution_id: str) -> None:
        """Cancels an execution."""
        self._http.checked("DELETE", f"/v1/executions/{_segment(execution_id)}").read()

    def execution_events(self, execution_id: str) -> Iterator[Event]:
        """Yields the logs of an execution as they come, then ``result``."""
        headers = {"Accept": "text/event-stream"}
        answer = self._http.checked("GET", f"/v1/executions/{_segment(execution_id)}/events", headers=headers)
        for kind, raw, _ in answer.events():
            data = json.loads(raw)
            if kind == "log":
                yield Event(kind, data.get("text", "").encode())
            elif kind == "result":
                yield Event(kind, result=_fill(RunResult, data))

    def get_execution_logs(self, execution_id: str) -> str:
        """Returns what the skill printed."""
        return self._http.checked("GET", f"/v1/executions/{_segment(execution_id)}/logs").read().decode("utf-8", "replace")

    def register_skill(self, zip_path: Union[str, os.PathLike[str]]) -> None:
        """Publishes a skill: a zip file, or a directory with a ``SKILL.md``."""
        path = Path(zip_path)
        if path.is_dir():
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                for entry in sorted(path.rglob("*")):
                    if entry.is_file():
                        archive.write(entry, entry.relative_to(path).as_posix())
            name, data = f"{path.resolve().name}.zip", packed.getvalue()
        elif path.is_file():
            name, data = path.name, path.read_bytes()
        else:
            raise FileNotFoundError(f"skill archive not found: {zip_path}")
        body, content_type = _multipart({}, name, data, "application/zip")
        self._http.checked("POST", "/v1/skills", body=body, headers={"Content-Type": content_type}).read()

    def list_skills(self) -> List[Skill]:
        """Lists the skills."""
        return [_fill(Skill, item) for item in self._http.json("GET", "/v1/skills") or []]

    def get_skill(self, name: str, version: str = "latest") -> Skill:
        """Returns a skill with its instructions."""
        return _fill(Skill, self._http.json("GET", f"/v1/skills/{_segment(name)}/{_segment(version)}"))

    def delete_skill(self, name: str, version: str) -> None:
        """Deletes a version of a skill."""
        self._http.checked("DELETE", f"/v1/skills/{_segment(name)}/{_segment(version)}").read()

    def download_files(self, result: RunResult, dest_dir: Union[str, os.PathLike[str]]) -> None:
        """Unpacks the files of an execution below ``dest_dir``; does nothing if there are none.

        The address is signed, so the key is not sent: it may lead to another machine.
        """
        if not result.has_files:
            return
        url = urlsplit(result.files_url)
        plain = _Http(f"{url.scheme}://{url.netloc}", {}, self.timeout, 0)
        try:
            answer = plain.checked("GET", url.path + (f"?{url.query}" if url.query else ""))
            _unpack(answer.chunks(), dest_dir, "r|gz")
        finally:
            plain.close()

    # Stored files

    def upload_file(
        self, path: Union[str, os.PathLike[str]], *, name: Optional[str] = None, content_type: str = "application/octet-stream"
    ) -> FileInfo:
        """Stores a file of this machine, to be an input of skills."""
        body, kind = _multipart(_given(name=name), name or Path(path).name, Path(path).read_bytes(), content_type)
        raw = self._http.checked("POST", "/v1/files", body=body, headers={"Content-Type": kind}).read()
        return _fill(FileInfo, json.loads(raw))

    def list_files(
        self,
        *,
        session_id: Optional[str] = None,
        execution_id: Optional[str] = None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
    ) -> List[FileInfo]:
        """Lists the stored files."""
        query = {"session_id": session_id, "execution_id": execution_id, "limit": limit, "offset": offset}
        return [_fill(FileInfo, item) for item in self._http.json("GET", "/v1/files", query=query) or []]

    def get_file(self, file_id: str) -> FileInfo:
        """Returns a stored file's metadata."""
        return _fill(FileInfo, self._http.json("GET", f"/v1/files/{_segment(file_id)}"))

    def download_file(self, file_id: str, dest_path: Union[None, str, os.PathLike[str]] = None) -> bytes:
        """Returns a stored file's bytes, and writes them to ``dest_path`` if it is given. A path with ``..`` is an error."""
        if dest_path is not None and ".." in Path(dest_path).parts:
            raise ValueError(f"invalid dest_path, which leads out of its directory: {dest_path}")
        data = self._http.checked("GET", f"/v1/files/{_segment(file_id)}/download").read()
        if dest_path is not None:
            Path(dest_path).parent.mkdir(parents=True, exist_ok=True)
            Path(dest_path).write_bytes(data)
        return data

    def update_file(self, file_id: str, path: Union[str, os.PathLike[str]]) -> FileInfo:
        """Stores the next version of a file; it has an id of its own."""
        body, kind = _multipart({}, Path(path).name, Path(path).read_bytes(), "application/octet-stream")
        raw = self._http.checked("PUT", f"/v1/files/{_segment(file_id)}", body=body, headers={"Content-Type": kind}).read()
        return _fill(FileInfo, json.loads(raw))

    def delete_file(self, file_id: str) -> None:
        """Deletes a stored file."""
        self._http.checked("DELETE", f"/v1/files/{_segment(file_id)}").read()

    def list_file_versions(self, file_id: str) -> List[FileInfo]:
        """Lists the versions of a stored file, newest first."""
        return [_fill(FileInfo, item) for item in self._http.json("GET", f"/v1/files/{_segment(file_id)}/versions") or []]


# ---------------------------------------------------------------- asyncio


class _Loop:
    """Runs calls on threads. A coroutine that is cancelled closes the connection of its call, which kills the run behind it."""

    def __init__(self, threads: int) -> None:
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="sandlite")

    async def call(self, function: Callable[..., T], *args: Any, **how: Any) -> T:
        opened: List[http.client.HTTPConnection] = []
        context = contextvars.copy_context()
        context.run(_open_now.set, opened)
        work = functools.partial(context.run, function, *args, **how)
        try:
            return await asyncio.get_running_loop().run_in_executor(self.pool, work)
        except asyncio.CancelledError:
            _break(opened)
            raise

    async def iterate(self, make: Callable[[], Iterator[T]]) -> AsyncGenerator[T, None]:
        opened: List[http.client.HTTPConnection] = []
        context = contextvars.copy_context()
        context.run(_open_now.set, opened)
        loop, iterator = asyncio.get_running_loop(), make()
        try:
            while True:
                step = functools.partial(context.run, next, iterator, None)
                item = await loop.run_in_executor(self.pool, step)
                if item is None:
                    return
                yield item
        finally:
            _break(opened)


def _break(connections: List[http.client.HTTPConnection]) -> None:
    for connection in connections:
        sock = connection.sock
        if sock is not None:
            try:
                sock.shutdown(2)
            except OSError:
                pass


def _awaits(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Awaitable[T]]:
    @functools.wraps(method)
    async def call(self: Any, *args: Any, **how: Any) -> Any:
        return self._wrap(await self._loop.call(method, self._sync, *args, **how))

    return cast(Any, call)


def _awaits_sandbox(method: Callable[Concatenate[Any, P], Sandbox]) -> Callable[Concatenate[Any, P], Awaitable[AsyncSandbox]]:
    return cast(Any, _awaits(method))


def _awaits_job(method: Callable[Concatenate[Any, P], Job]) -> Callable[Concatenate[Any, P], Awaitable[AsyncJob]]:
    return cast(Any, _awaits(method))


def _iterates(method: Callable[Concatenate[Any, P], Iterator[T]]) -> Callable[Concatenate[Any, P], AsyncIterator[T]]:
    @functools.wraps(method)
    async def iterate(self: Any, *args: Any, **how: Any) -> Any:
        steps = self._loop.iterate(functools.partial(method, self._sync, *args, **how))
        try:
            async for item in steps:
                yield self._wrap(item)
        finally:
            await steps.aclose()

    return cast(Any, iterate)


class _Async:
    _loop: _Loop
    _sync: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._sync, name)

    def __repr__(self) -> str:
        return f"Async{self._sync!r}"

    def _wrap(self, value: Any) -> Any:
        if value is self._sync:
            return self
        if isinstance(value, Sandbox):
            return AsyncSandbox(value, self._loop)
        if isinstance(value, Job):
            return AsyncJob(value, self._loop)
        if isinstance(value, Page):
            return Page([self._wrap(item) for item in value.items], value.next_cursor)
        return value


class AsyncJob(_Async):
    """:class:`Job` with coroutines."""

    def __init__(self, sync: Job, loop: _Loop) -> None:
        self._sync, self._loop = sync, loop

    refresh = _awaits_job(Job.refresh)
    cancel = _awaits(Job.cancel)

    async def wait(self, timeout: Optional[float] = None, interval: float = 0.1) -> Optional[Result]:
        """Waits until the command has ended, without holding a thread."""
        end = None if timeout is None else time.monotonic() + timeout
        while (await self.refresh()).status == "running":
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"job {self.id} still runs after {timeout} s")
            await asyncio.sleep(interval)
        return await self._loop.call(Job.wait, self._sync)


class AsyncSandbox(_Async):
    """:class:`Sandbox` with coroutines; streams are asynchronous iterators."""

    def __init__(self, sync: Sandbox, loop: _Loop) -> None:
        self._sync, self._loop = sync, loop

    refresh = _awaits_sandbox(Sandbox.refresh)
    update = _awaits_sandbox(Sandbox.update)
    delete = _awaits(Sandbox.delete)
    fork = _awaits_sandbox(Sandbox.fork)
    export = _awaits(Sandbox.export)
    action = _awaits(Sandbox.action)
    bash = _awaits(Sandbox.bash)
    python = _awaits(Sandbox.python)
    stream_bash = _iterates(Sandbox.stream_bash)
    stream_python = _iterates(Sandbox.stream_python)
    start_bash = _awaits_job(Sandbox.start_bash)
    start_python = _awaits_job(Sandbox.start_python)
    jobs: Callable[..., Awaitable[Page[AsyncJob]]] = cast(Any, _awaits(Sandbox.jobs))
    job = _awaits_job(Sandbox.job)
    read = _awaits(Sandbox.read)
    read_text = _awaits(Sandbox.read_text)
    read_range = _awaits(Sandbox.read_range)
    etag = _awaits(Sandbox.etag)
    write = _awaits(Sandbox.write)
    upload = _awaits(Sandbox.upload)
    download = _awaits(Sandbox.download)
    remove = _awaits(Sandbox.remove)
    list = _awaits(Sandbox.list)
    info = _awaits(Sandbox.info)
    make_directory = _awaits(Sandbox.make_directory)
    move = _awaits(Sandbox.move)
    copy = _awaits(Sandbox.copy)
    write_files = _awaits(Sandbox.write_files)
    download_tree = _awaits(Sandbox.download_tree)
    upload_tree = _awaits(Sandbox.upload_tree)
    kv_get = _awaits(Sandbox.kv_get)
    kv_set = _awaits(Sandbox.kv_set)
    kv_delete = _awaits(Sandbox.kv_delete)
    kv_keys = _awaits(Sandbox.kv_keys)
    history = _awaits(Sandbox.history)
    log = _awaits(Sandbox.log)
    diff = _awaits(Sandbox.diff)
    undo = _awaits(Sandbox.undo)
    restore = _awaits(Sandbox.restore)
    checkpoint = _awaits(Sandbox.checkpoint)
    checkpoints = _awaits(Sandbox.checkpoints)
    events = _iterates(Sandbox.events)


class AsyncClient(_Async):
    """:class:`Client` with coroutines. ``threads`` is how many requests can be under way at a time.

    >>> async with AsyncClient("http://127.0.0.1:8080", "sk-…") as client:
    ...     box = await client.create_sandbox()
    ...     async for event in box.stream_bash("echo one; echo two"):
    ...         print(event.text, end="")
    """

    def __init__(
        self,
        base_url: str,
        api_key: str = "",
        *,
        tenant_id: Optional[str] = None,
        timeout: Optional[float] = 660.0,
        retries: int = 2,
        threads: int = 64,
    ) -> None:
        self._sync = Client(base_url, api_key, tenant_id=tenant_id, timeout=timeout, retries=retries)
        self._loop = _Loop(threads)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes idle connections and ends the threads."""
        self._sync.close()
        self._loop.pool.shutdown(wait=False)

    health = _awaits(Client.health)
    whoami = _awaits(Client.whoami)
    usage = _awaits(Client.usage)
    list_keys = _awaits(Client.list_keys)
    create_key = _awaits(Client.create_key)
    revoke_key = _awaits(Client.revoke_key)
    list_audit = _awaits(Client.list_audit)
    create_sandbox = _awaits_sandbox(Client.create_sandbox)
    get_sandbox = _awaits_sandbox(Client.get_sandbox)
    list_sandboxes: Callable[..., Awaitable[Page[AsyncSandbox]]] = cast(Any, _awaits(Client.list_sandboxes))
    sandboxes: Callable[[], AsyncIterator[AsyncSandbox]] = cast(Any, _iterates(Client.sandboxes))
    delete_sandbox = _awaits(Client.delete_sandbox)
    import_sandbox = _awaits_sandbox(Client.import_sandbox)
    run = _awaits(Client.run)
    start = _awaits(Client.start)
    get_execution = _awaits(Client.get_execution)
    list_executions = _awaits(Client.list_executions)
    cancel_execution = _awaits(Client.cancel_execution)
    execution_events = _iterates(Client.execution_events)
    get_execution_logs = _awaits(Client.get_execution_logs)
    register_skill = _awaits(Client.register_skill)
    list_skills = _awaits(Client.list_skills)
    get_skill = _awaits(Client.get_skill)
    delete_skill = _awaits(Client.delete_skill)
    download_files = _awaits(Client.download_files)
    upload_file = _awaits(Client.upload_file)
    list_files = _awaits(Client.list_files)
    get_file = _awaits(Client.get_file)
    download_file = _awaits(Client.download_file)
    update_file = _awaits(Client.update_file)
    delete_file = _awaits(Client.delete_file)
    list_file_versions = _awaits(Client.list_file_versions)
