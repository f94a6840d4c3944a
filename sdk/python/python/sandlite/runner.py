"""A small agent: a model, a sandbox and tools, in a loop until the model is done.

>>> from sandlite import Sandbox
>>> from sandlite.runner import Runner, ScriptedProvider, call
>>> model = ScriptedProvider([[call("run_command", command="echo 6*7 | bc")], "It is 42."])
>>> with Sandbox() as box:
...     Runner(box, model).run("What is 6 times 7?").text
'It is 42.'

Replace the script by :class:`AnthropicProvider` or :class:`OpenAIProvider` to use a real model. Every turn is a row in the
sandbox's history, so :meth:`Runner.resume` can continue a conversation from the ``.db`` file, in another process or on another
machine."""

from __future__ import annotations

import inspect
import json
import re
import uuid
from dataclasses import dataclass, field
from typing import Any, AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Optional, Sequence, Union

from . import _native, _toolkit
from ._async import AsyncSandbox
from ._models import AnthropicProvider, OpenAIProvider, Provider, Reply, Request, ScriptedProvider, ToolSpec, call
from ._records import Answer
from ._sandbox import Sandbox
from .errors import SandliteError
from .skills import _front_matter

__all__ = [
    "AnthropicProvider",
    "Event",
    "OpenAIProvider",
    "Outcome",
    "Provider",
    "Reply",
    "Request",
    "Runner",
    "RunnerTool",
    "ScriptedProvider",
    "SubRunner",
    "ToolSpec",
    "call",
    "conversations",
    "search_runner",
]

#: The default tools of a runner.
DEFAULT_TOOLS = ("glob", "grep", "read_file", "write_file", "edit_file", "run_command", "checkpoint")

#: Where skills are: those of a catalog, and those of MCP servers.
_SKILLS = ("/skills", "/servers")
#: The name of a turn's row in the history.
_ROW = "agent_turn"
#: The tool with which a model returns structured output.
_FINISH = "final_answer"
#: How often a model is asked again for output that matches its schema.
_PATIENCE = 3
#: Number of lines of a SKILL.md that are read for its description.
_HEAD_LINES = 200
#: Number of history rows read at once.
_PAGE = 100

_RUN_COMMAND = ToolSpec(
    "run_command",
    "Runs a bash command line in the sandbox and returns exit code, standard output and standard error.",
    {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The command line."},
            "cwd": {"type": "string", "description": "The directory to run it in. Defaults to the sandbox's working directory."},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True)
class RunnerTool:
    """A function as a tool: it receives the model's arguments and returns text, or a value that is shown as JSON. An exception is
    shown to the model."""

    name: str
    description: str
    schema: Mapping[str, Any]
    function: Callable[..., Any]


@dataclass(frozen=True)
class SubRunner:
    """A helper to which a runner can delegate a task: a separate conversation with its own instructions and tools.

    ``sandbox`` gives it another sandbox, or another view of the same one."""

    name: str
    description: str
    instructions: str = ""
    tools: Sequence[Union[str, RunnerTool]] = DEFAULT_TOOLS
    max_turns: int = 20
    output_schema: Optional[Mapping[str, Any]] = None
    sandbox: Optional[Union[Sandbox, AsyncSandbox]] = None
    provider: Optional[Provider] = None


def search_runner(**options: Any) -> SubRunner:
    """Creates a sub-runner that only reads: it finds the files that are relevant for a task, with locations and reasons."""
    match = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file."},
            "relevance": {"type": "string", "description": "Why it is relevant."},
            "line_numbers": {"type": "array", "items": {"type": "integer"}, "description": "The relevant lines."},
            "snippet": {"type": "string", "description": "The most relevant lines."},
        },
        "required": ["path", "relevance"],
    }
    schema = {
        "type": "object",
        "properties": {
            "matches": {"type": "array", "items": match, "description": "The relevant files, most relevant first."},
            "summary": {"type": "string", "description": "A summary in two sentences."},
        },
        "required": ["matches", "summary"],
    }
    return SubRunner(
        **{
            "name": "search",
            "description": "Searches the files of the sandbox and reports the relevant ones.",
            "instructions": "Find the files that are relevant for the task. Use glob and grep first, then read relevant files. Change nothing.",
            "tools": ("glob", "grep", "read_file"),
            "output_schema": schema,
            **options,
        }
    )


@dataclass(frozen=True)
class Event:
    """An event of a running runner.

    ``kind`` is ``text`` (a piece of the model's text), ``tool_call``, ``tool_result``, ``turn`` (the end of one) or ``done``."""

    kind: str
    #: The name of the runner, ``main`` or that of a sub-runner.
    runner: str
    turn: int
    text: str = ""
    #: The tool of a call or a result.
    tool: Optional[str] = None
    arguments: Any = None
    is_error: bool = False
    outcome: Optional[Outcome] = None


@dataclass(frozen=True)
class Outcome:
    """The outcome of a conversation."""

    #: Whether the model finished within its turns, with output that matches the schema, if any.
    ok: bool
    #: The model's last text.
    text: str
    #: The structured output.
    data: Any = None
    #: The reason if it did not finish.
    error: Optional[str] = None
    turns: int = 0
    #: Tokens of all turns, including those of sub-runners.
    usage: "dict[str, int]" = field(default_factory=dict)
    #: The identifier with which :meth:`Runner.resume` continues it.
    conversation: str = ""

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True)
class _Ask:
    provider: Provider
    request: Request


@dataclass(frozen=True)
class _Do:
    """An action of a sandbox, or a function."""

    box: Any
    name: str
    arguments: Any
    function: Optional[Callable[..., Any]] = None


#: The steps of the loop: call a model, perform something, or emit an event.
_Want = Union[_Ask, _Do, Event]
_Loop = Generator[_Want, Any, Outcome]


class Runner:
    """An agent in a sandbox.

    ``tools`` are names of actions (:func:`sandlite.actions`), ``run_command``, ``load_skill``, or :class:`RunnerTool` objects.
    ``output_schema`` is the JSON schema of structured output (:attr:`Outcome.data`). ``subrunners`` are offered as the tool
    ``call_subrunner``. Skills are offered as ``load_skill`` if the sandbox has any in ``/skills`` or, of MCP servers, in ``/servers``."""

    def __init__(
        self,
        sandbox: Union[Sandbox, AsyncSandbox],
        provider: Provider,
        *,
        instructions: str = "",
        tools: Sequence[Union[str, RunnerTool]] = DEFAULT_TOOLS,
        subrunners: Sequence[SubRunner] = (),
        output_schema: Optional[Mapping[str, Any]] = None,
        max_turns: int = 50,
        max_tokens: int = 4096,
        name: str = "main",
    ) -> None:
        if max_turns < 1:
            raise ValueError("max_turns must be at least 1")
        self.sandbox = sandbox
        self.provider = provider
        self.instructions = instructions
        self.name = name
        self.max_turns = max_turns
        self.max_tokens = max_tokens
        self.output_schema = output_schema
        self.subrunners = {sub.name: sub for sub in subrunners}
        self._tools: "dict[str, Union[ToolSpec, RunnerTool]]" = {}
        #: The messages so far.
        self.messages: "list[dict[str, Any]]" = []
        self.conversation = uuid.uuid4().hex
        for tool in tools:
            self.add_tool(tool)
        if self.subrunners:
            self.add_tool(self._subrunner_tool())
        if output_schema is not None:
            complaint = _native.schema_complaint(json.dumps(output_schema), None)
            if complaint is not None:
                raise ValueError(f"invalid output_schema: {complaint}")
            self._tools[_FINISH] = ToolSpec(_FINISH, "Returns the final answer. Call it once, when the task is done.", output_schema)

    def add_tool(self, tool: Union[str, RunnerTool]) -> None:
        """Adds a tool."""
        if isinstance(tool, RunnerTool):
            self._tools[tool.name] = tool
        elif tool == _RUN_COMMAND.name:
            self._tools[tool] = _RUN_COMMAND
        elif tool == "load_skill":
            self._tools[tool] = _skill_tool("")
        else:
            spec = _toolkit.chosen([tool])[0]
            self._tools[spec.name] = ToolSpec(spec.name, spec.description, spec.schema)

    def run(self, prompt: str) -> Outcome:
        """Continues the conversation with ``prompt`` until the model is done.

        >>> model = ScriptedProvider(["Hello."])
        >>> Runner(box, model).run("Say hello").text
        'Hello.'
        """
        outcome = None
        for event in self.stream(prompt):
            # One that failed is false.
            outcome = outcome if event.outcome is None else event.outcome
        assert outcome is not None, "a stream ends with an outcome"
        return outcome

    def stream(self, prompt: str) -> Iterator[Event]:
        """Same, event by event."""
        if not isinstance(self.sandbox, Sandbox):
            raise TypeError("use `await runner.arun(…)` for a runner of an AsyncSandbox")
        loop = self._converse(prompt)
        answer: Any = None
        while True:
            try:
                want = loop.send(answer)
            except StopIteration as end:
                yield self._done(end.value)
                return
            answer = None
            if isinstance(want, Event):
                yield want
            elif isinstance(want, _Ask):
                for piece in want.provider.reply(want.request):
                    if isinstance(piece, str):
                        yield Event("text", self._speaker, self._turn, piece)
                    else:
                        answer = piece
            else:
                answer = _do(want)

    async def arun(self, prompt: str) -> Outcome:
        """:meth:`run` for ``asyncio``. Cancelling it kills a running command."""
        outcome = None
        async for event in self.astream(prompt):
            # One that failed is false.
            outcome = outcome if event.outcome is None else event.outcome
        assert outcome is not None, "a stream ends with an outcome"
        return outcome

    async def astream(self, prompt: str) -> AsyncIterator[Event]:
        """:meth:`stream` for ``asyncio``."""
        loop = self._converse(prompt)
        answer: Any = None
        while True:
            try:
                want = loop.send(answer)
            except StopIteration as end:
                yield self._done(end.value)
                return
            answer = None
            if isinstance(want, Event):
                yield want
            elif isinstance(want, _Ask):
                async for piece in want.provider.areply(want.request):
                    if isinstance(piece, str):
                        yield Event("text", self._speaker, self._turn, piece)
                    else:
                        answer = piece
            else:
                answer = await _ado(want)

    def resume(self, conversation: Optional[str] = None) -> "Runner":
        """Continues a conversation from the sandbox's history; defaults to the newest one.

        Raises :class:`LookupError` if there is none, or if a part of it was dropped to keep the history within its limit."""
        if not isinstance(self.sandbox, Sandbox):
            raise TypeError("use `await runner.aresume(…)` for a runner of an AsyncSandbox")
        rows = _Rows(conversation, self.name)
        while rows.wants_more:
            rows.add(self.sandbox.history(_PAGE, before=rows.before, name=_ROW, output=True))
        self.conversation, self.messages = rows.found()
        return self

    async def aresume(self, conversation: Optional[str] = None) -> "Runner":
        """:meth:`resume` for ``asyncio``."""
        if isinstance(self.sandbox, Sandbox):
            return self.resume(conversation)
        rows = _Rows(conversation, self.name)
        while rows.wants_more:
            rows.add(await self.sandbox.history(_PAGE, before=rows.before, name=_ROW, output=True))
        self.conversation, self.messages = rows.found()
        return self

    # The loop itself is independent of threads and asyncio: it yields its requests and receives the results.

    _speaker = "main"
    _turn = 0

    def _done(self, outcome: Outcome) -> Event:
        return Event("done", self.name, outcome.turns, outcome.text, outcome=outcome)

    def _converse(self, prompt: str) -> _Loop:
        yield from self._find_skills()
        yield from self._add({"role": "user", "content": [*_unanswered(self.messages), {"type": "text", "text": prompt}]}, prompt)
        usage: "dict[str, int]" = {}
        text, refused = "", 0
        for turn in range(1, self.max_turns + 1):
            self._speaker, self._turn = self.name, turn
            reply = yield _Ask(self.provider, Request(self.instructions, self.messages, self._specs(), self.max_tokens))
            _add_usage(usage, reply.usage)
            text = "".join(block["text"] for block in reply.content if block["type"] == "text") or text
            calls = [block for block in reply.content if block["type"] == "tool_call"]
            yield from self._add({"role": "assistant", "content": list(reply.content)}, text)
            results, final = [], None
            for block in calls:
                yield Event("tool_call", self.name, turn, tool=block["name"], arguments=block["arguments"])
                if block["name"] == _FINISH and self.output_schema is not None:
                    answer = self._check(block["arguments"])
                    final = None if answer.is_error else (block["arguments"],)
                    refused += answer.is_error
                else:
                    answer = yield from self._call(block, usage)
                    self._speaker, self._turn = self.name, turn
                yield Event("tool_result", self.name, turn, answer.text, tool=block["name"], is_error=answer.is_error)
                results.append({"type": "tool_result", "id": block["id"], "text": answer.text, "is_error": answer.is_error})
            if results:
                yield from self._add({"role": "user", "content": results}, f"{len(results)} results")
            yield Event("turn", self.name, turn, text)
            if final is not None:
                return Outcome(True, text, final[0], None, turn, usage, self.conversation)
            if refused >= _PATIENCE:
                return Outcome(False, text, None, "the model's output does not match its schema", turn, usage, self.conversation)
            if calls:
                continue
            if self.output_schema is None:
                return Outcome(True, text, None, None, turn, usage, self.conversation)
            refused += 1
            if refused >= _PATIENCE:
                return Outcome(False, text, None, f"the model never called {_FINISH}", turn, usage, self.conversation)
            reminder = f"Call the tool {_FINISH} with your answer."
            yield from self._add({"role": "user", "content": [{"type": "text", "text": reminder}]}, reminder)
        return Outcome(False, text, None, f"the model did not finish within {self.max_turns} turns", self.max_turns, usage, self.conversation)

    def _add(self, message: "dict[str, Any]", about: str) -> "Generator[_Want, Any, None]":
        """Adds a message, and records it before anything else."""
        index = len(self.messages)
        self.messages.append(message)
        content = json.dumps({"conversation": self.conversation, "runner": self.name, "index": index, "message": message})
        recorded = yield _Do(self.sandbox, "record", {"name": _ROW, "about": f"{message['role']}: {about[:200]}", "content": content})
        if recorded.is_error:
            raise SandliteError(f"cannot record the turn: {recorded.text}")

    def _specs(self) -> "list[ToolSpec]":
        return [ToolSpec(tool.name, tool.description, tool.schema) for tool in self._tools.values()]

    def _check(self, arguments: Any) -> Answer:
        complaint = _native.schema_complaint(json.dumps(self.output_schema), json.dumps(arguments))
        return Answer("accepted") if complaint is None else Answer(f"error: {complaint}", is_error=True)

    def _call(self, block: "dict[str, Any]", usage: "dict[str, int]") -> "Generator[_Want, Any, Answer]":
        name, arguments = block["name"], block["arguments"]
        tool = self._tools.get(name)
        if tool is None:
            return Answer(f"error: unknown tool `{name}`: expected one of {', '.join(self._tools)}", is_error=True)
        if not isinstance(arguments, Mapping):
            return Answer("error: the arguments are not an object", is_error=True)
        # A program may have a tool of its own under these names.
        if name == "call_subrunner" and self.subrunners:
            return (yield from self._delegate(arguments, usage))
        if name == "load_skill" and not isinstance(tool, RunnerTool):
            return (yield from self._load_skill(arguments))
        function = tool.function if isinstance(tool, RunnerTool) else None
        action = "bash" if name == _RUN_COMMAND.name and function is None else name
        answer: Answer = yield _Do(self.sandbox, action, arguments, function)
        return answer

    def _delegate(self, arguments: Mapping[str, Any], usage: "dict[str, int]") -> "Generator[_Want, Any, Answer]":
        sub = self.subrunners.get(str(arguments.get("runner")))
        task = arguments.get("task")
        if sub is None or not isinstance(task, str):
            return Answer(f"error: missing `runner` ({', '.join(self.subrunners)}) or `task`", is_error=True)
        runner = Runner(
            self.sandbox if sub.sandbox is None else sub.sandbox,
            sub.provider or self.provider,
            instructions=sub.instructions,
            tools=sub.tools,
            output_schema=sub.output_schema,
            max_turns=sub.max_turns,
            max_tokens=self.max_tokens,
            name=sub.name,
        )
        loop = runner._converse(task)
        answer: Any = None
        while True:
            try:
                want = loop.send(answer)
            except StopIteration as end:
                outcome: Outcome = end.value
                break
            self._speaker, self._turn = runner._speaker, runner._turn
            answer = yield want
        _add_usage(usage, outcome.usage)
        if not outcome.ok:
            return Answer(f"error: {outcome.error}", is_error=True)
        return Answer(outcome.text if sub.output_schema is None else json.dumps(outcome.data, ensure_ascii=False))

    def _subrunner_tool(self) -> RunnerTool:
        listed = "\n".join(f"- {sub.name}: {sub.description}" for sub in self.subrunners.values())
        schema = {
            "type": "object",
            "properties": {
                "runner": {"type": "string", "enum": list(self.subrunners), "description": "The name of the agent."},
                "task": {"type": "string", "description": "The task, with all necessary information."},
            },
            "required": ["runner", "task"],
            "additionalProperties": False,
        }
        description = f"Delegates a task to another agent, which works on the same files and reports its result:\n{listed}"
        return RunnerTool("call_subrunner", description, schema, lambda **_: None)

    def _find_skills(self) -> "Generator[_Want, Any, None]":
        """Names the skills of the sandbox in the description of ``load_skill``."""
        paths: "list[str]" = []
        for top in _SKILLS:
            found = yield _Do(self.sandbox, "glob", {"pattern": f"{top}/*/SKILL.md"})
            paths += [] if found.is_error else found.text.splitlines()
        listed = []
        for path in paths:
            window = yield _Do(self.sandbox, "read_file", {"path": path, "limit": _HEAD_LINES})
            if not window.is_error and path.endswith("/SKILL.md"):
                listed.append(f"- {path.split('/')[-2]}: {_description(window.data['content'])}")
        if listed and not isinstance(self._tools.get("load_skill"), RunnerTool):
            self._tools["load_skill"] = _skill_tool("\n".join(listed))

    def _load_skill(self, arguments: Mapping[str, Any]) -> "Generator[_Want, Any, Answer]":
        name = str(arguments.get("name"))
        if "/" in name or name in ("", ".", ".."):
            return Answer(f"error: invalid name of a skill `{name}`", is_error=True)
        answer = Answer("")
        for top in _SKILLS:
            answer = yield _Do(self.sandbox, "read_file", {"path": f"{top}/{name}/SKILL.md"})
            if not answer.is_error:
                break
        return answer


def conversations(box: Sandbox, runner: str = "main") -> "list[str]":
    """Returns the conversations in a sandbox's history, newest first.

    >>> Runner(box, ScriptedProvider(["Hello."])).run("Hi").conversation in conversations(box)
    True
    """
    found: "dict[str, None]" = {}
    before = None
    while True:
        rows = box.history(_PAGE, before=before, name=_ROW, output=True)
        for row in rows:
            turn = _turn_of(row)
            if turn is not None and turn["runner"] == runner:
                found.setdefault(turn["conversation"])
        if len(rows) < _PAGE:
            return list(found)
        before = rows[-1].id


class _Rows:
    """The rows of a conversation, newest first, until its first message is among them."""

    def __init__(self, conversation: Optional[str], runner: str) -> None:
        self._conversation = conversation
        self._runner = runner
        self._messages: "dict[int, Any]" = {}
        self.before: Optional[int] = None
        self.wants_more = True

    def add(self, rows: "list[Any]") -> None:
        for row in rows:
            turn = _turn_of(row)
            if turn is None or turn["runner"] != self._runner:
                continue
            if self._conversation is None:
                self._conversation = turn["conversation"]
            if turn["conversation"] == self._conversation:
                self._messages.setdefault(turn["index"], turn["message"])
        self.wants_more = 0 not in self._messages and len(rows) == _PAGE
        if rows:
            self.before = rows[-1].id

    def found(self) -> "tuple[str, list[Any]]":
        if self._conversation is None or not self._messages:
            raise LookupError("unknown conversation")
        messages = [self._messages[index] for index in sorted(self._messages)]
        if sorted(self._messages) != list(range(len(messages))):
            raise LookupError("a part of this conversation was dropped to keep the history within its limit")
        return self._conversation, messages


def _turn_of(row: Any) -> Optional[Any]:
    try:
        turn = json.loads(row.stdout)
        return turn if {"conversation", "runner", "index", "message"} <= turn.keys() else None
    except (ValueError, AttributeError):
        return None


def _unanswered(messages: "Sequence[Any]") -> "list[dict[str, Any]]":
    """Adds results for interrupted calls, because models reject a call without a result."""
    if not messages or messages[-1]["role"] != "assistant":
        return []
    text = "error: interrupted"
    return [
        {"type": "tool_result", "id": block["id"], "text": text, "is_error": True}
        for block in messages[-1]["content"]
        if block["type"] == "tool_call"
    ]


def _do(want: _Do) -> Answer:
    if want.function is None:
        return _toolkit.call(want.box, want.name, want.arguments)
    try:
        made = want.function(**want.arguments)
        if inspect.isawaitable(made):
            raise TypeError(f"the tool `{want.name}` is a coroutine: use `arun`")
        return _shown(made)
    except Exception as error:  # Every exception of a tool is shown to the model.
        return Answer(f"error: {error}", is_error=True)


async def _ado(want: _Do) -> Answer:
    if want.function is None:
        return await _toolkit.acall(want.box, want.name, want.arguments)
    try:
        made: Union[Any, Awaitable[Any]] = want.function(**want.arguments)
        return _shown(await made if inspect.isawaitable(made) else made)
    except Exception as error:  # Whatever a tool raises is for the model.
        return Answer(f"error: {error}", is_error=True)


def _shown(value: Any) -> Answer:
    if isinstance(value, Answer):
        return value
    return Answer(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str), value)


def _add_usage(total: "dict[str, int]", more: "Mapping[str, int]") -> None:
    for name, count in more.items():
        total[name] = total.get(name, 0) + count


def _skill_tool(listed: str) -> ToolSpec:
    description = "Returns the instructions of a skill. Load a skill before you work on its task."
    return ToolSpec(
        "load_skill",
        f"{description}\n{listed}" if listed else description,
        {
            "type": "object",
            "properties": {"name": {"type": "string", "description": "The name of the skill."}},
            "required": ["name"],
            "additionalProperties": False,
        },
    )


def _description(text: str) -> str:
    """Returns the description in the front matter of a SKILL.md; of one that is not YAML, what follows ``description:``."""
    try:
        return " ".join(str(_front_matter(text).get("description") or "").split())
    except SandliteError:
        found = re.search(r"^description:(.*)", text, re.MULTILINE)
        return found[1].strip().strip("\"'") if found else ""
