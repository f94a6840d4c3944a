"""Functions of the host as tools of the sandbox."""

import asyncio
import dataclasses
import enum
from typing import Annotated, Any, Dict, List, Literal, Optional, Tuple

import pytest

from sandlite import AsyncSandbox, Sandbox, Tool, ToolCall, ToolContext
from sandlite._host_tools import NotApproved, parts, schema_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


def add(a: int, b: int = 2) -> int:
    """Adds two numbers.

    Really."""
    return a + b


def paint(colour: Colour, at: Point) -> Point:
    assert isinstance(colour, Colour) and isinstance(at, Point)
    return Point(at.x + 1, at.y)


def test_python_and_bash_call_functions_of_the_host():
    with Sandbox(tools=[add, paint]) as box:
        result = box.python("from sandlite import tools; print(tools.add(40), tools.paint('red', {'x': 1})['x'])")
        assert result.stdout == "42 2.0\n", result.stderr
        assert box.bash("""tool add '{"a": 1, "b": 1}'""").stdout == "2\n"
        wrong = box.bash("""tool add '{"a": "one"}'""")
        assert wrong.exit_code != 0 and "integer" in wrong.stderr
        calls = [row for row in box.history() if row.name == "tool"]
        assert [row.parameters["tool"] for row in calls] == ["add", "add", "paint", "add"]
        assert calls[1].result == 2


def test_an_exception_of_a_function_is_reported():
    def broken() -> None:
        raise ValueError("no luck today")

    with Sandbox(tools=[broken]) as box:
        said = box.python("from sandlite import tools, ToolError\ntry: tools.broken()\nexcept ToolError as e: print(e)")
        assert said.stdout == "broken: no luck today\n"


@pytest.mark.parametrize("answer", ["yes", "denied: no", (False, "why"), {"approved": False}, 1, None, [True], object()])
def test_only_true_approves(answer):
    called = []

    def act() -> int:
        called.append(1)
        return 1

    with Sandbox(tools=[act], approve=lambda call: answer) as box:
        result = box.bash("tool act {}")
        assert result.exit_code != 0 and "not approved" in result.stderr, result.stderr
    assert called == []


def test_nothing_runs_for_a_command_that_is_over():
    called, over = [], []

    def act() -> int:
        called.append(1)
        return 1

    def approve(call: ToolCall) -> bool:
        over.append(True)  # the command ends while a person thinks
        return True

    (_, _, _, call) = parts([act], approve, None)[0]
    with pytest.raises(NotApproved, match="the command has ended"):
        call("{}", lambda: bool(over))
    assert called == []


def test_a_command_that_ends_while_a_person_thinks_gets_no_answer():
    import threading

    ended, called = threading.Event(), []

    def act() -> int:
        called.append(1)
        return 1

    with Sandbox(tools=[act], approve=lambda call: ended.wait(30), approve_timeout=0.3) as box:
        result = box.bash("tool act {}")
        assert result.limit is not None
        ended.set()
    assert called == []


def test_calls_are_approved_or_not():
    asked: List[ToolCall] = []

    def approve(call: ToolCall) -> bool:
        asked.append(call)
        return call.arguments["a"] < 10

    with Sandbox(tools=[add], approve=approve) as box:
        assert box.bash("""tool add '{"a": 1}'""").stdout == "3\n"
        refused = box.bash("""tool add '{"a": 10}'""")
        assert refused.exit_code != 0 and "not approved" in refused.stderr
        assert box.history(1, name="tool")[0].error == "failed: the call was not approved"
    assert asked == [ToolCall("add", {"a": 1}), ToolCall("add", {"a": 10})]


def test_async_tools_run_in_the_loop_of_the_caller():
    async def main() -> None:
        here = asyncio.get_running_loop()

        async def where() -> bool:
            return asyncio.get_running_loop() is here

        async def approve(call: ToolCall) -> bool:
            return asyncio.get_running_loop() is here

        async with AsyncSandbox(tools=[where], approve=approve) as box:
            assert (await box.bash("tool where '{}'")).stdout == "true\n"

    asyncio.run(main())

    async def later() -> str:
        await asyncio.sleep(0)
        return "done"

    with Sandbox(tools=[later]) as box:
        assert box.bash("tool later '{}'").stdout == '"done"\n'


def test_schemas_are_derived_from_hints():
    def everything(
        a: str,
        b: Annotated[int, "how many"],
        c: Optional[float] = None,
        d: Literal["x", "y"] = "x",
        e: List[int] = [],
        f: Dict[str, bool] = {},
        g: Any = None,
        *,
        h: Colour = Colour.RED,
    ) -> None: ...

    schema = schema_of(everything)
    assert schema["required"] == ["a", "b"] and schema["additionalProperties"] is False
    assert schema["properties"] == {
        "a": {"type": "string"},
        "b": {"type": "integer", "description": "how many"},
        "c": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "d": {"enum": ["x", "y"], "default": "x"},
        "e": {"type": "array", "items": {"type": "integer"}, "default": []},
        "f": {"type": "object", "additionalProperties": {"type": "boolean"}, "default": {}},
        "g": {},
        "h": {"enum": ["red", "blue"], "default": "red"},
    }
    assert schema_of(paint)["properties"]["at"]["required"] == ["x"]
    with pytest.raises(TypeError):
        schema_of(lambda *rest: None)


def test_a_tool_can_have_a_custom_name_and_schema():
    tool = Tool(lambda **given: sorted(given), name="names", description="Names.", schema={"type": "object"})
    with Sandbox(tools=[tool]) as box:
        assert box.bash("""tool names '{"b": 1, "a": 2}'""").stdout == '["a","b"]\n'
        assert "names\tNames." in box.bash("tool").stdout + box.bash("tool --list").stdout


def test_a_tool_is_a_command_with_options():
    def weather(city: Annotated[str, "where"], days: int = 1, deep: bool = False) -> str:
        """Reports the weather."""
        return f"{city} {days} {deep}"

    with Sandbox(tools=[weather]) as box:
        assert box.bash("weather --city Paris | tr a-z A-Z").stdout == "PARIS 1 FALSE\n"
        assert box.bash("weather Rome --days=3 --deep").stdout == "Rome 3 True\n"
        text = box.bash("weather --help").stdout
        assert "--city STRING   where [required]\n" in text and "[default: 1]" in text and "Reports the weather." in text
        wrong = box.bash("weather --town Paris")
        assert wrong.exit_code == 2 and "unknown option `--town`" in wrong.stderr


def test_programs_cannot_choose_the_context_of_a_tool():
    def peek(context: Optional[ToolContext] = None) -> str:
        return type(context).__name__

    assert schema_of(peek)["properties"] == {}
    with Sandbox(tools=[peek]) as box:
        assert box.bash("peek").stdout == "ToolContext\n"
        assert box.bash("tool peek '{\"context\": 5}'").exit_code != 0


def test_each_item_of_a_tuple_has_its_own_type():
    def move(step: Tuple[Point, Colour], rest: Tuple[Colour, ...] = ()) -> list:
        return [type(item).__name__ for item in (*step, *rest)]

    with Sandbox(tools=[move]) as box:
        result = box.python("from sandlite import tools; print(tools.move([{'x': 1}, 'red'], ['blue']))")
        assert result.stdout == "['Point', 'Colour', 'Colour']\n", result.stderr


def test_a_tool_that_asks_for_it_is_given_its_context():
    seen: List[ToolContext] = []

    def count(path: str, context: ToolContext) -> int:
        seen.append(context)
        assert not context.is_cancelled and context.exists(path) and context.list_files("/new") == ["f"]
        return len(context.read_file(path))

    assert "context" not in schema_of(count)["properties"]
    with Sandbox(tools=[count]) as box:
        result = box.bash("mkdir /new; printf hello > /new/f; count --path /new/f")
        assert result.stdout == "5\n", result.stderr
        assert seen[0].run == result.run and seen[0].is_cancelled
        with pytest.raises(NotApproved):
            seen[0].read_file("/new/f")
