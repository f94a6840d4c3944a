"""Runs the list of tests through the Python client: `client.py LIST URL KEY SKILL.zip [async]`."""

import asyncio
import dataclasses
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "sdk/python-client"))
from sandlite_client import APIError, AsyncClient, Client, RunResult  # noqa: E402


def plain(value):
    """What a call returned, as JSON."""
    if dataclasses.is_dataclass(value) and hasattr(value, "items"):
        return {"items": [plain(item) for item in value.items], "next_cursor": value.next_cursor}
    if dataclasses.is_dataclass(value):
        shown = dataclasses.asdict(value)
        return {**shown, "ok": value.ok} if hasattr(value, "ok") else shown
    if hasattr(value, "preset"):
        return {"id": value.id, "name": value.name, "preset": value.preset}
    if hasattr(value, "cancel"):
        return {"id": value.id, "status": value.status}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value


def difference(expected, found, saved, place="$"):
    """Where `found` does not have what is expected, or None."""
    if isinstance(expected, str) and expected.startswith("$"):
        expected = resolve(expected, saved)
    if isinstance(expected, dict) and "$contains" in expected:
        wanted = expected["$contains"]
        if isinstance(found, str):
            return None if wanted in found else f"{place}: {found!r} does not contain {wanted!r}"
        return None if any(difference(wanted, item, saved) is None for item in found) else f"{place}: {wanted} is not in {found}"
    if isinstance(expected, dict) and "$above" in expected:
        return None if found > expected["$above"] else f"{place}: {found} is not above {expected['$above']}"
    if isinstance(expected, dict) and isinstance(found, dict):
        parts = (difference(value, found.get(name), saved, f"{place}.{name}") for name, value in expected.items())
        return next((part for part in parts if part), None)
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        parts = (difference(one, other, saved, f"{place}[{at}]") for at, (one, other) in enumerate(zip(expected, found)))
        return next((part for part in parts if part), None)
    return None if expected == found and type(expected) is type(found) else f"{place}: expected {expected!r}, found {found!r}"


def resolve(value, saved):
    if isinstance(value, str) and value.startswith("$"):
        name, *fields = value[1:].split(".")
        found = saved[name]
        for field in fields:
            found = found[field] if isinstance(found, dict) else getattr(found, field)
        return found
    if isinstance(value, dict):
        return {name: resolve(inner, saved) for name, inner in value.items()}
    return value


class Steps:
    """The steps, whose names are those of the list. All are coroutines; the plain client's calls return at once."""

    def __init__(self, url, key, zip_path, is_async):
        self.url, self.zip, self.is_async = url, zip_path, is_async
        self.make = AsyncClient if is_async else Client
        self.client = self.make(url, key)

    async def call(self, function, *args, **how):
        made = function(*args, **how)
        return await made if self.is_async else made

    async def each(self, iterator):
        if self.is_async:
            async for item in iterator:
                yield item
        else:
            for item in iterator:
                yield item

    async def do(self, name, on, args):
        special = getattr(self, f"do_{name}", None)
        if special:
            return await special(on, **args)
        renamed = {"create": "create_sandbox", "get": "get_sandbox"}.get(name, name)
        positional = {
            "get": ["id"], "get_execution": ["id"], "get_execution_logs": ["id"], "download_file": ["id"], "get_file": ["id"],
            "delete_file": ["id"], "list_file_versions": ["id"], "revoke_key": ["id"], "move": ["from", "to"], "copy": ["from", "to"],
            "diff": ["from"],
        }.get(name, [])
        values = [args.pop(field) for field in positional]
        return await self.call(getattr(on or self.client, renamed), *values, **args)

    async def do_stream_bash(self, box, command):
        out, code = {"stdout": b"", "stderr": b""}, None
        async for event in self.each(box.stream_bash(command)):
            if event.kind == "result":
                code = event.result.exit_code
            else:
                out[event.kind] += event.data
        texts = {name: data.decode("utf-8", "replace") for name, data in out.items()}
        return {**texts, "stdout_hex": out["stdout"].hex(), "exit_code": code}

    async def do_stream_first(self, box, command):
        iterator = box.stream_bash(command)
        async for event in self.each(iterator):
            await (iterator.aclose() if self.is_async else asyncio.to_thread(iterator.close))
            return event.text

    async def do_job_wait(self, job):
        return await self.call(job.wait)

    async def do_job_cancel(self, job):
        await self.call(job.cancel)
        await self.call(job.wait)
        return job

    async def do_write(self, box, path, text, **how):
        return await self.call(box.write, path, text, **how)

    async def do_upload_tree(self, box, path, files):
        with tempfile.TemporaryDirectory() as directory:
            for name, text in files.items():
                (Path(directory) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(directory) / name).write_text(text)
            await self.call(box.upload_tree, directory, path)

    async def do_download_tree(self, box, path):
        with tempfile.TemporaryDirectory() as directory:
            await self.call(box.download_tree, path, directory)
            return contents(directory)

    async def do_export_import(self, box, name):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "box.db"
            await self.call(box.export, path)
            return await self.call(self.client.import_sandbox, path, name)

    async def do_events(self, box, after):
        return [event.change async for event in self.each(box.events(after, follow=False))]

    async def do_follow_until(self, box, after, command, path):
        asked = False
        async for event in self.each(box.events(after)):
            if not asked:
                asked = True
                await self.call(box.bash, command)
            if event.change["path"] == path:
                return event.change

    async def do_register_skill(self, _):
        await self.call(self.client.register_skill, self.zip)

    async def do_download_files(self, _, result):
        with tempfile.TemporaryDirectory() as directory:
            await self.call(self.client.download_files, RunResult(files_url=result.files_url), directory)
            return contents(directory)

    async def do_execution_result(self, _, id):
        async for event in self.each(self.client.execution_events(id)):
            if event.kind == "result":
                return event.result

    async def do_upload_file(self, _, name, text):
        return await self.stored(self.client.upload_file, (), name, text)

    async def do_update_file(self, _, id, name, text):
        return await self.stored(self.client.update_file, (id,), name, text)

    async def stored(self, function, before, name, text):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / name
            path.write_text(text)
            return await self.call(function, *before, path)

    async def do_whoami_with(self, _, key):
        return await self.call(self.make(self.url, key).whoami)


def contents(directory):
    files = (path for path in Path(directory).rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes().decode() for path in files}


async def main():
    path, url, key, zip_path = sys.argv[1:5]
    is_async = sys.argv[5:] == ["async"]
    name = "python-async" if is_async else "python"
    steps, failures = Steps(url, key, zip_path, is_async), 0
    for test in json.loads(Path(path).read_text()):
        saved, problem = {}, None
        for number, step in enumerate(test["steps"]):
            if name not in step.get("only", [name]):
                continue
            problem, found = None, None
            try:
                found = await steps.do(step["do"], saved.get(step.get("on")), resolve(step.get("args", {}), saved))
                if "fails" in step:
                    problem = f"did not fail, returned {found!r}"
            except APIError as error:
                wanted = step.get("fails")
                is_right = wanted and error.status_code == wanted["status"] and error.error_code == wanted.get("code", error.error_code)
                problem = None if is_right else f"failed: {error}"
            if "as" in step:
                saved[step["as"]] = found
            if problem is None and "expect" in step:
                problem = difference(step["expect"], plain(found), saved)
            if problem:
                print(f"FAILED {test['test']}: step {number} ({step['do']}): {problem}")
                failures += 1
                break
        else:
            print(f"passed {test['test']}")
    sys.exit(1 if failures else 0)


asyncio.run(main())
