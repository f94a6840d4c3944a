"""Tools of MCP servers as functions of Python: `from servers.NAME import TOOL`.

A result is a text or a JSON value. Several parts are a list. An image, a sound or a binary resource is stored in /tmp/mcp and returned as a
dictionary with its `path` and `mimeType`. A call that fails raises `ToolError`; its `kind` is `unknown`, `invalid` or `failed`.

In bash: `mcp NAME TOOL JSON`.
"""

import base64 as _base64
import json as _json
import os as _os
import sys as _sys

from sandlite import ToolError
from sandlite import tools as _tools

_DIRECTORY = "/tmp/mcp"
_ENDINGS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/svg+xml": "svg",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/ogg": "ogg",
    "application/pdf": "pdf",
}


class _Unset:
    def __repr__(self):
        return "..."


_unset = _Unset()


def _call(tool, arguments):
    answer = _tools.call(tool, {name: value for name, value in arguments.items() if value is not _unset})
    return [_kept(part) for part in answer] if isinstance(answer, list) else _kept(answer)


def _kept(part):
    """Returns a part of a result, with bytes as a file."""
    if not isinstance(part, dict) or part.get("type") not in ("image", "audio", "resource"):
        return part
    key = "blob" if part["type"] == "resource" else "data"
    if not isinstance(part.get(key), str) or not isinstance(part.get("mimeType"), str):
        return part
    rest = {name: value for name, value in part.items() if name != key}
    return {**rest, "path": _stored(_base64.b64decode(part[key]), _ENDINGS.get(part["mimeType"], "bin"))}


def _stored(content, ending):
    _os.makedirs(_DIRECTORY, exist_ok=True)
    number = 1
    while True:
        path = f"{_DIRECTORY}/{number}.{ending}"
        try:
            with open(path, "xb") as file:
                file.write(content)
            return path
        except FileExistsError:
            number += 1


_USAGE = """usage: mcp NAME TOOL [JSON]
  or:  mcp [NAME]
Calls a tool of an MCP server and prints its result; `-` reads JSON from standard input. Without a tool: lists the tools.
"""


def _main(words):
    if words[:1] in (["-h"], ["--help"]):
        print(_USAGE, end="")
        return 0
    if len(words) < 2:
        return _listed(words)
    if len(words) > 3:
        return _complain(f"unexpected argument `{words[3]}`: give the arguments as one JSON object")
    text = words[2] if len(words) == 3 else "{}"
    try:
        arguments = _json.loads(_sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        return _complain(f"the arguments are not JSON: {error}")
    if not isinstance(arguments, dict):
        return _complain("the arguments are not a JSON object")
    try:
        answer = _call(f"{words[0]}.{words[1]}", arguments)
    except ToolError as error:
        _complain(error)
        return 1 if error.kind == "failed" else 2
    print(answer if isinstance(answer, str) else _json.dumps(answer, ensure_ascii=False))
    return 0


def _listed(words):
    found = [(*tool["name"].partition(".")[::2], tool["description"]) for tool in _tools.list() if "." in tool["name"]]
    chosen = [row for row in found if not words or row[0] == words[0]]
    if words and not chosen:
        return _complain(f"unknown server `{words[0]}`: there are {', '.join(sorted({row[0] for row in found})) or 'none'}")
    for server, tool, description in chosen:
        print(server, tool, description.strip().partition("\n")[0], sep="\t")
    return 0


def _complain(message):
    print(f"mcp: {message}", file=_sys.stderr)
    return 2
