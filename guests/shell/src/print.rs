//! A syntax tree back to text, exactly as bash's `declare -f` and `jobs` write it.
//!
//! The order of the steps follows what bash can be seen to do, odd corners included (where the bodies of
//! here-documents land, which semicolons vanish after them), because scripts compare this text.

use crate::ast::{
    AndOr, AndOrOperator, Argument, Assignment, CaseEnd, Command, Compound, Function, List, Pipeline, Redirect, TestExpression,
    TimeStyle, Word,
};

mod redirect;
mod words;

/// How far each level is indented.
const STEP: usize = 4;

/// Returns a function as `declare -f` shows it, without a newline at its end.
pub fn function(function: &Function) -> String {
    let mut printer = Printer { indentation: STEP, ..Printer::default() };
    printer.out.push_str(&function.name);
    printer.out.push_str(" () \n");
    printer.function_body(function, 0);
    printer.out
}

/// Returns a command on one line where bash uses one: `jobs`, BASH_COMMAND.
pub fn command(command: &Command) -> String {
    let mut printer = Printer::default();
    printer.command(command);
    printer.out
}

/// Returns a pipeline, as `jobs` shows it.
pub fn pipeline(pipeline: &Pipeline) -> String {
    let mut printer = Printer::default();
    printer.pipeline(pipeline);
    printer.out
}

/// Returns `a && b || c`, as `jobs` shows it.
pub fn and_or(and_or: &AndOr) -> String {
    let mut printer = Printer::default();
    printer.and_or(and_or);
    printer.out
}

/// Returns the commands of a list.
pub fn list(list: &List) -> String {
    let mut printer = Printer::default();
    printer.list(list);
    printer.out
}

/// Returns the commands of a `$( … )`, as bash shows them in a word.
fn substitution(list: &List, source: &str) -> String {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let first = lines.iter().position(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or(0);
    let line = list.items.first().map_or(0, |item| line_of(&item.and_or));
    let source = Some(Source { lines, first_line: line.saturating_sub(first as u32) });
    let mut printer = Printer { source, ..Printer::default() };
    printer.list(list);
    printer.out
}

/// Returns an assignment as it was written.
pub fn assignment(assignment: &Assignment) -> String {
    let mut out = String::new();
    words::push_assignment(&mut out, assignment);
    out
}

/// Returns a word as it was written, but for what bash itself does not keep (`$'…'` becomes `'…'`).
pub fn word(word: &Word) -> String {
    let mut out = String::new();
    words::push_word(&mut out, word);
    out
}

#[derive(Default)]
struct Printer<'a> {
    out: String,
    indentation: usize,
    /// How many of the next commands go on the line that has been begun.
    skip_indent: u32,
    in_function: u32,
    in_connection: u32,
    /// Here-documents whose bodies wait for the end of their line.
    deferred: Vec<&'a Redirect>,
    after_heredoc: bool,
    /// Inside `$( … )`, where commands on lines of their own stay so.
    source: Option<Source<'a>>,
}

/// The text of a `$( … )`, by lines without the blanks around them.
struct Source<'a> {
    lines: Vec<&'a str>,
    first_line: u32,
}

impl Source<'_> {
    /// Returns whether it was a new line that separated the command on this line from the one before.
    fn breaks_before(&self, line: u32) -> bool {
        let index = line.saturating_sub(self.first_line) as usize;
        let before = self.lines.get(..index).unwrap_or_default();
        let last = before.iter().rev().find(|line| !line.is_empty() && !line.starts_with('#'));
        last.is_none_or(|line| !line.ends_with(';'))
    }
}

impl<'a> Printer<'a> {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn indent(&mut self) {
        self.out.extend(std::iter::repeat_n(' ', self.indentation));
    }

    fn newline(&mut self, text: &str) {
        self.push("\n");
        self.indent();
        self.push(text);
    }

    fn semicolon(&mut self) {
        if !self.out.ends_with(['&', '\n']) {
            self.push(";");
        }
    }

    /// Begins a command.
    fn begin(&mut self) {
        if self.skip_indent > 0 {
            self.skip_indent -= 1;
        } else {
            self.indent();
        }
    }

    fn flush_heredocs(&mut self) {
        if !self.deferred.is_empty() {
            self.connector_with_heredocs("");
        }
    }

    /// Writes a connector, then the bodies that waited for it.
    fn connector_with_heredocs(&mut self, text: &str) {
        let shown = !text.is_empty() && text != ";";
        if shown {
            self.push(text);
        }
        if self.deferred.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.deferred);
        self.heredoc_bodies(&waiting);
        if shown {
            self.push(" ");
        }
    }

    fn heredoc_bodies(&mut self, redirects: &[&Redirect]) {
        self.push("\n");
        for redirect in redirects {
            redirect::push_heredoc_body(&mut self.out, redirect);
            self.push("\n");
        }
        self.after_heredoc = true;
    }

    fn redirects(&mut self, redirects: &'a [Redirect]) {
        let mut heredocs = Vec::new();
        self.after_heredoc = false;
        for (at, redirect) in redirects.iter().enumerate() {
            if at > 0 {
                self.push(" ");
            }
            redirect::push_redirect(&mut self.out, redirect);
            if redirect::is_heredoc(redirect) {
                heredocs.push(redirect);
            }
        }
        if heredocs.is_empty() {
            return;
        }
        if self.in_connection > 0 {
            self.deferred = heredocs;
        } else {
            self.heredoc_bodies(&heredocs);
        }
    }

    fn list(&mut self, list: &'a List) {
        let Some((first, rest)) = list.items.split_first() else { return };
        if rest.is_empty() && !first.background {
            self.and_or(&first.and_or);
            return;
        }
        self.begin();
        self.skip_indent += 1;
        self.in_connection += 1;
        self.and_or(&first.and_or);
        let mut background = first.background;
        let mut line = line_of(&first.and_or);
        for item in rest {
            let next = line_of(&item.and_or);
            let breaks = next > line && self.source.as_ref().is_some_and(|source| source.breaks_before(next));
            line = next;
            if background {
                self.connector_with_heredocs(" &");
                self.push(" ");
                self.skip_indent += 1;
            } else {
                self.list_separator(breaks);
            }
            self.and_or(&item.and_or);
            self.flush_heredocs();
            background = item.background;
        }
        if background {
            self.connector_with_heredocs(" &");
        }
        self.in_connection -= 1;
    }

    fn list_separator(&mut self, breaks: bool) {
        if !self.deferred.is_empty() {
            self.connector_with_heredocs(if self.in_function > 0 { "" } else { ";" });
        } else if self.after_heredoc {
            self.after_heredoc = false;
        } else {
            self.push(if breaks { "\n" } else { ";" });
        }
        if self.in_function > 0 {
            self.push("\n");
        } else {
            if !breaks {
                self.push(" ");
            }
            self.skip_indent += 1;
        }
    }

    fn and_or(&mut self, and_or: &'a AndOr) {
        if and_or.rest.is_empty() {
            self.pipeline(&and_or.first);
            return;
        }
        self.begin();
        self.skip_indent += 1;
        self.in_connection += 1;
        self.pipeline(&and_or.first);
        for (operator, pipeline) in &and_or.rest {
            self.connector_with_heredocs(match operator {
                AndOrOperator::And => " && ",
                AndOrOperator::Or => " || ",
            });
            self.skip_indent += 1;
            self.pipeline(pipeline);
            self.flush_heredocs();
        }
        self.in_connection -= 1;
    }

    fn pipeline(&mut self, pipeline: &'a Pipeline) {
        let prefixed = pipeline.negated || pipeline.timed.is_some();
        let connected = pipeline.commands.len() > 1;
        if prefixed || connected {
            self.begin();
            self.skip_indent += 1;
        }
        match pipeline.timed {
            Some(TimeStyle::Bash) => self.push("time "),
            Some(TimeStyle::Posix) => self.push("time -p "),
            None => {}
        }
        if pipeline.negated {
            self.push("! ");
        }
        let Some((first, rest)) = pipeline.commands.split_first() else {
            self.skip_indent = self.skip_indent.saturating_sub(1);
            return;
        };
        self.in_connection += u32::from(connected);
        self.command(first);
        for command in rest {
            self.connector_with_heredocs(" |");
            self.push(" ");
            self.skip_indent += 1;
            self.command(command);
            self.flush_heredocs();
        }
        self.in_connection -= u32::from(connected);
    }

    fn command(&mut self, command: &'a Command) {
        self.begin();
        match command {
            Command::Simple(simple) => {
                let mut first = true;
                for assignment in &simple.assignments {
                    self.separate(&mut first);
                    words::push_assignment(&mut self.out, assignment);
                }
                for argument in &simple.words {
                    self.separate(&mut first);
                    match argument {
                        Argument::Word(word) => words::push_word(&mut self.out, word),
                        Argument::Assignment(assignment) => words::push_assignment(&mut self.out, assignment),
                    }
                }
                if !simple.redirects.is_empty() {
                    self.separate(&mut first);
                    self.redirects(&simple.redirects);
                }
            }
            Command::Compound { body, redirects, .. } => {
                self.compound(body);
                if !redirects.is_empty() {
                    self.push(" ");
                    self.redirects(redirects);
                }
            }
            Command::Function(function) => {
                self.push("function ");
                self.push(&function.name);
                self.push(" () \n");
                self.indent();
                let outer = self.indentation;
                self.indentation += STEP;
                self.function_body(function, outer);
                self.after_heredoc = false;
            }
            Command::Coproc { name, body, .. } => {
                self.push("coproc ");
                self.push(name);
                self.push(" ");
                self.skip_indent += 1;
                self.command(body);
            }
        }
    }

    fn separate(&mut self, first: &mut bool) {
        if !std::mem::take(first) {
            self.push(" ");
        }
    }

    /// `{ … }` of a function; the braces stand at the outer indentation.
    fn function_body(&mut self, function: &'a Function, outer: usize) {
        self.push("{ \n");
        self.in_function += 1;
        let mut redirects = function.redirects.as_slice();
        if let Compound::Group(list) = &function.body {
            self.list(list);
        } else {
            self.begin();
            self.compound(&function.body);
            if !redirects.is_empty() {
                self.push(" ");
                self.redirects(redirects);
            }
            redirects = &[];
        }
        self.flush_heredocs();
        self.indentation = outer;
        self.in_function -= 1;
        if redirects.is_empty() {
            self.newline("}");
        } else {
            self.newline("} ");
            self.redirects(redirects);
        }
    }

    fn compound(&mut self, compound: &'a Compound) {
        match compound {
            Compound::Group(list) => self.group(list),
            Compound::Subshell(list) => {
                self.push("( ");
                self.skip_indent += 1;
                self.list(list);
                self.flush_heredocs();
                self.push(" )");
            }
            Compound::If { branches, otherwise } => self.if_command(branches, otherwise.as_ref()),
            Compound::While { until, condition, body } => {
                self.push(if *until { "until " } else { "while " });
                self.skip_indent += 1;
                self.list(condition);
                self.flush_heredocs();
                self.semicolon();
                self.push(" do\n");
                self.indentation += STEP;
                self.list(body);
                self.flush_heredocs();
                self.indentation -= STEP;
                self.semicolon();
                self.newline("done");
            }
            Compound::For { name, words, body } => self.for_words("for", name, words.as_deref(), body),
            Compound::Select { name, words, body } => self.for_words("select", name, words.as_deref(), body),
            Compound::ArithmeticFor { start, condition, step, body } => {
                self.push("for ((");
                for (at, part) in [start, condition, step].into_iter().enumerate() {
                    if at > 0 {
                        self.push("; ");
                    }
                    if part.parts.is_empty() {
                        self.push("1");
                    } else {
                        words::push_quoted_word(&mut self.out, part);
                    }
                }
                self.push("))");
                self.loop_body(body);
            }
            Compound::Case { subject, arms } => {
                self.push("case ");
                words::push_word(&mut self.out, subject);
                self.push(" in ");
                self.indentation += STEP;
                for arm in arms {
                    self.newline("");
                    for (at, pattern) in arm.patterns.iter().enumerate() {
                        if at > 0 {
                            self.push(" | ");
                        }
                        words::push_word(&mut self.out, pattern);
                    }
                    self.push(")\n");
                    self.indentation += STEP;
                    self.list(&arm.body);
                    self.indentation -= STEP;
                    self.flush_heredocs();
                    self.newline(match arm.end {
                        CaseEnd::Break => ";;",
                        CaseEnd::FallThrough => ";&",
                        CaseEnd::Continue => ";;&",
                    });
                }
                self.indentation -= STEP;
                self.newline("esac");
            }
            Compound::Arithmetic(expression) => {
                self.push("((");
                words::push_quoted_word(&mut self.out, expression);
                self.push("))");
            }
            Compound::Test(expression) => {
                self.push("[[ ");
                self.test(expression);
                self.push(" ]]");
            }
        }
    }

    fn group(&mut self, list: &'a List) {
        self.push("{ ");
        if self.in_function == 0 {
            self.skip_indent += 1;
        } else {
            self.push("\n");
            self.indentation += STEP;
        }
        self.list(list);
        self.flush_heredocs();
        if self.in_function == 0 {
            self.semicolon();
            self.push(" ");
        } else {
            self.indentation -= STEP;
            self.newline("");
        }
        self.push("}");
    }

    /// An `elif` is shown as an `if` inside `else`, which is what it is.
    fn if_command(&mut self, branches: &'a [(List, List)], otherwise: Option<&'a List>) {
        let Some(((condition, branch), rest)) = branches.split_first() else { return };
        self.push("if ");
        self.skip_indent += 1;
        self.list(condition);
        self.semicolon();
        self.push(" then\n");
        self.indentation += STEP;
        self.list(branch);
        self.flush_heredocs();
        self.indentation -= STEP;
        if !rest.is_empty() || otherwise.is_some() {
            self.semicolon();
            self.newline("else\n");
            self.indentation += STEP;
            if rest.is_empty() {
                if let Some(list) = otherwise {
                    self.list(list);
                }
            } else {
                self.begin();
                self.if_command(rest, otherwise);
            }
            self.flush_heredocs();
            self.indentation -= STEP;
        }
        self.semicolon();
        self.newline("fi");
    }

    fn for_words(&mut self, keyword: &str, name: &str, words: Option<&[Word]>, body: &'a List) {
        self.push(keyword);
        self.push(" ");
        self.push(name);
        self.push(" in ");
        match words {
            None => self.push("\"$@\""),
            Some(words) => {
                for (at, word) in words.iter().enumerate() {
                    if at > 0 {
                        self.push(" ");
                    }
                    words::push_word(&mut self.out, word);
                }
            }
        }
        self.push(";");
        self.loop_body(body);
    }

    fn loop_body(&mut self, body: &'a List) {
        self.newline("do\n");
        self.indentation += STEP;
        self.list(body);
        self.flush_heredocs();
        self.semicolon();
        self.indentation -= STEP;
        self.newline("done");
    }

    fn test(&mut self, expression: &TestExpression) {
        match expression {
            TestExpression::Word(word) => {
                self.push("-n ");
                words::push_word(&mut self.out, word);
            }
            TestExpression::Unary(operator, word) => {
                self.push(operator);
                self.push(" ");
                words::push_word(&mut self.out, word);
            }
            TestExpression::Binary(operator, left, right) => {
                words::push_word(&mut self.out, left);
                self.push(" ");
                self.push(operator);
                self.push(" ");
                words::push_word(&mut self.out, right);
            }
            TestExpression::Not(inner) => {
                self.push("! ");
                self.test(inner);
            }
            TestExpression::And(left, right) => {
                self.test(left);
                self.push(" && ");
                self.test(right);
            }
            TestExpression::Or(left, right) => {
                self.test(left);
                self.push(" || ");
                self.test(right);
            }
            TestExpression::Group(inner) => {
                self.push("( ");
                self.test(inner);
                self.push(" )");
            }
        }
    }
}

/// Returns the line on which a command begins.
fn line_of(and_or: &AndOr) -> u32 {
    match and_or.first.commands.first() {
        Some(Command::Simple(simple)) => simple.line,
        Some(Command::Compound { line, .. } | Command::Coproc { line, .. }) => *line,
        Some(Command::Function(function)) => function.line,
        None => 0,
    }
}

#[cfg(test)]
mod tests;
