"""Runs a module of CPython's own tests inside the sandbox: the one that MODULE in the environment names, with the suite
below /suite. NAMES in the environment prints the name of each test as it starts.

Standard input names the tests to leave out, one pattern a line. The last line printed counts; what failed is named before it.
"""

import fnmatch
import os
import sys
import types
import unittest

sys.path.insert(0, "/suite")
# For the processes that tests start.
os.environ["PYTHONPATH"] = "/suite"
from test import support

# The suite thinks that no WASI has these; ours starts processes.
support.has_subprocess_support = True
# Lets `test_asyncio` in, whose modules for sockets are not among those that are run; its utilities want these at hand.
support.has_socket_support = True
for name in ("http.server", "socketserver", "wsgiref", "wsgiref.simple_server"):
    module = sys.modules[name] = types.ModuleType(name)
    module.__getattr__ = lambda attribute: type(attribute, (), {})


class Result(unittest.TestResult):
    bad = []

    def _note(self, kind, test, error):
        self.bad.append((kind, test.id()))
        print(f"{kind} {test.id()}\n{self._exc_info_to_string(error, test)}", flush=True)

    def addError(self, test, error):
        self._note("ERROR", test, error)

    def addFailure(self, test, error):
        self._note("FAIL", test, error)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self._note("FAIL", subtest, error)

    def startTest(self, test):
        super().startTest(test)
        if os.environ.get("NAMES"):
            print("start", test.id(), flush=True)


def tests_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield item


def main():
    module = os.environ["MODULE"]
    left_out = set(sys.stdin.read().split("\n")) - {""}
    os.makedirs("/tmp/work", exist_ok=True)
    os.chdir("/tmp/work")
    suite = unittest.defaultTestLoader.loadTestsFromName(f"test.{module}")
    chosen, skipped = unittest.TestSuite(), 0
    for test in tests_of(suite):
        name = test.id().removeprefix("test.")
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in left_out):
            skipped += 1
        else:
            chosen.addTest(test)
    result = Result()
    chosen(result)
    print(f"{module}: {result.testsRun} run, {len(result.skipped)} skipped by themselves, {skipped} left out, {len(result.bad)} bad")
    sys.stdout.flush()
    sys.exit(1 if result.bad or not result.testsRun else 0)


main()
