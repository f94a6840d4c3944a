"""The sandbox's users, as `/etc/passwd` names them."""

from collections import namedtuple as _namedtuple

struct_passwd = _namedtuple(
    "struct_passwd", "pw_name pw_passwd pw_uid pw_gid pw_gecos pw_dir pw_shell", module="pwd"
)


def getpwall():
    """All users."""
    with open("/etc/passwd", encoding="utf-8", errors="surrogateescape") as lines:
        users = [line.rstrip("\n").split(":") for line in lines]
    return [
        struct_passwd(name, password, int(uid), int(gid), full, home, shell)
        for name, password, uid, gid, full, home, shell in (user for user in users if len(user) == 7)
    ]


def getpwnam(name, /):
    """The user called `name`."""
    if not isinstance(name, str):
        raise TypeError(f"getpwnam() argument must be str, not {type(name).__name__}")
    for user in getpwall():
        if user.pw_name == name:
            return user
    raise KeyError(f"getpwnam(): name not found: {name!r}")


def getpwuid(uid, /):
    """The user whose number is `uid`."""
    if not isinstance(uid, int):
        raise TypeError(f"uid should be integer, not {type(uid).__name__}")
    for user in getpwall():
        if user.pw_uid == uid:
            return user
    raise KeyError(f"getpwuid(): uid not found: {uid}")
