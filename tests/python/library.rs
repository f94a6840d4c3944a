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
fn a_missing_module_reports_the_reason() {
    check_error(
        "import torch",
        "ModuleNotFoundError: No module named 'torch' (it needs compiled code that this Python does not have; pure-Python packages can be installed)",
    );
    check_error(
        "import multiprocessing",
        "ModuleNotFoundError: No module named 'multiprocessing' (the sandbox has processes, but a running Python cannot be copied; use subprocess)",
    );
    check_error("import nothing_at_all", "ModuleNotFoundError: No module named 'nothing_at_all'");
}

#[test]
fn a_connection_fails_because_there_is_no_network() {
    check(
        "import socket, ssl\n\
         for act in (lambda: socket.create_connection(('example.com', 80)), lambda: socket.gethostbyname('example.com'),\n\
                     lambda: ssl.create_default_context().wrap_socket(None)):\n    \
             try: act()\n    \
             except OSError as error: print(type(error).__name__, error)\n",
        "gaierror [Errno 2] there is no network in the sandbox\n\
         gaierror [Errno 2] there is no network in the sandbox\n\
         SSLError there is no network in the sandbox\n",
    );
}

#[test]
fn modules_that_pure_packages_import_exist() {
    check(
        "import ctypes, http.server, socketserver, ssl\n\
         print(ctypes.sizeof(ctypes.c_long), ctypes.sizeof(ctypes.c_longlong), ctypes.c_ubyte(257).value, ctypes.c_byte(200).value)\n\
         print(http.server.BaseHTTPRequestHandler.__name__, socketserver.ThreadingMixIn.__name__, ssl.CERT_REQUIRED)\n\
         try: ctypes.CDLL('libc.so.6')\n\
         except OSError as error: print(error)\n",
        "4 8 1 -56\nBaseHTTPRequestHandler ThreadingMixIn 2\ncannot load 'libc.so.6': there are no shared libraries in the sandbox\n",
    );
}

#[test]
fn keys_are_derived_and_limits_are_shown() {
    check(
        "import hashlib, resource\n\
         print(hashlib.pbkdf2_hmac('sha256', b'password', b'salt', 1000, 12).hex(), hashlib.pbkdf2_hmac('sha1', b'a', b'b', 2).hex())\n\
         print(resource.getrusage(resource.RUSAGE_SELF).ru_utime >= 0, resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 0)\n",
        "632c2812e46d4604102ba761 98b7b1fe44bc7012696654b20236543e8414e489\nTrue (-1, -1) True\n",
    );
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

// Compiled modules elsewhere; here the sandbox's own programs do the work.
#[test]
fn streams_are_packed_and_unpacked() {
    check(
        "import bz2, lzma, shutil, tarfile, zipfile\n\
         data = ' '.join(map(str, range(20000))).encode()\n\
         for module, new in (bz2, bz2.BZ2Decompressor), (lzma, lzma.LZMADecompressor):\n\
         \x20   packed = module.compress(data)\n\
         \x20   assert len(packed) < len(data) and module.decompress(packed + packed) == data * 2\n\
         \x20   with module.open('/tmp/x', 'wt') as file: file.write('one\\ntwo\\n')\n\
         \x20   with module.open('/tmp/x', 'rt') as file: assert list(file) == ['one\\n', 'two\\n']\n\
         \x20   stream, parts = new(), []\n\
         \x20   parts.append(stream.decompress(packed + b'rest', 10))\n\
         \x20   assert not stream.needs_input\n\
         \x20   while not stream.eof: parts.append(stream.decompress(b'', 1000))\n\
         \x20   assert len(parts[0]) == 10 and b''.join(parts) == data and stream.unused_data == b'rest'\n\
         \x20   stream = new()\n\
         \x20   assert b''.join(stream.decompress(packed[at:at + 99]) for at in range(0, len(packed), 99)) == data\n\
         \x20   for wrong in packed[:40], b'no such stream', packed[:-10] + b'x' * 10:\n\
         \x20       try: module.decompress(wrong)\n\
         \x20       except Exception as error: print(type(error).__name__, error)\n\
         assert lzma.decompress(lzma.compress(data, format=lzma.FORMAT_ALONE)) == data\n\
         for format in 'bztar', 'xztar':\n\
         \x20   print(tarfile.open(shutil.make_archive('/tmp/a', format, '/etc', 'passwd')).getnames())\n\
         with zipfile.ZipFile('/tmp/z.zip', 'w', zipfile.ZIP_BZIP2) as zip: zip.writestr('n', data)\n\
         assert zipfile.ZipFile('/tmp/z.zip').read('n') == data\n",
        "ValueError Compressed data ended before the end-of-stream marker was reached\n\
         OSError Invalid data stream\n\
         OSError Invalid data stream\n\
         LZMAError Compressed data ended before the end-of-stream marker was reached\n\
         LZMAError Input format not supported by decoder\n\
         LZMAError Corrupt input data\n\
         ['passwd']\n['passwd']\n",
    );
}

#[test]
fn users_and_groups_have_names() {
    check(
        "import pwd, grp, getpass, os, pathlib\n\
         print(pwd.getpwuid(os.getuid()).pw_dir, pwd.getpwnam('root').pw_uid, grp.getgrgid(os.getgid()).gr_name, getpass.getuser())\n\
         print(pathlib.Path('/home/user').owner(), os.path.expanduser('~root'))\n\
         try: pwd.getpwnam('nobody')\n\
         except KeyError as error: print(error)\n",
        "/home/user 0 user user\nuser /root\n\"getpwnam(): name not found: 'nobody'\"\n",
    );
}
