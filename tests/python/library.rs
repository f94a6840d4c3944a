//! The standard library does what it does elsewhere.

use super::{check, check_error};

#[test]
fn common_modules_work() {
    check(
        "import json, re, datetime, collections, itertools, functools, dataclasses, decimal, statistics, hashlib, struct, base64\n\
         print(json.dumps({'a': [1, None, 'ü']}), re.sub(r'(\\w+) (\\w+)', r'\\2 \\1', 'a b'))\n\
         print(datetime.date(2024, 2, 29) + datetime.timedelta(365), collections.Counter('abca').most_common(1))\n\
         print(list(itertools.batched('abcde', 2)), functools.reduce(int.__mul__, range(1, 25)))\n\
         print(decimal.Decimal(1) / 7, statistics.median([3, 1, 2]), hashlib.sha256(b'x').hexdigest()[:8], struct.pack('<I', 5))\n",
        "{\"a\": [1, null, \"\\u00fc\"]} b a\n2025-02-28 [('a', 2)]\n[('a', 'b'), ('c', 'd'), ('e',)] 620448401733239439360000\n\
         0.1428571428571428571428571429 2 2d711642 b'\\x05\\x00\\x00\\x00'\n",
    );
}

#[test]
fn asyncio_runs() {
    check(
        "import asyncio\n\
         async def work(n):\n    await asyncio.sleep(0.01 * n)\n    return n\n\
         async def main(): print(await asyncio.gather(*(work(n) for n in (3, 1, 2))))\n\
         asyncio.run(main())",
        "[3, 1, 2]\n",
    );
}

#[test]
fn what_is_not_there_says_why() {
    check_error(
        "import numpy",
        "ModuleNotFoundError: No module named 'numpy' (it needs compiled code that this Python does not have; pure-Python packages can be installed)",
    );
    check_error(
        "import multiprocessing",
        "ModuleNotFoundError: No module named 'multiprocessing' (the sandbox has processes, but a running Python cannot be copied; use subprocess)",
    );
    check_error("import nothing_at_all", "ModuleNotFoundError: No module named 'nothing_at_all'");
    check_error("import threading; threading.Thread(target=print).start()", "RuntimeError: can't start new thread");
}

#[test]
fn unit_tests_and_doctests_run() {
    let sandbox = super::sandbox();
    sandbox.fs().write("/home/user/test_it.py", "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(1, 1)\n    def test_b(self): self.assertEqual(1, 2)\n").unwrap();
    let output = sandbox.run(runtime::Command::python_with(["-m", "unittest", "-q"])).unwrap();
    assert!(super::texts(&output).1.ends_with("FAILED (failures=1)\n"), "{output:?}");
    assert_eq!(output.status.code(), 1);
    check(
        "import doctest, shelve, plistlib, pickletools\ndef f():\n    '''\n    >>> f()\n    1\n    '''\n    return 1\nprint(doctest.testmod())",
        "TestResults(failed=0, attempted=1)\n",
    );
}
