"""Models for :mod:`sandlite.runner`: the representation of a conversation, and providers for the APIs of Anthropic and OpenAI.

A provider turns a :class:`Request` into pieces of text as they arrive, followed by a :class:`Reply`. The vendors' packages are
imported when their provider is created."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, AsyncIterator, Callable, Iterator, Mapping, Optional, Sequence, Union

#: A message: ``{"role": "user" | "assistant", "content": [block, …]}``. A block is ``{"type": "text", "text"}``,
#: ``{"type": "tool_call", "id", "name", "arguments"}`` or ``{"type": "tool_result", "id", "text", "is_error"}``.
Message = "dict[str, Any]"


@dataclass(frozen=True)
class ToolSpec:
    """A tool that a model may call."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """A request to continue a conversation."""

    instructions: str
    messages: Sequence[Any]
    tools: Sequence[ToolSpec]
    max_tokens: int


@dataclass(frozen=True)
class Reply:
    """The reply of a model: blocks of text and tool calls, and the token usage."""

    content: "list[dict[str, Any]]"
    usage: "dict[str, int]" = field(default_factory=dict)
    stop_reason: Optional[str] = None


class Provider:
    """A model. Override :meth:`reply`, and :meth:`areply` for use with ``asyncio``."""

    def reply(self, request: Request) -> "Iterator[Union[str, Reply]]":
        """Yields pieces of text as they arrive, followed by the whole :class:`Reply`."""
        raise NotImplementedError(f"{type(self).__name__} cannot be used without asyncio")

    def areply(self, request: Request) -> "AsyncIterator[Union[str, Reply]]":
        """The same for ``asyncio``."""
        raise NotImplementedError(f"{type(self).__name__} cannot be used with asyncio")


class ScriptedProvider(Provider):
    """Replies from a list, for tests and examples. An entry is a text, a list of blocks, or a function of the :class:`Request`
    that returns one of these.

    >>> provider = ScriptedProvider([[call("run_command", command="echo hi")], "done"])
    """

    def __init__(self, replies: "Sequence[Union[str, list[Any], Callable[[Request], Any]]]") -> None:
        self._replies = list(replies)
        #: The requests, in order.
        self.requests: "list[Request]" = []

    def reply(self, request: Request) -> "Iterator[Union[str, Reply]]":
        """Yields the text of the next entry, and then its reply."""
        # The conversation continues, so a copy of the current state is kept.
        messages = json.loads(json.dumps(list(request.messages)))
        self.requests.append(Request(request.instructions, messages, request.tools, request.max_tokens))
        if not self._replies:
            raise RuntimeError("the script of this provider has ended")
        entry = self._replies.pop(0)
        if callable(entry):
            entry = entry(request)
        blocks = [{"type": "text", "text": entry}] if isinstance(entry, str) else list(entry)
        for block in blocks:
            if block["type"] == "text":
                yield block["text"]
        yield Reply(blocks, {"input_tokens": 1, "output_tokens": 1}, "end_turn")

    async def areply(self, request: Request) -> "AsyncIterator[Union[str, Reply]]":
        """The same for ``asyncio``."""
        for piece in self.reply(request):
            yield piece


_calls_made = 0


def call(name: str, /, **arguments: Any) -> "dict[str, Any]":
    """A block in which a scripted model calls a tool."""
    global _calls_made
    _calls_made += 1
    return {"type": "tool_call", "id": f"call_{_calls_made}", "name": name, "arguments": arguments}


class AnthropicProvider(Provider):
    """A model of Anthropic's Messages API; requires the package ``anthropic``.

    >>> AnthropicProvider("claude-sonnet-4-5")  # doctest: +SKIP

    ``client`` and ``async_client`` replace the clients created from the environment."""

    def __init__(
        self,
        model: str = "claude-sonnet-4-5",
        *,
        api_key: Optional[str] = None,
        client: Any = None,
        async_client: Any = None,
        **options: Any,
    ) -> None:
        self.model = model
        self._client, self._async_client, self._api_key = client, async_client, api_key
        self._options = options

    def reply(self, request: Request) -> "Iterator[Union[str, Reply]]":
        """Streams a message."""
        if self._client is None:
            import anthropic

            self._client = anthropic.Anthropic(api_key=self._api_key)
        with self._client.messages.stream(**self._asked(request)) as stream:
            yield from stream.text_stream
            message = stream.get_final_message()
        yield _of_anthropic(message)

    async def areply(self, request: Request) -> "AsyncIterator[Union[str, Reply]]":
        """Streams a message."""
        if self._async_client is None:
            import anthropic

            self._async_client = anthropic.AsyncAnthropic(api_key=self._api_key)
        async with self._async_client.messages.stream(**self._asked(request)) as stream:
            async for text in stream.text_stream:
                yield text
            message = await stream.get_final_message()
        yield _of_anthropic(message)

    def _asked(self, request: Request) -> "dict[str, Any]":
        asked: "dict[str, Any]" = {
            "model": self.model,
            "max_tokens": request.max_tokens,
            "messages": [{"role": message["role"], "content": [_for_anthropic(block) for block in message["content"]]} for message in request.messages],
            **self._options,
        }
        if request.instructions:
            asked["system"] = request.instructions
        if request.tools:
            asked["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)} for tool in request.tools
            ]
        return asked


def _for_anthropic(block: Any) -> "dict[str, Any]":
    if block["type"] == "tool_call":
        return {"type": "tool_use", "id": block["id"], "name": block["name"], "input": block["arguments"]}
    if block["type"] == "tool_result":
        made = {"type": "tool_result", "tool_use_id": block["id"], "content": block["text"]}
        return {**made, "is_error": True} if block["is_error"] else made
    return {"type": "text", "text": block["text"]}


def _of_anthropic(message: Any) -> Reply:
    blocks: "list[dict[str, Any]]" = []
    for block in message.content:
        if block.type == "text":
            blocks.append({"type": "text", "text": block.text})
        elif block.type == "tool_use":
            blocks.append({"type": "tool_call", "id": block.id, "name": block.name, "arguments": block.input})
    usage = {"input_tokens": message.usage.input_tokens, "output_tokens": message.usage.output_tokens}
    return Reply(blocks, usage, message.stop_reason)


class OpenAIProvider(Provider):
    """A model of OpenAI's chat completions, or of a compatible server (``base_url``); requires the package ``openai``.

    >>> OpenAIProvider("qwen3", base_url="http://127.0.0.1:11434/v1", api_key="none")  # doctest: +SKIP
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: Optional[str] = None,
        base_url: Optional[str] = None,
        client: Any = None,
        async_client: Any = None,
        **options: Any,
    ) -> None:
        self.model = model
        self._client, self._async_client = client, async_client
        self._account: "dict[str, Any]" = {"api_key": api_key, "base_url": base_url}
        self._options = options

    def reply(self, request: Request) -> "Iterator[Union[str, Reply]]":
        """Streams a completion."""
        if self._client is None:
            import openai

            self._client = openai.OpenAI(**self._account)
        collected = _Collected()
        for chunk in self._client.chat.completions.create(**self._asked(request)):
            text = collected.add(chunk)
            if text:
                yield text
        yield collected.reply()

    async def areply(self, request: Request) -> "AsyncIterator[Union[str, Reply]]":
        """Streams a completion."""
        if self._async_client is None:
            import openai

            self._async_client = openai.AsyncOpenAI(**self._account)
        collected = _Collected()
        async for chunk in await self._async_client.chat.completions.create(**self._asked(request)):
            text = collected.add(chunk)
            if text:
                yield text
        yield collected.reply()

    def _asked(self, request: Request) -> "dict[str, Any]":
        messages: "list[dict[str, Any]]" = []
        if request.instructions:
            messages.append({"role": "system", "content": request.instructions})
        for message in request.messages:
            messages.extend(_for_openai(message))
        asked: "dict[str, Any]" = {
            "model": self.model,
            "messages": messages,
            "max_completion_tokens": request.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            **self._options,
        }
        if request.tools:
            asked["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)},
                }
                for tool in request.tools
            ]
        return asked


def _for_openai(message: Any) -> "Iterator[dict[str, Any]]":
    text = "".join(block["text"] for block in message["content"] if block["type"] == "text")
    if message["role"] == "assistant":
        made: "dict[str, Any]" = {"role": "assistant", "content": text or None}
        calls = [
            {
                "id": block["id"],
                "type": "function",
                "function": {"name": block["name"], "arguments": json.dumps(block["arguments"])},
            }
            for block in message["content"]
            if block["type"] == "tool_call"
        ]
        yield {**made, "tool_calls": calls} if calls else made
        return
    for block in message["content"]:
        if block["type"] == "tool_result":
            yield {"role": "tool", "tool_call_id": block["id"], "content": block["text"]}
    if text:
        yield {"role": "user", "content": text}


class _Collected:
    """The chunks of a completion."""

    def __init__(self) -> None:
        self._text = ""
        self._calls: "dict[int, dict[str, str]]" = {}
        self._usage: "dict[str, int]" = {}
        self._stop_reason: Optional[str] = None

    def add(self, chunk: Any) -> str:
        """Adds a chunk, and returns its text."""
        if getattr(chunk, "usage", None) is not None:
            self._usage = {"input_tokens": chunk.usage.prompt_tokens, "output_tokens": chunk.usage.completion_tokens}
        if not chunk.choices:
            return ""
        choice = chunk.choices[0]
        self._stop_reason = choice.finish_reason or self._stop_reason
        for piece in choice.delta.tool_calls or []:
            call = self._calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
            call["id"] = piece.id or call["id"]
            if piece.function is not None:
                call["name"] += piece.function.name or ""
                call["arguments"] += piece.function.arguments or ""
        text = choice.delta.content or ""
        self._text += text
        return text

    def reply(self) -> Reply:
        """The whole reply."""
        blocks: "list[dict[str, Any]]" = [{"type": "text", "text": self._text}] if self._text else []
        for index in sorted(self._calls):
            call = self._calls[index]
            blocks.append({"type": "tool_call", "id": call["id"], "name": call["name"], "arguments": _parsed(call["arguments"])})
        return Reply(blocks, self._usage, self._stop_reason)


def _parsed(arguments: str) -> Any:
    # The tool rejects invalid JSON with a text for the model.
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments
