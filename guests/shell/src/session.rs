//! Sessions: what a shell leaves to the next one, when its host keeps a place for it.
//!
//! The state is a list of records, each a list of byte strings, the first of which is the kind of the record. It is
//! read back into the shell's own tables: nothing in it is ever executed, and what is not understood is passed over.
//! Jobs, descriptors, the EXIT trap and what the shell computes itself are not part of it: they end with the process.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::ast::Command;
use crate::bytes;
use crate::shell::{FunctionEntry, Shell};
use crate::state::assign::is_name;
use crate::state::associative::Associative;
use crate::state::options::{Options, SetOption, ShoptOption};
use crate::state::signals::Event;
use crate::state::variables::{Attributes, Value};
use crate::syntax::Parser;

/// The first record: what this is, and in which form.
const HEADER: [&str; 2] = ["sandlite shell", "1"];

/// The host's first byte, when the caller chose the directory of this call.
const DIRECTORY_IS_GIVEN: u8 = 1;

/// Variables that each shell sets itself.
const OWN: &[&str] =
    &["BASH", "BASH_EXECUTION_STRING", "BASH_VERSINFO", "BASH_VERSION", "EUID", "PPID", "PWD", "SHLVL", "UID", "_"];

/// Switches that would leave a session in which nothing runs any more.
const NOT_KEPT: &[SetOption] = &[SetOption::NoExec, SetOption::OneCmd, SetOption::Privileged, SetOption::Monitor];

impl Shell {
    /// Takes up the session that the host keeps for this process, if there is one. `has_arguments`: positional parameters
    /// were given with the command and count.
    pub(crate) fn enter_session(&mut self, has_arguments: bool) {
        let Some(kept) = sys::session_load() else { return };
        self.session = true;
        let Some((flags, state)) = kept.split_first() else { return };
        let given = std::mem::take(&mut self.positional);
        let (name, directory) = (self.name.clone(), self.directory.clone());
        if !self.restore(state) {
            self.positional = given;
            return;
        }
        if has_arguments {
            (self.name, self.positional) = (name, given);
        }
        if flags & DIRECTORY_IS_GIVEN != 0 && self.directory != directory {
            let _ = self.change_directory(&directory, false);
        }
        self.import_environment_again();
    }

    /// Leaves what this shell knows to the next one.
    pub(crate) fn leave_session(&mut self) {
        if !self.session || self.subshell > 0 {
            return;
        }
        let state = self.state();
        if let Err(error) = sys::session_save(&state) {
            let message = sys::message(&error);
            self.write_error(&format!("bash: the session's state ({} bytes) cannot be kept: {message}\n", state.len()));
        }
    }

    /// Returns everything that is stored, as bytes.
    fn state(&mut self) -> Vec<u8> {
        // `exit` inside a function leaves its variables in place.
        while self.variables.depth() > 0 {
            self.variables.pop_scope();
        }
        let mut state = Writer::default();
        state.record(HEADER);
        let set = SetOption::ALL.iter().filter(|entry| self.on(entry.0) && !NOT_KEPT.contains(&entry.0));
        state.record(std::iter::once("set").chain(set.map(|entry| entry.1)));
        let shopt = ShoptOption::ALL.iter().filter(|entry| self.shopt(entry.0));
        state.record(std::iter::once("shopt").chain(shopt.map(|entry| entry.1)));
        let mask = sys::umask(0);
        let _ = sys::umask(mask);
        state.record(["umask", &mask.to_string()]);
        state.record(["status", &self.status.to_string()]);
        if self.leaves {
            state.record(["exited", "1"]);
        }
        state.record(["directory", &self.directory]);
        state.record(std::iter::once("directories").chain(self.directory_stack.iter().map(String::as_str)));
        state.record(["name", &self.name]);
        state.record(std::iter::once("positional").chain(self.positional.iter().map(String::as_str)));
        state.record(["last argument", &self.last_argument]);
        self.variables_into(&mut state);
        self.functions_into(&mut state);
        let aliases: BTreeMap<_, _> = self.aliases.iter().collect();
        aliases.into_iter().for_each(|(name, value)| state.record(["alias", name, value]));
        for (event, command) in &self.traps.commands {
            state.record(["trap", &event.name(), command]);
        }
        let disabled: std::collections::BTreeSet<_> = self.disabled.iter().map(String::as_str).collect();
        state.record(std::iter::once("disabled").chain(disabled));
        state.0
    }

    fn variables_into(&self, state: &mut Writer) {
        let kept = |name: &str, attributes: Attributes| !attributes.has(Attributes::DYNAMIC) && !OWN.contains(&name);
        let variables: BTreeMap<_, _> =
            self.variables.iter().filter(|(name, variable)| kept(name, variable.attributes)).collect();
        for (name, variable) in variables {
            let attributes = variable.attributes.bits().to_string();
            let head = |kind| ["variable", name.as_str(), &attributes, kind].map(str::to_owned).into_iter();
            match &variable.value {
                Value::Unset => state.record(head("unset")),
                Value::Scalar(text) => state.record(head("scalar").chain([text.clone()])),
                Value::Indexed(map) => {
                    let elements = map.iter().flat_map(|(index, value)| [index.to_string(), value.clone()]);
                    state.record(head("indexed").chain(elements));
                }
                Value::Associative(map) => {
                    let mut elements: Vec<_> = map.iter().map(|(key, value)| [key.clone(), value.clone()]).collect();
                    // Put back in this order, keys that share a chain come out as they do now.
                    elements.reverse();
                    state.record(head("associative").chain(elements.into_iter().flatten()));
                }
            }
        }
    }

    fn functions_into(&self, state: &mut Writer) {
        let functions: BTreeMap<_, _> = self.functions.iter().collect();
        for (name, entry) in functions {
            let flags = [(entry.exported, 'x'), (entry.readonly, 'r'), (entry.traced, 't')];
            let flags: String = flags.into_iter().filter(|flag| flag.0).map(|flag| flag.1).collect();
            state.record(["function", name, &flags, &crate::print::function(&entry.function)]);
        }
    }

    /// Reads a state; false when it is none.
    fn restore(&mut self, state: &[u8]) -> bool {
        let mut records = Reader(state);
        if records.next().is_none_or(|header| header != HEADER) {
            return false;
        }
        let names: Vec<String> = self
            .variables
            .iter()
            .filter(|(name, variable)| !variable.attributes.has(Attributes::DYNAMIC) && !OWN.contains(&name.as_str()))
            .map(|(name, _)| name.clone())
            .collect();
        names.iter().for_each(|name| self.variables.unset(name));
        for record in records {
            self.restore_record(&record);
        }
        true
    }

    fn restore_record(&mut self, record: &[String]) {
        let Some((about, rest)) = record.split_first() else { return };
        match (about.as_str(), rest) {
            ("set", names) => {
                let mut options = self.options;
                for entry in SetOption::ALL.iter().filter(|entry| !NOT_KEPT.contains(&entry.0)) {
                    options.set(entry.0, names.iter().any(|name| name == entry.1));
                }
                self.options = options;
            }
            ("shopt", names) => {
                let mut options: Options = self.options;
                for entry in ShoptOption::ALL {
                    options.set_shopt(entry.0, names.iter().any(|name| name == entry.1));
                }
                self.options = options;
            }
            ("umask", [mask]) => {
                let _ = mask.parse().map(sys::umask);
            }
            ("status", [status]) => self.status = status.parse().unwrap_or(0),
            ("directory", [directory]) => {
                // A directory that no longer exists is ignored: this call starts in the default directory.
                let _ = self.change_directory(directory, false);
            }
            ("directories", directories) => self.directory_stack = directories.to_vec(),
            ("name", [name]) => self.name.clone_from(name),
            ("positional", arguments) => self.positional = arguments.to_vec(),
            ("last argument", [argument]) => self.last_argument.clone_from(argument),
            ("variable", [name, attributes, kind, elements @ ..]) => self.restore_variable(name, attributes, kind, elements),
            ("function", [name, flags, text]) => self.restore_function(name, flags, text),
            ("alias", [name, value]) => {
                Rc::make_mut(&mut self.aliases).insert(name.clone(), value.clone());
            }
            ("trap", [event, command]) => self.restore_trap(event, command),
            ("disabled", names) => self.disabled.extend(names.iter().cloned()),
            _ => {}
        }
    }

    fn restore_variable(&mut self, name: &str, attributes: &str, kind: &str, elements: &[String]) {
        let known = self.variables.get(name).map(|variable| variable.attributes).unwrap_or_default();
        if !is_name(name) || OWN.contains(&name) || known.has(Attributes::DYNAMIC) {
            return;
        }
        let pairs = elements.chunks_exact(2).filter_map(|pair| Some((pair.first()?, pair.get(1)?)));
        let value = match (kind, elements) {
            ("scalar", [text]) => Value::Scalar(text.clone()),
            ("indexed", _) => {
                Value::Indexed(pairs.filter_map(|(index, value)| Some((index.parse().ok()?, value.clone()))).collect())
            }
            ("associative", _) => {
                let mut map = Associative::default();
                pairs.for_each(|(key, value)| map.insert(key.clone(), value.clone()));
                Value::Associative(map)
            }
            _ => Value::Unset,
        };
        let variable = self.variables.entry(name);
        variable.attributes = Attributes::from_bits(attributes.parse().unwrap_or(0)).without(Attributes::DYNAMIC);
        variable.value = value;
    }

    fn restore_function(&mut self, name: &str, flags: &str, text: &str) {
        // Whatever was on when it was defined: its text is what it was understood as.
        let mut options = self.syntax_options();
        (options.extglob, options.aliases) = (true, None);
        let Ok(list) = Parser::new(text, options).all() else { return };
        let [item] = list.items.as_slice() else { return };
        let [Command::Function(function)] = item.and_or.first.commands.as_slice() else { return };
        let has = |flag| flags.contains(flag);
        let entry = FunctionEntry {
            function: Rc::clone(function),
            source: "environment".into(),
            exported: has('x'),
            readonly: has('r'),
            traced: has('t'),
        };
        self.functions.insert(name.to_owned(), entry);
    }

    fn restore_trap(&mut self, name: &str, command: &str) {
        let Some(event) = Event::named(name).filter(|event| *event != Event::EXIT) else { return };
        if let Event::Signal(number) = event
            && let Some(signal) = sys::Signal::from_raw(number)
        {
            let disposition = if command.is_empty() { sys::Disposition::Ignore } else { sys::Disposition::Catch };
            let _ = sys::signal_action(signal, disposition);
        }
        self.traps.commands.insert(event, command.into());
    }
}

/// Puts records into bytes: a count, then each string with its length before it.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn record(&mut self, strings: impl IntoIterator<Item = impl AsRef<str>>) {
        let start = self.0.len();
        self.number(0);
        let mut count = 0;
        for string in strings {
            let bytes = bytes::encode(string.as_ref());
            self.number(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
            self.0.extend_from_slice(&bytes);
            count += 1;
        }
        if let Some(slot) = self.0.get_mut(start..start + 4) {
            slot.copy_from_slice(&u32::to_le_bytes(count));
        }
    }

    fn number(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }
}

/// The records of a state, until something is not one.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u32> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*head))
    }
}

impl Iterator for Reader<'_> {
    type Item = Vec<String>;

    fn next(&mut self) -> Option<Vec<String>> {
        let count = self.number()?;
        let mut strings = Vec::new();
        for _ in 0..count {
            let length = usize::try_from(self.number()?).ok()?;
            let (string, rest) = self.0.split_at_checked(length)?;
            self.0 = rest;
            strings.push(bytes::decode(string));
        }
        Some(strings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell() -> Shell {
        let mut shell = Shell::new("bash");
        shell.bind_computed();
        shell
    }

    fn passed_on(script: &str, ask: &str) -> String {
        let mut first = shell();
        let _ = first.run_text(script, 1, None);
        let state = first.state();
        let mut second = shell();
        assert!(second.restore(&state));
        let _ = second.run_text(&format!("answer=$({ask})"), 1, None);
        second.get("answer").unwrap_or_default()
    }

    #[test]
    fn variables_keep_their_values_and_attributes() {
        let script = "declare -i n=5; declare -r fixed='a b'; list=(x 'y z'); list[9]=$'\\n'; declare -A map=([k]=v [' ']='\"')
            declare -x out=1; declare -u up=abc; declare -n ref=n; unset gone; gone=1; unset gone; bytes=$'\\xff'";
        assert_eq!(passed_on(script, "ref+=2; echo $n"), "7");
        assert_eq!(
            passed_on(script, "declare -p fixed out up"),
            "declare -r fixed=\"a b\"\ndeclare -x out=\"1\"\ndeclare -u up=\"ABC\""
        );
        assert_eq!(passed_on(script, "declare -p list"), "declare -a list=([0]=\"x\" [1]=\"y z\" [9]=$'\\n')");
        assert_eq!(passed_on(script, "declare -p map"), "declare -A map=([\" \"]=\"\\\"\" [k]=\"v\" )");
        assert_eq!(passed_on(script, "echo ${gone-none} ${#bytes}"), "none 1");
    }

    #[test]
    fn functions_aliases_options_and_parameters_are_passed_on() {
        assert_eq!(passed_on("shopt -s extglob; f() { [[ $1 == @(a|b) ]] && echo yes; }; shopt -u extglob", "f b"), "yes");
        assert_eq!(passed_on("alias hi='echo hello'; shopt -s expand_aliases", "alias"), "alias hi='echo hello'");
        assert_eq!(passed_on("set -u -o pipefail; shopt -s nullglob", "echo $-; shopt nullglob"), "huBc\nnullglob       \ton");
        assert_eq!(passed_on("set -- a 'b c'", "echo $# \"$2\""), "2 b c");
        assert_eq!(passed_on("trap 'echo term' TERM; trap 'echo bye' EXIT", "trap -p TERM"), "trap -- 'echo term' SIGTERM");
        assert_eq!(passed_on("g() { local x=inner; false; return 3; }; x=outer; g", "echo $? $x"), "3 outer");
    }

    #[test]
    fn nonsense_is_passed_over() {
        let mut state = shell().state();
        for end in (0..state.len()).step_by(7) {
            shell().restore(state.get(..end).unwrap_or_default());
        }
        assert!(!shell().restore(b""));
        assert!(!shell().restore(&[0xff; 64]));
        // A count and a length that promise more than there is.
        let header = state.len();
        state.extend_from_slice(&[9, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, b'x']);
        assert!(shell().restore(&state) && header > 0);
        let mut hostile = Writer::default();
        hostile.record(HEADER);
        hostile.record(["variable", "$(echo)", "65535", "scalar", "x"]);
        hostile.record(["variable", "RANDOM", "0", "scalar", "x"]);
        hostile.record(["function", "f", "", "echo not a function"]);
        hostile.record(["trap", "EXIT", "echo no"]);
        let mut shell = shell();
        assert!(shell.restore(&hostile.0));
        assert!(shell.functions.is_empty() && shell.traps.commands.is_empty() && shell.get("RANDOM") != Some("x".to_owned()));
    }
}
