"""Every public method has an example, and every example is true."""

import ast
import asyncio
import contextlib
import doctest
import inspect
import io
import os

import pytest

import sandlite
import sandlite._process
from sandlite import AsyncSandbox, Sandbox

CLASSES = ["Kv", "Session", "Sandbox", "AsyncKv", "AsyncSession", "AsyncSandbox"]
#: Their examples use a running command.
HANDLES = ["Process", "Stream", "AsyncProcess", "AsyncStream"]
#: All others that have methods.
OTHERS = [
    name
    for name in sandlite.__all__
    if inspect.isclass(getattr(sandlite, name)) and name not in CLASSES + HANDLES
]
OUTPUTS = {"Output": sandlite._process.Output, "AsyncOutput": sandlite._process.AsyncOutput}


def methods(name):
    """The public methods of a class, and the class itself."""
    kind = OUTPUTS.get(name) or getattr(sandlite, name)
    if name in CLASSES + HANDLES:
        yield name, kind
    for method, value in vars(kind).items():
        value = getattr(value, "__func__", value)
        if inspect.isfunction(value) and not method.startswith("_"):
            yield f"{name}.{method}", value


def examples():
    for name in CLASSES + HANDLES + OTHERS + list(OUTPUTS):
        # Those of a catalog are run by ``test_skills.py``.
        if name != "Skills":
            yield from methods(name)
    for name in ("Result", "CommandError", "ProvidedNode", "SkillResult", "actions"):
        yield name, getattr(sandlite, name)


def test_the_other_classes_are_enumerated():
    listed = [name for name, _ in examples()]
    assert {"Result.check", "ToolContext.read_file", "CommandFiles.append", "ProvidedNode.file", "SkillResult.read"} <= set(listed)
    assert {"Process", "Process.send_stdin", "AsyncProcess.wait", "Stream.close", "AsyncStream.aclose"} <= set(listed)


@pytest.mark.parametrize("name,value", [each for kind in CLASSES + HANDLES + OTHERS + list(OUTPUTS) for each in methods(kind)])
def test_it_is_documented_with_an_example(name, value):
    if name not in HANDLES:
        assert ">>> " in (value.__doc__ or ""), name
    for property_name, member in vars(value).items() if inspect.isclass(value) else ():
        if isinstance(member, property) and not property_name.startswith("_"):
            assert member.__doc__, f"{name}.{property_name}"


async def run(source, names):
    """Runs an example and returns what it prints; it may await."""
    code = compile(source, "<example>", "single", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        made = eval(code, names)
        if inspect.isawaitable(made):
            await made
    return printed.getvalue()


@pytest.mark.parametrize("name,value", list(examples()))
def test_the_example_is_true(name, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def main():
        names = {**{name: getattr(sandlite, name) for name in sandlite.__all__}, "os": os}
        box = await AsyncSandbox() if name.startswith("Async") else Sandbox()
        names.update(box=box, session=box.session("example"))
        if "Process" in name:
            process = box.start("cat")
            names["process"] = await process if inspect.isawaitable(process) else process
        for example in doctest.DocTestParser().get_examples(inspect.getdoc(value)):
            # It needs more than this machine, such as a package index.
            if example.options.get(doctest.SKIP):
                continue
            got = await run(example.source, names)
            assert doctest.OutputChecker().check_output(example.want, got, 0), (example.source, got, example.want)
        closed = box.close()
        if inspect.isawaitable(closed):
            await closed

    asyncio.run(main())


def test_help_teaches():
    text = inspect.getdoc(Sandbox)
    for word in ("db", "files", "snapshot", "read_only", "preset", "env", "mounts", "python", "tools", "approve", "cwd", "spawn"):
        assert word in text, word
