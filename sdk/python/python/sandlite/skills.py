"""Skills: packages that an agent can find, read and run, with JSON in, JSON out and files.

>>> from sandlite import Skills
>>> skills = Skills(":memory:")
>>> pushed = skills.push({
...     "SKILL.md": "---\\nname: shout\\ndescription: Writes a text in capitals.\\n---\\nGive `text`.\\n",
...     "main.sh": "jq '{text: .text | ascii_upcase}' input.json > out/output.json",
... })
>>> skills.run("shout", {"text": "hello"}).output
{'text': 'HELLO'}
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Iterable, List, Mapping, Optional, TypeVar, Union

from . import _native
from ._calls import Call, Content, LimitsLike, _limits, content
from ._pip import Fetching, _paths
from .errors import SandliteError

if TYPE_CHECKING:
    from ._records import Answer, Mount

__all__ = ["Finding", "Skills", "SkillError", "SkillFile", "SkillInfo", "SkillResult", "SkillTool", "lint"]

T = TypeVar("T")
PathLike = Union[str, "os.PathLike[str]"]

#: Mounted catalogs without a directory of their own: the files that a mount shows exist as long as they do.
_mounted: "List[_native.Skills]" = []


@dataclass(frozen=True)
class SkillInfo:
    """A skill in a list: its active version."""

    name: str
    version: str
    description: str
    lang: str
    mode: str
    has_script: bool
    digest: str


@dataclass(frozen=True)
class PushedSkill:
    """The result of a push."""

    name: str
    version: str
    digest: str
    active: bool
    #: Whether the catalog already had exactly this content.
    unchanged: bool
    notes: "list[str]" = field(default_factory=list)


@dataclass(frozen=True)
class SkillFile:
    """An output file of a run."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Finding:
    """A problem of a skill."""

    code: str
    severity: str
    file: str
    message: str
    remedy: str
    line: Optional[int] = None
    category: Optional[str] = None
    matched: Optional[str] = None


class SkillError(SandliteError):
    """A run did not succeed and ``check=True`` was passed, or :meth:`SkillResult.check` was called."""

    def __init__(self, result: "SkillResult") -> None:
        super().__init__(f"skill `{result.skill}` {result.status}: {result.error}")
        #: The result of the run.
        self.result = result


@dataclass(frozen=True)
class SkillResult:
    """The result of a run of a skill. A status other than ``success`` is a result, not an exception.

    >>> skills = Skills(":memory:")
    >>> _ = skills.push({"SKILL.md": "---\\nname: x\\ndescription: Fails.\\n---\\n", "main.sh": "echo why; exit 3"})
    >>> result = skills.run("x")
    >>> result.status, result.error, result.logs, bool(result)
    ('failed', 'command exited with code 3', 'why\\n', False)
    """

    #: The ID of this run.
    run: str
    skill: str
    version: str
    #: ``success``, ``failed`` or ``timeout``.
    status: str
    #: The content of ``output.json``; ``None`` if it was not written.
    output: Any
    files: "tuple[SkillFile, ...]"
    #: Standard output, then standard error.
    logs: str
    error: Optional[str]
    duration_ms: int
    usage: Optional[Mapping[str, int]]
    notes: "tuple[str, ...]"
    _native: Any = field(repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Whether the status is ``success``."""
        return self.status == "success"

    def __bool__(self) -> bool:
        return self.ok

    def check(self) -> "SkillResult":
        """Returns the result if the run succeeded; otherwise raises :class:`SkillError`.

        >>> skills = Skills(":memory:")
        >>> _ = skills.push({"SKILL.md": "---\\nname: note\\ndescription: Writes a note.\\n---\\n", "main.sh": "echo hi > out/files/note.txt"})
        >>> skills.run("note").check().status
        'success'
        """
        if not self.ok:
            raise SkillError(self)
        return self

    def read(self, path: str) -> bytes:
        """Returns the bytes of an output file.

        >>> skills = Skills(":memory:")
        >>> _ = skills.push({"SKILL.md": "---\\nname: note\\ndescription: Writes a note.\\n---\\n", "main.sh": "echo hi > out/files/note.txt"})
        >>> skills.run("note").read("note.txt")
        b'hi\\n'
        """
        data: bytes = self._native.read(path)
        return data

    def save(self, directory: PathLike) -> None:
        """Copies the output files to a directory, which is created if missing. Existing files are not overwritten.

        >>> skills = Skills(":memory:")
        >>> _ = skills.push({"SKILL.md": "---\\nname: note\\ndescription: Writes a note.\\n---\\n", "main.sh": "echo hi > out/files/note.txt"})
        >>> skills.run("note").save("made")
        >>> os.listdir("made")
        ['note.txt']
        """
        self._native.save(os.fspath(directory))


def _result(given: "tuple[str, _native.SkillRun]", check: bool) -> SkillResult:
    said = json.loads(given[0])
    made = SkillResult(
        run=said["run"],
        skill=said["skill"],
        version=said["version"],
        status=said["status"],
        output=said.get("output"),
        files=tuple(SkillFile(**one) for one in said["files"]),
        logs=said["logs"],
        error=said["error"],
        duration_ms=said["duration_ms"],
        usage=said.get("usage"),
        notes=tuple(said["notes"]),
        _native=given[1],
    )
    return made.check() if check else made


@dataclass(frozen=True)
class SkillTool:
    """A skill as a tool for a model: call it with the arguments of its schema.

    >>> skills = Skills(":memory:")
    >>> _ = skills.push({"SKILL.md": "---\\nname: echo\\ndescription: Returns its input.\\n---\\n", "main.sh": "cp input.json out/output.json"})
    >>> [tool] = skills.tools()
    >>> tool.name, tool(input={"a": 1}).output
    ('skill_echo', {'a': 1})
    """

    name: str
    skill: str
    description: str
    input_schema: Mapping[str, Any]
    _is_input: bool = field(repr=False)
    _skills: "Skills" = field(repr=False, compare=False)

    def _input(self, arguments: Mapping[str, Any]) -> Any:
        return dict(arguments) if self._is_input else arguments.get("input")

    def __call__(self, **arguments: Any) -> SkillResult:
        """Runs the skill."""
        return self.run(arguments)

    def run(self, arguments: Mapping[str, Any]) -> SkillResult:
        """Runs the skill with the arguments of a call."""
        return self._skills.run(self.skill, self._input(arguments))

    async def arun(self, arguments: Mapping[str, Any]) -> SkillResult:
        """Same, for ``asyncio``."""
        return await self._skills.arun(self.skill, self._input(arguments))

    def answer(self, arguments: Mapping[str, Any]) -> "Answer":
        """Runs the skill and returns the text for a model: the output as JSON text, or ``Error: …``, also if it cannot be run."""
        try:
            return _answer(self.run(arguments))
        except SandliteError as error:
            return _not_run(error)

    async def aanswer(self, arguments: Mapping[str, Any]) -> "Answer":
        """Same, for ``asyncio``."""
        try:
            return _answer(await self.arun(arguments))
        except SandliteError as error:
            return _not_run(error)


def _answer(result: SkillResult) -> "Answer":
    from ._records import Answer

    if not result.ok:
        logs = f"\n{result.logs}" if result.logs else ""
        return Answer(f"Error: {result.error}{logs}", is_error=True)
    text = result.logs if result.output is None else json.dumps(result.output, indent=2, ensure_ascii=False)
    names = ", ".join(one.path for one in result.files)
    return Answer(f"{text}\n[files: {names}]" if names else text, data=result.output)


def _not_run(error: SandliteError) -> "Answer":
    from ._records import Answer

    return Answer(f"Error: {error}", is_error=True)


def _default_path() -> str:
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.environ.get("SANDLITE_SKILLS") or os.path.join(data, "sandlite", "skills")


class Skills:
    """A catalog of skills: a directory, a sandbox file that contains one, or ``":memory:"``. Defaults to ``$SANDLITE_SKILLS``, or
    to the user's own catalog. ``preset`` and ``limits`` apply to every run.

    >>> skills = Skills(":memory:")
    >>> pushed = skills.push({
    ...     "SKILL.md": "---\\nname: double\\ndescription: Doubles a number.\\n---\\nGive `n`.\\n",
    ...     "main.py": "import json, os\\nn = json.loads(os.environ['SANDBOX_INPUT'])['n']\\n"
    ...                "json.dump({'n': n * 2}, open(os.environ['SANDBOX_OUTPUT'], 'w'))\\n",
    ... })
    >>> skills.run("double", {"n": 21}).output
    {'n': 42}
    """

    def __init__(
        self, path: Optional[PathLike] = None, *, preset: str = "normal", limits: Optional[LimitsLike] = None
    ) -> None:
        place = _default_path() if path is None else os.fspath(path)
        text = None if limits is None else _limits(preset, limits)
        self._native = _native.Skills.open(None if place == ":memory:" else place, preset, text)
        self._path = place

    def __repr__(self) -> str:
        return f"Skills({self._path!r})"

    def push(
        self,
        source: "Union[PathLike, Mapping[str, Content]]",
        *,
        replace: bool = False,
        find_links: Union[PathLike, Iterable[PathLike], None] = None,
        offline: bool = False,
    ) -> PushedSkill:
        """Stores a version of a skill: a directory, a zip file, or files by path. Pushing identical content again has no effect;
        other content for the same version raises unless ``replace`` is set. Packages in ``requirements.txt`` are downloaded by
        this interpreter's pip.

        >>> skills.push({"SKILL.md": "---\\nname: a\\ndescription: Does nothing.\\n---\\n"}).version
        '1.0.0'
        """
        files: "List[tuple[str, bytes]]" = []
        path: Optional[str] = None
        if isinstance(source, Mapping):
            files = [(name, content(value)) for name, value in source.items()]
        else:
            path = os.fspath(source)
        links = [str(link) for link in _paths(find_links)]
        fetching = Fetching()
        pushed = fetching.during(lambda: self._native.push(path, files, replace, (links, offline), fetching))
        return PushedSkill(**json.loads(pushed))

    def list(self, search: Optional[str] = None) -> "List[SkillInfo]":
        """Returns the skills by name; ``search`` selects those whose name or description contains a text.

        >>> [skill.name for skill in skills.list()]
        ['double']
        """
        found: "List[SkillInfo]" = []
        after: Optional[str] = None
        while True:
            data = self._act("list_skills", search=search, after=after)
            found += [SkillInfo(**one) for one in data["skills"]]
            after = data.get("next")
            if after is None:
                return found

    def load(self, name: str, file: Optional[str] = None) -> "dict[str, Any]":
        """Returns the instructions of a skill, or the text of one of its files, with further data for a model.

        >>> loaded = skills.load("double")
        >>> loaded["content"], loaded["location"], loaded["files"]
        ('Give `n`.', '/skills/double/SKILL.md', ['SKILL.md', 'main.py'])
        """
        loaded: "dict[str, Any]" = self._act("load_skill", name=name, file=file)
        return loaded

    def versions(self, name: str) -> "List[dict[str, Any]]":
        """Returns the versions of a skill, newest first.

        >>> [(one["version"], one["active"]) for one in skills.versions("double")]
        [('1.0.0', True)]
        """
        versions: "List[dict[str, Any]]" = self._act("skill_versions", name=name)["versions"]
        return versions

    def diff(self, name: str, old: str, new: Optional[str] = None) -> "dict[str, Any]":
        """Compares two versions of a skill; ``new`` defaults to the active one.

        >>> [(one["path"], one["status"]) for one in skills.diff("double", "1.0.0")["files"]]
        [('SKILL.md', 'unchanged'), ('main.py', 'unchanged')]
        """
        compared: "dict[str, Any]" = self._act("diff_skill", name=name, **{"from": old, "to": new})
        return compared

    def activate(self, name: str, version: str) -> None:
        """Makes a version the default of its skill.

        >>> skills.activate("double", "1.0.0")
        """
        self._act("activate_skill", name=name, version=version)

    def delete(self, name: str, version: Optional[str] = None) -> "List[str]":
        """Deletes a version, or the skill with all its versions, and returns the deleted versions. ``"latest"`` is the active version.

        >>> skills.delete("double")
        ['1.0.0']
        """
        reference = name if version is None else f"{name}@{version}"
        deleted: "List[str]" = self._act("delete_skill", name=reference)["deleted"]
        return deleted

    def run(
        self,
        name: str,
        input: Any = None,
        *,
        version: Optional[str] = None,
        files: Optional[Mapping[str, Content]] = None,
        env: Optional[Mapping[str, str]] = None,
        session: Optional[str] = None,
        check: bool = False,
    ) -> SkillResult:
        """Runs a skill in a fresh sandbox, or in that of ``session``. ``files`` appear in ``/sandbox/input`` by name.

        >>> skills.run("double", {"n": 4}, check=True).output
        {'n': 8}
        """
        call = self._call(name, input, version, files, env, session, check)
        return call.read(call.ask(None))

    async def arun(
        self,
        name: str,
        input: Any = None,
        *,
        version: Optional[str] = None,
        files: Optional[Mapping[str, Content]] = None,
        env: Optional[Mapping[str, str]] = None,
        session: Optional[str] = None,
        check: bool = False,
    ) -> SkillResult:
        """Same, for ``asyncio``: cancelling it ends the run.

        >>> (await skills.arun("double", {"n": 5})).output
        {'n': 10}
        """
        from ._async import _finish

        return await _finish(self._call(name, input, version, files, env, session, check))

    def _call(
        self,
        name: str,
        input: Any,
        version: Optional[str],
        files: Optional[Mapping[str, Content]],
        env: Optional[Mapping[str, str]],
        session: Optional[str],
        check: bool,
    ) -> "Call[SkillResult]":
        reference = name if version in (None, "latest") else f"{name}@{version}"
        options = json.dumps(
            {
                "input": None if input is None else json.dumps(input),
                "env": list((env or {}).items()),
                "session": session,
            }
        )
        given = [(path, content(value)) for path, value in (files or {}).items()]
        return Call(lambda done: self._native.run(reference, options, given, done), lambda answer: _result(answer, check))

    def tools(self, prefix: str = "skill_", names: Optional[Iterable[str]] = None) -> "List[SkillTool]":
        """Returns each runnable skill as a tool: name, description, schema of the arguments, and a callable. ``names`` selects skills;
        without it, there are at most 200 tools.

        >>> [(tool.name, tool.skill) for tool in skills.tools()]
        [('skill_double', 'double')]
        """
        wanted = None if names is None else sorted(set(names))
        return [
            SkillTool(one["name"], one["skill"], one["description"], one["input_schema"], one["is_input"], self)
            for one in json.loads(self._native.tools(prefix, wanted))
        ]

    def mount(self, guest: str = "/skills") -> Mount:
        """Returns a read-only mount with the active version of each skill.

        >>> from sandlite import Sandbox
        >>> Sandbox(mounts=[skills.mount()]).bash("ls /skills/double").stdout
        'SKILL.md\\nmain.py\\n'
        """
        from ._records import Mount

        if self._native not in _mounted and not os.path.isdir(self._path):
            _mounted.append(self._native)
        return Mount(self._native.directory(), guest)

    def call_action(self, name: str, arguments: Optional[Mapping[str, Any]] = None) -> "Answer":
        """Performs an action on skills by name, as MCP does.

        >>> skills.call_action("list_skills").text
        'double 1.0.0: Doubles a number.'
        """
        from ._records import Answer

        said = json.loads(self._native.call_action(name, json.dumps(dict(arguments or {}))))
        return Answer(said["text"], said["data"], said["is_error"])

    def _act(self, action: str, **arguments: Any) -> Any:
        return self.call_action(action, {key: value for key, value in arguments.items() if value is not None}).data


def _front_matter(text: str) -> "dict[str, Any]":
    """Returns the front matter of a ``SKILL.md``. Raises :class:`SandliteError` if it has none."""
    fields: "dict[str, Any]" = json.loads(_native.front_matter(text))
    return fields


def lint(path: PathLike, *, security: bool = False) -> "list[Finding]":
    """Returns the problems of a skill at a path; with ``security`` also the findings of the security scan.

    >>> import pathlib
    >>> _ = pathlib.Path("SKILL.md").write_text("---\\nname: x\\n---\\n")
    >>> [(one.code, one.line, one.message) for one in lint("SKILL.md") if one.severity == "error"]
    [('description', 1, 'description is required')]
    """
    return [Finding(**one) for one in json.loads(_native.lint_skill(os.fspath(path), security))]
