"""The sandbox's groups, as `/etc/group` names them."""

from collections import namedtuple as _namedtuple

struct_group = _namedtuple("struct_group", "gr_name gr_passwd gr_gid gr_mem", module="grp")


def getgrall():
    """All groups."""
    with open("/etc/group", encoding="utf-8", errors="surrogateescape") as lines:
        groups = [line.rstrip("\n").split(":") for line in lines]
    return [
        struct_group(name, password, int(gid), members.split(",") if members else [])
        for name, password, gid, members in (group for group in groups if len(group) == 4)
    ]


def getgrnam(name):
    """The group called `name`."""
    if not isinstance(name, str):
        raise TypeError(f"getgrnam() argument 'name' must be str, not {type(name).__name__}")
    for group in getgrall():
        if group.gr_name == name:
            return group
    raise KeyError(f"getgrnam(): name not found: {name!r}")


def getgrgid(id):
    """The group whose number is `id`."""
    if not isinstance(id, int):
        raise TypeError(f"gid should be integer, not {type(id).__name__}")
    for group in getgrall():
        if group.gr_gid == id:
            return group
    raise KeyError(f"getgrgid(): gid not found: {id}")
