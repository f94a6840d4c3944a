"""Resources of this process, as far as the sandbox counts them. The limits of the sandbox are set from outside."""

import os
import time
from collections import namedtuple

error = OSError
RLIM_INFINITY = -1
RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_DATA, RLIMIT_STACK, RLIMIT_CORE, RLIMIT_RSS, RLIMIT_NPROC, RLIMIT_NOFILE = range(8)
RLIMIT_MEMLOCK, RLIMIT_AS = 8, 9
RUSAGE_SELF, RUSAGE_CHILDREN, RUSAGE_THREAD = 0, -1, 1

struct_rusage = namedtuple(
    "struct_rusage",
    "ru_utime ru_stime ru_maxrss ru_ixrss ru_idrss ru_isrss ru_minflt ru_majflt ru_nswap ru_inblock ru_oublock ru_msgsnd "
    "ru_msgrcv ru_nsignals ru_nvcsw ru_nivcsw",
)
_NAMES = {RLIMIT_CPU: "t", RLIMIT_FSIZE: "f", RLIMIT_STACK: "s", RLIMIT_NPROC: "u", RLIMIT_NOFILE: "n", RLIMIT_AS: "v"}


def getrusage(who, /):
    """Return the time that this process has run; nothing else is counted."""
    if who not in (RUSAGE_SELF, RUSAGE_CHILDREN, RUSAGE_THREAD):
        raise ValueError("invalid who parameter")
    seconds = time.process_time() if who != RUSAGE_CHILDREN else 0.0
    return struct_rusage(seconds, *(0.0,), *(0,) * 14)


def getrlimit(resource, /):
    """Return the soft and the hard limit, which are those that a shell shows."""
    if not 0 <= resource <= RLIMIT_AS:
        raise ValueError("invalid resource specified")
    letter = _NAMES.get(resource)
    if letter is None:
        return RLIM_INFINITY, RLIM_INFINITY
    unit = {"f": 1024, "s": 1024, "v": 1024}.get(letter, 1)
    with os.popen(f"ulimit -S{letter}; ulimit -H{letter}") as shell:
        return tuple(RLIM_INFINITY if word == "unlimited" else int(word) * unit for word in shell.read().split())


def setrlimit(resource, limits, /):
    """Refuse: a process cannot change its limits here."""
    getrlimit(resource)
    raise ValueError("the limits of a sandbox are set from outside")


def getpagesize():
    """Return the size of a page of WebAssembly's memory."""
    return 65536
