"""The tools a model is given: names, words, schemas, and what each does. One list for every framework."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar, Iterable, Mapping, Optional, Union

from ._async import AsyncSandbox
from ._results import Result
from ._sandbox import Sandbox
from .errors import SandliteError

#: Most characters of one stream that a model is shown; the rest is in the history.
_SHOWN = 30_000

#: Most characters of an error.
_COMPLAINT = 4_000

AnySandbox = Union[Sandbox, AsyncSandbox]


@dataclass(frozen=True)
class Spec:
    """A tool: what it is called, what it does, what it takes."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """What a model reads, and whether the call itself went wrong."""

    text: str
    is_error: bool = False


def _spec(name: str, description: str, required: "list[str]", **properties: Any) -> Spec:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return Spec(name, description, schema)


def _text(description: str) -> "dict[str, Any]":
    return {"type": "string", "description": description}


def _number(description: str) -> "dict[str, Any]":
    return {"type": "integer", "description": description}


def _flag(description: str) -> "dict[str, Any]":
    return {"type": "boolean", "description": description}


_TIMEOUT = {"type": "number", "description": "A shorter time limit than the sandbox's own, in seconds."}
_VERSION = _text("Only if the file still has this version, as read_file gave it.")

#: Every tool, in the order in which models are shown them.
ALL = (
    _spec(
        "bash",
        "Runs a bash command line in the sandbox, with some 160 programs (grep, sed, awk, jq, find, tar, ...). Each call is a "
        "fresh shell: files stay, variables and cd do not. A non-zero exit code is an answer, not an error. There is no network.",
        ["command"],
        command=_text("The command line, as bash -c takes it."),
        timeout=_TIMEOUT,
    ),
    _spec(
        "python",
        "Runs Python code (CPython 3.14, standard library) on the sandbox's files. Print what you want to see. There is no network.",
        ["code"],
        code=_text("The code."),
        timeout=_TIMEOUT,
    ),
    _spec(
        "read_file",
        "Reads a text file as numbered lines, at most 2000 a call, and its version.",
        ["path"],
        path=_text("The file."),
        offset=_number("The first line, counted from 1."),
        limit=_number("How many lines."),
    ),
    _spec(
        "write_file",
        "Writes a whole file, creating the directories above it.",
        ["path", "content"],
        path=_text("The file."),
        content=_text("The whole new content."),
        expected_version=_VERSION,
    ),
    _spec(
        "edit_file",
        "Replaces exact pieces of text in a file, all or none. Each old text must be in the file exactly once, unless replace_all.",
        ["path", "edits"],
        path=_text("The file."),
        edits={
            "type": "array",
            "description": "The replacements, in order.",
            "items": {
                "type": "object",
                "properties": {
                    "old": _text("The exact text to replace."),
                    "new": _text("What to put in its place."),
                    "replace_all": _flag("Replace every occurrence."),
                },
                "required": ["old", "new"],
                "additionalProperties": False,
            },
        },
        expected_version=_VERSION,
    ),
    _spec(
        "list_files",
        "Lists a directory, down to a depth.",
        [],
        path=_text("The directory; the working directory unless told."),
        depth=_number("How many levels; 1 unless told."),
    ),
    _spec(
        "glob",
        "Finds files by a pattern such as src/**/*.{py,toml}.",
        ["pattern"],
        pattern=_text("The pattern."),
        path=_text("Where to look."),
    ),
    _spec(
        "grep",
        "Searches files for a regular expression and shows the lines that fit.",
        ["pattern"],
        pattern=_text("The regular expression."),
        path=_text("A file or directory."),
        glob=_text("Only files that fit this pattern."),
        ignore_case=_flag("Whether upper and lower case are the same."),
        context=_number("Lines around each match."),
    ),
    _spec(
        "delete_file",
        "Deletes a file; a directory with all that is in it if recursive.",
        ["path"],
        path=_text("The file."),
        recursive=_flag("Delete a directory with all that is in it."),
    ),
    _spec(
        "move_file",
        "Moves or renames a file or a directory.",
        ["from", "to"],
        **{"from": _text("What to move."), "to": _text("Where to."), "overwrite": _flag("Replace a file that is there.")},
    ),
    _spec("kv_get", "Returns the JSON value of a key, or null.", ["key"], key=_text("The key.")),
    _spec(
        "kv_set",
        "Keeps a JSON value under a key, beside the files.",
        ["key", "value"],
        key=_text("The key."),
        value={"description": "The value: anything JSON can hold."},
    ),
)

_COMMANDS = {"bash": "command", "python": "code"}


def chosen(names: Optional[Iterable[str]]) -> "list[Spec]":
    """The tools of these names, in our order; all of them if there are none."""
    if names is None:
        return list(ALL)
    wanted = list(names)
    unknown = sorted(set(wanted) - {spec.name for spec in ALL})
    if unknown:
        raise ValueError(f"there is no tool {', '.join(unknown)}: there are {', '.join(spec.name for spec in ALL)}")
    return [spec for spec in ALL if spec.name in wanted]


def arguments_of(given: Union[str, Mapping[str, Any], None]) -> "dict[str, Any]":
    """Arguments as a model gave them: JSON text, or a mapping."""
    if isinstance(given, str):
        given = json.loads(given or "{}")
    if given is not None and not isinstance(given, Mapping):
        raise ValueError("the arguments are not an object")
    return dict(given or {})


def _misfit(name: str, arguments: Mapping[str, Any]) -> Optional[Answer]:
    spec = next((spec for spec in ALL if spec.name == name), None)
    if spec is None:
        return Answer(f"error: there is no tool `{name}`", True)
    missing = [key for key in spec.schema["required"] if key not in arguments]
    extra = [key for key in arguments if key not in spec.schema["properties"]]
    if missing or extra:
        said = [f"`{key}` is missing" for key in missing] + [f"`{key}` is not taken" for key in extra]
        return Answer(f"error: the arguments do not fit: {', '.join(said)}", True)
    return None


def call(box: Sandbox, name: str, given: Union[str, Mapping[str, Any], None]) -> Answer:
    """Calls a tool. Whatever goes wrong is an answer that the model can read."""
    try:
        arguments = arguments_of(given)
        wrong = _misfit(name, arguments)
        if wrong is not None:
            return wrong
        if name in _COMMANDS:
            run = box.bash if name == "bash" else box.python
            return _ran(run(str(arguments[_COMMANDS[name]]), timeout=arguments.get("timeout")))
        if name == "kv_get":
            return Answer(_value(box.kv.get(arguments["key"])))
        if name == "kv_set":
            box.kv.set(arguments["key"], arguments["value"])
            return Answer("kept")
        return Answer(box.tool_text(name, arguments))
    except (SandliteError, ValueError, TypeError) as error:
        return Answer(_cut(f"error: {error}", _COMPLAINT), True)


async def acall(box: AnySandbox, name: str, given: Union[str, Mapping[str, Any], None]) -> Answer:
    """The same for an :class:`AsyncSandbox`: cancelling it kills the command. A plain sandbox runs on another thread."""
    if isinstance(box, Sandbox):
        import asyncio

        return await asyncio.get_running_loop().run_in_executor(None, call, box, name, given)
    try:
        arguments = arguments_of(given)
        wrong = _misfit(name, arguments)
        if wrong is not None:
            return wrong
        if name in _COMMANDS:
            run = box.bash if name == "bash" else box.python
            return _ran(await run(str(arguments[_COMMANDS[name]]), timeout=arguments.get("timeout")))
        if name == "kv_get":
            return Answer(_value(await box.kv.get(arguments["key"])))
        if name == "kv_set":
            await box.kv.set(arguments["key"], arguments["value"])
            return Answer("kept")
        return Answer(await box.tool_text(name, arguments))
    except (SandliteError, ValueError, TypeError) as error:
        return Answer(_cut(f"error: {error}", _COMPLAINT), True)


def _value(value: Any) -> str:
    text = json.dumps(value)
    if len(text) <= _SHOWN:
        return text
    return f"{text[:_SHOWN]}\n[... {len(text) - _SHOWN} characters left out: keep large values in files and read parts of them ...]"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest] + "..."


def _ran(result: Result) -> Answer:
    pieces = []
    for title, text in (("", result.stdout), ("[stderr]\n", result.stderr)):
        if text:
            pieces.append(title + _short(text, result.run))
    if result.exit_code != 0 or not pieces:
        pieces.append(f"[exit code {result.exit_code}]")
    if result.limit is not None:
        pieces.append(f"[stopped: {result.limit.message}; {result.limit.hint}]")
    text = "\n".join(piece.rstrip("\n") for piece in pieces)
    return Answer(text, result.limit is not None)


def _short(text: str, run: int) -> str:
    if len(text) <= _SHOWN:
        return text
    half = _SHOWN // 2
    return f"{text[:half]}\n[... {len(text) - _SHOWN} characters left out: they are run {run} of the history ...]\n{text[-half:]}"


def field(value: Any, name: str) -> Any:
    """A part of what a model's client hands over, be it an object or a mapping; ``None`` if it has none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


class Calls:
    """A sandbox's chosen tools, asked for by name: what the interfaces that hand over calls have in common."""

    #: What a call is called there.
    _unit: ClassVar[str]

    def __init__(self, box: AnySandbox, names: Optional[Iterable[str]] = None) -> None:
        self._box = box
        self._specs = chosen(names)

    def _do(self, name: str, given: Any) -> Answer:
        if not isinstance(self._box, Sandbox):
            raise TypeError(f"an AsyncSandbox is asked with `await tools.adispatch({self._unit})`")
        return self._refused(name) or call(self._box, name, given)

    async def _ado(self, name: str, given: Any) -> Answer:
        return self._refused(name) or await acall(self._box, name, given)

    def _refused(self, name: str) -> Optional[Answer]:
        known = any(spec.name == name for spec in self._specs)
        return None if known else Answer(f"error: there is no tool `{name}`", True)
