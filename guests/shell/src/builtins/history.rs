//! `history` and `fc`, and when commands are remembered.

use super::parse_options;
use crate::bytes;
use crate::shell::{Done, Flow, Shell};
use crate::state::options::SetOption;

impl Shell {
    fn history_file(&mut self) -> Option<String> {
        self.get("HISTFILE").filter(|file| !file.is_empty())
    }

    /// Remembers a command as HISTCONTROL and HISTIGNORE allow.
    pub(crate) fn remember(&mut self, text: &str) {
        let text = text.trim_end_matches('\n');
        if text.trim().is_empty() {
            return;
        }
        let control = self.get("HISTCONTROL").unwrap_or_default();
        let has = |wanted: &str| control.split(':').any(|word| word == wanted || word == "ignoreboth" && wanted != "erasedups");
        if has("ignorespace") && text.starts_with(' ')
            || has("ignoredups") && self.history.lines.last().is_some_and(|last| last == text)
        {
            return;
        }
        if let Some(ignored) = self.get("HISTIGNORE")
            && ignored.split(':').any(|pattern| !pattern.is_empty() && self.compile_pattern(pattern, false).matches(text))
        {
            return;
        }
        if has("erasedups") {
            self.history.lines.retain(|line| line != text);
        }
        self.history.add(text);
        self.limit_history();
    }

    /// Returns the place of the newest command besides the `fc` that asks.
    fn newest_command(&self) -> usize {
        self.history.lines.len().saturating_sub(1 + usize::from(self.on(SetOption::History)))
    }

    /// Returns the place of the operand of `fc`: a number, one that counts back, or the beginning of a command.
    fn find_command_of_history(&self, text: &str) -> Option<usize> {
        let newest = self.newest_command();
        let Ok(number) = text.parse::<i64>() else {
            return self.history.lines.get(..=newest)?.iter().rposition(|line| line.starts_with(text));
        };
        let back = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
        Some(match number {
            0 if text.starts_with('-') => self.history.lines.len().saturating_sub(1),
            0 => newest,
            ..0 => (newest + 1).saturating_sub(back),
            _ => back.saturating_sub(self.history.dropped + 1).min(newest),
        })
    }

    /// Shortens the list after HISTSIZE was set or a command was added.
    pub(crate) fn limit_history(&mut self) {
        if let Some(most) = self.get("HISTSIZE").and_then(|text| text.parse::<usize>().ok()) {
            self.history.shrink(most);
        }
    }

    /// Shortens the file to its newest lines after HISTFILESIZE was set.
    pub(crate) fn limit_history_file(&mut self) {
        let most = self.get("HISTFILESIZE").and_then(|text| text.parse::<usize>().ok());
        let (Some(most), Some(file)) = (most, self.history_file()) else { return };
        let Some(lines) = read_lines(&file) else { return };
        if lines.len() > most {
            let kept = lines.get(lines.len() - most..).unwrap_or_default();
            let _ = write_lines(&file, kept);
        }
    }

    /// Reads the history file when an interactive shell starts.
    pub(crate) fn load_history(&mut self) {
        let Some(lines) = self.history_file().and_then(|file| read_lines(&file)) else { return };
        self.history.in_file = lines.len();
        self.history.lines.extend(lines);
        self.limit_history();
    }

    /// Writes the history file when an interactive shell ends.
    pub(crate) fn save_history(&mut self) {
        let fresh = self.history.fresh.min(self.history.lines.len());
        if fresh > 0
            && let Some(file) = self.history_file()
        {
            let lines = self.history.lines.get(self.history.lines.len() - fresh..).unwrap_or_default().to_vec();
            let _ = append_lines(&file, &lines);
            self.limit_history_file();
        }
    }
}

fn read_lines(file: &str) -> Option<Vec<String>> {
    let content = std::fs::read(crate::exec::os(file)).ok()?;
    Some(bytes::decode(&content).lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

fn joined(lines: &[String]) -> Vec<u8> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    bytes::encode(&text).into_owned()
}

fn write_lines(file: &str, lines: &[String]) -> std::io::Result<()> {
    std::fs::write(crate::exec::os(file), joined(lines))
}

fn append_lines(file: &str, lines: &[String]) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(crate::exec::os(file))?;
    std::io::Write::write_all(&mut file, &joined(lines))
}

pub(super) fn history(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "acd:npsrw") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("history", &wrong)),
    };
    let has = |wanted: char| options.iter().any(|(letter, _)| *letter == wanted);
    let operands = args.get(at..).unwrap_or_default();
    if ['a', 'n', 'r', 'w'].into_iter().filter(|letter| has(*letter)).count() > 1 {
        shell.complain("history: cannot use more than one of -anrw");
        return Ok(1);
    }
    if has('c') {
        shell.history.lines.clear();
        shell.history.dropped = 0;
        shell.history.fresh = 0;
    }
    if has('s') {
        if shell.on(SetOption::History) {
            // Takes the place of the command that adds it.
            shell.history.forget_last();
        }
        shell.history.add(&operands.join(" "));
        return Ok(0);
    }
    if has('p') {
        if shell.on(SetOption::History) {
            shell.history.forget_last();
        }
        let text: String = operands.iter().map(|operand| format!("{operand}\n")).collect();
        shell.write(&text);
        return Ok(0);
    }
    if let Some((_, offset)) = options.iter().find(|(letter, _)| *letter == 'd') {
        return delete(shell, offset);
    }
    if has('a') || has('n') || has('r') || has('w') {
        return with_file(shell, operands, has('a'), has('n'), has('r'));
    }
    if has('c') {
        return Ok(0);
    }
    list(shell, operands)
}

fn list(shell: &mut Shell, operands: &[String]) -> Done {
    let mut most = usize::MAX;
    if let Some(text) = operands.first() {
        let Ok(number) = text.parse::<i64>() else {
            shell.complain(format_args!("history: {text}: numeric argument required"));
            return Ok(1);
        };
        most = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
    }
    if operands.len() > 1 {
        shell.complain("history: too many arguments");
        return Err(shell.abandon());
    }
    let skip = shell.history.lines.len().saturating_sub(most);
    let first = shell.history.dropped + 1;
    let lines = shell.history.lines.iter().enumerate().skip(skip);
    let text: String = lines.map(|(at, line)| format!("{:>5}  {line}\n", first + at)).collect();
    shell.write(&text);
    Ok(0)
}

fn delete(shell: &mut Shell, offset: &str) -> Done {
    let range = match offset.get(1..).and_then(|rest| rest.find('-')).map(|at| offset.split_at(at + 1)) {
        Some((first, last)) => (first.parse::<i64>(), last.get(1..).unwrap_or_default().parse::<i64>()),
        None => (offset.parse::<i64>(), offset.parse::<i64>()),
    };
    let places = match range {
        (Ok(first), Ok(last)) => shell.history.place(first).zip(shell.history.place(last)),
        _ => None,
    };
    match places {
        Some((first, last)) if first <= last => {
            shell.history.lines.drain(first..=last);
            Ok(0)
        }
        _ => {
            shell.complain(format_args!("history: {offset}: history position out of range"));
            Ok(1)
        }
    }
}

fn with_file(shell: &mut Shell, operands: &[String], append: bool, newer: bool, read: bool) -> Done {
    let Some(file) = operands.first().cloned().or_else(|| shell.history_file()) else { return Ok(0) };
    shell.output.flush();
    if newer || read {
        let Some(lines) = read_lines(&file) else {
            shell.complain(format_args!("history: {file}: cannot read: No such file or directory"));
            return Ok(1);
        };
        let skip = if newer { shell.history.in_file } else { 0 };
        shell.history.in_file = lines.len();
        shell.history.lines.extend(lines.into_iter().skip(skip));
        shell.limit_history();
        return Ok(0);
    }
    let result = if append {
        let fresh = shell.history.fresh.min(shell.history.lines.len());
        let lines = shell.history.lines.get(shell.history.lines.len() - fresh..).unwrap_or_default().to_vec();
        shell.history.in_file += lines.len();
        append_lines(&file, &lines)
    } else {
        shell.history.in_file = shell.history.lines.len();
        write_lines(&file, &shell.history.lines)
    };
    shell.history.fresh = 0;
    match result {
        Ok(()) => Ok(0),
        Err(error) => {
            shell.complain(format_args!("history: {file}: cannot create: {}", sys::message(&error)));
            Ok(1)
        }
    }
}

/// Runs `fc -l` and `fc -s`; the sandbox has no editor.
pub(super) fn fc(shell: &mut Shell, args: &[String]) -> Done {
    let numeric = |text: &String| text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let split = args.iter().position(numeric).unwrap_or(args.len());
    let (options, at) = match parse_options(args.get(..split).unwrap_or_default(), "e:lnrs") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("fc", &wrong)),
    };
    let has = |wanted: char| options.iter().any(|(letter, _)| *letter == wanted);
    let operands = args.get(at..).unwrap_or_default();
    if shell.history.lines.is_empty() {
        return Ok(0);
    }
    let by_dash = options.iter().any(|(letter, editor)| *letter == 'e' && editor == "-");
    if has('s') || by_dash {
        return again(shell, operands);
    }
    if !has('l') {
        return Ok(0);
    }
    let newest = shell.newest_command();
    let first = match operands.first() {
        None => Some((newest + 1).saturating_sub(16)),
        Some(text) => shell.find_command_of_history(text),
    };
    let last = match operands.get(1) {
        None => Some(newest),
        Some(text) => shell.find_command_of_history(text),
    };
    let (Some(first), Some(last)) = (first, last) else {
        shell.complain("fc: no command found");
        return Ok(1);
    };
    let mut places: Vec<usize> = (first.min(last)..=first.max(last)).collect();
    if has('r') != (first > last) {
        places.reverse();
    }
    let base = shell.history.dropped + 1;
    let text: String = places
        .into_iter()
        .filter_map(|at| shell.history.lines.get(at).map(|line| (at, line)))
        .map(|(at, line)| if has('n') { format!("\t {line}\n") } else { format!("{}\t {line}\n", base + at) })
        .collect();
    shell.write(&text);
    Ok(0)
}

fn again(shell: &mut Shell, operands: &[String]) -> Done {
    let change = operands.first().and_then(|text| text.split_once('='));
    let wanted = operands.get(usize::from(change.is_some())).map_or("", String::as_str);
    let found = if wanted.is_empty() { Some(shell.newest_command()) } else { shell.find_command_of_history(wanted) };
    let Some(line) = found.and_then(|at| shell.history.lines.get(at)).cloned() else {
        shell.complain("fc: no command found");
        return Ok(1);
    };
    let line = match change {
        Some((old, new)) => line.replace(old, new),
        None => line,
    };
    if shell.on(SetOption::History) {
        // Replaces the `fc` that runs it.
        shell.history.forget_last();
        shell.history.add(&line);
    }
    shell.write_error(&format!("{line}\n"));
    match shell.run_eval(&line) {
        Err(Flow::Discard(status)) => Ok(status),
        other => other,
    }
}
