"""`os` as on Linux: permissions, owners, umask, descriptors and identity, which WASI preview1 does not have."""

import os
import posix
import types
from errno import EACCES, ENOENT, ENOTTY
from struct import Struct

from _sandlite import ask, ask_number

USER = 1000

_decode = Struct("<QQIIIIQQqqq").unpack
_pair = Struct("<II").unpack
_triple = Struct("<III").unpack
_inheritable = set()
_stat_result = os.stat_result
_FIELDS = os.stat_result.n_fields


def _absolute(path):
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError("embedded null byte")
    if name[:1] == b"/":
        return name
    if not name:
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), path)
    return posix.getcwdb() + b"/" + name


def _result(answer):
    dev, ino, mode, nlink, uid, gid, rdev, size, atime, mtime, ctime = _decode(answer)
    seconds = (atime // 10**9, mtime // 10**9, ctime // 10**9)
    exact = (atime / 1e9, mtime / 1e9, ctime / 1e9)
    blocks = (size + 4095) // 4096 * 8
    return _stat_result(
        (mode, ino, dev, nlink, uid, gid, size, *seconds, *exact, atime, mtime, ctime, 4096, blocks, rdev)[:_FIELDS]
    )


def stat(path, *, dir_fd=None, follow_symlinks=True):
    if isinstance(path, int):
        if isinstance(path, bool):
            import warnings

            warnings.warn("bool is used as a file descriptor", RuntimeWarning, stacklevel=2)
        return fstat(path)
    if dir_fd is not None:
        return posix.stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
    return _result(ask("stat", 1 if follow_symlinks else 0, rest=_absolute(path), path=path))


def _check_path(function, path):
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"{function}: path should be string, bytes or os.PathLike, not {type(path).__name__}")


def lstat(path, *, dir_fd=None):
    _check_path("lstat", path)
    return stat(path, dir_fd=dir_fd, follow_symlinks=False)


def fstat(fd):
    return _result(ask("fstat", fd))


class DirEntry:
    """What `scandir` finds. Its `stat` is ours: the interpreter's own has no permissions."""

    __slots__ = ("name", "path", "_entry", "_stats")

    def __init__(self, entry):
        self.name, self.path, self._entry, self._stats = entry.name, entry.path, entry, {}

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return repr(self._entry)

    def __reduce_ex__(self, protocol):
        raise TypeError("cannot pickle 'DirEntry' object")

    __class_getitem__ = classmethod(types.GenericAlias)

    def inode(self):
        return self._entry.inode()

    def is_dir(self, *, follow_symlinks=True):
        return self._entry.is_dir(follow_symlinks=follow_symlinks)

    def is_file(self, *, follow_symlinks=True):
        return self._entry.is_file(follow_symlinks=follow_symlinks)

    def is_symlink(self):
        return self._entry.is_symlink()

    def is_junction(self):
        return False

    def stat(self, *, follow_symlinks=True):
        follow_symlinks = bool(follow_symlinks)
        found = self._stats.get(follow_symlinks)
        if found is None:
            found = self._stats[follow_symlinks] = stat(self.path, follow_symlinks=follow_symlinks)
        return found


DirEntry.__module__ = "posix"


class _Scan:
    def __init__(self, entries):
        self._entries = entries

    def __iter__(self):
        return self

    def __next__(self):
        return DirEntry(next(self._entries))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._entries.close()

    def close(self):
        self._entries.close()


def scandir(path=None):
    entries = posix.scandir(path)
    # Entries of a descriptor have no path that could be asked for.
    return entries if isinstance(path, int) else _Scan(entries)


def access(path, mode, *, dir_fd=None, effective_ids=False, follow_symlinks=True):
    _check_path("access", path)
    try:
        bits = stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks).st_mode
    except (OSError, ValueError):
        return False
    # The sandbox's one user owns everything: the owner's bits decide.
    return (bits >> 6) & mode == mode


def chdir(path):
    # WASI's libc only looks whether it is a directory.
    if isinstance(path, (str, bytes, os.PathLike)) and os.path.isdir(path) and not access(path, os.X_OK):
        raise PermissionError(EACCES, os.strerror(EACCES), path)
    posix.chdir(path)


def chmod(path, mode, *, dir_fd=None, follow_symlinks=True):
    if isinstance(path, int):
        return fchmod(path, mode)
    if dir_fd is not None:
        raise NotImplementedError("chmod: dir_fd unavailable on this platform")
    ask("chmod", 1 if follow_symlinks else 0, mode, rest=_absolute(path), path=path)


def fchmod(fd, mode):
    ask("fchmod", fd, mode)


def lchmod(path, mode):
    chmod(path, mode, follow_symlinks=False)


def chown(path, uid, gid, *, dir_fd=None, follow_symlinks=True):
    if dir_fd is not None:
        raise NotImplementedError("chown: dir_fd unavailable on this platform")
    ask("chown", 1 if follow_symlinks else 0, uid, gid, rest=_absolute(path), path=path)


def lchown(path, uid, gid):
    chown(path, uid, gid, follow_symlinks=False)


def umask(mask):
    return ask_number("umask", mask)


# WASI creates files and directories with the permissions of the umask alone; what the caller asks for comes after.
def open(path, flags, mode=0o777, *, dir_fd=None):
    if not flags & os.O_CREAT or dir_fd is not None:
        fd = posix.open(path, flags, mode, dir_fd=dir_fd)
        _note(fd, False)
        return fd
    fresh = bool(flags & os.O_EXCL) or not os.path.lexists(path)
    fd = posix.open(path, flags, mode)
    _note(fd, False)
    if fresh and mode != 0o666:
        fchmod(fd, mode & ~_current_umask())
    return fd


def mkdir(path, mode=0o777, *, dir_fd=None):
    posix.mkdir(path, mode, dir_fd=dir_fd)
    if mode != 0o777 and dir_fd is None:
        chmod(path, mode & ~_current_umask())


def _current_umask():
    mask = umask(0)
    umask(mask)
    return mask


def pipe():
    ends = _pair(ask("pipe"))
    for fd in ends:
        _note(fd, False)
    return ends


def pipe2(flags):
    ends = pipe()
    if not flags & os.O_CLOEXEC:
        for fd in ends:
            set_inheritable(fd, True)
    return ends


def dup(fd):
    return ask_number("dup", fd, 0, 1)


def dup2(fd, fd2, inheritable=True):
    ask("dup2", fd, fd2, 0 if inheritable else 1)
    _note(fd2, inheritable)
    return fd2


def set_inheritable(fd, inheritable):
    ask("close_on_exec", fd, 0 if inheritable else 1)
    _note(fd, inheritable)


def get_inheritable(fd):
    fstat(fd)
    return fd <= 2 or fd in _inheritable


def _note(fd, inheritable):
    (_inheritable.add if inheritable else _inheritable.discard)(fd)


def getpid():
    return _triple(ask("ids"))[0]


def getppid():
    return _triple(ask("ids"))[1]


def getpgrp():
    return _triple(ask("ids"))[2]


def getpgid(pid):
    return ask_number("group", pid or getpid())


def setpgid(pid, group):
    ask("set_group", pid, group)


def setsid():
    setpgid(0, 0)
    return getpid()


def getuid():
    return USER


def getgroups():
    return [USER]


def getresuid():
    return USER, USER, USER


def getlogin():
    return os.environ.get("LOGNAME", "user")


def uname():
    return os.uname_result(("Linux", "sandlite", "6.1.0-sandlite", "#1 Sandlite", "wasm32"))


def cpu_count():
    return 1


def sched_getaffinity(pid):
    return {0}


def get_terminal_size(fd=1):
    raise OSError(ENOTTY, os.strerror(ENOTTY))


def getloadavg():
    return 0.0, 0.0, 0.0


def install():
    """Put these functions into `os`, and into the sets that say what they can do."""
    capabilities = (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks)
    for function in (
        stat, lstat, fstat, scandir, access, chdir, chmod, fchmod, lchmod, chown, lchown, umask, open, mkdir, pipe, pipe2, dup, dup2,
        set_inheritable, get_inheritable, getpid, getppid, getpgrp, getpgid, setpgid, setsid, getuid, getgroups, getresuid,
        getlogin, uname, cpu_count, sched_getaffinity, get_terminal_size, getloadavg,
    ):  # fmt: skip
        old = getattr(os, function.__name__, None)
        for capability in capabilities:
            if old in capability:
                capability.discard(old)
                capability.add(function)
        function.__module__ = "os"
        setattr(os, function.__name__, function)
    os.supports_follow_symlinks |= {stat, chmod, chown, access}
    os.supports_fd |= {stat, chmod}
    os.DirEntry = DirEntry
    os.geteuid = os.getgid = os.getegid = getuid
    os.getresgid = getresuid
    os.process_cpu_count = cpu_count
