"""``skillfs.runners.tools``: the tools of a runner by name. Each has a ``SCHEMA`` and a ``build_handler``."""

from __future__ import annotations

from dataclasses import asdict
from types import SimpleNamespace
from typing import Any, Callable, Mapping, Optional, Protocol, Sequence, runtime_checkable

from ..sandboxes import SandboxConnection
from ..skills import SkillCatalog
from .base import RunnerProvider, ToolHandler

__all__ = [
    "TOOL_REGISTRY",
    "ToolModule",
    "build_handlers",
    "create_load_skill_tool",
    "create_subrunner_tool",
    "edit_file",
    "get_schemas",
    "glob",
    "grep",
    "read_file",
    "run_command",
    "write_file",
]

_TEXT, _FLAG, _COUNT = {"type": "string"}, {"type": "boolean"}, {"type": "integer"}


def _said(rule: "Mapping[str, Any]", description: str) -> "dict[str, Any]":
    return {**rule, "description": description}


def _guarded(work: "Callable[..., dict[str, Any]]", **empty: Any) -> ToolHandler:
    """Returns the function with exceptions as ``error``. Unknown arguments are ignored."""
    import inspect

    known = set(inspect.signature(work).parameters)

    def handle(**given: Any) -> "dict[str, Any]":
        try:
            return work(**{name: value for name, value in given.items() if name in known})
        except Exception as error:  # Whatever goes wrong is for the model.
            return {"error": str(error), **empty}

    return handle


def _module(
    name: str,
    description: str,
    properties: "Mapping[str, Any]",
    required: "Sequence[str]",
    build: "Callable[[SandboxConnection], ToolHandler]",
) -> SimpleNamespace:
    schema = {"type": "object", "properties": dict(properties), "required": list(required)}
    return SimpleNamespace(SCHEMA={"name": name, "description": description, "input_schema": schema}, build_handler=build)


def _glob(sandbox: SandboxConnection) -> ToolHandler:
    def work(
        pattern: str, root: Optional[str] = None, dot: bool = False, max_results: Optional[int] = None
    ) -> "dict[str, Any]":
        paths = sandbox.glob(pattern, root=root or ".", dot=dot, max_results=max_results)
        return {"paths": paths, "count": len(paths)}

    return _guarded(work, paths=[])


def _grep(sandbox: SandboxConnection) -> ToolHandler:
    def work(
        pattern: str,
        path: Optional[str] = None,
        include: Optional[str] = None,
        ignore_case: bool = False,
        regex: bool = True,
        max_results: Optional[int] = None,
    ) -> "dict[str, Any]":
        found = sandbox.grep(
            pattern, path=path or ".", include=include, ignore_case=ignore_case, regex=regex, max_results=max_results
        )
        return {"matches": [asdict(match) for match in found], "count": len(found)}

    return _guarded(work, matches=[])


def _read(sandbox: SandboxConnection) -> ToolHandler:
    def work(path: str, max_bytes: Optional[int] = None) -> "dict[str, Any]":
        content = sandbox.read_file_text(path, max_bytes=max_bytes)
        return {"content": content, "length": len(content)}

    return _guarded(work)


def _write(sandbox: SandboxConnection) -> ToolHandler:
    def work(path: str, content: str, overwrite: bool = True) -> "dict[str, Any]":
        return asdict(sandbox.write_file(path, content, overwrite=overwrite))

    return _guarded(work)


def _edit(sandbox: SandboxConnection) -> ToolHandler:
    def work(
        path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
        allow_no_match: bool = False,
        expected_replacements: Optional[int] = None,
    ) -> "dict[str, Any]":
        return asdict(
            sandbox.edit_file(
                path,
                old_string,
                new_string,
                replace_all=replace_all,
                allow_no_match=allow_no_match,
                expected_replacements=expected_replacements,
            )
        )

    return _guarded(work)


def _run(sandbox: SandboxConnection) -> ToolHandler:
    def work(command: str, cwd: Optional[str] = None) -> "dict[str, Any]":
        result = sandbox.run_command(command, cwd=cwd)
        return {"stdout": result.logs, "stderr": result.error or "", "exit_code": result.exit_code}

    return _guarded(work)


glob = _module(
    "glob",
    "Finds files by a pattern such as `**/*.py`, relative to `root`. Returns absolute paths, sorted.",
    {
        "pattern": _said(_TEXT, "The pattern; `*.py` matches only in `root` itself."),
        "root": _said(_TEXT, "The directory to search. Defaults to the repository."),
        "dot": _said(_FLAG, "Whether names that begin with a dot count."),
        "max_results": _said(_COUNT, "The most paths to return."),
    },
    ["pattern"],
    _glob,
)
grep = _module(
    "grep",
    "Finds lines by a regular expression, in a file or below a directory.",
    {
        "pattern": _said(_TEXT, "The regular expression, or a text if `regex` is false."),
        "path": _said(_TEXT, "The file or directory. Defaults to the repository."),
        "include": _said(_TEXT, "Only files that match this pattern, such as `**/*.py`."),
        "ignore_case": _said(_FLAG, "Whether case is ignored."),
        "regex": _said(_FLAG, "Whether `pattern` is a regular expression. Defaults to true."),
        "max_results": _said(_COUNT, "The most lines to return."),
    },
    ["pattern"],
    _grep,
)
read_file = _module(
    "read_file",
    "Reads a text file.",
    {"path": _said(_TEXT, "The absolute path."), "max_bytes": _said(_COUNT, "The most bytes to read.")},
    ["path"],
    _read,
)
write_file = _module(
    "write_file",
    "Writes a file, and the directories above it. Use `edit_file` to change a part of one.",
    {
        "path": _said(_TEXT, "The absolute path."),
        "content": _said(_TEXT, "The whole content."),
        "overwrite": _said(_FLAG, "Whether a file that exists is replaced. Defaults to true."),
    },
    ["path", "content"],
    _write,
)
edit_file = _module(
    "edit_file",
    "Replaces text of a file. `old_string` must occur exactly once, unless `replace_all` is set.",
    {
        "path": _said(_TEXT, "The absolute path."),
        "old_string": _said(_TEXT, "The text to replace, with all its whitespace."),
        "new_string": _said(_TEXT, "The text in its place; may be empty."),
        "replace_all": _said(_FLAG, "Whether every occurrence is replaced."),
        "allow_no_match": _said(_FLAG, "Whether it is fine if `old_string` does not occur."),
        "expected_replacements": _said(_COUNT, "How often `old_string` must occur; 0 asserts that it does not."),
    },
    ["path", "old_string", "new_string"],
    _edit,
)
run_command = _module(
    "run_command",
    "Runs a bash command line and returns standard output, standard error and the exit code.",
    {"command": _said(_TEXT, "The command line."), "cwd": _said(_TEXT, "The directory. Defaults to the repository.")},
    ["command"],
    _run,
)

#: The tools by name. Others can be added: anything with ``SCHEMA`` and ``build_handler``.
TOOL_REGISTRY: "dict[str, Any]" = {
    "glob": glob,
    "grep": grep,
    "read_file": read_file,
    "write_file": write_file,
    "edit_file": edit_file,
    "run_command": run_command,
}


def _check(names: "Sequence[str]") -> None:
    unknown = sorted(set(names) - set(TOOL_REGISTRY))
    if unknown:
        raise ValueError(f"Unknown tool(s): {unknown}. Available: {list(TOOL_REGISTRY)}")


def get_schemas(tool_names: "Sequence[str]") -> "list[dict[str, Any]]":
    """The schemas of tools by name."""
    _check(tool_names)
    return [dict(TOOL_REGISTRY[name].SCHEMA) for name in tool_names]


def build_handlers(sandbox: SandboxConnection, tool_names: "Sequence[str]") -> "dict[str, ToolHandler]":
    """The functions of tools by name, for a sandbox."""
    _check(tool_names)
    return {name: TOOL_REGISTRY[name].build_handler(sandbox) for name in tool_names}


def create_load_skill_tool(catalog: SkillCatalog) -> "tuple[dict[str, Any], ToolHandler]":
    """The tool ``load_skill`` over a catalog: its schema, which lists the skills, and its function."""
    schema = {
        "name": "load_skill",
        "description": f"Returns the whole text of a skill.\n\n{catalog.format_for_tool_description()}",
        "input_schema": {
            "type": "object",
            "properties": {"name": _said(_TEXT, "The name of the skill.")},
            "required": ["name"],
        },
    }

    def load(name: str, **_: Any) -> "dict[str, Any]":
        known, content = catalog.get_metadata(name), catalog.get_skill(name)
        if known is None or content is None:
            return {"error": f"Skill '{name}' not found. Available skills: {[skill.name for skill in catalog.list_skills()]}"}
        return {
            "name": name,
            "content": content,
            "length": len(content),
            "location": known.location,
            "description": known.description,
        }

    return schema, load


@runtime_checkable
class ToolModule(Protocol):
    """What each tool of :data:`TOOL_REGISTRY` has."""

    SCHEMA: "dict[str, Any]"

    def build_handler(self, sandbox: SandboxConnection) -> ToolHandler:
        """Makes the function of the tool for a sandbox."""
        ...


def create_subrunner_tool(
    sandbox: SandboxConnection,
    provider: RunnerProvider,
    available_runners: "Mapping[str, Any]",
    extra_tools: "Optional[Sequence[Mapping[str, Any]]]" = None,
    extra_handlers: "Optional[Mapping[str, ToolHandler]]" = None,
) -> "tuple[dict[str, Any], ToolHandler]":
    """The tool ``call_subrunner`` over some runners: its schema, and its function."""
    from .types import MainRunner

    runner = MainRunner("subrunners", "", "", sandbox, provider, subrunners=available_runners)
    runner.subrunner_extra_tools.extend(dict(tool) for tool in extra_tools or ())
    runner.subrunner_extra_handlers.update(extra_handlers or {})
    return runner.tools[-1], runner.handlers["call_subrunner"]
