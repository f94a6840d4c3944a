"""``skillfs.runners.providers``: models, each of :mod:`sandlite.runner`."""

from __future__ import annotations

import inspect
import json
from typing import Any, Mapping, Optional, Sequence

from ... import runner
from ..._models import _for_anthropic
from ..._records import Answer
from ..._sandbox import Sandbox
from .base import AgentResult, AgentRunner, RunnerProvider, ToolHandler

__all__ = ["AnthropicAgentRunner", "AnthropicProvider", "ModelAgentRunner", "ModelProvider"]


class ModelAgentRunner(AgentRunner):
    """The loop of :class:`sandlite.runner.Runner`, whose turns are rows of the sandbox's history."""

    def __init__(
        self,
        provider: runner.Provider,
        system_prompt: str,
        tools: "Sequence[Mapping[str, Any]]",
        tool_handlers: "Mapping[str, ToolHandler]",
        max_turns: int = 50,
        output_schema: "Optional[Mapping[str, Any]]" = None,
        max_tokens: int = 4096,
        box: Optional[Sandbox] = None,
    ) -> None:
        super().__init__(system_prompt, tools, tool_handlers, max_turns)
        self._provider, self._schema, self._max_tokens, self._box = provider, output_schema, max_tokens, box

    async def run(self, task: str, *, initial_messages: "Optional[Sequence[Mapping[str, Any]]]" = None) -> AgentResult:
        """Works on a task until the model is done."""
        if self._box is not None:
            return await self._run(self._box, task, initial_messages or ())
        with Sandbox() as box:
            return await self._run(box, task, initial_messages or ())

    async def _run(self, box: Sandbox, task: str, before: "Sequence[Mapping[str, Any]]") -> AgentResult:
        called: "list[str]" = []
        tools = [_tool(tool, self.tool_handlers.get(tool["name"]), called) for tool in self.tools]
        loop = runner.Runner(
            box,
            self._provider,
            instructions=self.system_prompt,
            tools=tools,
            output_schema=self._schema,
            max_turns=self.max_turns,
            max_tokens=self._max_tokens,
        )
        loop.messages = [_from_anthropic(message) for message in before]
        outcome = await loop.arun(task)
        messages = [{"role": one["role"], "content": [_for_anthropic(block) for block in one["content"]]} for one in loop.messages]
        text = outcome.text if outcome.data is None else json.dumps(outcome.data, ensure_ascii=False)
        return AgentResult(
            outcome.ok,
            outcome.data,
            text if outcome.ok else outcome.error,
            [] if outcome.error is None else [outcome.error],
            {"turns_used": outcome.turns, "tools_called": called, "usage": outcome.usage},
            messages,
        )


class AnthropicAgentRunner(ModelAgentRunner):
    """The loop for a model of Anthropic, through a client of the package ``anthropic``."""

    def __init__(
        self,
        client: Any,
        model: str,
        system_prompt: str,
        tools: "Sequence[Mapping[str, Any]]",
        tool_handlers: "Mapping[str, ToolHandler]",
        max_turns: int = 50,
        max_tokens: int = 4096,
        output_schema: "Optional[Mapping[str, Any]]" = None,
    ) -> None:
        provider = runner.AnthropicProvider(model, client=client)
        super().__init__(provider, system_prompt, tools, tool_handlers, max_turns, output_schema, max_tokens)
        self.client, self.model, self.max_tokens, self.output_schema = client, model, max_tokens, output_schema


def _tool(schema: "Mapping[str, Any]", handler: Optional[ToolHandler], called: "list[str]") -> runner.RunnerTool:
    name = str(schema["name"])

    async def call(**arguments: Any) -> Answer:
        called.append(name)
        if handler is None:
            return Answer(f"Unknown tool: {name}", is_error=True)
        made = handler(**arguments)
        value = await made if inspect.isawaitable(made) else made
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        return Answer(text, value, isinstance(value, dict) and "error" in value)

    return runner.RunnerTool(name, str(schema.get("description", "")), schema.get("input_schema", {"type": "object"}), call)


def _from_anthropic(message: "Mapping[str, Any]") -> "dict[str, Any]":
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {"role": message["role"], "content": [_block(block) for block in blocks]}


def _block(block: "Mapping[str, Any]") -> "dict[str, Any]":
    if block["type"] == "tool_use":
        return {"type": "tool_call", "id": block["id"], "name": block["name"], "arguments": block["input"]}
    if block["type"] == "tool_result":
        content = block.get("content", "")
        text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        return {"type": "tool_result", "id": block["tool_use_id"], "text": text, "is_error": bool(block.get("is_error"))}
    return {"type": "text", "text": block.get("text", "")}


class ModelProvider(RunnerProvider):
    """Runners for any model of :mod:`sandlite.runner`.

    >>> from sandlite.runner import ScriptedProvider
    >>> ModelProvider(ScriptedProvider(["Hello."])).max_tokens
    4096
    """

    def __init__(self, provider: runner.Provider, max_tokens: int = 4096) -> None:
        self.provider = provider
        self.max_tokens = max_tokens

    def create_runner(
        self,
        system_prompt: str,
        tools: "Sequence[Mapping[str, Any]]",
        tool_handlers: "Mapping[str, ToolHandler]",
        max_turns: int = 50,
        output_schema: "Optional[Mapping[str, Any]]" = None,
        *,
        box: Optional[Sandbox] = None,
    ) -> ModelAgentRunner:
        """Makes a runner; the history of ``box`` has its turns."""
        return ModelAgentRunner(
            self.provider, system_prompt, tools, tool_handlers, max_turns, output_schema, self.max_tokens, box
        )


class AnthropicProvider(ModelProvider):
    """Runners for a model of Anthropic; needs the package ``anthropic``."""

    def __init__(self, api_key: str, model: str, max_tokens: int = 4096) -> None:
        super().__init__(runner.AnthropicProvider(model, api_key=api_key), max_tokens)
        self.model = model
