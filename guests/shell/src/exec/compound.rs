//! Compound commands: groups, subshells, conditions and loops.

use crate::ast::{CaseArm, CaseEnd, Compound, List, Word};
use crate::shell::{Done, Flow, Shell};
use crate::state::assign::is_name;
use crate::state::options::SetOption;
use crate::state::signals::Event;

/// The next step of a loop after its body.
enum Round {
    Next,
    Stop,
}

impl Shell {
    pub(super) fn run_compound(&mut self, body: &Compound, line: u32) -> Done {
        match body {
            Compound::Group(list) => self.run_list(list),
            Compound::Subshell(list) => self.run_subshell(list),
            Compound::If { branches, otherwise } => self.run_if(branches, otherwise.as_ref()),
            Compound::While { until, condition, body } => self.run_while(*until, condition, body),
            Compound::For { name, words, body } => self.run_for(name, words.as_ref(), body, line),
            Compound::ArithmeticFor { start, condition, step, body } => {
                self.line = line;
                self.run_arithmetic_for(start, condition, step, body)
            }
            Compound::Select { name, words, body } => self.run_select(name, words.as_ref(), body, line),
            Compound::Case { subject, arms } => {
                self.line = line;
                self.run_case(subject, arms)
            }
            Compound::Arithmetic(word) => {
                self.line = line;
                self.run_arithmetic(word)
            }
            Compound::Test(test) => {
                self.line = line;
                self.announce(|| crate::shown::test(test))?;
                self.run_test(test)
            }
        }
    }

    /// Sets BASH_COMMAND and runs the DEBUG trap before a command that is not simple.
    fn announce(&mut self, text: impl FnOnce() -> String) -> Done<()> {
        if self.traps.commands.is_empty() || !self.traps.running.is_empty() {
            return Ok(());
        }
        self.current_command = text().into();
        self.debug_trap()
    }

    fn run_subshell(&mut self, list: &List) -> Done {
        if !self.traps.commands.is_empty() && self.traps.running.is_empty() {
            self.current_command = format!("( {} )", crate::print::list(list)).into();
        }
        let forked = self.fork_reporting(|shell| {
            shell.jobs.list.clear();
            shell.run_list_tail(list)
        });
        match forked {
            Ok(pid) => Ok(self.wait_for_described(pid, || format!("( {} )", crate::print::list(list)))),
            Err(status) => Ok(status),
        }
    }

    pub(super) fn run_subshell_with(&mut self, body: impl FnOnce(&mut Self) -> Done) -> Done {
        match self.fork_reporting(body) {
            Ok(pid) => Ok(self.wait_for(pid)),
            Err(status) => Ok(status),
        }
    }

    fn run_condition(&mut self, list: &List) -> Done {
        self.lenient += 1;
        let result = self.run_list(list);
        self.lenient -= 1;
        result
    }

    fn run_if(&mut self, branches: &[(List, List)], otherwise: Option<&List>) -> Done {
        for (condition, branch) in branches {
            if self.run_condition(condition)? == 0 {
                return self.run_list(branch);
            }
        }
        match otherwise {
            Some(list) => self.run_list(list),
            None => {
                self.status = 0;
                Ok(0)
            }
        }
    }

    /// Interprets how a loop's body ended.
    fn round(&mut self, result: Done, status: &mut i32) -> Done<Round> {
        match result {
            Ok(code) => {
                *status = code;
                Ok(Round::Next)
            }
            Err(Flow::Break(n)) => {
                *status = std::mem::take(&mut self.break_status);
                self.status = *status;
                if n > 1 { Err(Flow::Break(n - 1)) } else { Ok(Round::Stop) }
            }
            Err(Flow::Continue(n)) => {
                *status = 0;
                self.status = 0;
                if n > 1 { Err(Flow::Continue(n - 1)) } else { Ok(Round::Next) }
            }
            Err(flow) => Err(flow),
        }
    }

    /// Runs `rounds` inside one more loop.
    fn looping(&mut self, rounds: impl FnOnce(&mut Self, &mut i32) -> Done<()>) -> Done {
        let mut status = 0;
        self.loops += 1;
        let result = rounds(self, &mut status);
        self.loops -= 1;
        result?;
        self.status = status;
        Ok(status)
    }

    fn run_while(&mut self, until: bool, condition: &List, body: &List) -> Done {
        self.looping(|shell, status| {
            let mut rounds = 0;
            loop {
                let result = shell.run_condition(condition);
                let mut tested = 0;
                match shell.round(result, &mut tested)? {
                    Round::Stop => return Ok(()),
                    Round::Next => {}
                }
                if (tested == 0) == until {
                    return Ok(());
                }
                shell.count_round(&mut rounds);
                let result = shell.run_list(body);
                if let Round::Stop = shell.round(result, status)? {
                    return Ok(());
                }
            }
        })
    }

    fn run_for(&mut self, name: &str, words: Option<&Vec<Word>>, body: &List, line: u32) -> Done {
        if !is_name(name) {
            self.complain(format_args!("`{name}': not a valid identifier"));
            return Ok(1);
        }
        self.line = line;
        let kept = self.process_substitutions.len();
        let values = self.expand_list(words)?;
        let result = self.looping(|shell, status| {
            let mut rounds = 0;
            let assigns = !values.is_empty() && !shell.is_reference(name) && !shell.on(SetOption::Posix);
            if assigns && shell.refuse_readonly(name) {
                *status = 1;
                return Ok(());
            }
            for value in values {
                shell.line = line;
                shell.count_round(&mut rounds);
                if shell.on(SetOption::XTrace) {
                    shell.trace_text(&format!("for {name} in {}", shown_words(words)))?;
                }
                if shell.traps.commands.contains_key(&Event::Debug) {
                    shell.current_command = format!("for {name} in {}", shown_words(words)).into();
                    shell.debug_trap()?;
                }
                if shell.is_reference(name) {
                    // A loop over a name reference sets what it refers to anew each time.
                    if let Some(variable) = shell.variables.get_mut(name) {
                        variable.value = crate::state::variables::Value::Scalar(value);
                    }
                } else {
                    shell.assign(name, value, false)?;
                }
                let result = shell.run_list(body);
                if let Round::Stop = shell.round(result, status)? {
                    break;
                }
            }
            Ok(())
        });
        self.close_substitutions(kept);
        result
    }

    fn evaluate_loop_part(&mut self, word: &Word) -> Done<Option<i64>> {
        self.announce(|| format!("(({}))", crate::print::word(word)))?;
        if self.on(SetOption::XTrace) {
            let text = crate::print::word(word);
            self.trace_text(&format!("(( {text} ))"))?;
        }
        match self.try_evaluate_word(word)? {
            Ok(value) => Ok(Some(value)),
            Err(error) => match self.refuse_arithmetic(&error, "((: ") {
                Flow::Discard(_) => Ok(None),
                flow => Err(flow),
            },
        }
    }

    fn run_arithmetic_for(&mut self, start: &Word, condition: &Word, step: &Word, body: &List) -> Done {
        let line = self.line;
        if !start.parts.is_empty() && self.evaluate_loop_part(start)?.is_none() {
            return Ok(1);
        }
        let mut failed = false;
        let status = self.looping(|shell, status| {
            let mut rounds = 0;
            loop {
                shell.line = line;
                if !condition.parts.is_empty() {
                    match shell.evaluate_loop_part(condition)? {
                        Some(0) => return Ok(()),
                        Some(_) => {}
                        None => {
                            failed = true;
                            return Ok(());
                        }
                    }
                }
                shell.count_round(&mut rounds);
                let result = shell.run_list(body);
                if let Round::Stop = shell.round(result, status)? {
                    return Ok(());
                }
                shell.line = line;
                if !step.parts.is_empty() && shell.evaluate_loop_part(step)?.is_none() {
                    failed = true;
                    return Ok(());
                }
            }
        })?;
        Ok(if failed { 1 } else { status })
    }

    fn run_select(&mut self, name: &str, words: Option<&Vec<Word>>, body: &List, line: u32) -> Done {
        self.line = line;
        let choices = self.expand_list(words)?;
        if choices.is_empty() {
            return Ok(0);
        }
        self.looping(|shell, status| {
            let mut rounds = 0;
            let mut show = true;
            loop {
                if show {
                    let menu = menu(&choices);
                    shell.write_error(&menu);
                }
                if show {
                    shell.announce(|| format!("select {name} in {}", shown_words(words)))?;
                }
                let prompt = shell.get("PS3").unwrap_or_else(|| "#? ".to_owned());
                shell.write_error(&prompt);
                let Some(reply) = shell.read_line(0) else {
                    shell.write("\n");
                    *status = 1;
                    return Ok(());
                };
                let reply = reply.trim_matches([' ', '\t']).to_owned();
                shell.set_plain("REPLY", reply.clone());
                show = reply.is_empty();
                if show {
                    continue;
                }
                let choice = reply.parse::<usize>().ok().and_then(|number| number.checked_sub(1)).and_then(|at| choices.get(at));
                shell.assign(name, choice.cloned().unwrap_or_default(), false)?;
                shell.count_round(&mut rounds);
                let result = shell.run_list(body);
                if let Round::Stop = shell.round(result, status)? {
                    return Ok(());
                }
            }
        })
    }

    fn run_case(&mut self, subject: &Word, arms: &[CaseArm]) -> Done {
        self.announce(|| format!("case {} in ", crate::print::word(subject)))?;
        if self.on(SetOption::XTrace) {
            let text = crate::print::word(subject);
            self.trace_text(&format!("case {text} in"))?;
        }
        let text = self.expand_string(subject)?;
        let mut status = 0;
        let mut running = false;
        for arm in arms {
            if !running && !self.case_matches(&text, arm)? {
                continue;
            }
            status = self.run_list(&arm.body)?;
            match arm.end {
                CaseEnd::Break => return Ok(status),
                CaseEnd::FallThrough => running = true,
                CaseEnd::Continue => running = false,
            }
        }
        self.status = status;
        Ok(status)
    }

    fn case_matches(&mut self, text: &str, arm: &CaseArm) -> Done<bool> {
        for pattern in &arm.patterns {
            let pattern = self.expand_pattern(pattern)?;
            if self.matches_pattern(&pattern, false, text) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn run_arithmetic(&mut self, word: &Word) -> Done {
        self.announce(|| format!("(({}))", crate::print::word(word)))?;
        if self.on(SetOption::XTrace) {
            let text = self.expand_quoted(word)?;
            self.trace_text(&format!("(( {text} ))"))?;
        }
        match self.try_evaluate_word(word)? {
            Ok(value) => Ok(i32::from(value == 0)),
            Err(error) => match self.refuse_arithmetic(&error, "((: ") {
                Flow::Discard(_) => Ok(1),
                flow => Err(flow),
            },
        }
    }
}

fn shown_words(words: Option<&Vec<Word>>) -> String {
    words.map_or("\"$@\"".to_owned(), |words| words.iter().map(crate::print::word).collect::<Vec<_>>().join(" "))
}

/// Returns the numbered list of `select`, in columns as bash lays them out for 80 characters.
fn menu(choices: &[String]) -> String {
    const WIDTH: usize = 80;
    let digits = choices.len().to_string().len();
    let longest = choices.iter().map(|choice| choice.chars().count()).max().unwrap_or(0);
    let cell = longest + digits + 2 + 2;
    let columns = (WIDTH / cell).max(1);
    let mut rows = choices.len().div_ceil(columns);
    let columns = choices.len().div_ceil(rows);
    if rows == 1 {
        rows = columns;
    }
    let first_digits = rows.to_string().len();
    let mut out = String::new();
    for row in 0..rows {
        let mut position = 0;
        let mut at = row;
        while let Some(choice) = choices.get(at) {
            let width = if position == 0 { first_digits } else { digits };
            out.push_str(&format!("{:>width$}) {choice}", at + 1));
            let used = choice.chars().count() + width + 2;
            at += rows;
            if at >= choices.len() {
                break;
            }
            indent(&mut out, position + used, position + cell);
            position += cell;
        }
        out.push('\n');
    }
    out
}

/// Moves from one column to another with tabs and blanks.
fn indent(out: &mut String, mut from: usize, to: usize) {
    const TAB: usize = 8;
    while from < to {
        if to / TAB > from / TAB {
            out.push('\t');
            from += TAB - from % TAB;
        } else {
            out.push(' ');
            from += 1;
        }
    }
}
