"""Processes: `subprocess`, `os.system`, `os.popen`, `os.exec*` and `os.wait*` on the host's process tree."""

import errno
import os
import signal
import subprocess
import sys
from struct import Struct

from _sandlite import ask, ask_number
from _sandlite_os import _inheritable

_pair = Struct("<II").unpack
_number = Struct("<I").pack
_triple = Struct("<III").pack

_NEW_GROUP = 1
_DUP, _CLOSE = 0, 1
# What a signal should do, as `guests/abi` counts.
_DEFAULT, _IGNORE = 0, 1
# No process has this number: waiting for it answers that there is no such child.
_NOBODY = 0x7FFFFFFF


def _bytes(text):
    return _number(len(text)) + text


def _list(items):
    return _number(len(items)) + b"".join(map(_bytes, items))


def _environment(env):
    if env is None:
        return [name + b"=" + value for name, value in os.environ._data.items()]
    return [_name(name) + b"=" + _text(value) for name, value in zip(env.keys(), env.values())]


def _text(value):
    value = os.fsencode(value)
    if b"\0" in value:
        raise ValueError("embedded null byte")
    return value


def _name(name):
    name = _text(name)
    if b"=" in name:
        raise ValueError("illegal environment variable name")
    return name


def _arguments(function, args):
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"{function}: argv must be a tuple or list")
    if not args:
        raise ValueError(f"{function}: argv must not be empty")
    args = [_text(arg) for arg in args]
    if not args[0]:
        raise ValueError(f"{function}: argv first element cannot be empty")
    return args


def _request(path, cwd, args, env, actions=(), flags=0):
    if not path.startswith(b"/"):
        path = cwd + b"/" + path
    packed = [_triple(kind, fd, source) for kind, fd, source in actions]
    return b"".join(
        (_number(flags), _bytes(path), _bytes(cwd), _list(args), _list(env), _number(len(packed)), *packed)
    )


def _start(path, args, env, cwd, actions, flags):
    # Python ignores SIGPIPE for itself; a child starts without that.
    ask("signal_action", signal.SIGPIPE, _DEFAULT)
    try:
        return ask_number("spawn", rest=_request(path, cwd, args, env, actions, flags))
    finally:
        ask("signal_action", signal.SIGPIPE, _IGNORE)


def _to_close(keep):
    numbers = ask("descriptors")
    count = len(numbers) // 4
    return [fd for fd in Struct("<" + "I" * count).unpack(numbers) if fd > 2 and fd not in keep]


# What `_posixsubprocess.fork_exec` does, with the host's spawn in place of fork and exec.
def fork_exec(
    args, executables, close_fds, keep, cwd, env,
    p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, errpipe_read, errpipe_write,
    restore_signals, start_new_session, process_group, gid, gids, uid, umask, preexec_fn, *rest,
):  # fmt: skip
    if preexec_fn is not None:
        os.write(errpipe_write, b"SubprocessError:0:preexec_fn is not supported in the sandbox")
        return _NOBODY
    directory = os.getcwdb()
    if cwd is not None:
        directory = os.path.join(directory, os.fsencode(cwd))
        try:
            if not os.path.isdir(directory):
                os.stat(directory)
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        except OSError as error:
            os.write(errpipe_write, b"OSError:%x:noexec:chdir" % error.errno)
            return _NOBODY
    spare = []

    def clear_of(fd, taken):
        if fd not in taken:
            return fd
        spare.append(os.dup(fd))
        return spare[-1]

    c2pwrite = clear_of(c2pwrite, (0,))
    errwrite = clear_of(errwrite, (0, 1))
    actions = [(_DUP, fd, source) for fd, source in ((0, p2cread), (1, c2pwrite), (2, errwrite)) if source >= 0]
    kept = set(keep) - {errpipe_write} if close_fds else set(_inheritable)
    actions += [(_CLOSE, fd, 0) for fd in _to_close(kept)]
    actions += [(_DUP, fd, fd) for fd in kept]
    flags = _NEW_GROUP if start_new_session or process_group == 0 else 0
    env = _environment(None) if env is None else [_text(variable) for variable in env]
    args, executables = [_text(arg) for arg in args], [_text(executable) for executable in executables]
    old_umask = os.umask(umask) if umask >= 0 else None
    failure = None
    try:
        for executable in executables:
            try:
                return _start(executable, args, env, directory, actions, flags)
            except OSError as error:
                if failure is None or error.errno not in (errno.ENOENT, errno.ENOTDIR):
                    failure = error.errno
    finally:
        if old_umask is not None:
            os.umask(old_umask)
        for fd in spare:
            os.close(fd)
    os.write(errpipe_write, b"OSError:%x:" % (failure or errno.ENOENT))
    return _NOBODY


def waitpid(pid, options):
    pid, status = _pair(ask("wait", pid, timeout=0 if options & WNOHANG else None))
    return pid, (status & 0xFF) << 8 if status < 0x100 else status >> 8


def wait():
    return waitpid(-1, 0)


def waitstatus_to_exitcode(status):
    return -(status & 0x7F) if status & 0x7F else status >> 8


def WIFEXITED(status):
    return status & 0x7F == 0


def WEXITSTATUS(status):
    return status >> 8 & 0xFF


def WIFSIGNALED(status):
    return status & 0x7F != 0


def WTERMSIG(status):
    return status & 0x7F


def WIFSTOPPED(status):
    return False


def WSTOPSIG(status):
    return status >> 8 & 0xFF


def WCOREDUMP(status):
    return False


WNOHANG = 1


def kill(pid, sig):
    handler = signal.getsignal(sig) if sig and pid == os.getpid() else None
    if callable(handler) and handler is not signal.default_int_handler:
        signal.raise_signal(sig)
    else:
        ask("kill", pid, sig)


def killpg(pgid, sig):
    kill(-pgid, sig)


def system(command):
    try:
        child = subprocess.Popen(["/bin/sh", "-c", command], close_fds=False)
    except OSError:
        return 127 << 8
    pid, status = waitpid(child.pid, 0)
    child.returncode = waitstatus_to_exitcode(status)
    return status


def _become(function, path, args, env):
    path, args, env = _text(path), _arguments(function, args), _environment(env)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    actions = [(_CLOSE, fd, 0) for fd in _to_close(_inheritable)]
    ask("signal_action", signal.SIGPIPE, _DEFAULT)
    try:
        ask("exec", rest=_request(path, os.getcwdb(), args, env, actions), path=os.fsdecode(path))
    finally:
        ask("signal_action", signal.SIGPIPE, _IGNORE)


def execv(path, args):
    _become("execv", path, args, None)


def execve(path, args, env):
    _become("execve", path, args, env)


def posix_spawn(path, argv, env, *, file_actions=(), setpgroup=None, **options):
    actions = []
    for kind, *values in file_actions or ():
        if kind == POSIX_SPAWN_CLOSE:
            actions.append((_CLOSE, values[0], 0))
        elif kind == POSIX_SPAWN_DUP2:
            actions.append((_DUP, values[1], values[0]))
        else:
            raise NotImplementedError("posix_spawn: opening files is not supported in the sandbox")
    actions += [(_CLOSE, fd, 0) for fd in _to_close(_inheritable | {fd for kind, fd, _ in actions if kind == _DUP})]
    args = _arguments("posix_spawn", argv)
    flags = _NEW_GROUP if setpgroup == 0 else 0
    return _start(os.fsencode(path), args, _environment(env), os.getcwdb(), actions, flags)


def posix_spawnp(file, argv, env, **options):
    import shutil

    found = shutil.which(file)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file)
    return posix_spawn(found, argv, env, **options)


POSIX_SPAWN_OPEN, POSIX_SPAWN_CLOSE, POSIX_SPAWN_DUP2 = 0, 1, 2
P_WAIT, P_NOWAIT = 0, 1


def spawnve(mode, path, args, env):
    pid = posix_spawn(path, args, env)
    return pid if mode == P_NOWAIT else waitstatus_to_exitcode(waitpid(pid, 0)[1])


def spawnv(mode, path, args):
    return spawnve(mode, path, args, os.environ)


def spawnl(mode, path, *args):
    return spawnve(mode, path, args, os.environ)


def fork():
    raise OSError(errno.ENOTSUP, "a running Python cannot be copied in the sandbox: start programs with subprocess")


def install():
    """Put these functions into `os` and `subprocess`."""
    for function in (
        waitpid, wait, waitstatus_to_exitcode, WIFEXITED, WEXITSTATUS, WIFSIGNALED, WTERMSIG, WIFSTOPPED, WSTOPSIG,
        WCOREDUMP, kill, killpg, system, execv, execve, posix_spawn, posix_spawnp, spawnve, spawnv, spawnl, fork,
    ):  # fmt: skip
        function.__module__ = "os"
        setattr(os, function.__name__, function)
    for name in ("WNOHANG", "POSIX_SPAWN_OPEN", "POSIX_SPAWN_CLOSE", "POSIX_SPAWN_DUP2", "P_WAIT", "P_NOWAIT"):
        setattr(os, name, globals()[name])
    subprocess._can_fork_exec = True
    subprocess._fork_exec = fork_exec
    for name in ("waitpid", "waitstatus_to_exitcode", "WIFSTOPPED", "WSTOPSIG", "WNOHANG"):
        value = globals()[name]
        setattr(subprocess._del_safe, name, staticmethod(value) if callable(value) else value)
    subprocess._del_safe.ECHILD = errno.ECHILD
