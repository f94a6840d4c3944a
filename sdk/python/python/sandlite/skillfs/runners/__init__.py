"""``skillfs.runners``: agents over a sandbox, with the loop of :mod:`sandlite.runner`."""

from __future__ import annotations

from .base import AgentResult, AgentRunner, RunnerProvider, RunnerType
from .providers import AnthropicAgentRunner, AnthropicProvider, ModelProvider
from .types import RUNNER_REGISTRY, MainRunner, SearchMatch, SearchResult, SearchRunner, create_runner

__all__ = [
    "AgentResult",
    "AgentRunner",
    "AnthropicAgentRunner",
    "AnthropicProvider",
    "MainRunner",
    "ModelProvider",
    "RUNNER_REGISTRY",
    "RunnerProvider",
    "RunnerType",
    "SearchMatch",
    "SearchResult",
    "SearchRunner",
    "create_runner",
]
