//! Completion of a partial word: files of the sandbox, and programs at the start of a command; in Python, names and attributes.

use runtime::{Command, FileType, PythonSession, Sandbox};

use crate::printer::is_deceptive;

/// A word on a command line that ends at the cursor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Its start, in characters.
    pub(super) start: usize,
    /// Its text.
    pub(super) text: String,
    /// Whether a command starts here.
    pub(super) is_command: bool,
}

/// Returns the word that ends `before`.
pub(super) fn last_word(before: &str) -> Word {
    let ends = |c: char| c.is_whitespace() || "|&;<>()`\"'=".contains(c);
    let start_byte = before.rfind(ends).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let (rest, text) = before.split_at(start_byte);
    let trimmed = rest.trim_end_matches([' ', '\t']);
    let after_operator = trimmed.is_empty() || trimmed.ends_with(['|', '&', ';', '(', '`', '\n']);
    let after_word = ["then", "do", "else", "!", "sudo", "exec", "time"]
        .iter()
        .any(|word| trimmed.strip_suffix(word).is_some_and(|before| before.is_empty() || before.ends_with(ends)));
    Word { start: rest.chars().count(), text: text.to_owned(), is_command: after_operator || after_word }
}

/// Returns the paths that start with `text`; directories end with `/`.
pub(super) fn files(sandbox: &Sandbox, cwd: &str, home: &str, text: &str) -> Vec<String> {
    let (typed, prefix) = text.rsplit_once('/').map_or(("", text), |(_, prefix)| text.split_at(text.len() - prefix.len()));
    let directory = match typed {
        _ if typed.starts_with('/') => typed.to_owned(),
        _ if typed.starts_with("~/") => format!("{home}/{}", &typed[2..]),
        _ => format!("{cwd}/{typed}"),
    };
    let entries = sandbox.fs().list(&directory).unwrap_or_default();
    let fitting = entries.into_iter().filter(|entry| entry.name.starts_with(prefix));
    let shown = fitting.filter(|entry| prefix.starts_with('.') || !entry.name.starts_with('.'));
    let paths = shown.map(|entry| {
        let is_directory = match entry.kind {
            FileType::Directory => true,
            FileType::Symlink => sandbox.fs().metadata(&format!("{directory}/{}", entry.name)).is_ok_and(|stat| stat.is_dir()),
            FileType::File | FileType::Fifo | FileType::Device => false,
        };
        format!("{typed}{}{}", quoted(&entry.name), if is_directory { "/" } else { "" })
    });
    paths.collect()
}

/// The indentation that a tab inserts within a line of Python.
const INDENT: &str = "    ";

/// Returns the start of the last name in some Python, in characters, and its completions. They are computed by the session's own
/// interpreter on the files of `scratch`, so nothing is stored.
pub(super) fn python(session: &mut PythonSession, scratch: &Sandbox, before: &str) -> (usize, Vec<String>) {
    let end = before.chars().count();
    let line = before.rsplit('\n').next().unwrap_or_default();
    if line.trim().is_empty() {
        return (end, vec![INDENT.to_owned()]);
    }
    let Some(name) = DottedName::at_the_end_of(line) else { return (end, Vec::new()) };
    let answer = session.run_in(scratch, Command::python(name.question()));
    let text = answer.map(|output| output.stdout).unwrap_or_default();
    let choices = String::from_utf8_lossy(&text).lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    (end - name.typed.chars().count(), choices)
}

/// `a.b.c`: an object and the prefix of an attribute name.
#[derive(Debug, PartialEq, Eq)]
struct DottedName<'a> {
    object: Option<&'a str>,
    typed: &'a str,
}

impl<'a> DottedName<'a> {
    fn at_the_end_of(line: &'a str) -> Option<Self> {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let start = line.rfind(|c| !is_part(c)).map_or(0, |at| at + line[at..].chars().next().map_or(1, char::len_utf8));
        // After a closing bracket or quote, the object would have to be computed.
        let dotted = Some(&line[start..]).filter(|dotted| !dotted.is_empty() && !dotted.starts_with('.'))?;
        let (object, typed) = dotted.rsplit_once('.').map_or((None, dotted), |(object, typed)| (Some(object), typed));
        let is_name = |name: &str| name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let is_object = object.is_none_or(|object| object.split('.').all(is_name));
        (is_object && (typed.is_empty() || is_name(typed))).then_some(Self { object, typed })
    }

    // Python code that prints the completions. Names with a leading underscore are listed only after an underscore.
    fn question(&self) -> String {
        let names = match self.object {
            Some(object) => format!("dir({object})"),
            None => "[*globals(), *dir(__builtins__), *__import__('keyword').kwlist]".to_owned(),
        };
        let typed = self.typed;
        let hidden = if typed.is_empty() { " and n[:1] != '_'" } else { "" };
        format!("print(*sorted({{n for n in {names} if n.startswith('{typed}'){hidden}}}), sep='\\n')")
    }
}

// Returns a name as it must be typed. Names with control characters are not offered.
fn quoted(name: &str) -> String {
    let mut typed = String::new();
    for c in name.chars() {
        if is_deceptive(c) {
            typed.push('?');
            continue;
        }
        if c.is_whitespace() || "|&;<>()$`\\\"'*?[]#~=%!{}".contains(c) {
            typed.push('\\');
        }
        typed.push(c);
    }
    typed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &str, start: usize, text: &str, is_command: bool) {
        assert_eq!(last_word(before), Word { start, text: text.to_owned(), is_command }, "{before}");
    }

    #[test]
    fn a_command_begins_at_the_start_and_after_operators() {
        check("", 0, "", true);
        check("ec", 0, "ec", true);
        check("echo a", 5, "a", false);
        check("echo a | gr", 9, "gr", true);
        check("if true; then ec", 14, "ec", true);
        check("x=$(da", 4, "da", true);
        check("cat <in", 5, "in", false);
        check("ü b", 2, "b", false);
    }

    #[test]
    fn the_last_dotted_name_of_a_line_is_completed() {
        let check = |line: &str, object: Option<&str>, typed: &str| {
            assert_eq!(DottedName::at_the_end_of(line), Some(DottedName { object, typed }), "{line}");
        };
        check("x = pri", None, "pri");
        check("print(math.fa", Some("math"), "fa");
        check("os.path.", Some("os.path"), "");
        check("für.ü", Some("für"), "ü");
        for line in ["f().x", "'text'.up", "x = ", "1.r", "a..b"] {
            assert_eq!(DottedName::at_the_end_of(line), None, "{line}");
        }
    }

    #[test]
    fn names_are_quoted_as_they_must_be_typed() {
        assert_eq!(quoted("a b'c"), "a\\ b\\'c");
        assert_eq!(quoted("a\x1b[2J"), "a?\\[2J");
    }
}
