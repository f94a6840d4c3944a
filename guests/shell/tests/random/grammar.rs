//! Which scripts are tried: a small grammar of bash, driven by a seeded generator.

/// A generator of numbers that a seed determines.
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap_or(0)]
    }
}

/// A script as a list of statements, each of which may be left out.
#[derive(Clone)]
pub struct Script(Vec<String>);

impl Script {
    /// The whole script.
    pub fn text(&self) -> String {
        self.0.join("\n")
    }

    /// The scripts with one statement less.
    pub fn smaller(&self) -> Vec<Self> {
        (0..self.0.len())
            .map(|at| {
                let mut lines = self.0.clone();
                lines.remove(at);
                Self(lines)
            })
            .collect()
    }
}

/// A random script.
pub fn script(random: &mut Random) -> Script {
    let count = 2 + random.below(7);
    let mut lines: Vec<String> = (0..count).map(|_| statement(random, 0)).collect();
    lines.push("echo \"end $? [$x] [${a[*]}] ${#m[@]}\"".to_owned());
    Script(lines)
}

const NAMES: &[&str] = &["x", "y", "z", "n"];
const LITERALS: &[&str] =
    &["foo", "a b", "bar.txt", "1", "42", "-3", "A-Z", "x=y", "file*", "[fo]oo", "é", "~", "a:b:c", "/usr/lib", "0", "_"];
const PATTERNS: &[&str] =
    &["*", "f*", "?", "[a-c]*", "*o", "a", "b*", "*.", "[!a]", "*[0-9]", "/*", ":*", "'*'", "\"$x\"", "$y", "\\*"];

fn name(random: &mut Random) -> &'static str {
    random.pick(NAMES)
}

fn number(random: &mut Random) -> String {
    random.pick(&["0", "1", "2", "3", "7", "10", "-1", "-2", "x", "n", "a[1]", "${#x}", "0x1f", "010", "2#101"]).to_owned()
}

fn arithmetic(random: &mut Random, depth: u32) -> String {
    if depth > 2 {
        return number(random);
    }
    match random.below(10) {
        0..=3 => number(random),
        4 | 5 => {
            let operator =
                random.pick(&["+", "-", "*", "/", "%", "<<", ">>", "<", ">", "==", "!=", "&", "|", "^", "&&", "||", ","]);
            format!("{} {operator} {}", arithmetic(random, depth + 1), arithmetic(random, depth + 1))
        }
        6 => format!("({})", arithmetic(random, depth + 1)),
        7 => format!("{}{}", random.pick(&["-", "!", "~", "+"]), number(random)),
        8 => format!("{} ? {} : {}", number(random), arithmetic(random, depth + 1), arithmetic(random, depth + 1)),
        _ => format!("({} {} {})", name(random), random.pick(&["=", "+=", "-=", "*=", "|="]), arithmetic(random, depth + 1)),
    }
}

fn parameter(random: &mut Random, depth: u32) -> String {
    let base = random
        .pick(&["x", "y", "z", "n", "a[0]", "a[1]", "a[@]", "a[*]", "m[k]", "m[@]", "@", "*", "1", "2", "4", "nosuch", "a[-1]"]);
    match random.below(19) {
        0..=3 => format!("${{{base}}}"),
        4 => format!("${{#{base}}}"),
        5 => format!("${{{base}:-{}}}", word(random, depth + 1)),
        6 => format!("${{{base}-{}}}", word(random, depth + 1)),
        7 => format!("${{{base}:+{}}}", word(random, depth + 1)),
        8 => format!("${{{base}{}{}}}", random.pick(&["#", "##", "%", "%%"]), random.pick(PATTERNS)),
        9 => format!("${{{base}{}{}/{}}}", random.pick(&["/", "//", "/#", "/%"]), random.pick(PATTERNS), random.pick(LITERALS)),
        10 => format!("${{{base}:{}}}", random.pick(&["0", "1", "2", " -1", "n", "1+1"])),
        11 => format!("${{{base}:{}:{}}}", random.pick(&["0", "1", " -2"]), random.pick(&["1", "2", "0", "n"])),
        12 => format!("${{{base}{}}}", random.pick(&["^", "^^", ",", ",,", "^^[a-f]", "~~"])),
        13 => format!("${{{base}@{}}}", random.pick(&["Q", "U", "L", "u", "a", "E", "A", "K", "k"])),
        14 => "${!x}".to_owned(),
        15 => random.pick(&["${!a[@]}", "${!m[@]}", "${!n*}", "${!x@}"]).to_owned(),
        16 => format!("${{{}={}}}", random.pick(&["y", "q", "z"]), word(random, depth + 1)),
        17 => format!("${}", random.pick(&["x", "y", "z", "n", "@", "*", "#", "?", "1", "2", "-"])),
        _ => format!("$(({}))", arithmetic(random, 0)),
    }
}

fn piece(random: &mut Random, depth: u32) -> String {
    if depth > 3 {
        return random.pick(&["foo", "b", "1"]).to_owned();
    }
    match random.below(14) {
        0..=2 => random
            .pick(&["foo", "bar", "-x", "1", "file*", "*", "{a,b}", "{1..3}", "~", "a=b", "é", "\\*", "\\ ", "[ab]", "%"])
            .to_owned(),
        3 => format!("'{}'", random.pick(LITERALS)),
        4 | 5 => format!("\"{}{}\"", random.pick(LITERALS), parameter(random, depth + 1)),
        6..=9 => parameter(random, depth),
        10 => format!("\"{}\"", parameter(random, depth)),
        11 => {
            format!("$({})", random.pick(&["echo hi", "echo \"$x\"", "printf 'a\\nb\\n'", "echo $n; false", "cat file1", "true"]))
        }
        12 => random.pick(&["$'a\\tb'", "$'\\x41'", "\"\\$x\"", "\"a\\\"b\"", "''", "\"\""]).to_owned(),
        _ => format!("`echo {}`", random.pick(&["hi", "$x", "\"$y\""])),
    }
}

fn word(random: &mut Random, depth: u32) -> String {
    let count = 1 + random.below(2);
    (0..count).map(|_| piece(random, depth)).collect()
}

fn words(random: &mut Random) -> String {
    let count = random.below(4);
    (0..count).map(|_| word(random, 0)).collect::<Vec<_>>().join(" ")
}

fn condition(random: &mut Random) -> String {
    match random.below(8) {
        0 => format!("[[ {} {} {} ]]", word(random, 1), random.pick(&["==", "!=", "<", ">"]), random.pick(PATTERNS)),
        1 => format!("[[ -{} {} ]]", random.pick(&["n", "z", "e", "f", "d", "v"]), word(random, 1)),
        2 => {
            format!("[ \"{}\" {} \"{}\" ]", parameter(random, 1), random.pick(&["=", "!=", "-eq", "-lt"]), random.pick(LITERALS))
        }
        3 => format!("(( {} ))", arithmetic(random, 0)),
        4 => format!("[[ {} =~ {} ]]", word(random, 1), random.pick(&["^a", "o+", "(.)(.)", "[0-9]+$", "$x", "a|b", "^(f(o)*)"])),
        5 => "true".to_owned(),
        6 => format!("! {}", condition(random)),
        _ => format!("[[ {} -{} {} ]]", number(random), random.pick(&["eq", "ne", "lt", "ge"]), number(random)),
    }
}

fn block(random: &mut Random, depth: u32) -> String {
    let count = 1 + random.below(2);
    (0..count).map(|_| statement(random, depth + 1)).collect::<Vec<_>>().join("; ")
}

fn simple(random: &mut Random) -> String {
    match random.below(16) {
        0..=3 => format!("echo {}", words(random)),
        4..=6 => format!("printf '<%s>' {}; echo", words(random)),
        7 | 8 => format!("{}={}", name(random), word(random, 0)),
        9 => format!("{}+={}", name(random), word(random, 0)),
        10 => format!("a=({})", words(random)),
        11 => format!("a[{}]={}", random.pick(&["0", "1", "2", "5", "n", "-1", "1+1"]), word(random, 0)),
        12 => format!("set -- {}", words(random)),
        13 => format!("a+=({})", words(random)),
        14 => format!("(( {} ))", arithmetic(random, 0)),
        _ => random
            .pick(&[
                "IFS=:",
                "IFS=",
                "unset IFS",
                "set -f",
                "set +f",
                "set -u",
                "shopt -s nullglob",
                "shopt -s extglob",
                "shift",
                "unset x",
                "unset 'a[0]'",
                "readonly y",
                "declare -i n=3",
                "declare -u z",
                "declare -A m=([k]=v [l]=w)",
                "declare -p a",
                "declare -p x",
                "read -r x y <<< 'p q r'",
                "IFS=: read -ra a <<< 'p:q:r'",
                "printf -v x '%03d' 7",
                "local x=1",
                "export x",
                "set -e",
                "false",
                "trap 'echo err' ERR",
                "trap 'echo bye' EXIT",
                "mapfile -t a < file1",
                "let n=n+1",
                "set -o pipefail",
                "return 3",
                "break",
                "eval 'echo $x'",
                "getopts ab: o -a",
                "shopt -s nocasematch",
                "declare -n r=x",
                "r=5",
                "alias q=echo",
                "type echo",
                "cd /",
            ])
            .to_owned(),
    }
}

fn redirected(random: &mut Random) -> String {
    let command = simple(random);
    let redirect = random.pick(&[
        "> out",
        ">> out",
        "2> err",
        "2>&1",
        "< file1",
        "<<< \"$x\"",
        "> /dev/null",
        "2>/dev/null",
        "&> both",
        "< nosuch",
        "3>&1 >&3",
    ]);
    // A list would be cut in two.
    if command.contains(';') { format!("{{ {command}; }} {redirect}") } else { format!("{command} {redirect}") }
}

fn statement(random: &mut Random, depth: u32) -> String {
    if depth > 2 {
        return simple(random);
    }
    match random.below(22) {
        0..=9 => simple(random),
        10 | 11 => redirected(random),
        12 => format!("if {}; then {}; else {}; fi", condition(random), block(random, depth), block(random, depth)),
        13 => format!("for {} in {}; do {}; done", name(random), words(random), block(random, depth)),
        14 => format!(
            "case {} in {}) {};; {}) {};; *) echo other;; esac",
            word(random, 0),
            random.pick(PATTERNS),
            block(random, depth),
            random.pick(PATTERNS),
            block(random, depth)
        ),
        15 => format!("f() {{ {}; }}; f {}", block(random, depth), words(random)),
        16 => format!("( {} )", block(random, depth)),
        17 => format!("{{ {}; }} | cat", block(random, depth)),
        // Each depth has its own counter, or an inner loop could keep an outer one going.
        18 => format!("i{depth}=0; while (( i{depth}++ < 2 )); do {}; done", block(random, depth)),
        19 => format!("{} && echo yes || echo no $?", condition(random)),
        20 => format!("{}=$( {})", name(random), block(random, depth)),
        _ if depth > 0 => simple(random),
        // Assignments in a program's here-document are lost with the process.
        _ => format!("read -r z <<EOF\n{} text $x ${{a[@]}}\nEOF", parameter(random, 1)),
    }
}
