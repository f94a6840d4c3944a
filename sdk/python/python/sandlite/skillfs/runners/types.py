"""``skillfs.runners.types``: a runner that is configured, and one that searches."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Sequence

from ..._sandbox import Sandbox
from ...runner import search_runner
from ..sandboxes import E2BSandbox, SandboxConnection
from .base import AgentResult, RunnerProvider, ToolHandler
from .providers import ModelProvider
from .tools import build_handlers, get_schemas

__all__ = ["MainRunner", "RUNNER_REGISTRY", "SearchMatch", "SearchResult", "SearchRunner", "create_runner"]


class MainRunner:
    """An agent with a prompt, tools by name, and other runners that it can give tasks to.

    >>> import asyncio
    >>> from sandlite.runner import ScriptedProvider, call
    >>> from sandlite.skillfs.runners import ModelProvider
    >>> from sandlite.skillfs.sandboxes import E2BSandbox
    >>> sandbox = E2BSandbox.create()
    >>> model = ModelProvider(ScriptedProvider([[call("run_command", command="echo hi")], "It says hi."]))
    >>> runner = MainRunner("assistant", "Helps.", "Be brief.", sandbox, model, tools=["run_command"])
    >>> asyncio.run(runner.run("Say hi")).message
    'It says hi.'
    >>> sandbox.close()

    ``subrunners`` are classes by name, or ``{"class": …, "provider": …}``. ``tools`` and ``handlers`` can be changed afterwards, and so can
    ``subrunner_extra_tools`` and ``subrunner_extra_handlers``, which sub-runners are given."""

    #: The name, of a class for sub-runners.
    name = "main"
    description = ""

    def __init__(
        self,
        name: str,
        description: str,
        system_prompt: str,
        sandbox: SandboxConnection,
        provider: RunnerProvider,
        tools: "Optional[Sequence[str]]" = None,
        subrunners: "Optional[Mapping[str, Any]]" = None,
        max_turns: int = 50,
        output_schema: "Optional[Mapping[str, Any]]" = None,
    ) -> None:
        self.name = self.runner_name = name
        self.description = description
        self.system_prompt = system_prompt
        self.sandbox = sandbox
        self.provider = provider
        self.tool_names = list(tools or [])
        self.subrunner_classes = dict(subrunners or {})
        self.max_turns = max_turns
        self.output_schema = output_schema
        self.tools: "list[dict[str, Any]]" = get_schemas(self.tool_names)
        self.handlers: "dict[str, ToolHandler]" = build_handlers(sandbox, self.tool_names)
        self.subrunner_extra_tools: "list[dict[str, Any]]" = []
        self.subrunner_extra_handlers: "dict[str, ToolHandler]" = {}
        if self.subrunner_classes:
            self.add_tool((self._subrunner_schema(), self._call_subrunner))

    def add_tool(self, tool: "tuple[Mapping[str, Any], ToolHandler]") -> None:
        """Adds a tool: its schema, and its function."""
        schema, handler = tool
        self.tools.append(dict(schema))
        self.handlers[str(schema["name"])] = handler

    async def run(self, task: str) -> AgentResult:
        """Works on a task until the model is done."""
        arguments: "dict[str, Any]" = {
            "system_prompt": self.system_prompt,
            "tools": self.tools,
            "tool_handlers": self.handlers,
            "max_turns": self.max_turns,
            "output_schema": self.output_schema,
        }
        if isinstance(self.provider, ModelProvider):
            arguments["box"] = self._box()
        return await self.provider.create_runner(**arguments).run(task)

    def _box(self) -> Optional[Sandbox]:
        return self.sandbox.box if isinstance(self.sandbox, E2BSandbox) else None

    def _subrunner_schema(self) -> "dict[str, Any]":
        described = {name: getattr(_class_of(given)[0], "description", "") for name, given in self.subrunner_classes.items()}
        listed = "\n".join(f"- {name}: {description}" for name, description in described.items())
        return {
            "name": "call_subrunner",
            "description": f"Gives a task to another agent, which works on the same files and reports back:\n{listed}",
            "input_schema": {
                "type": "object",
                "properties": {
                    "runner": {"type": "string", "enum": list(described), "description": "Which one."},
                    "task": {"type": "string", "description": "The task, with everything that it needs to know."},
                },
                "required": ["runner", "task"],
            },
        }

    async def _call_subrunner(self, runner: str, task: str, **_: Any) -> "dict[str, Any]":
        if runner not in self.subrunner_classes:
            return {"error": f"Unknown runner: {runner}. Available: {list(self.subrunner_classes)}"}
        kind, provider = _class_of(self.subrunner_classes[runner])
        try:
            made = kind(sandbox=self.sandbox, provider=provider or self.provider)
            if hasattr(made, "tools") and hasattr(made, "handlers"):
                made.tools.extend(self.subrunner_extra_tools)
                made.handlers.update(self.subrunner_extra_handlers)
            result = await made.run(task)
        except Exception as error:  # Whatever goes wrong is for the model.
            return {"error": f"Sub-runner failed: {error}"}
        return result.to_tool_result() if isinstance(result, AgentResult) else {"success": True, "result": str(result)}

    def __repr__(self) -> str:
        return f"MainRunner(name={self.name}, tools={self.tool_names}, subrunners={list(self.subrunner_classes)})"


def _class_of(given: Any) -> "tuple[Any, Optional[RunnerProvider]]":
    return (given["class"], given.get("provider")) if isinstance(given, Mapping) else (given, None)


def create_runner(
    name: str,
    description: str,
    system_prompt: str,
    sandbox: SandboxConnection,
    provider: RunnerProvider,
    tools: "Optional[Sequence[str]]" = None,
    subrunners: "Optional[Mapping[str, Any]]" = None,
    max_turns: int = 50,
    output_schema: "Optional[Mapping[str, Any]]" = None,
) -> MainRunner:
    """Makes a :class:`MainRunner`."""
    return MainRunner(name, description, system_prompt, sandbox, provider, tools, subrunners, max_turns, output_schema)


@dataclass
class SearchMatch:
    """A file that matters, and why."""

    path: str
    relevance: str
    line_numbers: "Optional[list[int]]" = None
    snippet: Optional[str] = None


@dataclass
class SearchResult:
    """What a search found."""

    matches: "list[SearchMatch]"
    summary: str
    query: str


class SearchRunner(MainRunner):
    """An agent that only looks: it returns the files that matter as a :class:`SearchResult`."""

    name = "search"
    description = "Searches the files of the sandbox and reports the relevant ones."

    def __init__(self, sandbox: SandboxConnection, provider: RunnerProvider, max_turns: int = 20) -> None:
        ours = search_runner()
        super().__init__(
            "search",
            ours.description,
            ours.instructions,
            sandbox,
            provider,
            ["glob", "grep", "read_file"],
            None,
            max_turns,
            ours.output_schema,
        )

    async def run(self, query: str) -> AgentResult:
        """Searches; ``data`` is a :class:`SearchResult`."""
        result = await super().run(query)
        if not result.success:
            result.data = SearchResult([], f"Search failed: {result.message}", query)
            return result
        try:
            found = json.loads(result.message or "")
            names = ("path", "relevance", "line_numbers", "snippet")
            matches = [SearchMatch(**{name: match.get(name) for name in names}) for match in found.get("matches", [])]
            result.data = SearchResult(matches, found.get("summary", ""), query)
        except (ValueError, AttributeError):
            result.data = SearchResult([], result.message or "", query)
        result.message = result.data.summary
        return result


#: Runners that can be sub-runners, by name.
RUNNER_REGISTRY: "dict[str, Any]" = {"search": SearchRunner}
