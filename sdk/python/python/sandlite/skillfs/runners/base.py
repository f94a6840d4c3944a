"""``skillfs.runners.base``: what a runner returns, and what makes one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any, Callable, Mapping, Optional, Protocol, Sequence, runtime_checkable

__all__ = ["AgentResult", "AgentRunner", "RunnerProvider", "RunnerType", "ToolHandler"]

#: A tool's function: it takes the model's arguments by name. A mapping with ``error`` is an error for the model.
ToolHandler = Callable[..., Any]


@dataclass
class AgentResult:
    """How an agent ended; true if it succeeded."""

    success: bool
    data: Any = None
    #: The model's last text, or its structured output as JSON.
    message: Optional[str] = None
    errors: "list[str]" = field(default_factory=list)
    metadata: "dict[str, Any]" = field(default_factory=dict)
    #: The conversation, in the form of Anthropic's interface.
    messages: "list[dict[str, Any]]" = field(default_factory=list)

    def to_tool_result(self) -> "dict[str, Any]":
        """What a runner that called this one is shown."""
        result: "dict[str, Any]" = {"success": self.success, "message": self.message}
        if self.data is not None:
            is_record = is_dataclass(self.data) and not isinstance(self.data, type)
            result["data"] = asdict(self.data) if is_record else self.data
        if self.errors:
            result["errors"] = self.errors
        return result

    def __bool__(self) -> bool:
        return self.success


class AgentRunner(ABC):
    """A loop of a model and its tools."""

    def __init__(
        self,
        system_prompt: str,
        tools: "Sequence[Mapping[str, Any]]",
        tool_handlers: "Mapping[str, ToolHandler]",
        max_turns: int = 50,
    ) -> None:
        self.system_prompt = system_prompt
        self.tools = tools
        self.tool_handlers = tool_handlers
        self.max_turns = max_turns

    @abstractmethod
    async def run(self, task: str, *, initial_messages: "Optional[Sequence[Mapping[str, Any]]]" = None) -> AgentResult:
        """Works on a task until the model is done; ``initial_messages`` are a conversation to continue."""


class RunnerProvider(ABC):
    """Makes runners for a model."""

    @abstractmethod
    def create_runner(
        self,
        system_prompt: str,
        tools: "Sequence[Mapping[str, Any]]",
        tool_handlers: "Mapping[str, ToolHandler]",
        max_turns: int = 50,
        output_schema: "Optional[Mapping[str, Any]]" = None,
    ) -> AgentRunner:
        """Makes a runner."""


@runtime_checkable
class RunnerType(Protocol):
    """What a class for sub-runners has: it is made with ``sandbox`` and ``provider``."""

    name: str
    description: str

    async def run(self, task: str) -> AgentResult:
        """Works on a task until the model is done."""
        ...
