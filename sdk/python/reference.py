"""Prints the reference of the Python package as Markdown, from its sources: signatures and docstrings.

Reads the sources instead of importing the package, so that it runs without the native half.
"""

import ast
import inspect
from pathlib import Path

PACKAGE = Path(__file__).parent / "python/sandlite"

#: The classes in reading order; the asynchronous ones have the same methods.
CLASSES = [
    *("Sandbox", "Session", "Kv", "Result", "Limit", "Usage", "Process", "Stream", "Chunk", "Mount", "Tool", "ToolCall", "ToolContext"),
    *("CommandCall", "CommandFiles", "Package", "Installation", "PackageError", "Skills", "SkillResult", "SkillError"),
]


def is_public(name):
    return not name.startswith("_")


def signature(node):
    """A function's parameters as they are called: without `self` and without annotations."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    if positional and positional[0].arg in ("self", "cls"):
        positional = positional[1:]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults[-len(positional) or len(arguments.defaults) :]
    words = [parameter(each, default) for each, default in zip(positional, defaults)]
    if arguments.vararg:
        words.append("*" + arguments.vararg.arg)
    elif arguments.kwonlyargs:
        words.append("*")
    words += [parameter(each, default) for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg:
        words.append("**" + arguments.kwarg.arg)
    return f"({', '.join(words)})"


def parameter(argument, default):
    return argument.arg if default is None else f"{argument.arg}={ast.unparse(default)}"


def prose(node):
    """A docstring as Markdown: examples become blocks, and references become code."""
    lines, inside = [], False
    for line in inspect.cleandoc(ast.get_docstring(node, clean=False) or "").splitlines():
        starts = line.startswith((">>>", "..."))
        if starts and not inside:
            if lines and lines[-1]:
                lines.append("")
            lines.append("```text")
            inside = True
        elif inside and not line:
            lines.append("```")
            inside = False
        if inside:
            # Directives of doctest are for the tests alone.
            line = line.split("  # doctest:")[0]
        else:
            for role in ("meth", "class", "func", "attr", "exc", "data", "mod"):
                line = line.replace(f":{role}:`", "`").replace("`~sandlite.errors.", "`")
            line = line.replace("``", "`")
        lines.append(line)
    if inside:
        lines.append("```")
    return "\n".join(lines)


def fields(node):
    """The public attributes of a class with their comments `#: …`, and its properties."""
    return [each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and is_public(each.target.id)]


def comment(source, line):
    """The comment `#: …` above a line."""
    words = []
    while line > 1 and source[line - 2].strip().startswith("#:"):
        line -= 1
        words.insert(0, source[line - 1].strip()[2:].strip())
    return " ".join(words).replace("``", "`")


def is_property(node):
    return any(isinstance(each, ast.Name) and each.id in ("property", "cached_property") for each in node.decorator_list)


def describe_class(node, source, level="##"):
    yield f"\n{level} `{node.name}`\n"
    yield prose(node)
    methods = {each.name: each for each in node.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))}
    init = methods.get("__init__")
    if init:
        yield f"\n```text\n{node.name}{signature(init)}\n```"
    rows = [(each.target.id, comment(source, each.lineno)) for each in fields(node)]
    rows += [(name, (ast.get_docstring(each) or "").split("\n\n")[0]) for name, each in methods.items() if is_property(each) and is_public(name)]
    if rows:
        yield "\n| attribute | description |\n|---|---|"
        for name, text in rows:
            text = " ".join(text.split()).replace("|", "\\|").replace("``", "`")
            yield f"| `{name}` | {text} |"
    for name, each in methods.items():
        if is_public(name) and not is_property(each):
            yield f"\n{level}# `{node.name}.{name}{signature(each)}`\n"
            yield prose(each)


def parsed(name):
    text = (PACKAGE / name).read_text(encoding="utf-8")
    nodes = {each.name: each for each in ast.parse(text).body if isinstance(each, (ast.ClassDef, ast.FunctionDef))}
    return nodes, text.splitlines()


def find(kind):
    """The class of the public API with this name, wherever it is, and the lines of its file."""
    for path in sorted(PACKAGE.glob("*.py")):
        if path.stem != "localsandbox":
            nodes, source = parsed(path.name)
            if isinstance(nodes.get(kind), ast.ClassDef):
                return nodes[kind], source
    raise SystemExit(f"class {kind} is in none of the files of {PACKAGE}")


def main():
    print("# Python package\n\nGenerated from the docstrings of `sdk/python` by `cargo xtask docs`.\n")
    print("`AsyncSandbox`, `AsyncSession`, `AsyncKv`, `AsyncProcess` and `AsyncStream` have the methods of `Sandbox`, `Session`, `Kv`, `Process`")
    print("and `Stream` as coroutines.")
    for kind in CLASSES:
        print("\n".join(describe_class(*find(kind))))
    print("\n## Records\n\nResults of methods, with read-only attributes.")
    nodes, source = parsed("_records.py")
    for kind, node in nodes.items():
        if is_public(kind) and isinstance(node, ast.ClassDef):
            print("\n".join(describe_class(node, source, "###")))
    print("\n## Exceptions")
    nodes, source = parsed("errors.py")
    print("\n| exception | bases | raised if |\n|---|---|---|")
    for kind, node in nodes.items():
        if is_public(kind) and isinstance(node, ast.ClassDef):
            bases = ", ".join(f"`{ast.unparse(base)}`" for base in node.bases)
            first = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split()).replace("``", "`").replace("|", "\\|")
            for role in ("meth", "class"):
                first = first.replace(f":{role}:`", "`")
            print(f"| `{kind}` | {bases} | {first} |")
    print("\n## Integrations\n\n| module | purpose |\n|---|---|")
    for path in sorted(PACKAGE.glob("*.py")):
        if is_public(path.stem) and path.stem != "errors":
            first = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0]
            print(f"| `sandlite.{path.stem}` | {' '.join(first.split()).replace('``', '`')} |")


main()
