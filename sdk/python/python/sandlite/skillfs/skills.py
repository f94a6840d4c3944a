"""``skillfs.skills``: the ``SKILL.md`` files of a workspace."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from html import escape
from typing import Any, Mapping, Optional

from ..errors import SandliteError
from ..skills import _front_matter
from .sandboxes import SandboxConnection

__all__ = ["SkillCatalog", "SkillMetadata", "SkillParseError", "parse_yaml_frontmatter"]

DEFAULT_SKILL_DIRS = ("src/skills", "src/servers")


@dataclass
class SkillMetadata:
    """The front matter of a ``SKILL.md``."""

    name: str
    description: str
    location: str
    short_description: Optional[str] = None


class SkillParseError(Exception):
    """The front matter of a ``SKILL.md`` is not what it should be."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path


class SkillCatalog:
    """The skills below some directories of the repository: described at once, read when they are asked for."""

    def __init__(
        self, sandbox: SandboxConnection, repo_root: Optional[str] = None, skill_dirs: "Optional[list[str]]" = None
    ) -> None:
        self.sandbox = sandbox
        self.repo_root = repo_root if repo_root is not None else sandbox.default_repo_root
        self.skill_dirs = list(DEFAULT_SKILL_DIRS) if skill_dirs is None else list(skill_dirs)
        self._skills: "dict[str, SkillMetadata]" = {}

    async def scan(self) -> int:
        """Looks for skills, and returns how many there are. Of two with one name, the first counts."""
        self._skills.clear()
        for directory in self.skill_dirs:
            top = posixpath.join(self.repo_root, directory)
            try:
                paths = self.sandbox.glob("**/SKILL.md", root=top)
            except FileNotFoundError:
                continue
            for path in paths:
                found = _metadata(self.sandbox.read_file_text(path, errors="replace"), path)
                if found is not None:
                    self._skills.setdefault(found.name, found)
        return len(self._skills)

    def list_skills(self) -> "list[SkillMetadata]":
        """All of them."""
        return list(self._skills.values())

    def get_metadata(self, name: str) -> Optional[SkillMetadata]:
        """What is known of one."""
        return self._skills.get(name)

    def get_skill(self, name: str) -> Optional[str]:
        """The whole ``SKILL.md`` of one; ``None`` if there is none."""
        known = self._skills.get(name)
        if known is None:
            return None
        try:
            return self.sandbox.read_file_text(known.location, errors="replace")
        except FileNotFoundError:
            return None

    def format_for_tool_description(self) -> str:
        """The skills as a model reads them in the description of a tool."""
        if not self._skills:
            return "No skills are currently available."
        lines = ["Load a skill before you do what it is about.", "", "<available_skills>"]
        for skill in self._skills.values():
            short = skill.short_description
            lines += [
                "  <skill>",
                f"    <name>{escape(skill.name)}</name>",
                f"    <description>{escape(skill.description)}</description>",
                *([f"    <short_description>{escape(short)}</short_description>"] if short else []),
                f"    <location>{escape(skill.location)}</location>",
                "  </skill>",
            ]
        return "\n".join([*lines, "</available_skills>"])

    def __len__(self) -> int:
        return len(self._skills)

    def __contains__(self, name: object) -> bool:
        return name in self._skills


def _metadata(text: str, path: str) -> Optional[SkillMetadata]:
    try:
        return _described(_front_matter(text), path)
    except SandliteError:
        return None


def parse_yaml_frontmatter(yaml_content: str, path: str) -> Optional[SkillMetadata]:
    """The front matter without its delimiters; ``None`` if it lacks a name or a description.

    >>> parse_yaml_frontmatter("name: counter\\ndescription: Counts words.", "SKILL.md").name
    'counter'
    """
    try:
        return _described(_front_matter(f"---\n{yaml_content}\n---\n"), path)
    except SandliteError as error:
        raise SkillParseError(path, str(error)) from error


def _described(fields: "Mapping[str, Any]", path: str) -> Optional[SkillMetadata]:
    """``name``, ``description`` and ``metadata.short-description``."""
    name, description = _text(fields.get("name")), _text(fields.get("description"))
    if name is None or description is None:
        return None
    more = fields.get("metadata")
    return SkillMetadata(name, description, path, _text(more.get("short-description")) if isinstance(more, Mapping) else None)


def _text(value: Any) -> Optional[str]:
    return None if value is None or isinstance(value, (list, dict)) else str(value).strip() or None
