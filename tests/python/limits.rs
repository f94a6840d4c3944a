//! Limits apply to Python as to every program, and the host keeps working.

use std::time::{Duration, Instant};

use runtime::{Command, LimitName, Output, Overrides};

use super::{check, sandbox, strict, texts};

fn wall(text: &str) -> Overrides {
    Overrides { wall: Some(text.parse().unwrap()), ..Overrides::default() }
}

fn limit(output: &Output) -> Option<LimitName> {
    output.status.limit().map(|reached| reached.limit)
}

// Whether it computes in Python, in C, in a regular expression or sleeps, the clock ends it, and soon.
#[test]
fn time_runs_out_wherever_it_is_spent() {
    for code in [
        "while True: pass",
        "10 ** 10 ** 8",
        "import re; re.match('(a+)+$', 'a' * 40 + 'b')",
        "import time; time.sleep(60)",
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])",
        "try:\n    while True: pass\nfinally:\n    while True: pass",
        "list(range(10 ** 7)) and sum(i * i for i in iter(int, 1))",
    ] {
        let started = Instant::now();
        // A fast machine spends all the compute of the strict preset in 230 ms.
        let output = sandbox().run(Command::python(format!("print('before')\n{code}")).limits(wall("300 ms"))).unwrap();
        assert_eq!((limit(&output), output.status.code()), (Some(LimitName::Wall), 124), "{code}: {output:?}");
        assert_eq!(output.stdout, b"before\n", "{code}");
        assert!(started.elapsed() < Duration::from_secs(4), "{code}");
    }
}

#[test]
fn compute_runs_out() {
    let overrides = Overrides { compute: Some(50_000_000), ..Overrides::default() };
    let output = strict().run(Command::python("while True: pass").limits(overrides)).unwrap();
    assert_eq!(limit(&output), Some(LimitName::Compute));
}

#[test]
fn a_failed_allocation_is_a_memory_error() {
    let output = strict().python("try:\n    x = bytearray(10 ** 9)\nexcept MemoryError:\n    print('refused')").unwrap();
    assert_eq!(texts(&output), ("refused\n".to_owned(), String::new()));
    let output = strict().python("x = []\nwhile True: x.append(bytearray(10 ** 6))").unwrap();
    assert!(texts(&output).1.contains("MemoryError\nsandlite: limit `memory` reached: 256 MB allowed"), "{output:?}");
    assert!(output.usage.memory_peak <= strict().limits().memory.0, "{}", output.usage.memory_peak);
}

// In Python, in C, in the parser, in destructors: an exception, and the program continues.
#[test]
fn recursion_is_an_exception_wherever_it_happens() {
    check("def f(n): return f(n + 1)\ntry: f(0)\nexcept RecursionError as e: print(e)", "maximum recursion depth exceeded\n");
    for code in [
        "import json; json.loads('[' * 10 ** 5)",
        "import json; json.dumps(nested([]))",
        "repr(nested([]))",
        "nested([]) == nested([])",
        "import pickle; pickle.dumps(nested([]))",
        "import ast; ast.parse('+'.join('a' * 50000))",
        "import copy; copy.deepcopy(nested([]))",
        "import re; re.compile('(' * 5000 + ')' * 5000)",
        "class A:\n    def __getattr__(self, n): return getattr(self, n)\nsys.setrecursionlimit(10 ** 8)\nA().x",
        "class A:\n    def __add__(self, n): return self + n\nsys.setrecursionlimit(10 ** 8)\nA() + 1",
        "def f(n): return sorted([n], key=lambda n: f(n))\nsys.setrecursionlimit(10 ** 8)\nf(0)",
        "def f(n): exec('f(n)')\nsys.setrecursionlimit(10 ** 8)\nf(0)",
        "eval('-' * 10 ** 5 + '1')",
        "eval('(' * 10 ** 5 + ')' * 10 ** 5)",
    ] {
        let code = code.replace('\n', "\n    ");
        let code = format!(
            "import sys\ndef nested(x):\n    for _ in range(10 ** 5): x = [x]\n    return x\n\
             try:\n    {code}\n    print('no end')\nexcept (RecursionError, MemoryError, SyntaxError) as e: print('refused')\n"
        );
        check(&code, "refused\n");
    }
    check("x = []\nfor _ in range(10 ** 6): x = [x]\ndel x\nprint('gone')", "gone\n");
    check("def f(n): return sorted([n], key=lambda n: f(n - 1) if n else 0)[0]\nprint(f(400))", "400\n");
}

#[test]
fn endless_recursion_ends_only_the_program() {
    for code in ["x = []\nfor _ in range(10 ** 6): x = [x]\nrepr(x)", "import json; json.loads('[' * 10 ** 6)"] {
        let output = sandbox().python(code).unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), 1, "{code}: {stderr}");
        assert!(stderr.contains("RecursionError: Stack overflow"), "{code}: {stderr}");
        assert!(output.usage.memory_peak <= 128 << 20, "{code}: {} bytes", output.usage.memory_peak);
    }
    // Frames of Python are in memory, not on the stack: they end by a `MemoryError`, by the limit, or on a slow machine by the time.
    let output = strict().python("import sys\nsys.setrecursionlimit(10 ** 8)\ndef f(n): return f(n + 1)\nf(0)").unwrap();
    assert!([1, 124, 137].contains(&output.status.code()), "{output:?}");
    assert!(output.usage.memory_peak <= strict().limits().memory.0, "{} bytes", output.usage.memory_peak);
    assert_eq!(strict().python("print(1)").unwrap().stdout, b"1\n");
}

#[test]
fn output_stops_at_its_limit() {
    let overrides = Overrides { output: Some("10 KB".parse().unwrap()), ..Overrides::default() };
    let output = strict().run(Command::python("while True: print('x' * 100)").limits(overrides)).unwrap();
    assert_eq!((limit(&output), output.stdout_truncated), (Some(LimitName::Output), true));
}

#[test]
fn children_count() {
    let code = "import subprocess, sys\nwhile True: subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)";
    let output = strict().python(code).unwrap();
    assert!(!output.status.success(), "{output:?}");
}
