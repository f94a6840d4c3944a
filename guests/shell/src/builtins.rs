//! Builtins: the table, and what several of them share.

mod bind;
mod completion;
mod control;
mod declare;
mod declare_print;
mod directory;
mod echo;
mod getopts;
mod help;
mod history;
mod jobs;
mod kill;
mod limits;
mod lookup;
mod options;
mod printf;
mod read;
mod read_lines;
mod test;
mod time;
mod trap;
mod unset;

pub use bind::Bindings;
pub use control::exec;
pub use directory::abbreviate_home;
pub use test::{Comparison, file_test, files_compare};

use crate::exec::Item;
use crate::shell::{Done, Shell};

/// An ordinary builtin: arguments include its name.
pub type Plain = fn(&mut Shell, &[String]) -> Done;
/// A builtin whose arguments may be assignments: its name, then the arguments.
pub type Declaring = fn(&mut Shell, &str, Vec<Item<'_>>) -> Done;

/// How a builtin is called.
#[derive(Clone, Copy, Debug)]
pub enum Builtin {
    /// With words.
    Plain(Plain),
    /// With words and assignments.
    Declaring(Declaring),
}

/// All builtins, by name.
const TABLE: &[(&str, Builtin)] = &[
    (".", Builtin::Plain(control::source)),
    (":", Builtin::Plain(control::nothing)),
    ("[", Builtin::Plain(test::bracket)),
    ("alias", Builtin::Plain(lookup::alias)),
    ("bg", Builtin::Plain(jobs::background)),
    ("bind", Builtin::Plain(bind::bind)),
    ("break", Builtin::Plain(control::break_loop)),
    ("builtin", Builtin::Plain(lookup::builtin)),
    ("caller", Builtin::Plain(completion::caller)),
    ("cd", Builtin::Plain(directory::cd)),
    ("command", Builtin::Plain(lookup::command)),
    ("compgen", Builtin::Plain(completion::compgen)),
    ("complete", Builtin::Plain(completion::complete)),
    ("compopt", Builtin::Plain(completion::compopt)),
    ("continue", Builtin::Plain(control::continue_loop)),
    ("declare", Builtin::Declaring(declare::declare)),
    ("dirs", Builtin::Plain(directory::dirs)),
    ("disown", Builtin::Plain(jobs::disown)),
    ("echo", Builtin::Plain(echo::echo)),
    ("enable", Builtin::Plain(lookup::enable)),
    ("eval", Builtin::Plain(control::eval)),
    ("exec", Builtin::Plain(control::exec)),
    ("exit", Builtin::Plain(control::exit)),
    ("export", Builtin::Declaring(declare::export)),
    ("false", Builtin::Plain(control::fail)),
    ("fc", Builtin::Plain(history::fc)),
    ("fg", Builtin::Plain(jobs::foreground)),
    ("getopts", Builtin::Plain(getopts::getopts)),
    ("hash", Builtin::Plain(lookup::hash)),
    ("help", Builtin::Plain(help::help)),
    ("history", Builtin::Plain(history::history)),
    ("jobs", Builtin::Plain(jobs::jobs)),
    ("kill", Builtin::Plain(kill::kill)),
    ("let", Builtin::Plain(control::let_)),
    ("local", Builtin::Declaring(declare::local)),
    ("logout", Builtin::Plain(completion::logout)),
    ("mapfile", Builtin::Plain(read_lines::mapfile)),
    ("popd", Builtin::Plain(directory::popd)),
    ("printf", Builtin::Plain(printf::printf)),
    ("pushd", Builtin::Plain(directory::pushd)),
    ("pwd", Builtin::Plain(directory::pwd)),
    ("read", Builtin::Plain(read::read)),
    ("readarray", Builtin::Plain(read_lines::mapfile)),
    ("readonly", Builtin::Declaring(declare::readonly)),
    ("return", Builtin::Plain(control::return_)),
    ("set", Builtin::Plain(options::set)),
    ("shift", Builtin::Plain(control::shift)),
    ("shopt", Builtin::Plain(options::shopt)),
    ("source", Builtin::Plain(control::source)),
    ("suspend", Builtin::Plain(jobs::suspend)),
    ("test", Builtin::Plain(test::test)),
    ("times", Builtin::Plain(limits::times)),
    ("trap", Builtin::Plain(trap::trap)),
    ("true", Builtin::Plain(control::nothing)),
    ("type", Builtin::Plain(lookup::type_)),
    ("typeset", Builtin::Declaring(declare::declare)),
    ("ulimit", Builtin::Plain(limits::ulimit)),
    ("umask", Builtin::Plain(limits::umask)),
    ("unalias", Builtin::Plain(lookup::unalias)),
    ("unset", Builtin::Plain(unset::unset)),
    ("wait", Builtin::Plain(jobs::wait)),
];

/// Returns the names of all builtins, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|entry| entry.0)
}

/// Returns whether POSIX calls a builtin special.
#[must_use]
pub fn is_special(name: &str) -> bool {
    matches!(
        name,
        "." | ":"
            | "break"
            | "continue"
            | "eval"
            | "exec"
            | "exit"
            | "export"
            | "readonly"
            | "return"
            | "set"
            | "shift"
            | "source"
            | "times"
            | "trap"
            | "unset"
    )
}

/// Returns the builtin of that name, switched on or not.
fn find(name: &str) -> Option<Builtin> {
    TABLE.binary_search_by(|entry| entry.0.cmp(name)).ok().and_then(|at| TABLE.get(at)).map(|entry| entry.1)
}

impl Shell {
    /// Returns the builtin of that name, unless it was switched off.
    pub(crate) fn builtin(&self, name: &str) -> Option<Builtin> {
        if !self.disabled.is_empty() && self.disabled.contains(name) {
            return None;
        }
        find(name)
    }

    /// Returns whether a builtin has that name and is on.
    pub(crate) fn is_builtin(&self, name: &str) -> bool {
        self.builtin(name).is_some()
    }

    /// Says that an option is not known, and how the builtin is used.
    pub(crate) fn refuse_option(&mut self, name: &str, option: &str) -> i32 {
        self.complain(format_args!("{name}: {option}: invalid option"));
        self.usage(name)
    }

    /// Says how a builtin is used.
    pub(crate) fn usage(&mut self, name: &str) -> i32 {
        if let Some(synopsis) = help::synopsis(name) {
            self.write_error(&format!("{name}: usage: {synopsis}\n"));
        }
        2
    }

    /// Prints the description of a builtin, as `--help` does.
    pub(crate) fn wants_help(&mut self, args: &[String]) -> bool {
        if args.get(1).map(String::as_str) != Some("--help") {
            return false;
        }
        let name = args.first().cloned().unwrap_or_default();
        let text = help::describe(&name);
        self.write(&text);
        true
    }
}

/// Letters given as options, and where the operands begin. `Err` holds the option that is not among `known`.
///
/// A letter followed by `:` in `known` takes a value.
pub(crate) fn parse_options(args: &[String], known: &str) -> Result<(Vec<(char, String)>, usize), String> {
    let mut options = Vec::new();
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        if arg == "--" {
            return Ok((options, at + 1));
        }
        let Some(letters) = arg.strip_prefix('-').filter(|letters| !letters.is_empty()) else { break };
        for (position, letter) in letters.char_indices() {
            let Some(place) = known.find(letter).filter(|_| letter != ':') else { return Err(format!("-{letter}")) };
            if known.get(place + letter.len_utf8()..).is_some_and(|rest| rest.starts_with(':')) {
                let rest = letters.get(position + letter.len_utf8()..).unwrap_or_default();
                if rest.is_empty() {
                    at += 1;
                    let Some(value) = args.get(at) else { return Err(format!("-{letter}: option requires an argument")) };
                    options.push((letter, value.clone()));
                } else {
                    options.push((letter, rest.to_owned()));
                }
                break;
            }
            options.push((letter, String::new()));
        }
        at += 1;
    }
    Ok((options, at))
}

impl Shell {
    /// Says what [`parse_options`] found wrong.
    pub(crate) fn refuse_parsed(&mut self, name: &str, wrong: &str) -> i32 {
        if wrong.contains("requires") {
            self.complain(format_args!("{name}: {wrong}"));
            return self.usage(name);
        }
        self.refuse_option(name, wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(names().is_sorted());
    }
}
