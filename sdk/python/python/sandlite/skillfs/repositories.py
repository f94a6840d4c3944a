"""``skillfs.repositories``: the repository of a workspace. Its commits are checkpoints of the sandbox."""

from __future__ import annotations

import posixpath
import tempfile
import uuid
from pathlib import Path
from typing import Optional

from .._records import Diff
from ..errors import SandliteError
from .sandboxes import E2BSandbox, ExecutionResult, SandboxConnection

__all__ = ["DEFAULT_GITIGNORE", "DEFAULT_GIT_USER_EMAIL", "DEFAULT_GIT_USER_NAME", "GitRepo"]

DEFAULT_GIT_USER_NAME = "skillfs-agent"
DEFAULT_GIT_USER_EMAIL = "agent@skillfs.local"
DEFAULT_GITIGNORE = "__pycache__/\n*.pyc\n.env\n.venv/\n"

#: A fresh workspace.
_SKELETON = {
    ".gitignore": DEFAULT_GITIGNORE,
    "src/__init__.py": "",
    "src/servers/__init__.py": "",
    "src/skills/.gitkeep": "",
    "workspace/.gitkeep": "",
}


class GitRepo:
    """The repository at ``root`` of a sandbox, without a ``git`` inside: a commit is a checkpoint, and bundles are written and read here.

    >>> from sandlite.skillfs.sandboxes import E2BSandbox
    >>> sandbox = E2BSandbox.create()
    >>> repo = GitRepo(sandbox)
    >>> repo.init_empty()
    >>> repo.commit("begin").exit_code, repo.commit("again").logs
    (0, 'nothing to commit, working tree clean\\n')
    >>> sandbox.close()
    """

    def __init__(self, sandbox: SandboxConnection, root: Optional[str] = None) -> None:
        if not isinstance(sandbox, E2BSandbox):
            raise TypeError(f"a repository needs an E2BSandbox of sandlite.skillfs, not {type(sandbox).__name__}")
        self.sandbox = sandbox
        self.root = root if root is not None else sandbox.default_repo_root
        #: The version that was committed last; ``None`` if nothing was.
        self._committed: Optional[int] = None
        self._first = self._now()

    def _now(self) -> int:
        return self.sandbox.box.log(limit=1)[0].version

    def _changes(self) -> Diff:
        base = self._first if self._committed is None else self._committed
        return self.sandbox.box.diff(f"v{base}", "HEAD", [self.root])

    def init_empty(self) -> None:
        """Makes the directories of a fresh workspace. Nothing is committed."""
        for path, content in _SKELETON.items():
            self.sandbox.write_file(posixpath.join(self.root, path), content)

    def restore_from_bundle(self, bundle_path: str, checkout_dir: Optional[str] = None) -> None:
        """Makes the commits of a bundle in the sandbox the history of the repository."""
        with tempfile.TemporaryDirectory() as directory:
            local = Path(directory) / "restored.bundle"
            self.sandbox.download_file(bundle_path, local)
            self.restore_from_host(local, checkout_dir)

    def restore_from_host(self, bundle: Path, checkout_dir: Optional[str] = None) -> None:
        """The same for a bundle of this machine."""
        target = checkout_dir or self.root
        try:
            self.sandbox.box.git_import(bundle, into=target)
        except SandliteError as error:
            raise RuntimeError(f"cannot restore the repository from its bundle: {error}") from error
        self._committed = self._now()

    def status(self) -> str:
        """What changed since the last commit, as ``git status --short`` shows it."""
        marks = {"added": "??", "deleted": " D"}
        lines = []
        for change in self._changes().files:
            if not change.is_directory:
                lines.append(f"{marks.get(change.kind, ' M')} {posixpath.relpath(change.path, self.root)}\n")
        return "".join(lines)

    def diff(self) -> str:
        """The lines that changed since the last commit."""
        return self._changes().patch

    def add_all(self, paths: "Optional[list[str]]" = None) -> None:
        """Does nothing: a commit has everything below the root."""

    def commit(self, message: str) -> ExecutionResult:
        """Commits everything below the root."""
        if not self.status():
            return ExecutionResult("nothing to commit, working tree clean\n", exit_code=1)
        checkpoint = self.sandbox.box.checkpoint(f"skillfs-{uuid.uuid4().hex[:12]}", message)
        self._committed = checkpoint.version
        return ExecutionResult(f"{message}\n", exit_code=0)

    def export_to_host(self, bundle: Path) -> str:
        """Writes all commits as a git bundle of this machine, and returns the newest."""
        try:
            return self.sandbox.box.git_export(bundle, path=self.root, checkpoints=True).head
        except SandliteError as error:
            raise RuntimeError(f"cannot create the git bundle: {error}") from error

    def create_bundle(self, bundle_path: str) -> str:
        """Writes all commits as a git bundle in the sandbox."""
        with tempfile.TemporaryDirectory() as directory:
            local = Path(directory) / "created.bundle"
            self.export_to_host(local)
            self.sandbox.upload_file(local, bundle_path)
        return bundle_path
