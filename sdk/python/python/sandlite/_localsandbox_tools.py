"""LocalSandbox's tools: functions of this program that Python code in the sandbox calls through ``host_tools``."""

from __future__ import annotations

import contextvars
import inspect
import json
import threading
import typing
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from ._host_tools import _awaited, _from_json, _hints, is_union, schema_of_type, to_json


@dataclass(frozen=True)
class ToolDefinition:
    """A tool that Python code in the sandbox may call."""

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: Optional[dict[str, Any]] = None
    timeout_ms: int = 30_000


ToolHandler = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class PythonToolset:
    """Tools and their functions."""

    definitions: list[ToolDefinition]
    handlers: dict[str, ToolHandler] = field(default_factory=dict)


ToolsetInput = Union[PythonToolset, Sequence[Callable[..., Any]]]


def function_to_tool_definition(fn: Callable[..., Any]) -> ToolDefinition:
    """Creates a definition from a function's name, type hints and the first line of its docstring."""
    signature = inspect.signature(fn)
    for name, parameter in signature.parameters.items():
        if name in _RECEIVERS:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ValueError(f"Tool {fn.__name__!r} parameter {name!r} must be positional/keyword or keyword-only")
        if parameter.annotation is parameter.empty:
            raise ValueError(f"Tool {fn.__name__!r} parameter {name!r} is missing a type hint")
    lines = (inspect.getdoc(fn) or "").strip().splitlines()
    hints = typing.get_type_hints(fn)
    return ToolDefinition(
        name=fn.__name__,
        description=lines[0].strip() if lines else "",
        input_schema=_schema_of_parameters(signature.parameters, hints),
        output_schema=_schema(hints["return"]) if "return" in hints else None,
    )


def _schema_of_parameters(parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in parameters.items():
        if name in _RECEIVERS:
            continue
        properties[name] = _schema(hints[name])
        if parameter.default is parameter.empty:
            required.append(name)
            continue
        try:
            properties[name]["default"] = json.loads(json.dumps(parameter.default, default=to_json))
        except TypeError:
            pass
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


_RECEIVERS = ("self", "cls")

#: Types whose schema from Pydantic, which LocalSandbox uses, is not that of our own tools.
_PLAIN: "tuple[tuple[Any, dict[str, Any]], ...]" = (
    (bytes, {"type": "string", "format": "binary"}),
    (dict, {"type": "object", "additionalProperties": True}),
    (list, {"type": "array", "items": {}}),
    (tuple, {"type": "array", "items": {}}),
    (set, {"type": "array", "items": {}, "uniqueItems": True}),
    (frozenset, {"type": "array", "items": {}, "uniqueItems": True}),
)


def _schema(hint: Any) -> dict[str, Any]:
    """The schema of a type hint, as Pydantic generates it, without titles and references."""
    plain = next((schema for plain, schema in _PLAIN if hint is plain), None)
    if plain is not None:
        return dict(plain)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _schema(arguments[0])
    if origin is typing.Literal:
        choice: dict[str, Any] = {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
        return {**choice, **_type_of_all(arguments)}
    if is_union(origin):
        return {"anyOf": [_schema(argument) for argument in arguments]}
    if origin is tuple and arguments[-1:] != (Ellipsis,):
        length = {"minItems": len(arguments), "maxItems": len(arguments)}
        return {"type": "array", "prefixItems": [_schema(argument) for argument in arguments], **length}
    schema = schema_of_type(hint)
    if schema.get("type") == "array" and arguments:
        unique = {"uniqueItems": True} if origin in (set, frozenset) else {}
        return {"type": "array", "items": _schema(arguments[0]), **unique}
    if schema.get("type") == "object" and len(arguments) == 2:
        return {"type": "object", "additionalProperties": _schema(arguments[1]) or True}
    if "enum" in schema:
        return {**schema, **_type_of_all(schema["enum"])}
    without: dict[str, Any] = _without_titles(schema)
    return without


def _type_of_all(values: Sequence[Any]) -> dict[str, Any]:
    types = {_type_of(value) for value in values}
    return {"type": types.pop()} if len(types) == 1 else {}


def _without_titles(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    # A property may have that name too.
    return {key: _without_titles(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)}


def functions_to_toolset(functions: Sequence[Callable[..., Any]]) -> PythonToolset:
    """A toolset of plain functions."""

    def handler(fn: Callable[..., Any]) -> ToolHandler:
        hints = _hints(fn)
        return lambda payload: fn(**{name: _from_json(hints.get(name, Any), value) for name, value in payload.items()})

    definitions = [function_to_tool_definition(fn) for fn in functions]
    handlers = {definition.name: handler(fn) for definition, fn in zip(definitions, functions)}
    return PythonToolset(definitions, handlers)


def checked(toolset: Optional[ToolsetInput]) -> PythonToolset:
    """A toolset whose tools have one name and one function each."""
    if toolset is None:
        return PythonToolset([])
    if not isinstance(toolset, PythonToolset):
        if not isinstance(toolset, Sequence) or isinstance(toolset, (str, bytes)):
            raise TypeError("toolset must be a PythonToolset or a sequence of callables")
        if not all(callable(fn) for fn in toolset):
            raise TypeError("toolset sequences must contain only callables")
        toolset = functions_to_toolset(toolset)
    names = [definition.name for definition in toolset.definitions]
    for definition in toolset.definitions:
        if names.count(definition.name) > 1:
            raise ValueError(f"Duplicate tool definition: {definition.name}")
        if definition.timeout_ms <= 0:
            raise ValueError(f"Tool {definition.name!r} must have a positive timeout_ms")
    missing = sorted(set(names) - set(toolset.handlers))
    if missing:
        raise ValueError(f"Missing handlers for tools: {', '.join(missing)}")
    extra = sorted(set(toolset.handlers) - set(names))
    if extra:
        raise ValueError(f"Handlers declared without matching tool definitions: {', '.join(extra)}")
    return toolset


class ToolFailure(Exception):
    """A failed call: one of LocalSandbox's kinds of error, and a message."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"[{kind}] {text}")


#: The types of JSON, from the narrowest on: every integer is a number too.
_TYPES: "tuple[tuple[str, tuple[type, ...]], ...]" = (
    ("null", (type(None),)),
    ("boolean", (bool,)),
    ("integer", (int,)),
    ("number", (float,)),
    ("string", (str,)),
    ("array", (list,)),
    ("object", (dict,)),
)


def _type_of(value: Any) -> str:
    return next((name for name, types in _TYPES if isinstance(value, types)), type(value).__name__)


def complaint(value: Any, schema: Mapping[str, Any], place: str) -> Optional[str]:
    """The violation of the part of JSON Schema that LocalSandbox checks, if any; other keywords are ignored."""
    if "enum" in schema and value not in schema["enum"]:
        return f"{place} must be one of {schema['enum']!r}"
    wanted = schema.get("type")
    if wanted is not None:
        found = _type_of(value)
        allowed = wanted if isinstance(wanted, list) else [wanted]
        if found not in allowed and not (found == "integer" and "number" in allowed):
            expected = allowed[0] if len(allowed) == 1 else allowed
            return f"{place} must be of type {expected!r}, got {found!r}"
    if isinstance(value, dict):
        return _complaint_of_object(value, schema, place)
    if isinstance(value, list) and "items" in schema:
        parts = (complaint(item, schema["items"], f"{place}[{index}]") for index, item in enumerate(value))
        return next(filter(None, parts), None)
    return None


def _complaint_of_object(value: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> Optional[str]:
    for name in schema.get("required", ()):
        if name not in value:
            return f"{place}.{name} is required"
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, item in value.items():
        if name not in properties and others is False:
            return f"{place}.{name} is not allowed"
        rule = properties.get(name, others)
        found = complaint(item, rule, f"{place}.{name}") if isinstance(rule, Mapping) else None
        if found:
            return found
    return None


def _answer(definition: ToolDefinition, handler: ToolHandler, text: str, loop: Any) -> str:
    payload = json.loads(text)
    wrong = complaint(payload, definition.input_schema, f"$[{definition.name}]")
    if wrong:
        raise ToolFailure("validation_error", wrong)
    try:
        returned = _awaited(handler(payload), loop)
    except ValueError as error:
        raise ToolFailure("validation_error", str(error)) from error
    try:
        answer = json.loads(json.dumps(returned, default=to_json))
    except (ValueError, TypeError) as error:
        raise ToolFailure("validation_error", f"Value is not JSON-serializable: {error}") from error
    wrong = complaint(answer, definition.output_schema or {}, f"$[{definition.name}]")
    if wrong:
        raise ToolFailure("validation_error", wrong)
    return json.dumps(answer)


def parts(toolset: PythonToolset, loop: Any) -> "list[tuple[str, str, str, Callable[..., str]]]":
    """Converts the tools for the native half, which does not check arguments: they are checked here, as LocalSandbox does."""
    return [_part(definition, toolset.handlers[definition.name], loop) for definition in toolset.definitions]


def _part(
    definition: ToolDefinition, handler: ToolHandler, loop: Any
) -> "tuple[str, str, str, Callable[..., str]]":
    def call(text: str, *context: Any) -> str:
        outcome: list[Any] = []

        def work() -> None:
            try:
                outcome.append((_answer(definition, handler, text, loop), None))
            except BaseException as error:  # reported to the sandbox, whatever it is
                outcome.append((None, error))

        # With the context of the call, by which the sandbox recognizes code that works for its tools.
        thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
        thread.start()
        thread.join(definition.timeout_ms / 1000)
        if not outcome:
            raise ToolFailure("timeout", f"Tool {definition.name!r} timed out after {definition.timeout_ms} ms")
        answer, error = outcome[0]
        if isinstance(error, ToolFailure):
            raise error
        if error is not None:
            raise ToolFailure("internal_error", str(error))
        return str(answer)

    return definition.name, definition.description, "{}", call


def manifest(toolset: PythonToolset) -> str:
    """The definitions of the tools as JSON. A different manifest starts a new interpreter."""
    return json.dumps([asdict(definition) for definition in toolset.definitions])


#: The first line of a run that does not belong to the program.
OWN = "# sandlite.localsandbox\n"

# The module `host_tools` and the runner of Python code: in one interpreter, each time from its directory.
_PRELUDE = '''def _install(offered):
    import json, linecache, os, re, sys, traceback, types, __main__
    from math import log
    from sandlite import ToolError, tools

    def call(name, payload):
        if not isinstance(name, str):
            raise RuntimeError("host_tools.call expects a string tool name")
        try:
            return tools.call(name, payload)
        except ToolError as error:
            text = {
                "unknown": f"[permission_error] Tool {name!r} is not declared",
                "invalid": f"[validation_error] Tool {name!r} payload must be an object",
            }.get(error.kind, str(error)[len(name) + 2:])
            raise RuntimeError(text) from None

    def words(text):
        return re.findall("[a-z0-9_]+", text.lower())

    def schemas(tool):
        return " ".join(json.dumps(schema) for schema in (tool["input_schema"], tool["output_schema"]) if schema is not None)

    def search(query, detail="brief", limit=10):
        for holds, error, rule in (
            (isinstance(query, str), TypeError, "expects a string query"),
            (detail in ("brief", "full"), ValueError, "detail must be 'brief' or 'full'"),
            (type(limit) is int, TypeError, "limit must be an integer"),
            (type(limit) is int and limit > 0, ValueError, "limit must be at least 1"),
        ):
            if not holds:
                raise error("host_tools.search " + rule)
        weights = (3.5, 1.5, 0.35)
        texts = [[words(t["name"]), words(t["description"] or ""), words(schemas(t))] for t in offered]
        scores = [0.0] * len(offered)
        for position, weight in enumerate(weights):
            fields = [text[position] for text in texts]
            average = sum(map(len, fields)) / len(fields) or 1 if fields else 1
            for word in set(words(query)):
                holding = sum(word in field for field in fields)
                rarity = log(1 + (len(fields) - holding + 0.5) / (holding + 0.5))
                for index, field in enumerate(fields):
                    count = field.count(word)
                    if count:
                        length = 1 - 0.75 + 0.75 * len(field) / average
                        scores[index] += weight * rarity * count * 2.2 / (count + 1.2 * length)
        ranked = sorted(((score, index) for index, score in enumerate(scores) if score), key=lambda pair: (-pair[0], pair[1]))
        found = []
        for score, index in ranked[:limit]:
            if score < 0.15 * ranked[0][0]:
                break
            brief = {key: offered[index][key] for key in ("name", "description")}
            found.append({**brief, "score": round(score, 4), **(offered[index] if detail == "full" else {})})
        return found

    def run(directory, code, about):
        if directory != "/data" and not directory.startswith("/data/"):
            directory = "/data/" + directory.lstrip("/")
        directory = directory.rstrip("/")
        os.chdir(directory if os.path.isdir(directory) else "/data")
        linecache.cache["<exec>"] = (len(code), None, code.splitlines(True), "<exec>")
        try:
            made = compile(code, "<exec>", "exec", 0x2000)  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            running = eval(made, __main__.__dict__)
            if made.co_flags & 0x80:  # inspect.CO_COROUTINE
                import asyncio
                asyncio.run(running)
        except BaseException as error:
            if isinstance(error, SystemExit) and error.code in (None, 0):
                return
            trace = error.__traceback__
            while trace is not None and trace.tb_frame.f_code.co_filename != "<exec>":
                trace = trace.tb_next
            traceback.print_exception(type(error), error, trace)
            sys.exit(1)

    module = types.ModuleType("host_tools", "Functions of the program around the sandbox.")
    module.call, module.search = call, search
    sys.modules["host_tools"] = module
    runner = types.ModuleType("_localsandbox")
    runner.run = run
    sys.modules["_localsandbox"] = runner

_install(__import__("json").loads(%s))
del _install
'''


def prelude(offered: str) -> str:
    """The initial code of an interpreter; ``offered`` is its :func:`manifest`."""
    return OWN + _PRELUDE.replace("%s", json.dumps(offered))
