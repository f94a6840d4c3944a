"""``skillfs.workspaces``: a repository in a sandbox that is loaded from a git bundle and saved as one."""

from __future__ import annotations

import os
import posixpath
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Mapping, Optional

from .repositories import GitRepo
from .sandboxes import E2BSandbox, SandboxConnection
from .skills import SkillCatalog
from .storage import BundleStore

__all__ = ["BUNDLE_PATH_TEMPLATE", "Workspace", "load_agent_state", "save_agent_state"]

#: Where SkillFS keeps bundles in its sandbox. Here they go straight to the store.
BUNDLE_PATH_TEMPLATE = "/tmp/skillfs-bundles/{agent_id}.bundle"

_LEFT_OUT = {".DS_Store", "Thumbs.db", "__pycache__", ".git", ".gitignore", ".pytest_cache"}

_COMMIT = {
    "name": "git_commit",
    "description": "Commits all changes of the workspace and stores them. Without a message, one is made from the changed files.",
    "input_schema": {
        "type": "object",
        "properties": {"message": {"type": "string", "description": "The message, such as `feat: add the parser`."}},
        "required": [],
    },
}


def load_agent_state(
    agent_id: str, sandbox: SandboxConnection, bundle_store: BundleStore, repo_root: Optional[str] = None
) -> GitRepo:
    """Restores the repository from the agent's bundle, or makes a fresh one.

    Raises :class:`RuntimeError` if there is a bundle and the root is not empty."""
    repo = GitRepo(sandbox, repo_root)
    with tempfile.TemporaryDirectory() as directory:
        bundle = Path(directory) / "loaded.bundle"
        if not bundle_store.download_bundle(agent_id, bundle):
            repo.init_empty()
            return repo
        box = repo.sandbox.box
        if box.exists(repo.root) and box.list_files(repo.root, hidden=True):
            raise RuntimeError(f"cannot restore into {repo.root!r}: it is not empty")
        repo.restore_from_host(bundle)
    return repo


def save_agent_state(
    agent_id: str,
    sandbox: SandboxConnection,
    git_repo: GitRepo,
    bundle_store: BundleStore,
    commit_message: Optional[str] = None,
) -> None:
    """Commits what changed, and stores all commits as a bundle."""
    if commit_message is None:
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        commit_message = f"Auto-checkpoint for agent {agent_id} at {now}"
    git_repo.commit(commit_message)
    _store(agent_id, git_repo, bundle_store)


def _store(agent_id: str, git_repo: GitRepo, bundle_store: BundleStore) -> str:
    with tempfile.TemporaryDirectory() as directory:
        bundle = Path(directory) / "saved.bundle"
        head = git_repo.export_to_host(bundle)
        bundle_store.upload_bundle(agent_id, bundle)
    return head


class Workspace:
    """A repository in a sandbox that outlives it.

    ``mcp_servers`` are given to the sandbox if ``generate_mcp_tools`` is set: ``from src.servers.NAME import connect_NAME, TOOL``, where the
    functions are awaited. The servers run on this machine, and the host has the connection. ``skills`` is ``{"local": DIRECTORY}``, whose
    skills are copied to ``src/skills`` if ``load_skills`` is set."""

    def __init__(
        self,
        workspace_id: str,
        sandbox: SandboxConnection,
        store: BundleStore,
        repo_root: Optional[str] = None,
        mcp_servers: "Optional[Mapping[str, Mapping[str, Any]]]" = None,
        generate_mcp_tools: bool = False,
        skills: "Optional[Mapping[str, Any]]" = None,
        load_skills: bool = False,
    ) -> None:
        self.workspace_id = workspace_id
        self.sandbox = sandbox
        self.store = store
        self.repo_root = repo_root if repo_root is not None else sandbox.default_repo_root
        self.mcp_servers = dict(mcp_servers or {})
        self.generate_mcp_tools = generate_mcp_tools
        self.skills = dict(skills or {})
        self.load_skills = load_skills
        #: The repository, once the workspace is loaded.
        self.git_repo: Optional[GitRepo] = None
        #: The skills, once the workspace is loaded.
        self.skill_catalog: Optional[SkillCatalog] = None
        self._is_loaded = False

    @property
    def is_loaded(self) -> bool:
        """Whether :meth:`load` was called."""
        return self._is_loaded

    async def load(self) -> None:
        """Restores what was saved, or begins afresh; then sets up MCP servers and skills. Works once."""
        if self._is_loaded:
            raise RuntimeError(f"workspace {self.workspace_id!r} is loaded already")
        self.git_repo = load_agent_state(self.workspace_id, self.sandbox, self.store, self.repo_root)
        if self.generate_mcp_tools and self.mcp_servers:
            await self.setup_mcp_servers(self.mcp_servers)
        if self.load_skills and self.skills:
            await self.setup_skills(self.skills)
        self.skill_catalog = SkillCatalog(self.sandbox, self.repo_root)
        await self.skill_catalog.scan()
        self._is_loaded = True

    def save(self, commit_message: Optional[str] = None) -> None:
        """Commits what changed, and stores all commits as a git bundle."""
        save_agent_state(self.workspace_id, self.sandbox, self._loaded(), self.store, commit_message)

    def _loaded(self) -> GitRepo:
        if not self._is_loaded or self.git_repo is None:
            raise RuntimeError(f"workspace {self.workspace_id!r} is not loaded: call load() first")
        return self.git_repo

    def get_commit_tool(self) -> "tuple[dict[str, Any], Callable[..., dict[str, Any]]]":
        """The tool ``git_commit`` for a runner: its schema, and its function."""
        repo = self._loaded()

        def commit(message: Optional[str] = None, **_: Any) -> "dict[str, Any]":
            try:
                changed = repo.status()
                if not changed.strip():
                    return {"status": "no_changes", "message": "No changes to commit", "git_status": ""}
                text = message if message is not None else _message(changed)
                repo.commit(text)
                head = _store(self.workspace_id, repo, self.store)
                return {
                    "status": "committed",
                    "commit_hash": head[:7],
                    "commit_message": text,
                    "files_changed": changed,
                    "bundle_saved": True,
                }
            except Exception as error:  # Whatever goes wrong is for the model.
                return {"error": str(error)}

        return dict(_COMMIT), commit

    async def setup_mcp_servers(self, servers_config: "Mapping[str, Mapping[str, Any]]") -> "dict[str, Path]":
        """Connects to MCP servers, and writes their modules to ``src/servers``. Returns the directory of each."""
        if self.git_repo is None:
            raise RuntimeError(f"workspace {self.workspace_id!r} is not loaded: call load() first")
        if not isinstance(self.sandbox, E2BSandbox):
            raise TypeError("MCP servers need an E2BSandbox of sandlite.skillfs")
        import asyncio

        loop = asyncio.get_running_loop()
        files = await loop.run_in_executor(None, self.sandbox.connect_mcp, servers_config)
        top = posixpath.join(self.repo_root, "src/servers")
        for path, text in files:
            self.sandbox.write_file(posixpath.join(top, path), text)
        servers = self.sandbox.box.mcp_servers()
        return {server.name: Path(top) / server.module for server in servers}

    async def setup_skills(self, skills_config: "Mapping[str, Any]") -> "dict[str, Path]":
        """Copies the skills of directories of this machine to ``src/skills``. Returns where each is."""
        if self.git_repo is None:
            raise RuntimeError(f"workspace {self.workspace_id!r} is not loaded: call load() first")
        if "github" in skills_config:
            raise ValueError("skills from GitHub need a network: clone them, and give their directory as `local`")
        given = skills_config.get("local", [])
        top = posixpath.join(self.repo_root, "src/skills")
        copied: "dict[str, Path]" = {}
        for directory in [given] if isinstance(given, (str, os.PathLike)) else given:
            for item in sorted(Path(directory).iterdir()) if Path(directory).is_dir() else []:
                if item.name in _LEFT_OUT or item.name in copied:
                    continue
                target = posixpath.join(top, item.name)
                if item.is_dir():
                    await self.sandbox.upload_directory(item, target, exclude=_LEFT_OUT)
                else:
                    self.sandbox.upload_file(item, target)
                copied[item.name] = Path(target)
        return copied


def _message(status: str) -> str:
    """A conventional message from what ``status`` lists."""
    names: "dict[str, list[str]]" = {"add": [], "update": [], "remove": []}
    for line in status.splitlines():
        verb = {"??": "add", " D": "remove"}.get(line[:2], "update")
        names[verb].append(line[3:])
    paths = [path for found in names.values() for path in found]
    said = [f"{verb} {found[0] if len(found) == 1 else f'{len(found)} files'}" for verb, found in names.items() if found]
    text = ", ".join(said)
    text = text if len(text) <= 60 else text[:57] + "..."
    if all(path.lower().endswith((".md", ".rst", ".txt")) for path in paths):
        kind = "docs"
    elif all("test" in path.lower() for path in paths):
        kind = "test"
    elif names["add"] and not names["update"] and not names["remove"]:
        kind = "feat"
    elif names["remove"] and not names["add"] and not names["update"]:
        kind = "refactor"
    else:
        kind = "chore"
    return f"{kind}: {text}"
