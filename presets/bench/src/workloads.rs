//! The measured workloads: small steps typical of agents, and some that a preset should stop.

use runtime::Command;

/// A workload.
pub(crate) struct Workload {
    /// Its name in the report.
    pub(crate) name: &'static str,
    /// `bash` or `python`.
    pub(crate) language: &'static str,
    text: &'static str,
}

impl Workload {
    /// Returns the command.
    pub(crate) fn command(&self) -> Command {
        match self.language {
            "python" => Command::python(self.text),
            _ => Command::bash(self.text),
        }
    }
}

const fn bash(name: &'static str, text: &'static str) -> Workload {
    Workload { name, language: "bash", text }
}

const fn python(name: &'static str, text: &'static str) -> Workload {
    Workload { name, language: "python", text }
}

/// All workloads, cheapest first. The last ones of each language exceed the limits of `strict`.
pub(crate) const ALL: [Workload; 12] = [
    bash("echo", "echo hello"),
    bash("loop of 90 rounds", "for ((i = 0; i < 90; i++)); do x=$((x + i * i)); done; echo $x"),
    bash("pipeline of 4", "seq 2000 | sort -rn | uniq | tail -n 1"),
    bash("200 files", "mkdir -p d; cd d; seq 200 | split -l 1 -; grep -l 77 * | wc -l"),
    bash("awk, compute", "awk 'BEGIN { for (i = 0; i < 300000; i++) s += i % 7; print s }'"),
    bash("sha256 of 4 MB", "head -c 4M /dev/zero | sha256sum"),
    bash("loop of 900 rounds", "for ((i = 0; i < 900; i++)); do x=$((x + i)); done; echo $x"),
    bash("3 MB of output", "head -c 3M /dev/zero | tr '\\0' x"),
    python("print", "print('hello')"),
    python("fib(21)", "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nprint(fib(21))"),
    python(
        "json, 20 000 rows",
        "import json\nrows = [{'id': i, 'name': f'row {i}'} for i in range(20000)]\nprint(len(json.loads(json.dumps(rows))))",
    ),
    python("300 MB of memory", "print(len(bytearray(300 << 20)))"),
];
