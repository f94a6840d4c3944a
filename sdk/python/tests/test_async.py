"""The same for asyncio: concurrent, and really cancellable."""

import ast
import asyncio
from pathlib import Path

import pytest
import sandlite
from sandlite import AsyncSandbox, errors


def test_every_method_exists_twice():
    from sandlite import Sandbox

    names = lambda kind: {name for name in vars(kind) if not name.startswith("_")}
    assert names(Sandbox) == names(AsyncSandbox) - {"open"}


class Plain(ast.NodeTransformer):
    """Removes what asyncio adds: ``async``, ``await`` and the names of its classes."""

    def visit_Await(self, node):
        return self.visit(node.value)

    def visit_AsyncFunctionDef(self, node):
        self.generic_visit(node)
        return ast.FunctionDef(**{field: getattr(node, field, None) for field in node._fields})

    def visit_Name(self, node):
        name = node.id.replace("Async", "").replace("native_half", "_native")
        return ast.Name(name.replace("_process", "Process"), node.ctx)

    def visit_Constant(self, node):
        return ast.Constant(node.value.replace("Async", "")) if isinstance(node.value, str) else node


def methods(file):
    """The signature and the body of each method, without its documentation."""
    found = {}
    tree = ast.parse((Path(sandlite.__file__).parent / file).read_text(encoding="utf-8"))
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for method in (node for node in kind.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))):
            if ast.get_docstring(method) is not None:
                method.body = method.body[1:]
            plain = Plain().visit(method)
            signature = ast.unparse(plain.args), plain.returns and ast.unparse(plain.returns)
            body = "\n".join(ast.unparse(statement) for statement in plain.body)
            found[f"{kind.name.replace('Async', '')}.{method.name}"] = (signature, body)
    return found


# Opened on first use, on a thread of its own, or with callbacks that belong to an event loop.
DIFFERENT = "__init__ __repr__ _mount _of at close closed command connect_mcp fork on_commit packages pip_install"
# Those that follow a command.
FOLLOWING = {f"{kind}.{name}" for kind in ("Sandbox", "Session") for name in ("start", "start_python", "stream", "stream_python")}


def test_both_sandboxes_differ_only_by_asyncio():
    plain, of_asyncio = methods("_sandbox.py"), methods("_async.py")
    both = plain.keys() & of_asyncio.keys()
    assert len(both) > 90
    assert [name for name in sorted(both) if plain[name][0] != of_asyncio[name][0]] == []
    different = {name for name in both if plain[name][1] != of_asyncio[name][1]}
    assert different == {f"Sandbox.{name}" for name in DIFFERENT.split()} | FOLLOWING


def test_commands_and_files():
    async def main():
        async with AsyncSandbox() as box:
            await box.write_file("f", "hi\n")
            result = await box.bash("cat f")
            assert result.stdout == "hi\n"
            await box.kv.set("k", 1)
            assert await box.kv.get("k") == 1
            with pytest.raises(errors.FileNotFoundError):
                await box.read_file("none")
            fork = await box.fork()
            await fork.write_file("f", "B")
            assert await box.read_file("f") == "hi\n"
        assert box.closed

    asyncio.run(main())


def test_tasks_that_open_a_sandbox_at_the_same_time_share_it():
    async def write(box, name):
        await box.open()
        await box.write_file(name, "x")

    async def main():
        box = AsyncSandbox()
        names = [str(number) for number in range(8)]
        await asyncio.gather(*(write(box, name) for name in names))
        assert [entry.name for entry in await box.list_files()] == names
        await box.close()

    asyncio.run(main())


def test_sandboxes_run_beside_each_other():
    async def main():
        boxes = [await AsyncSandbox() for _ in range(4)]
        results = await asyncio.gather(*(box.bash(f"echo {number}") for number, box in enumerate(boxes)))
        assert [result.stdout for result in results] == ["0\n", "1\n", "2\n", "3\n"]

    asyncio.run(main())


def test_a_cancelled_command_is_over():
    async def main():
        running = asyncio.Event()

        async def started() -> None:
            running.set()

        async with AsyncSandbox(preset="permissive", tools=[started]) as box:
            task = asyncio.ensure_future(box.bash("tool started '{}'; sleep 200"))
            await running.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            rows = await box.history(1, name="bash")
            assert rows[0].exit_code != 0
            assert (await box.bash("echo next")).stdout == "next\n"

    asyncio.run(main())


def test_sessions_remember():
    async def main():
        async with AsyncSandbox() as box:
            session = box.session("work")
            await session.bash("cd /tmp")
            assert await session.directory() == "/tmp"
            await session.python("x = 1")
            assert (await session.python("print(x)")).stdout == "1\n"
            assert await session.end()

    asyncio.run(main())


def test_the_import_is_quick_and_light():
    import subprocess
    import sys

    code = "import sys, sandlite; print('asyncio' in sys.modules, 'tempfile' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert said == "False False\n"
