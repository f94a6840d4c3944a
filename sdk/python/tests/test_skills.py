"""Skills from Python: pushed, found, run, and given to frameworks as tools, with the real packages where they are installed."""

import ast
import asyncio
import base64
import contextlib
import doctest
import gc
import hashlib
import inspect
import io
import json
import os
import zipfile
from pathlib import Path

import pytest

import sandlite
from sandlite import Sandbox, Skills, SkillError, anthropic, openai
from sandlite import skills as module

EXAMPLES = Path(__file__).parents[3] / "examples" / "skills"

DOUBLE = {
    "SKILL.md": "---\nname: double\ndescription: Doubles a number.\n---\nGive `n`.\n",
    "main.py": "import json, os\nn = json.loads(os.environ['SANDBOX_INPUT'])['n']\n"
    "json.dump({'n': n * 2}, open(os.environ['SANDBOX_OUTPUT'], 'w'))\n",
}
TYPED = {
    "SKILL.md": "---\nname: typed-sum\ndescription: Adds numbers.\ninput_schema:\n  type: object\n  required: [a]\n"
    "  properties:\n    a: {type: integer}\n    b: {type: integer, default: 1}\n---\nGive `a` and `b`.\n",
    "main.sh": "jq '{sum: (.a + (.b // 1))}' input.json > out/output.json",
}


@pytest.fixture
def skills():
    made = Skills(":memory:")
    made.push(DOUBLE)
    return made


@pytest.fixture
def two(skills):
    skills.push(TYPED)
    return skills


def test_a_run_is_json_in_json_out_and_files(skills, tmp_path):
    big = 123456789012345678901234567890
    result = skills.run("double", {"n": big})
    assert result.ok and result.output == {"n": 2 * big}, "big integers are exact"
    skills.push({"SKILL.md": "---\nname: f\ndescription: Sorts.\n---\n", "main.sh": "sort input/x > out/files/y; echo log"})
    result = skills.run("f", files={"x": "b\na\n"})
    assert [one.path for one in result.files] == ["y"] and result.read("y") == b"a\nb\n" and result.logs == "log\n"
    result.save(tmp_path / "out")
    assert (tmp_path / "out" / "y").read_text() == "a\nb\n"
    assert result.output is None and result.usage["fuel"] > 0 and result.duration_ms >= 1


def test_failures_are_results_and_missing_items_raise(skills):
    assert skills.run("double", {"n": None}).status == "failed"
    with pytest.raises(SkillError, match="command exited with code 1") as raised:
        skills.run("double", {}, check=True)
    assert "KeyError" in raised.value.result.logs
    assert skills.run("double", env={"PATH": "x"}).error == 'env var "PATH" is not allowed'
    for call in (lambda: skills.run("none"), lambda: skills.run("double", version="9.9.9"), lambda: skills.load("none")):
        with pytest.raises(sandlite.SandliteError, match="unknown"):
            call()
    with pytest.raises(sandlite.SandliteError, match="different content"):
        skills.push({**DOUBLE, "more": "x"})
    assert skills.push({**DOUBLE, "more": "x"}, replace=True).unchanged is False
    with pytest.raises(sandlite.SandliteError, match="SKILL.md is missing"):
        skills.push({"main.py": ""})


def test_a_catalog_is_a_directory_or_a_sandbox(tmp_path, monkeypatch):
    for place in (tmp_path / "catalog", tmp_path / "box.db"):
        Skills(place).push(DOUBLE)
        again = Skills(place)
        assert [one.name for one in again.list()] == ["double"] and again.run("double", {"n": 1}).output == {"n": 2}
        del again
    monkeypatch.setenv("SANDLITE_SKILLS", str(tmp_path / "catalog"))
    assert Skills().list("doubles")[0].version == "1.0.0" and Skills().list("nothing") == []


def test_sessions_keep_files(tmp_path):
    skills = Skills(tmp_path)
    skills.push({"SKILL.md": "---\nname: s\ndescription: Counts.\n---\n", "main.sh": "cat session/n; echo x >> session/n; cp session/n out/session/"})
    assert [skills.run("s", session="a").logs.count("x") for _ in range(3)] == [0, 1, 2]


def test_async_runs_can_be_cancelled(skills):
    skills.push({"SKILL.md": "---\nname: slow\ndescription: Waits.\n---\n", "main.sh": "sleep 20"})

    async def main():
        results = await asyncio.gather(*(skills.arun("double", {"n": n}) for n in range(8)))
        assert [one.output["n"] for one in results] == [2 * n for n in range(8)]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(skills.arun("slow"), 0.3)

    asyncio.run(asyncio.wait_for(main(), 15))


def test_skills_are_shown_in_a_sandbox(skills):
    with Sandbox(mounts=[skills.mount()]) as box:
        assert box.bash("head -n 2 /skills/double/SKILL.md").stdout == "---\nname: double\n"
        assert "Read-only" in box.bash("echo x > /skills/double/main.py").stderr


def test_a_mount_needs_no_reference_to_its_catalog(tmp_path):
    place = tmp_path / "box.db"
    Skills(place).push(DOUBLE)
    mount = Skills(place).mount()
    gc.collect()
    with Sandbox(mounts=[mount]) as box:
        assert box.bash("ls /skills/double").stdout == "SKILL.md\nmain.py\n"


def test_tools_have_the_schema_of_their_skill(two):
    double, typed = two.tools()
    assert (double.name, typed.name) == ("skill_double", "skill_typed_sum")
    assert double.description == "Doubles a number.\n\nGive `n`."
    assert list(double.input_schema["properties"]) == ["input"] and typed.input_schema["required"] == ["a"]
    assert double(input={"n": 2}).output == {"n": 4} and typed(a=2, b=3).output == {"sum": 5}
    assert "`a` is missing" in typed.answer({}).text


def test_openai_s_calls_are_answered(two):
    tools = openai.SkillTools(two)
    assert [tool["name"] for tool in tools.responses] == ["skill_double", "skill_typed_sum"]
    call = {"id": "1", "type": "function", "function": {"name": "skill_typed_sum", "arguments": '{"a": 1}'}}
    assert json.loads(tools.dispatch(call)["content"]) == {"sum": 2}
    for name, arguments in (("bash", "{}"), ("skill_double", "[]"), ("skill_double", "not json")):
        answer = tools.dispatch({"id": "1", "function": {"name": name, "arguments": arguments}})
        assert answer["content"].startswith("error: "), answer
    assert [tool["function"]["name"] for tool in openai.SkillTools(two, ["double"]).chat] == ["skill_double"]


def test_anthropic_s_blocks_are_answered(two):
    tools = anthropic.SkillTools(two)
    block = {"type": "tool_use", "id": "a", "name": "skill_double", "input": {"input": {"n": 3}}}
    assert json.loads(tools.dispatch(block)["content"]) == {"n": 6}
    failed = asyncio.run(tools.adispatch({**block, "input": {}}))
    assert failed["is_error"] and failed["content"].startswith("Error: command exited with code 1")


def test_langchain_s_tools_are_skillbox_s(two):
    pytest.importorskip("langchain_core")
    from sandlite.langchain import skill_tools

    double, typed = skill_tools(two)
    assert (double.name, double.description) == ("skillbox_double", "Doubles a number.\n\nGive `n`.")
    assert double.invoke({"input": {"n": 4}}) == '{\n  "n": 8\n}'
    assert asyncio.run(typed.ainvoke({"a": 1, "b": 4})) == '{\n  "sum": 5\n}'
    assert double.invoke({"input": {}}).startswith("Error: ")
    assert typed.args["a"]["type"] == "integer"


def test_langchain_s_tools_return_only_json_and_the_files_as_artifact(skills):
    pytest.importorskip("langchain_core")
    from sandlite.langchain import skill_tools

    skills.push({"SKILL.md": "---\nname: f\ndescription: Writes.\n---\n", "main.sh": "echo hi > out/files/a; echo '[1]' > out/output.json"})
    [tool] = skill_tools(skills, ["f"])
    assert json.loads(tool.invoke({})) == [1]
    message = tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": {}})
    assert json.loads(message.content) == [1] and message.artifact.read("a") == b"hi\n"
    skills.delete("f")
    for text in (tool.invoke({}), asyncio.run(tool.ainvoke({}))):
        assert text == "Error: unknown skill `f`"


def test_tools_of_the_user_s_own_catalog_need_no_argument(tmp_path, monkeypatch):
    monkeypatch.setenv("SANDLITE_SKILLS", str(tmp_path))
    Skills().push(DOUBLE)
    assert [tool["name"] for tool in anthropic.SkillTools().tools] == ["skill_double"]


def test_tools_are_chosen_by_name(two):
    assert [tool.skill for tool in two.tools(names=["typed-sum"])] == ["typed-sum"]
    with pytest.raises(sandlite.SandliteError, match="unknown skill `none`"):
        openai.SkillTools(two, ["none"])
    [double, _] = two.tools()
    two.delete("double")
    assert double.answer({}).text == "Error: unknown skill `double`"


def test_latest_is_one_version_also_for_a_deletion(skills):
    skills.push({**DOUBLE, "SKILL.md": DOUBLE["SKILL.md"].replace("---\n", "---\nversion: 1.1.0\n", 1)})
    assert skills.delete("double", "latest") == ["1.1.0"]
    assert [one["version"] for one in skills.versions("double")] == ["1.0.0"]
    with pytest.raises(sandlite.SandliteError, match="missing version"):
        skills.delete("double", "")
    assert skills.delete("double") == ["1.0.0"]


def test_pydantic_ai_s_toolset_runs_skills(two):
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from sandlite.pydantic_ai import skill_toolset

    def model(messages, info):
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart(str(messages[-1].parts[0].content))])
        assert [tool.name for tool in info.function_tools] == ["skill_double", "skill_typed_sum"]
        return ModelResponse(parts=[ToolCallPart("skill_typed_sum", {"a": 20, "b": 22})])

    agent = Agent(FunctionModel(model), toolsets=[skill_toolset(two)])
    assert json.loads(agent.run_sync("add").output) == {"sum": 42}


def test_requirements_come_from_wheels(tmp_path):
    """A wheel in a local directory is enough; a missing one is rejected at the push."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    contents = {
        "tinypkg/__init__.py": "def triple(n):\n    return 3 * n\n",
        "tinypkg-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tinypkg\nVersion: 1.0\n",
        "tinypkg-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }

    def row(name):
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents[name].encode()).digest()).decode().rstrip("=")
        return f"{name},sha256={digest},{len(contents[name])}\n"

    def build():
        record = "".join(map(row, contents)) + "tinypkg-1.0.dist-info/RECORD,,\n"
        with zipfile.ZipFile(wheels / "tinypkg-1.0-py3-none-any.whl", "w") as wheel:
            for name, text in {**contents, "tinypkg-1.0.dist-info/RECORD": record}.items():
                wheel.writestr(name, text)

    build()
    skills = Skills(tmp_path / "catalog")
    skill = {
        "SKILL.md": "---\nname: t\ndescription: Triples.\n---\n",
        "main.py": "import tinypkg\nprint(tinypkg.triple(14))\n",
        "requirements.txt": "# needs one\ntinypkg==1.0\n",
    }
    skills.push(skill, find_links=wheels, offline=True)
    for made in (skills, Skills(tmp_path / "catalog")):
        assert made.run("t", check=True).logs == "42\n"
    assert made.run("t", session="s", check=True).logs == "42\n"
    made.push({"SKILL.md": "---\nname: plain\ndescription: Has no requirements.\n---\n", "main.sh": "echo begun"})
    assert made.run("plain", session="shared", check=True).logs == "begun\n"
    assert made.run("t", session="shared", check=True).logs == "42\n", "a session that another skill began"
    with pytest.raises(sandlite.SandliteError, match="missingpkg"):
        skills.push({**skill, "requirements.txt": "missingpkg\n"}, find_links=wheels, offline=True, replace=True)
    assert skills.run("t", check=True).logs == "42\n", "a push that is refused changes nothing"
    contents["tinypkg/__init__.py"] = "def triple(n):\n    return -3 * n\n"
    build()
    skills.delete("t")
    skills.push(skill, find_links=wheels, offline=True)
    assert skills.run("t", check=True).logs == "-42\n", "the same skill with other packages"
    pinned = {**skill, "requirements.txt": "tinypkg==1.0 \\\n    --hash=sha256:00\n"}
    skills.push(pinned, find_links=wheels, offline=True, replace=True)
    assert skills.run("t", check=True).logs == "-42\n"


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_examples_pass_the_scan(path):
    assert [one for one in module.lint(path, security=True) if one.severity == "error"] == []


def documented():
    for name in ("Skills", "SkillResult", "SkillTool", "lint"):
        value = getattr(module, name)
        yield name, value
        for method, member in vars(value).items() if inspect.isclass(value) else ():
            if inspect.isfunction(member) and not method.startswith("_") and ">>> " in (member.__doc__ or ""):
                yield f"{name}.{method}", member


@pytest.mark.parametrize("name,value", list(documented()))
def test_the_example_is_true(name, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {**vars(module), "skills": Skills(":memory:")}
    names["skills"].push(DOUBLE)

    async def main():
        for example in doctest.DocTestParser().get_examples(value.__doc__):
            code = compile(example.source, "<example>", "single", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                made = eval(code, names)
                if inspect.isawaitable(made):
                    await made
            assert printed.getvalue() == example.want, example.source

    asyncio.run(main())


def test_every_public_method_has_an_example():
    missing = [
        name for name, member in vars(Skills).items()
        if inspect.isfunction(member) and not name.startswith("_") and ">>> " not in (member.__doc__ or "")
    ]
    assert missing == []
    assert os.path.isdir(EXAMPLES)
