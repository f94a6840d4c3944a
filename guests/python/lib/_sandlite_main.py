"""The command line of `python3`, on an interpreter that has already started.

`settle` runs once, when the guest is built; `main` runs once in each process.
"""

import ast
import atexit
import builtins
import gc
import importlib.machinery
import importlib.util
import json
import linecache
import os
import sys
import threading
import types
import zipimport

import _bashkit
import _bashkit_boot
import _sandlite_os
import _sandlite_process
import _sandlite_threads
import _sandlite_tools
from _sandlite import ask

EXECUTABLE = "/usr/bin/python3"
LIBRARY = "/usr/local/lib/python314.zip"
MORE_LIBRARY = "/usr/local/lib/python314-more.zip"
# The one place of a sandbox's packages: they are pure Python, for either interpreter.
SITE_PACKAGES = ".local/lib/python3.14/site-packages"
# The scientific interpreter brings a module of its own (`guests/python/sci`).
scientific = sys.modules.get("_sandlite_sci")

USAGE = "usage: {} [option] ... [-c cmd | -m mod | file | -] [arg] ..."
HELP = """\
Options:
-c cmd : program passed in as string (terminates option list)
-E     : ignore PYTHON* environment variables (such as PYTHONPATH)
-h     : print this help message and exit (also -? or --help)
-I     : isolate Python from the user's environment (implies -E, -P and -s)
-m mod : run library module as a script (terminates option list)
-P     : don't prepend a potentially unsafe path to sys.path
-s     : don't add user site directory to sys.path
-u     : force the stdout and stderr streams to be unbuffered
-V     : print the Python version number and exit (also --version)
-W arg : warning control; arg is action:message:category:module:lineno
-x     : skip first line of source
file   : program read from script file
-      : program read from stdin
arg ...: arguments passed to program in sys.argv[1:]

Accepted and without effect here: -b -B -d -i -O -OO -q -R -S -v -X opt
"""

# Why something that is not there will not be there, for the user who looks for it.
_COMPILED = "it needs compiled code that this Python does not have; pure-Python packages can be installed"
_SCIENTIFIC = (
    "the scientific Python has it: `sandlite guests add python-sci` installs that one, `--python sci` runs it"
)
_NO_NETWORK = "there is no network in the sandbox"
REASONS = {
    **dict.fromkeys(("torch", "tensorflow", "jax", "polars", "pyarrow", "duckdb", "cv2", "cryptography"), _COMPILED),
    **dict.fromkeys(("numpy", "pandas", "scipy", "sklearn", "matplotlib", "statsmodels", "seaborn", "PIL", "lxml"), _SCIENTIFIC),
    **dict.fromkeys(("requests", "httpx", "aiohttp", "urllib3", "ftplib", "smtplib"), _NO_NETWORK),
    "multiprocessing": "the sandbox has processes, but a running Python cannot be copied; use subprocess",
    "tkinter": "there is no screen in the sandbox",
}
# The largest value of a last expression that the host is given beside its text.
SHOWN_BYTES = 256 << 10
NO_PIP = (
    "packages are installed from outside the sandbox: "
    "`sandlite pip install PACKAGE` (pure Python only, a name or a .whl file)"
)
_FOREIGN = ("requests", "httpx", "httpx2", "_bashkit_webcore", "_bashkit_http")


class Options:
    """A parsed command line."""

    def __init__(self):
        self.mode, self.value, self.rest = "stdin", "", []
        self.versions = 0
        self.skip_first_line = self.ignore_environment = self.safe_path = self.no_user_site = self.unbuffered = False
        self.warnings = []
        self.echo = False


class UsageError(Exception):
    pass


def parse(args):
    """Read the options of `python3`; what ends them decides what is run."""
    options = Options()
    args = list(args)
    while args:
        arg = args[0]
        if arg == "-" or not arg.startswith("-"):
            break
        args.pop(0)
        if arg == "--":
            break
        if arg.startswith("--"):
            if not _long_option(options, arg, args):
                return options
        elif _short_options(options, arg[1:], args):
            return options
    if options.versions:
        options.mode = "version"
    elif args:
        options.mode, options.value, options.rest = ("stdin" if args[0] == "-" else "script"), args[0], args[1:]
    return options


def _long_option(options, arg, args):
    if arg in ("--help", "--help-all", "--help-env", "--help-xoptions"):
        options.mode = "help"
        return False
    if arg == "--sandlite-echo":
        options.echo = True
        args.insert(0, "-c")
    elif arg == "--version":
        options.versions += 1
    elif arg == "--check-hash-based-pycs":
        del args[:1]
    else:
        raise UsageError(f"unknown option {arg}")
    return True


# Whether the option list ends here.
def _short_options(options, letters, args):
    while letters:
        letter, letters = letters[0], letters[1:]
        if letter in "cmWX":
            if not letters and not args:
                raise UsageError(f"Argument expected for the -{letter} option")
            value = letters or args.pop(0)
            if letter in "cm":
                options.mode, options.value, options.rest = {"c": "command", "m": "module"}[letter], value, args
                return True
            if letter == "W":
                options.warnings.append(value)
            return False
        if letter in "h?":
            options.mode = "help"
            return True
        if letter == "V":
            options.versions += 1
        elif letter == "x":
            options.skip_first_line = True
        elif letter == "u":
            options.unbuffered = True
        elif letter in "EIPs":
            options.ignore_environment |= letter in "EI"
            options.safe_path |= letter in "IP"
            options.no_user_site |= letter in "Is"
        elif letter not in "bBdiOqRSv":
            raise UsageError(f"Unknown option: -{letter}")
    return False


def begin():
    """Take over what is new in this process: environment and directory. SIGPIPE becomes an exception, as always in Python."""
    os.environ._data = os.environb._data = _bashkit.load_environ()
    if scientific:
        scientific.begin()
    try:
        os.chdir(ask("begin"))
    except OSError:
        pass


def _add_paths(options):
    if not options.ignore_environment:
        extra = os.environ.get("PYTHONPATH")
        if extra:
            sys.path[:0] = [os.path.abspath(path) if path else os.getcwd() for path in extra.split(":")]
        options.unbuffered |= bool(os.environ.get("PYTHONUNBUFFERED"))
        options.safe_path |= bool(os.environ.get("PYTHONSAFEPATH"))
        if os.environ.get("PYTHONWARNINGS"):
            options.warnings[:0] = os.environ["PYTHONWARNINGS"].split(",")
    if not options.no_user_site:
        sys.path.append(os.path.join(os.environ.get("HOME", "/home/user"), SITE_PACKAGES))


def _main_module(loader, filename=None):
    module = types.ModuleType("__main__")
    module.__builtins__ = builtins
    module.__loader__ = loader
    if filename is not None:
        module.__file__ = filename
        module.__cached__ = None
    sys.modules["__main__"] = module
    return module.__dict__


def _prepend(options, path):
    if not options.safe_path:
        sys.path.insert(0, path)


def execute(options, program):
    """Run what the options name; the status of what returns by itself."""
    mode, value = options.mode, options.value
    if mode == "help":
        print(USAGE.format(program), HELP, sep="\n", end="")
        return 0
    if mode == "version":
        print("Python", sys.version if options.versions > 1 else sys.version.split()[0])
        return 0
    if options.unbuffered:
        sys.stdout.reconfigure(write_through=True)
    _add_paths(options)
    if options.warnings:
        import warnings

        warnings._processoptions(options.warnings)
    if mode == "command":
        sys.argv = ["-c", *options.rest]
        _prepend(options, "")
        if value[:1].isspace():
            import textwrap

            value = textwrap.dedent(value)
        run_source(value, "<string>", _main_module(importlib.machinery.BuiltinImporter), options.echo)
        return 0
    if mode == "module":
        import runpy

        sys.argv = ["-m", *options.rest]
        _prepend(options, os.getcwd())
        _main_module(None)
        if value == "pip" and importlib.util.find_spec("pip") is None:
            print(f"{program}: {NO_PIP}", file=sys.stderr)
            return 1
        runpy._run_module_as_main(value)
        return 0
    if mode == "stdin":
        sys.argv = [value, *options.rest]
        _prepend(options, "")
        if value != "-" and sys.stdin.isatty():
            return _converse(_main_module(importlib.machinery.BuiltinImporter))
        source = sys.stdin.buffer.read()
        linecache.cache["<stdin>"] = (len(source), None, source.decode("utf-8", "replace").splitlines(True), "<stdin>")
        exec(compile(source, "<stdin>", "exec", dont_inherit=True), _main_module(importlib.machinery.BuiltinImporter))
        return 0
    return _run_script(options, program)


def _converse(names):
    """The prompt of `python3` on a terminal."""
    import code

    version = f"Python {sys.version} on {sys.platform}"
    code.interact(f'{version}\nType "help", "copyright", "credits" or "license" for more information.', None, names, "")
    return 0


def run_source(code, filename, names, echo):
    """Run code; `echo` prints the value of a last expression."""
    linecache.cache[filename] = (len(code), None, code.splitlines(True), filename)
    if not echo:
        return exec(compile(code, filename, "exec", dont_inherit=True), names)
    # Not `ast.parse`, which would be a line of the traceback of a syntax error.
    body = compile(code, filename, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
    exec(compile(body, filename, "exec", dont_inherit=True), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), filename, "eval", dont_inherit=True), names)
        sys.displayhook(value)
        if value is not None:
            _show_value(value)
    _show_figures()


def _show(mime, data):
    # What does not fit the limits of the command is left out; what was printed is there.
    try:
        ask("show", len(mime), rest=mime.encode() + data)
    except OSError:
        pass


def _show_value(value):
    """Give the host the value of a last expression: as text, as JSON if it is plain data, as a picture if it can be one."""
    try:
        text = repr(value).encode("utf-8", "backslashreplace")
        if len(text) <= SHOWN_BYTES:
            _show("text/plain", text)
        if isinstance(value, (bool, int, float, str, list, tuple, dict)):
            plain = json.dumps(value, allow_nan=False).encode()
            if len(plain) <= SHOWN_BYTES and _is_exact(value):
                _show("application/json", plain)
    except Exception:
        pass
    for mime, method in (("image/png", "_repr_png_"), ("image/svg+xml", "_repr_svg_")):
        try:
            picture = getattr(type(value), method)(value)
        except Exception:
            continue
        if picture:
            _show(mime, picture.encode() if isinstance(picture, str) else bytes(picture))


def _is_exact(value):
    """Whether every integer fits into 64 bits: readers of JSON round longer ones."""
    if isinstance(value, int):
        return -(1 << 63) <= value < 1 << 64
    if isinstance(value, (list, tuple)):
        return all(map(_is_exact, value))
    return not isinstance(value, dict) or all(map(_is_exact, value.values()))


def _show_figures():
    """Give the host what was drawn with Matplotlib and is still open, and close it, as a notebook does."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    import io

    for number in pyplot.get_fignums():
        picture = io.BytesIO()
        pyplot.figure(number).savefig(picture, format="png")
        _show("image/png", picture.getvalue())
    pyplot.close("all")


def _run_script(options, program):
    path = options.value
    sys.argv = [path, *options.rest]
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        import runpy

        sys.path.insert(0, path)
        runpy._run_module_as_main("__main__", alter_argv=False)
        return 0
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        print(f"{program}: can't open file {os.path.abspath(path)!r}: {_reason(error)}", file=sys.stderr)
        return 2
    if options.skip_first_line:
        source = b"\n" + source.partition(b"\n")[2]
    _prepend(options, os.path.dirname(os.path.realpath(path)))
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    exec(compile(source, path, "exec", dont_inherit=True), _main_module(loader, path))
    return 0


def _reason(error):
    # Linux's number for the one everybody knows.
    number = 2 if isinstance(error, FileNotFoundError) else error.errno
    return f"[Errno {number}] {error.strerror}"


def _is_ours(traceback):
    return traceback.tb_frame.f_code.co_filename.startswith("/usr/lib/sandlite/")


def _strip(traceback):
    """Leave the driver's frames and those of the shims out of a traceback: they are not part of anybody's program."""
    while traceback is not None and _is_ours(traceback):
        traceback = traceback.tb_next
    last, at = None, traceback
    while at is not None:
        if not _is_ours(at):
            last = at
        at = at.tb_next
    if last is not None:
        last.tb_next = None
    return traceback


def report(error):
    """Print an exception as the interpreter does."""
    seen, left = set(), [error]
    while left:
        part = left.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        part.__traceback__ = _strip(part.__traceback__)
        left += [part.__cause__, part.__context__]
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except BaseException:
        sys.__excepthook__(type(error), error, error.__traceback__)


def _status_of(exit):
    code = exit.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    try:
        print(code, file=sys.stderr)
    except OSError:
        pass
    return 1


def guarded(work, *args):
    """The status of some work, whatever it raises."""
    try:
        return work(*args) or 0
    except SystemExit as exit:
        Session.exits = True
        return _status_of(exit)
    except KeyboardInterrupt as error:
        report(error)
        return 130
    except BaseException as error:
        report(error)
        return 1


def end(status):
    """What the interpreter does last: threads, exit functions, files left open, buffers."""
    guarded(threading._shutdown)
    atexit._run_exitfuncs()
    main = sys.modules.get("__main__")
    if main is not None:
        main.__dict__.clear()
    if sum(gc.get_count()) > 0:
        gc.collect()
    try:
        # Its closer has flushed it.
        if sys.stdout is not None and not getattr(sys.stdout, "closed", False):
            sys.stdout.flush()
    except (OSError, ValueError, AttributeError) as error:
        print(f"Exception ignored while flushing sys.stdout:\n{type(error).__name__}: {error}", file=sys.stderr)
        status = 120
    try:
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass
    return status


def main():
    """One `python3`."""
    argv = _bashkit.argv()
    if argv[1:2] in (["--sandlite-session"], ["--sandlite-session-echo"]):
        return Session.call(argv[2], argv[1].endswith("echo"))
    begin()
    sys.orig_argv = argv
    program = argv[0] if argv else "python3"
    try:
        options = parse(argv[1:])
    except UsageError as error:
        print(error, USAGE.format(program), "Try `python -h' for more information.", sep="\n", file=sys.stderr)
        return 2
    return end(guarded(execute, options, program))


class Session:
    """An interpreter that is entered again and again: its globals stay."""

    names = None
    count = 0
    # Whether this call is ended by SystemExit, and whether the one before was: an interactive shell asks in a call.
    exits = False
    has_exited = False

    @classmethod
    def call(cls, code, echo):
        cls.exits, cls.has_exited = False, cls.exits
        if cls.names is None:
            begin()
            _add_paths(Options())
            sys.path.insert(0, "")
            sys.argv = [""]
            cls.names = _main_module(importlib.machinery.BuiltinImporter)
        else:
            ask("begin")
        cls.count += 1
        sys.stdin = open(0, closefd=False)
        status = guarded(run_source, code, f"<session-{cls.count}>", cls.names, echo)
        exits = cls.exits
        guarded(_sandlite_threads.run_pending)
        cls.exits = exits
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass
        return status


class Missing:
    """The last finder: says why a module cannot be had."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        reason = REASONS.get(name)
        if reason is None:
            return None
        raise ModuleNotFoundError(f"No module named {name!r} ({reason})", name=name)


def _forget_foreign():
    # The package that brought the interpreter has HTTP clients of its own in the library; a user's should be found.
    for name in [name for name in sys.modules if name.partition(".")[0] in _FOREIGN and name != "_bashkit_http"]:
        del sys.modules[name]
    files = zipimport._zip_directory_cache[LIBRARY]
    for name in [name for name in files if name.partition("/")[0].partition(".")[0] in _FOREIGN[:4]]:
        del files[name]


def settle():
    """Make the interpreter at home: called once, before its memory is kept."""
    _sandlite_os.install()
    _sandlite_process.install()
    _sandlite_threads.install()
    _sandlite_tools.install()
    if not scientific:
        _forget_foreign()
    sys.meta_path.append(Missing)
    sys.executable = sys._base_executable = EXECUTABLE
    # What was printed before a command is stopped should be seen.
    sys.stdout.reconfigure(line_buffering=True)
    sys.path[:] = [path for path in sys.path if path]
    if not scientific:
        sys.path.insert(sys.path.index(LIBRARY) + 1, MORE_LIBRARY)
    _bashkit_boot.main = main
    gc.collect()
    objects = gc.get_objects()
    _bashkit.immortalize(objects)
    _bashkit.immortalize(gc.get_referents(*objects))
    gc.freeze()
