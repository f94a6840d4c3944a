//! The text format of `tests/bash/**/*.cases`: reads it, writes it, and compares two runs.
//!
//! Included with `#[path]` by the recorder (`xtask/src/record.rs`) and by the test that replays the corpus.
//! Knows nothing about how a case is run; `README.md` next to this file describes the format.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Longest output kept in the open; anything longer is kept as its length and hash, so that the corpus stays readable.
pub const LONGEST_OPEN_BODY: usize = 6000;

const CASE: &str = "#### ";
const SECTION: &str = "::: ";

/// One `.cases` file: a comment about the topic, then its cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// The text before the first case.
    pub preface: String,
    /// The cases, in the order of the file.
    pub cases: Vec<Case>,
}

/// One script with what it is given and, once recorded, what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// A sentence saying what the case shows; unique within the topic.
    pub name: String,
    /// The line of the file where the case begins, for messages.
    pub line: usize,
    /// The words after `bash -c`.
    pub script: String,
    /// Standard input; `None` is `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// Files that exist before the script starts: path (relative, escaped) and contents.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Why the expectation was written by hand instead of recorded, if it was.
    pub by_hand: Option<String>,
    /// The result of the real bash.
    pub recorded: Option<Recording>,
}

/// Everything of a run that a case holds a shell to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// Standard output.
    pub stdout: Body,
    /// Standard error.
    pub stderr: Body,
    /// The changes of the script in its directory, by escaped relative path.
    pub changes: BTreeMap<String, Change>,
    /// Exit status; 128 + n when signal n ended the shell.
    pub status: i32,
}

/// Bytes, or their length and hash when there are many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// The bytes themselves.
    Open(Vec<u8>),
    /// Length and 64-bit FNV-1a hash.
    Digest(usize, u64),
}

/// The change of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A regular file that is new or has other contents than before.
    File(Body),
    /// A directory that is new (or newly emptied) and empty; other directories show through what is in them.
    Directory,
    /// A symbolic link with this (escaped) target.
    Link(String),
    /// A file of the case that is no longer there.
    Gone,
}

/// The node at one path after the run; the runner collects these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A regular file's contents.
    File(Vec<u8>),
    /// An empty directory.
    Directory,
    /// A symbolic link's target.
    Link(Vec<u8>),
}

impl Body {
    /// The canonical form of these bytes, so that equal outputs compare equal.
    pub fn of(bytes: &[u8]) -> Self {
        if bytes.len() <= LONGEST_OPEN_BODY {
            return Self::Open(bytes.to_vec());
        }
        let hash =
            bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        Self::Digest(bytes.len(), hash)
    }

    /// The body as a case file shows it, for messages.
    pub fn shown(&self) -> String {
        let mut text = String::new();
        write_section(&mut text, "", self);
        text
    }
}

impl Recording {
    /// The recorded part of a case as its file shows it, for messages.
    pub fn shown(&self) -> String {
        let mut text = String::new();
        render_recording(&mut text, self);
        text
    }

    /// The recording of a run of `case` that wrote `stdout` and `stderr`, exited with `status` and left `after` behind.
    pub fn of(case: &Case, stdout: &[u8], stderr: &[u8], status: i32, after: &BTreeMap<Vec<u8>, Entry>) -> Self {
        let mut changes = BTreeMap::new();
        for (path, entry) in after {
            let path = escape(path);
            let change = match entry {
                Entry::File(bytes) if case.files.get(&path) == Some(bytes) => continue,
                Entry::File(bytes) => Change::File(Body::of(bytes)),
                Entry::Directory => Change::Directory,
                Entry::Link(target) => Change::Link(escape(target)),
            };
            changes.insert(path, change);
        }
        for path in case.files.keys() {
            if !after.contains_key(&unescape(path).unwrap_or_default()) {
                changes.insert(path.clone(), Change::Gone);
            }
        }
        Self { stdout: Body::of(stdout), stderr: Body::of(stderr), changes, status }
    }
}

/// Reads one `.cases` file.
///
/// # Errors
/// A sentence with the line number when the text is not in the format, or two cases share a name.
pub fn parse(text: &str) -> Result<Topic, String> {
    let mut topic = Topic { preface: String::new(), cases: Vec::new() };
    let mut section = None;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if let Some(name) = line.strip_prefix(CASE) {
            finish(&mut topic, section.take())?;
            if topic.cases.iter().any(|case| case.name == name) {
                return Err(format!("line {number}: a second case named `{name}`"));
            }
            topic.cases.push(Case::new(name, number));
            section = Some(Section::new(number, "script"));
        } else if let Some(header) = line.strip_prefix(SECTION) {
            if topic.cases.is_empty() {
                return Err(format!("line {number}: a section before the first case"));
            }
            finish(&mut topic, section.take())?;
            section = Some(Section::new(number, header));
        } else if let Some(section) = &mut section {
            section.lines.push(line);
        } else {
            topic.preface.push_str(line);
            topic.preface.push('\n');
        }
    }
    finish(&mut topic, section)?;
    Ok(topic)
}

/// Writes a topic; `parse` of the result gives the topic back.
pub fn render(topic: &Topic) -> String {
    let mut text = topic.preface.trim_end().to_string();
    for case in &topic.cases {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        let _ = write!(text, "{CASE}{}\n{}\n", case.name, case.script);
        if let Some(why) = &case.by_hand {
            let _ = writeln!(text, "{SECTION}by hand {why}");
        }
        for (path, bytes) in &case.files {
            write_section(&mut text, &format!("file {path}"), &Body::Open(bytes.clone()));
        }
        if let Some(stdin) = &case.stdin {
            write_section(&mut text, "stdin", &Body::Open(stdin.clone()));
        }
        if let Some(recording) = &case.recorded {
            render_recording(&mut text, recording);
        }
        while text.ends_with('\n') {
            text.pop();
        }
    }
    text.push('\n');
    text
}

fn render_recording(text: &mut String, recording: &Recording) {
    for (name, body) in [("stdout", &recording.stdout), ("stderr", &recording.stderr)] {
        if *body != Body::Open(Vec::new()) {
            write_section(text, name, body);
        }
    }
    for (path, change) in &recording.changes {
        match change {
            Change::File(body) => write_section(text, &format!("left {path}"), body),
            Change::Directory => drop(writeln!(text, "{SECTION}left {path}/")),
            Change::Link(target) => drop(writeln!(text, "{SECTION}left {path} -> {target}")),
            Change::Gone => drop(writeln!(text, "{SECTION}gone {path}")),
        }
    }
    let _ = writeln!(text, "{SECTION}status {}", recording.status);
}

impl Case {
    fn new(name: &str, line: usize) -> Self {
        Self {
            name: name.to_string(),
            line,
            script: String::new(),
            stdin: None,
            files: BTreeMap::new(),
            by_hand: None,
            recorded: None,
        }
    }

    fn recording(&mut self) -> &mut Recording {
        self.recorded.get_or_insert_with(|| Recording {
            stdout: Body::Open(Vec::new()),
            stderr: Body::Open(Vec::new()),
            changes: BTreeMap::new(),
            status: 0,
        })
    }
}

struct Section<'a> {
    line: usize,
    header: &'a str,
    lines: Vec<&'a str>,
}

impl<'a> Section<'a> {
    fn new(line: usize, header: &'a str) -> Self {
        Self { line, header, lines: Vec::new() }
    }

    /// The header without its flags, and the body they describe.
    fn read(&self) -> Result<(&'a str, Body), String> {
        let (title, flags) = match self.header.rfind(" (") {
            Some(at) if self.header.ends_with(')') => (&self.header[..at], &self.header[at + 2..self.header.len() - 1]),
            _ => (self.header, ""),
        };
        let (mut escaped, mut newline, mut digest) = (false, true, (None, None));
        for flag in flags.split(", ").filter(|flag| !flag.is_empty()) {
            match flag {
                "escaped" => escaped = true,
                "no newline" => newline = false,
                _ => match (flag.strip_suffix(" bytes"), flag.strip_prefix("fnv ")) {
                    (Some(length), _) => digest.0 = length.parse().ok(),
                    (_, Some(hash)) => digest.1 = u64::from_str_radix(hash, 16).ok(),
                    _ => return Err(format!("line {}: unknown flag `{flag}`", self.line)),
                },
            }
        }
        if let (Some(length), Some(hash)) = digest {
            return Ok((title, Body::Digest(length, hash)));
        }
        let mut bytes = Vec::new();
        for line in &self.lines {
            if escaped {
                let line = unescape(line).ok_or_else(|| format!("line {}: a bad escape in `{line}`", self.line))?;
                bytes.extend(line);
            } else {
                bytes.extend(line.as_bytes());
            }
            bytes.push(b'\n');
        }
        if !newline {
            bytes.pop();
        }
        Ok((title, Body::Open(bytes)))
    }
}

fn finish(topic: &mut Topic, section: Option<Section<'_>>) -> Result<(), String> {
    let (Some(mut section), Some(case)) = (section, topic.cases.last_mut()) else {
        return Ok(());
    };
    let line = section.line;
    if section.header == "script" {
        case.script = section.lines.join("\n").trim_end_matches('\n').to_string();
        return if case.script.is_empty() { Err(format!("line {line}: a case without a script")) } else { Ok(()) };
    }
    // A case that was not recorded yet has no `status` line to end it: the empty line before the next case is not content.
    let recorded_part = ["stdout", "stderr", "left "].iter().any(|word| section.header.starts_with(word));
    if !recorded_part && section.lines.last() == Some(&"") && !section.header.contains("(escaped") {
        section.lines.pop();
    }
    let (title, body) = section.read()?;
    let input = |body: Body| match body {
        Body::Open(bytes) => Ok(bytes),
        Body::Digest(..) => Err(format!("line {line}: input cannot be a hash")),
    };
    let (word, rest) = title.split_once(' ').unwrap_or((title, ""));
    match word {
        "stdin" => case.stdin = Some(input(body)?),
        "file" => drop(case.files.insert(rest.to_string(), input(body)?)),
        "by" => case.by_hand = Some(rest.strip_prefix("hand").unwrap_or(rest).trim().to_string()),
        "stdout" => case.recording().stdout = body,
        "stderr" => case.recording().stderr = body,
        "left" => {
            let (path, change) = if let Some((path, target)) = rest.split_once(" -> ") {
                (path, Change::Link(target.to_string()))
            } else if let Some(path) = rest.strip_suffix('/') {
                (path, Change::Directory)
            } else {
                (rest, Change::File(body))
            };
            case.recording().changes.insert(path.to_string(), change);
        }
        "gone" => drop(case.recording().changes.insert(rest.to_string(), Change::Gone)),
        "status" => {
            case.recording().status = rest.parse().map_err(|_| format!("line {line}: invalid status `{rest}`"))?;
        }
        _ => return Err(format!("line {line}: unknown section `{title}`")),
    }
    Ok(())
}

/// Plain when an editor shows the bytes as they are, escaped otherwise.
fn write_section(text: &mut String, title: &str, body: &Body) {
    let bytes = match body {
        Body::Open(bytes) => bytes,
        Body::Digest(length, hash) => {
            let _ = writeln!(text, "{SECTION}{title} ({length} bytes, fnv {hash:016x})");
            return;
        }
    };
    let mut flags = Vec::new();
    let plain = is_plain(bytes);
    if !plain {
        flags.push("escaped");
    }
    let lines = bytes.strip_suffix(b"\n").unwrap_or_else(|| {
        if !bytes.is_empty() {
            flags.push("no newline");
        }
        bytes
    });
    let flags = if flags.is_empty() { String::new() } else { format!(" ({})", flags.join(", ")) };
    let _ = writeln!(text, "{SECTION}{title}{flags}");
    if bytes.is_empty() {
        return;
    }
    for line in lines.split(|byte| *byte == b'\n') {
        if plain {
            let _ = writeln!(text, "{}", String::from_utf8_lossy(line));
        } else {
            let _ = writeln!(text, "{}", escape(line));
        }
    }
}

fn is_plain(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let visible = |c: char| c == '\t' || c == '\n' || !c.is_control();
    // A last empty line would be taken for the space between two cases.
    text.chars().all(visible)
        && !text.ends_with("\n\n")
        && text != "\n"
        && text.split('\n').all(|line| !line.starts_with(CASE) && !line.starts_with(SECTION) && !line.ends_with([' ', '\t']))
}

/// One line, or a path, in ASCII-safe form: `\\`, `\xHH` for what cannot be seen, a first or last character that would mislead.
pub fn escape(line: &[u8]) -> String {
    let mut text = String::new();
    let misleading = line.starts_with(CASE.as_bytes()) || line.starts_with(SECTION.as_bytes());
    let mut at = 0;
    for chunk in line.utf8_chunks() {
        for c in chunk.valid().chars() {
            let last = at + c.len_utf8() == line.len();
            let hide = c.is_control() && c != '\t' || last && (c == ' ' || c == '\t') || at == 0 && misleading;
            match c {
                '\\' => text.push_str("\\\\"),
                _ if hide => {
                    for byte in c.to_string().bytes() {
                        let _ = write!(text, "\\x{byte:02x}");
                    }
                }
                _ => text.push(c),
            }
            at += c.len_utf8();
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
        at += chunk.invalid().len();
    }
    text
}

/// The bytes that `escape` wrote; `None` when a backslash begins nothing known.
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest {
            [b'\\', tail @ ..] => {
                bytes.push(b'\\');
                rest = tail;
            }
            [b'x', high, low, tail @ ..] => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = tail;
            }
            _ => return None,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(stdout: &[u8]) {
        let mut topic = parse("About.\n\n#### a case\necho hi\n::: file in.txt\nx\n\n#### next\ntrue\n").unwrap();
        let after = BTreeMap::from([(b"out".to_vec(), Entry::File(stdout.to_vec()))]);
        topic.cases[0].recorded = Some(Recording::of(&topic.cases[0], stdout, b"", 3, &after));
        let again = parse(&render(&topic)).unwrap();
        assert_eq!(again.cases[0].recorded, topic.cases[0].recorded);
        assert_eq!(again.cases[0].files["in.txt"], b"x\n");
        assert_eq!(render(&again), render(&topic));
    }

    #[test]
    fn any_bytes_survive_being_written_and_read() {
        for bytes in [
            &b""[..],
            b"a",
            b"a\n",
            b"\n",
            b"\n\n",
            b"a\n\n",
            b"\0\xff\\x\n",
            b"::: stdout\n",
            b"#### x",
            b"tab\t\n",
            b"\xc3\xa9\n",
            b"\xc2\x85",
            b" ",
            b"::: \n ",
        ] {
            there_and_back(bytes);
        }
        there_and_back(&[b'x'; LONGEST_OPEN_BODY + 1]);
    }

    #[test]
    fn two_cases_may_not_share_a_name() {
        assert_eq!(parse("#### a\n:\n#### a\n:\n"), Err("line 3: a second case named `a`".to_string()));
    }

    #[test]
    fn a_removed_input_file_is_a_change() {
        let case = parse("#### a\nrm f\n::: file f\nx\n").unwrap().cases.remove(0);
        let recording = Recording::of(&case, b"", b"", 0, &BTreeMap::new());
        assert_eq!(recording.changes, BTreeMap::from([("f".to_string(), Change::Gone)]));
    }
}
