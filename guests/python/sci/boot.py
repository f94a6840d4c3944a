"""Runs once, when the scientific guest is made ready: loads the glue and lets it settle in."""

import sys
import types

HOME = "/usr/lib/sandlite/"


def load(name):
    path = HOME + name + ".py"
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    module = sys.modules[name] = types.ModuleType(name)
    module.__file__ = path
    exec(code, module.__dict__)
    return module


load("_bashkit").settle()
sys.path.append(HOME.rstrip("/"))
for name in ("_sandlite", "_sandlite_os", "_sandlite_process", "_sandlite_threads", "_sandlite_tools", "_sandlite_sci", "_sandlite_main"):
    module = load(name)
sys.modules["_sandlite_sci"].settle()
module.settle()
