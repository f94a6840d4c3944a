"""``SandboxShell``: sandfs's own commands in its dialect; everything else runs in the sandbox's bash."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Callable, Dict, Iterable, List, Optional, Set, Tuple, Union

from .exceptions import InvalidOperation, SandboxError
from .policies import VisibilityView
from .pyexec import PythonExecutor
from .vfs import VirtualFileSystem


@dataclass
class CommandResult:
    """The result of a command."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0


CommandHandler = Callable[[List[str]], Union[CommandResult, str, None]]


def _wrong(text: str) -> CommandResult:
    return CommandResult(stderr=text, exit_code=2)


def _options(words: List[str], known: Dict[str, str]) -> Tuple[Set[str], List[str]]:
    """Splits words into options, by their short names, and the rest."""
    return {known[word] for word in words if word in known}, [word for word in words if word not in known]


class SandboxShell:
    """Runs command lines in order until one fails.

    ``view`` hides nodes from all of them, ``allowed_commands`` are the only ones that run, and output larger than
    ``max_output_bytes`` is rejected. Unknown commands run in the sandbox's bash unless ``host_fallback=False``.
    """

    def __init__(
        self,
        vfs: VirtualFileSystem,
        *,
        python_executor: Optional[PythonExecutor] = None,
        env: Optional[Dict[str, str]] = None,
        view: Optional[VisibilityView] = None,
        allowed_commands: Optional[Iterable[str]] = None,
        max_output_bytes: Optional[int] = None,
        host_fallback: bool = True,
    ) -> None:
        self.vfs = vfs
        self.env: Dict[str, str] = dict(env or {})
        self.py_exec = python_executor or PythonExecutor(vfs)
        self.view = view or VisibilityView()
        self.allowed_commands: Optional[Set[str]] = set(allowed_commands) if allowed_commands else None
        self.max_output_bytes = max_output_bytes
        self.host_fallback = host_fallback
        self.commands: Dict[str, CommandHandler] = {}
        self.command_docs: Dict[str, str] = {}
        for name, handler, description in (
            ("pwd", self._pwd, "Print working directory"),
            ("cd", self._cd, "Change directory"),
            ("ls", self._ls, "List directory contents"),
            ("cat", self._cat, "Print file contents"),
            ("touch", self._touch, "Create empty file"),
            ("mkdir", self._mkdir, "Create directories"),
            ("rm", self._rm, "Remove files or directories"),
            ("tree", self._tree, "Render tree view"),
            ("write", self._write, "Write text to file"),
            ("append", self._append, "Append text to file"),
            ("grep", self._grep, "Search files (non-recursive)"),
            ("rg", lambda words: self._grep(["-r", *words]), "Search files recursively"),
            ("python", self._python, "Execute Python code in the sandbox"),
            ("python3", self._python, "Execute Python code in the sandbox"),
            ("host", self._host, "Run a command of the sandbox in a directory"),
            ("bash", lambda words: self._run(["bash", *words]), "Run bash in the sandbox"),
            ("sh", lambda words: self._run(["sh", *words]), "Run sh in the sandbox"),
            ("help", self._help, "Show available commands"),
        ):
            self.register_command(name, handler, description=description)

    def register_command(self, name: str, handler: CommandHandler, *, description: str = "") -> None:
        """Adds a command: a function that receives its arguments and returns a result, a text or ``None``."""
        self.commands[name] = handler
        self.command_docs[name] = description

    def available_commands(self) -> List[str]:
        """Returns the names of the shell's own commands."""
        return sorted(self.commands)

    def exec(self, command: str) -> CommandResult:
        """Runs lines until one fails, and returns the result of the last one that ran."""
        result = CommandResult()
        for line in filter(None, (line.strip() for line in command.splitlines())):
            result = self._exec(line)
            if result.exit_code != 0:
                break
        return result

    def _exec(self, line: str) -> CommandResult:
        try:
            words = shlex.split(line)
        except ValueError as error:
            return _wrong(str(error))
        if not words:
            return CommandResult()
        name, handler = words[0], self.commands.get(words[0])
        if self.allowed_commands is not None and name not in self.allowed_commands:
            return CommandResult(stderr=f"Command '{name}' is disabled in this shell", exit_code=1)
        if handler is None and not self.host_fallback:
            return CommandResult(stderr=f"Unknown command: {name}", exit_code=127)
        try:
            done = self._run(words) if handler is None else handler(words[1:])
        except SandboxError as error:
            return CommandResult(stderr=str(error), exit_code=1)
        except Exception as error:  # A registered function.
            return CommandResult(stderr=f"{name} failed: {error}", exit_code=1)
        result = done if isinstance(done, CommandResult) else CommandResult(stdout=done or "")
        most = self.max_output_bytes
        if most is not None and len(result.stdout) + len(result.stderr) > most:
            return CommandResult(stderr=f"Output limit ({most} bytes) exceeded", exit_code=1)
        return result

    def _run(self, words: List[str], path: Optional[str] = None) -> CommandResult:
        """Runs a command of the sandbox, in its bash."""
        line = shlex.join(words)
        if path is not None:
            if not self.vfs.exists(self._see(path)):
                return CommandResult(stderr=f"[Errno 2] No such file or directory: {path!r}", exit_code=127)
            line = f"cd {shlex.quote(str(self.vfs._normalize(path)))} && {line}"
        result = self.vfs.run(line, view=self.view, env=self.env)
        return CommandResult(result.stdout, result.stderr, result.exit_code)

    def _see(self, path: str) -> str:
        """Returns a path that is not hidden; sandfs reports a hidden one. Policies are not inherited."""
        if not self.view.allows(self.vfs._policy(self.vfs._normalize(path))):
            raise InvalidOperation(f"Path {path} is hidden for this view")
        return path

    def _pwd(self, words: List[str]) -> str:
        return self.vfs.pwd()

    def _cd(self, words: List[str]) -> Union[CommandResult, str]:
        return self.vfs.cd(self._see(words[0])) if len(words) == 1 else _wrong("cd expects exactly one path")

    def _ls(self, words: List[str]) -> Union[CommandResult, str]:
        options, paths = _options(words, {"-l": "long", "--long": "long"})
        if any(path.startswith("-") for path in paths):
            return self._run(["ls", *words])
        blocks = []
        for path in paths or [self.vfs.pwd()]:
            entries = self.vfs.ls(self._see(path), view=self.view)
            if "long" in options:
                text = "\n".join(f"{'d' if entry.is_dir else '-'} {entry.path}" for entry in entries)
            else:
                text = "  ".join(f"{entry.name}/" if entry.is_dir else entry.name for entry in entries)
            blocks += [f"{path}:", text] if len(paths) > 1 else [text]
        return "\n".join(filter(None, blocks))

    def _cat(self, words: List[str]) -> Union[CommandResult, str]:
        if not words:
            return _wrong("cat expects at least one file")
        return "".join([self.vfs.read_file(self._see(path)) for path in words])

    def _touch(self, words: List[str]) -> Optional[CommandResult]:
        for path in words:
            self.vfs.touch(self._see(path))
        return None if words else _wrong("touch expects at least one file")

    def _mkdir(self, words: List[str]) -> Optional[CommandResult]:
        options, paths = _options(words, {"-p": "parents", "--parents": "parents"})
        for path in paths:
            self.vfs.mkdir(self._see(path), parents="parents" in options, exist_ok="parents" in options)
        return None if paths else _wrong("mkdir expects a path")

    def _rm(self, words: List[str]) -> Optional[CommandResult]:
        options, paths = _options(words, dict.fromkeys(("-r", "-rf", "-R", "--recursive"), "recursive"))
        for path in paths:
            self.vfs.remove(self._see(path), recursive="recursive" in options)
        return None if paths else _wrong("rm expects a target")

    def _tree(self, words: List[str]) -> str:
        return self.vfs.tree(self._see(words[0]) if words else None, view=self.view)

    def _write(self, words: List[str]) -> Optional[CommandResult]:
        if not words:
            return _wrong("write expects a target path")
        text: List[str] = []
        rest, append = words[1:], False
        while rest:
            word = rest.pop(0)
            # A text may be an option, and an option without a text is a text.
            if word == "--append":
                append = True
            else:
                text.append(rest.pop(0) if word == "--text" and rest else word)
        self.vfs.write_file(self._see(words[0]), " ".join(text), append=append)
        return None

    def _append(self, words: List[str]) -> Optional[CommandResult]:
        if len(words) < 2:
            return _wrong("append expects a path and text")
        self.vfs.append_file(self._see(words[0]), " ".join(words[1:]))
        return None

    def _grep(self, words: List[str]) -> Union[CommandResult, str]:
        options, rest = _options(
            words,
            {
                **dict.fromkeys(("-r", "-R", "--recursive"), "recursive"),
                **dict.fromkeys(("-i", "--ignore-case"), "ignore_case"),
                **dict.fromkeys(("-n", "--line-number"), "numbers"),
                **dict.fromkeys(("-e", "--regex"), "regex"),
            },
        )
        if not rest:
            return _wrong("Missing pattern" if words not in ([], ["-r"]) else "grep expects a pattern")
        text = rest[0] if "regex" in options else re.escape(rest[0])
        pattern = re.compile(text, re.IGNORECASE if "ignore_case" in options else 0)
        found = []
        for top in rest[1:] or [self.vfs.pwd()]:
            for path, node in self.vfs.iter_files(self._see(top), recursive="recursive" in options):
                try:
                    self._see(str(path))
                except InvalidOperation:
                    continue
                for number, line in enumerate(node.read().splitlines(), start=1):
                    if pattern.search(line):
                        found.append(f"{path}:{number}:{line}" if "numbers" in options else f"{path}:{line}")
        return "\n".join(found)

    def _python(self, words: List[str]) -> Union[CommandResult, str]:
        if not words:
            return _wrong("python expects code")
        code = " ".join(words[1:] if words[0] == "-c" and len(words) > 1 else words)
        return self.py_exec.run(code, view=self.view).stdout

    def _host(self, words: List[str]) -> CommandResult:
        path, rest = None, list(words)
        while rest and rest[0] in ("-p", "--path", "-C"):
            if len(rest) < 2:
                return _wrong("host expects a path after -p/--path")
            path, rest = rest[1], rest[2:]
        rest = rest[1:] if rest[:1] == ["--"] else rest
        return self._run(rest, path) if rest else _wrong("host expects a command to run")

    def _help(self, words: List[str]) -> str:
        lines = [f"  {name} - {self.command_docs[name]}" for name in self.available_commands()]
        return "\n".join(["Available commands:", *lines, "Other commands run in the sandbox's bash."])


__all__ = ["CommandResult", "SandboxShell"]
