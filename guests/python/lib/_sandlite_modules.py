"""Tells modules that are part of the image of those in `modules/`, which are not: they looked for them and found nothing."""

import hashlib
import hmac
import http
import importlib
import pathlib
import shutil
import socket
import types
import zipfile


class _Later(types.ModuleType):
    """A module that is imported when something of it is needed."""

    def __getattr__(self, name):
        return getattr(importlib.import_module(self.__name__), name)


# The rest of the package, in the zip of added modules.
http.__path__.append("/usr/local/lib/python314-more.zip/http")


def getaddrinfo(host, port, family=0, type=0, proto=0, flags=0):
    """Resolve a host name, which nobody here can: programs take this error for a network that is down."""
    raise socket.gaierror(socket.EAI_AGAIN, "there is no network in the sandbox")


def gethostbyname(hostname, /):
    """Resolve a host name, which nobody here can."""
    return getaddrinfo(hostname, None)


socket.getaddrinfo, socket.gethostbyname, socket.gethostbyname_ex = getaddrinfo, gethostbyname, gethostbyname

# Not lzma: a zip's streams have neither of the containers that the sandbox's `xz` knows.
zipfile.bz2 = _Later("bz2")

pathlib.pwd = _Later("pwd")
pathlib.grp = _Later("grp")


def owner(self, *, follow_symlinks=True):
    """Return the login name of the file owner."""
    return pathlib.pwd.getpwuid(self.stat(follow_symlinks=follow_symlinks).st_uid).pw_name


def group(self, *, follow_symlinks=True):
    """Return the group name of the file gid."""
    return pathlib.grp.getgrgid(self.stat(follow_symlinks=follow_symlinks).st_gid).gr_name


# Which of two it has was decided when the class was made.
pathlib.Path.owner, pathlib.Path.group = owner, group

shutil._BZ2_SUPPORTED = shutil._LZMA_SUPPORTED = True
for _name, _compress, _suffixes, _words in (
    ("bztar", "bzip2", [".tar.bz2", ".tbz2"], "bzip2'ed tar-file"),
    ("xztar", "xz", [".tar.xz", ".txz"], "xz'ed tar-file"),
):
    shutil.register_archive_format(_name, shutil._make_tarball, [("compress", _compress)], _words)
    shutil.register_unpack_format(_name, _suffixes, shutil._unpack_tarfile, [], _words)


def pbkdf2_hmac(hash_name, password, salt, iterations, dklen=None):
    """Derive a key from a password; OpenSSL has this elsewhere."""
    if not isinstance(hash_name, str):
        raise TypeError("expected 'str' for name")
    size = hashlib.new(hash_name).digest_size
    dklen = size if dklen is None else dklen
    if dklen < 1:
        raise ValueError("key length must be greater than 0.")
    if iterations < 1:
        raise ValueError("iteration value must be greater than 0.")
    keyed, key = hmac.new(bytes(password), None, hash_name), b""
    for block in range(1, -(-dklen // size) + 1):
        inner = keyed.copy()
        inner.update(bytes(salt) + block.to_bytes(4))
        last = inner.digest()
        result = int.from_bytes(last)
        for _ in range(iterations - 1):
            inner = keyed.copy()
            inner.update(last)
            last = inner.digest()
            result ^= int.from_bytes(last)
        key += result.to_bytes(size)
    return key[:dklen]


if not hasattr(hashlib, "pbkdf2_hmac"):
    hashlib.pbkdf2_hmac = pbkdf2_hmac
