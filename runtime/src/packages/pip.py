"""Runs pip for a download that starts no program: no package is built, so none of its code runs on this machine."""

import sys

# With `-c`, Python looks for modules in the current directory first, which may belong to anyone.
sys.path[:] = [directory for directory in sys.path if directory]

import os

# Settings of the environment that locate an index and how to reach it. Others add requirements or allow builds.
KEPT = (
    "CACHE_DIR CERT CLIENT_CERT CONFIG_FILE DEFAULT_TIMEOUT EXTRA_INDEX_URL FIND_LINKS INDEX_URL NO_CACHE_DIR NO_INDEX PROXY "
    "RETRIES TIMEOUT TRUSTED_HOST"
).split()
for name in list(os.environ):
    if name.startswith("PIP_") and name[len("PIP_") :] not in KEPT:
        del os.environ[name]

PROGRAMS = ("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system", "subprocess.Popen")


# pip builds in separate processes and ignores that one which describes this machine cannot start.
def refuse_programs(event, arguments):
    if event in PROGRAMS:
        raise PermissionError("pip must not start programs: packages are installed from wheels only")


sys.addaudithook(refuse_programs)

import runpy

from pip._internal.exceptions import InstallationError
from pip._vendor.packaging.requirements import Requirement

read = Requirement.__init__


# A wheel, a constraint or a configuration file can name an address, to which `--only-binary` does not apply.
def read_without_address(self, text):
    read(self, text)
    if self.url:
        raise InstallationError(f"the requirement `{text}` names an address: packages are installed by name and version only")


Requirement.__init__ = read_without_address
sys.argv[0] = "pip"
runpy.run_module("pip", run_name="__main__", alter_sys=True)
