"""SkillFS's names over Sandlite: a program for SkillFS 0.1 runs with other imports, without E2B, GitHub or a network.

>>> import asyncio, tempfile
>>> from sandlite.skillfs.sandboxes import E2BSandbox
>>> from sandlite.skillfs.storage import LocalBundleStore
>>> from sandlite.skillfs.workspaces import Workspace
>>> async def main(directory):
...     sandbox = E2BSandbox.create()
...     workspace = Workspace(workspace_id="mine", sandbox=sandbox, store=LocalBundleStore(directory))
...     await workspace.load()
...     sandbox.run_command("echo 'Hello, world!' > hello.txt")
...     workspace.save("say hello")
...     said = sandbox.run_command("cat hello.txt").logs
...     sandbox.close()
...     return said
>>> with tempfile.TemporaryDirectory() as directory:
...     asyncio.run(main(directory))
'Hello, world!\\n'

What is different: the sandbox is one of Sandlite, in memory, with its limits and without a network; there is no ``git`` inside, and
:class:`~sandlite.skillfs.repositories.GitRepo` does the same from outside; a fresh workspace starts with a built-in skeleton; everything below the
repository's root is saved, as nothing reads ``.gitignore``. The bundles are git's: ``git clone my-workspace.bundle`` works."""

from __future__ import annotations

from .repositories import GitRepo
from .sandboxes import E2BSandbox, SandboxConfig, SandboxConnection
from .storage import BundleStore
from .workspaces import Workspace

__all__ = ["BundleStore", "E2BSandbox", "GitRepo", "SandboxConfig", "SandboxConnection", "Workspace"]
