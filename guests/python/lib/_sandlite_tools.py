"""`from sandlite import tools`: functions of the program around the sandbox, as functions of Python."""

import builtins
import json
import keyword
import sys
import types
from importlib.machinery import ModuleSpec
from inspect import Parameter, Signature
from struct import Struct

from _sandlite import ask

_number = Struct("<I").pack
_FAILED = 1


class ToolError(Exception):
    """A tool gave no result. `tool` is its name; `kind` is one of:

    unknown - there is no such tool
    invalid - it does not take these arguments
    failed  - it could not do what was asked
    """

    def __init__(self, message, tool=None, kind="failed"):
        super().__init__(message)
        self.tool = tool
        self.kind = kind


def _descriptions():
    return json.loads(ask("tools"))


def list():
    """The tools that can be called: dictionaries with `name`, `description` and `schema`."""
    return _descriptions()


def call(name, arguments=None, /):
    """Call a tool by its name with a dictionary of arguments."""
    encoded = name.encode()
    text = json.dumps({} if arguments is None else arguments).encode()
    answer = ask("tool", rest=_number(len(encoded)) + encoded + text)
    if answer[0] == _FAILED:
        kind, _, message = answer[1:].decode().partition("\n")
        raise ToolError(f"{name}: {message}", name, kind)
    return json.loads(answer[1:])


def _parameters(schema):
    properties = builtins.list(schema.get("properties", {}))
    required = schema.get("required", [])
    return [name for name in properties if name in required] + [name for name in properties if name not in required]


def _parameter(name, schema):
    description = schema.get("properties", {}).get(name)
    kind = description.get("type", "") if isinstance(description, dict) else ""
    kind = " | ".join(kind) if isinstance(kind, builtins.list) else kind
    text = description.get("description", "") if isinstance(description, dict) else ""
    mark = "" if name in schema.get("required", []) else "optional "
    return f"    {name}: {mark}{kind}{' - ' if text else ''}{text}".rstrip()


def _shown(name, schema):
    default = Parameter.empty if name in schema.get("required", []) else None
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default)


def _function(name, description, schema):
    schema = schema if isinstance(schema, dict) else {}
    parameters = _parameters(schema)

    def tool(*args, **kwargs):
        if len(args) > len(parameters):
            raise TypeError(f"{name}() takes {len(parameters)} arguments but {len(args)} were given")
        for parameter, value in zip(parameters, args):
            if parameter in kwargs:
                raise TypeError(f"{name}() got multiple values for argument {parameter!r}")
            kwargs[parameter] = value
        return call(name, kwargs)

    tool.__name__ = tool.__qualname__ = name
    tool.__module__ = "sandlite.tools"
    lines = [_parameter(parameter, schema) for parameter in parameters]
    tool.__doc__ = "\n".join([description, "", *lines]) if lines else description
    if all(parameter.isidentifier() and not keyword.iskeyword(parameter) for parameter in parameters):
        tool.__signature__ = Signature([_shown(parameter, schema) for parameter in parameters])
    return tool


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module 'sandlite.tools' has no attribute {name!r}")
    descriptions = _descriptions()
    for tool in descriptions:
        # Names that are not identifiers in Python have underscores instead of dashes and dots.
        if name in (tool["name"], tool["name"].replace("-", "_").replace(".", "_")):
            return _function(**tool)
    offered = ", ".join(tool["name"] for tool in descriptions)
    reason = f"the host offers {offered}" if offered else "the host offers none"
    raise AttributeError(f"there is no tool {name!r}: {reason}", name=name)


def __dir__():
    return sorted([tool["name"] for tool in _descriptions()] + ["ToolError", "call", "list"])


def install():
    """Make `sandlite.tools` importable."""
    package, tools = types.ModuleType("sandlite", "The program around the sandbox."), sys.modules[__name__]
    package.__path__ = []
    package.__spec__ = ModuleSpec("sandlite", None, is_package=True)
    package.tools, package.ToolError = tools, ToolError
    tools.__name__, tools.__package__ = "sandlite.tools", "sandlite"
    tools.__spec__ = ModuleSpec("sandlite.tools", None)
    ToolError.__module__ = "sandlite"
    sys.modules["sandlite"], sys.modules["sandlite.tools"] = package, tools
