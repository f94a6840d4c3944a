//! `declare`, `typeset`, `local`, `export`, `readonly`.

use super::declare_print::Shown;
use crate::ast::{ArrayElement, AssignedValue, Assignment};
use crate::exec::Item;
use crate::shell::{Done, Flow, Shell};
use crate::state::assign::{is_name, split_subscript};
use crate::state::options::{SetOption, ShoptOption};
use crate::state::variables::{Attributes, Value, Variable};
use crate::syntax::Parser;

/// The options of a declaring builtin.
#[derive(Debug, Default)]
struct Wishes {
    add: Attributes,
    remove: Attributes,
    indexed: bool,
    associative: bool,
    remove_array: bool,
    functions: bool,
    function_names: bool,
    global: bool,
    inherit: bool,
    print: bool,
    local: bool,
}

/// Parses the letters after `-` or `+`; `Err` is the unknown one.
fn read_letters(wishes: &mut Wishes, letters: &str, on: bool, known: &str) -> Result<(), char> {
    for letter in letters.chars() {
        if !known.contains(letter) {
            return Err(letter);
        }
        let bit = match letter {
            'x' => Attributes::EXPORT,
            'r' => Attributes::READONLY,
            'i' => Attributes::INTEGER,
            'l' => Attributes::LOWER,
            'u' => Attributes::UPPER,
            'c' => Attributes::CAPITAL,
            'n' => Attributes::NAMEREF,
            't' => Attributes::TRACE,
            _ => Attributes::default(),
        };
        if on {
            wishes.add = wishes.add.with(bit);
        } else {
            wishes.remove = wishes.remove.with(bit);
        }
        match letter {
            'a' if on => wishes.indexed = true,
            'A' if on => wishes.associative = true,
            'a' | 'A' => wishes.remove_array = true,
            'f' => wishes.functions = true,
            'F' => {
                wishes.functions = true;
                wishes.function_names = true;
            }
            'g' => wishes.global = true,
            'I' => wishes.inherit = true,
            'p' => wishes.print = true,
            _ => {}
        }
    }
    Ok(())
}

/// Takes the options off the front of the arguments.
fn take_options<'a>(
    shell: &mut Shell,
    name: &str,
    items: Vec<Item<'a>>,
    known: &str,
    wishes: &mut Wishes,
) -> Result<Vec<Item<'a>>, i32> {
    let mut items = items.into_iter().peekable();
    while let Some(Item::Text(text)) = items.peek() {
        if text == "--" {
            items.next();
            break;
        }
        let (on, letters) = match text.as_bytes() {
            [b'-', _, ..] => (true, &text[1..]),
            [b'+', _, ..] if known.contains('g') => (false, &text[1..]),
            _ => break,
        };
        if let Err(letter) = read_letters(wishes, letters, on, known) {
            let sign = if on { '-' } else { '+' };
            return Err(shell.refuse_option(name, &format!("{sign}{letter}")));
        }
        items.next();
    }
    Ok(items.collect())
}

pub(super) fn declare(shell: &mut Shell, name: &str, items: Vec<Item<'_>>) -> Done {
    let mut wishes = Wishes::default();
    let items = match take_options(shell, name, items, "aAfFgiIlnrtucxp", &mut wishes) {
        Ok(items) => items,
        Err(status) => return Ok(status),
    };
    wishes.local = shell.variables.function_scope() != 0 && !wishes.global;
    if wishes.functions {
        return declare_functions(shell, name, &items, &wishes);
    }
    if items.is_empty() {
        return shell.print_declarations(
            wishes.add,
            wishes.indexed,
            wishes.associative,
            if wishes.print {
                Shown::Declare
            } else if wishes.add.is_empty() && !wishes.indexed && !wishes.associative {
                Shown::Set
            } else {
                Shown::Declare
            },
        );
    }
    if wishes.print {
        return print_named(shell, name, &items);
    }
    apply(shell, name, &items, &wishes)
}

pub(super) fn local(shell: &mut Shell, name: &str, items: Vec<Item<'_>>) -> Done {
    if shell.variables.function_scope() == 0 {
        shell.complain("local: can only be used in a function");
        return Ok(1);
    }
    let mut wishes = Wishes::default();
    let items = match take_options(shell, name, items, "aAgiIlnrtucxp", &mut wishes) {
        Ok(items) => items,
        Err(status) => return Ok(status),
    };
    wishes.local = true;
    if items.is_empty() {
        for name in shell.variables.local_names() {
            shell.print_variable(&name, Shown::Declare);
        }
        return Ok(0);
    }
    if wishes.print {
        return print_named(shell, name, &items);
    }
    if let [Item::Text(dash)] = items.as_slice()
        && dash == "-"
    {
        let options = shell.options;
        if let Some(frame) = shell.frames.iter_mut().rev().find(|frame| frame.function) {
            frame.options.get_or_insert(options);
        }
        return Ok(0);
    }
    apply(shell, name, &items, &wishes)
}

pub(super) fn export(shell: &mut Shell, name: &str, items: Vec<Item<'_>>) -> Done {
    with_attribute(shell, name, items, "aAfnp", Attributes::EXPORT)
}

pub(super) fn readonly(shell: &mut Shell, name: &str, items: Vec<Item<'_>>) -> Done {
    with_attribute(shell, name, items, "aAfnp", Attributes::READONLY)
}

fn with_attribute(shell: &mut Shell, name: &str, items: Vec<Item<'_>>, known: &str, bit: Attributes) -> Done {
    let mut wishes = Wishes::default();
    let items = match take_options(shell, name, items, known, &mut wishes) {
        Ok(items) => items,
        Err(status) => return Ok(status),
    };
    let removes = wishes.add.has(Attributes::NAMEREF);
    if removes && bit == Attributes::READONLY {
        // Nothing takes this attribute away.
        return Ok(0);
    }
    wishes.add = if removes { Attributes::default() } else { bit };
    wishes.remove = if removes { bit } else { Attributes::default() };
    if wishes.functions {
        return function_attribute(shell, name, &items, bit, removes);
    }
    if items.is_empty() {
        let shown = match (shell.on(SetOption::Posix), bit == Attributes::EXPORT) {
            (true, true) => Shown::Export,
            (true, false) => Shown::Readonly,
            _ => Shown::Declare,
        };
        return shell.print_declarations(bit, wishes.indexed, wishes.associative, shown);
    }
    apply(shell, name, &items, &wishes)
}

fn item_name(item: &Item<'_>) -> String {
    match item {
        Item::Text(text) => text.clone(),
        Item::Assignment(assignment) | Item::Value(assignment, _) => assignment.name.clone(),
    }
}

fn print_named(shell: &mut Shell, builtin: &str, items: &[Item<'_>]) -> Done {
    let mut status = 0;
    for item in items {
        let name = match item {
            // As with every operand that has more than a name.
            Item::Value(assignment, value) => {
                format!("{}{}={value}", assignment.name, if assignment.append { "+" } else { "" })
            }
            Item::Assignment(assignment) => crate::print::assignment(assignment),
            Item::Text(text) => text.clone(),
        };
        if shell.variables.get(&name).is_none() {
            shell.complain(format_args!("{builtin}: {name}: not found"));
            status = 1;
            continue;
        }
        shell.print_variable(&name, Shown::Declare);
    }
    Ok(status)
}

fn function_attribute(shell: &mut Shell, name: &str, items: &[Item<'_>], bit: Attributes, removes: bool) -> Done {
    let mut status = 0;
    if items.is_empty() {
        let mut names: Vec<String> = shell
            .functions
            .iter()
            .filter(|(_, entry)| if bit == Attributes::EXPORT { entry.exported } else { entry.readonly })
            .map(|(name, _)| name.clone())
            .collect();
        names.sort();
        for function in names {
            shell.print_function(&function);
            let letter = if bit == Attributes::EXPORT { "fx" } else { "fr" };
            shell.write(&format!("declare -{letter} {function}\n"));
        }
        return Ok(0);
    }
    for item in items {
        let function = item_name(item);
        match shell.functions.get_mut(&function) {
            Some(entry) if bit == Attributes::EXPORT => entry.exported = !removes,
            Some(entry) => entry.readonly = true,
            None => {
                shell.complain(format_args!("{name}: {function}: not a function"));
                status = 1;
            }
        }
    }
    Ok(status)
}

fn declare_functions(shell: &mut Shell, builtin: &str, items: &[Item<'_>], wishes: &Wishes) -> Done {
    if items.is_empty() {
        let mut names: Vec<String> = shell.functions.keys().cloned().collect();
        names.sort();
        for name in names {
            let Some(entry) = shell.functions.get(&name) else { continue };
            if wishes.add.has(Attributes::EXPORT) && !entry.exported {
                continue;
            }
            let mut letters = String::from("f");
            for (on, letter) in [(entry.readonly, 'r'), (entry.traced, 't'), (entry.exported, 'x')] {
                if on {
                    letters.push(letter);
                }
            }
            if wishes.function_names {
                shell.write(&format!("declare -{letters} {name}\n"));
            } else {
                shell.print_function(&name);
            }
        }
        return Ok(0);
    }
    let (integer, reference) = (wishes.add.has(Attributes::INTEGER), wishes.add.has(Attributes::NAMEREF));
    let of_values = [(integer, 'i'), (reference, 'n'), (wishes.indexed, 'a'), (wishes.associative, 'A')];
    if let Some((_, letter)) = of_values.into_iter().find(|(given, _)| *given) {
        shell.complain(format_args!("{builtin}: -{letter}: invalid option"));
        return Ok(1);
    }
    let mut status = 0;
    for item in items {
        if matches!(item, Item::Assignment(_) | Item::Value(..)) || matches!(item, Item::Text(text) if text.contains('=')) {
            shell.complain(format_args!("{builtin}: cannot use `-f' to make functions"));
            return Ok(1);
        }
        let name = item_name(item);
        let Some(entry) = shell.functions.get_mut(&name) else {
            status = 1;
            continue;
        };
        if !wishes.add.is_empty() || !wishes.remove.is_empty() {
            if entry.readonly && wishes.remove.has(Attributes::READONLY) {
                shell.complain(format_args!("{builtin}: {name}: readonly function"));
                status = 1;
                continue;
            }
            entry.exported = (entry.exported || wishes.add.has(Attributes::EXPORT)) && !wishes.remove.has(Attributes::EXPORT);
            entry.readonly |= wishes.add.has(Attributes::READONLY);
            entry.traced = (entry.traced || wishes.add.has(Attributes::TRACE)) && !wishes.remove.has(Attributes::TRACE);
        } else if wishes.function_names {
            let (line, source) = (entry.function.line, entry.source.clone());
            if shell.shopt(ShoptOption::ExtDebug) {
                shell.write(&format!("{name} {line} {source}\n"));
            } else {
                shell.write(&format!("{name}\n"));
            }
        } else {
            shell.print_function(&name);
        }
    }
    Ok(status)
}

/// One thing to declare, taken apart.
struct Target<'a> {
    name: String,
    subscript: Option<String>,
    append: bool,
    value: Option<Assigned<'a>>,
}

enum Assigned<'a> {
    Text(String),
    Elements(std::borrow::Cow<'a, [ArrayElement]>),
}

fn take_apart<'a>(shell: &mut Shell, item: &Item<'a>, wishes: &Wishes) -> Done<Result<Target<'a>, String>> {
    match item {
        Item::Value(assignment, text) => {
            let subscript = match &assignment.index {
                Some(word) => Some(shell.expand_string(word)?),
                None => None,
            };
            let value = read_value(shell, &assignment.name, subscript.is_some(), text.clone(), wishes);
            // A list in quotes is that of the whole array.
            let subscript = subscript.filter(|_| matches!(value, Assigned::Text(_)));
            Ok(Ok(Target { name: assignment.name.clone(), subscript, append: assignment.append, value: Some(value) }))
        }
        Item::Assignment(assignment) => {
            let Assignment { name, index, append, value } = assignment;
            let subscript = match index {
                Some(word) => Some(shell.expand_string(word)?),
                None => None,
            };
            let value = match value {
                AssignedValue::Scalar(word) => {
                    let text = shell.expand_assigned(word)?;
                    let value = read_value(shell, name, subscript.is_some(), text, wishes);
                    if matches!(value, Assigned::Elements(_)) {
                        return Ok(Ok(Target { name: name.clone(), subscript: None, append: *append, value: Some(value) }));
                    }
                    value
                }
                AssignedValue::Array(elements) => Assigned::Elements(elements.as_slice().into()),
            };
            Ok(Ok(Target { name: name.clone(), subscript, append: *append, value: Some(value) }))
        }
        Item::Text(text) => {
            let (left, value) = match text.split_once('=') {
                Some((left, value)) => (left, Some(value.to_owned())),
                None => (text.as_str(), None),
            };
            let (left, append) = match left.strip_suffix('+') {
                Some(left) if value.is_some() => (left, true),
                _ => (left, false),
            };
            let (name, subscript) = match split_subscript(left) {
                Some((name, subscript)) => (name.to_owned(), Some(subscript.to_owned())),
                None => (left.to_owned(), None),
            };
            if !is_name(&name) {
                return Ok(Err(text.clone()));
            }
            let value = value.map(|value| read_value(shell, &name, subscript.is_some(), value, wishes));
            let subscript = subscript.filter(|_| !matches!(value, Some(Assigned::Elements(_))));
            Ok(Ok(Target { name, subscript, append, value }))
        }
    }
}

/// `declare "a=(1 2)"` is read as an array when it is to be one, or is one in the scope of the declaration.
fn read_value<'a>(shell: &Shell, name: &str, is_element: bool, text: String, wishes: &Wishes) -> Assigned<'a> {
    let is_array = || {
        let scope = if wishes.local { shell.variables.function_scope() } else { 0 };
        let known = shell.variables.get(name);
        known.is_some_and(|variable| variable.is_array() && (!wishes.local || variable.scope >= scope))
    };
    let is_compound = text.starts_with('(') && text.ends_with(')');
    if is_compound && (wishes.indexed || wishes.associative || !is_element && is_array()) {
        return match parse_elements(shell, &text) {
            Some(elements) => Assigned::Elements(elements.into()),
            None => Assigned::Text(text),
        };
    }
    Assigned::Text(text)
}

fn parse_elements(shell: &Shell, text: &str) -> Option<Vec<ArrayElement>> {
    let mut parser = Parser::new(&format!("x={text}"), shell.syntax_options());
    let list = parser.next().ok()??;
    match list.items.into_iter().next()?.and_or.first.commands.into_iter().next()? {
        crate::ast::Command::Simple(simple) => match simple.assignments.into_iter().next()?.value {
            AssignedValue::Array(elements) => Some(elements),
            AssignedValue::Scalar(_) => None,
        },
        _ => None,
    }
}

fn apply(shell: &mut Shell, builtin: &str, items: &[Item<'_>], wishes: &Wishes) -> Done {
    let mut status = 0;
    for item in items {
        let target = match take_apart(shell, item, wishes)? {
            Ok(target) => target,
            Err(text) => {
                shell.complain(format_args!("{builtin}: `{text}': not a valid identifier"));
                status = 1;
                continue;
            }
        };
        match apply_one(shell, builtin, target, wishes) {
            Ok(true) => {}
            Ok(false) => status = 1,
            Err(Flow::Discard(code)) => status = code,
            Err(flow) => return Err(flow),
        }
    }
    Ok(status)
}

fn apply_one(shell: &mut Shell, builtin: &str, target: Target<'_>, wishes: &Wishes) -> Done<bool> {
    let Target { mut name, subscript, append, value } = target;
    let local = wishes.local && !wishes.global;
    let reference = wishes.add.has(Attributes::NAMEREF);
    if !local && !reference && !wishes.remove.has(Attributes::NAMEREF) && shell.is_reference(&name) {
        name = shell.resolve(&name).0;
    }
    if wishes.global {
        return apply_globally(shell, builtin, Target { name, subscript, append, value }, wishes);
    }
    if subscript.is_some() && matches!(builtin, "export" | "readonly") {
        let subscript = subscript.unwrap_or_default();
        shell.complain(format_args!("{builtin}: `{name}[{subscript}]': not a valid identifier"));
        return Ok(false);
    }
    let readonly_now = |shell: &Shell, name: &str| {
        shell.variables.get(name).is_some_and(|variable| variable.attributes.has(Attributes::READONLY))
    };
    if local {
        let scope = shell.variables.function_scope();
        let outer = shell.variables.outer(&name, scope).cloned();
        if readonly_now(shell, &name) && shell.variables.get(&name).is_some_and(|variable| variable.scope == 0) {
            shell.complain(format_args!("{builtin}: {name}: readonly variable"));
            return Ok(false);
        }
        let (variable, fresh) = shell.variables.local_entry(&name);
        variable.temporary = false;
        if fresh && let Some(outer) = outer.filter(|outer| !outer.attributes.has(Attributes::DYNAMIC)) {
            if wishes.inherit || shell.options.shopt(ShoptOption::LocalVarInherit) || outer.temporary {
                variable.value = outer.value;
                variable.attributes = outer.attributes.without(Attributes::NAMEREF);
            } else if outer.attributes.has(Attributes::EXPORT) {
                variable.attributes = Attributes::EXPORT;
            }
        }
    }
    if readonly_now(shell, &name) && (value.is_some() || wishes.remove.has(Attributes::READONLY)) {
        let by = if matches!(builtin, "export" | "readonly") { String::new() } else { format!("{builtin}: ") };
        shell.complain(format_args!("{by}{name}: readonly variable"));
        return Ok(false);
    }
    set_up(shell, builtin, &name, subscript, append, value, wishes)
}

/// Runs `declare -g`, on the global binding, whatever hides it.
fn apply_globally(shell: &mut Shell, builtin: &str, target: Target<'_>, wishes: &Wishes) -> Done<bool> {
    let Target { name, subscript, append, value } = target;
    let hidden = shell.variables.get(&name).filter(|variable| variable.scope != 0).cloned();
    let Some(hidden) = hidden else {
        return set_up(shell, builtin, &name, subscript, append, value, wishes);
    };
    let global = std::mem::take(shell.variables.global_entry(&name));
    *shell.variables.entry(&name) = global;
    let result = set_up(shell, builtin, &name, subscript, append, value, wishes);
    let mut global = std::mem::replace(shell.variables.entry(&name), hidden);
    global.scope = 0;
    *shell.variables.global_entry(&name) = global;
    result
}

fn set_up(
    shell: &mut Shell,
    builtin: &str,
    name: &str,
    subscript: Option<String>,
    append: bool,
    value: Option<Assigned<'_>>,
    wishes: &Wishes,
) -> Done<bool> {
    if wishes.indexed && wishes.associative && !shell.variables.get(name).is_some_and(Variable::is_array) {
        shell.declare_array(name, true);
    }
    let kind = shell.variables.get(name).map(|variable| variable.value.clone());
    match kind {
        Some(Value::Indexed(_)) if wishes.associative => {
            shell.complain(format_args!("{builtin}: {name}: cannot convert indexed to associative array"));
            return Ok(false);
        }
        Some(Value::Associative(_)) if wishes.indexed => {
            shell.complain(format_args!("{builtin}: {name}: cannot convert associative to indexed array"));
            return Ok(false);
        }
        Some(Value::Indexed(_) | Value::Associative(_)) if wishes.remove_array => {
            shell.complain(format_args!("{builtin}: {name}: cannot destroy array variables in this way"));
            return Ok(false);
        }
        _ => {}
    }
    if wishes.add.has(Attributes::NAMEREF) {
        return make_reference(shell, builtin, name, value, wishes);
    }
    // `readonly -a x` without a value makes no array of it.
    let arrays = builtin != "readonly" || value.is_some();
    if arrays && (wishes.associative || wishes.indexed) || subscript.is_some() {
        shell.declare_array(name, wishes.associative);
    }
    // Attributes that change values come first; readonly comes last, or the value could not be set.
    {
        let variable = shell.variables.entry(name);
        let mut attributes = variable.attributes.without(wishes.remove);
        let case = Attributes::LOWER.with(Attributes::UPPER).with(Attributes::CAPITAL);
        if wishes.add.any(case) {
            attributes = attributes.without(case);
        }
        variable.attributes = attributes.with(wishes.add.without(Attributes::READONLY));
    }
    match value {
        None => {}
        Some(Assigned::Elements(elements)) => {
            if subscript.is_some() {
                shell.complain(format_args!("{name}: cannot assign list to array member"));
                return Ok(false);
            }
            shell.with_own_ifs(|shell| shell.assign_array(name, &elements, append))?;
        }
        Some(Assigned::Text(text)) => match subscript {
            Some(subscript) => {
                let subscript = shell.subscript(name, &subscript)?;
                shell.assign_element(name, subscript, text, append)?;
            }
            None => shell.assign(name, text, append)?,
        },
    }
    if wishes.add.has(Attributes::READONLY) {
        let variable = shell.variables.entry(name);
        variable.attributes = variable.attributes.with(Attributes::READONLY);
    }
    Ok(true)
}

fn make_reference(shell: &mut Shell, builtin: &str, name: &str, value: Option<Assigned<'_>>, wishes: &Wishes) -> Done<bool> {
    let target = match value {
        Some(Assigned::Text(text)) => Some(text),
        _ => None,
    };
    if let Some(target) = &target {
        if target == name && shell.variables.function_scope() == 0 {
            shell.complain(format_args!("{builtin}: {name}: nameref variable self references not allowed"));
            return Ok(false);
        }
        if target == name {
            shell.complain(format_args!("{builtin}: warning: {name}: circular name reference"));
        }
        if !is_name(target) && split_subscript(target).is_none() {
            shell.complain(format_args!("{builtin}: `{target}': invalid variable name for name reference"));
            return Ok(false);
        }
    }
    if target.is_none()
        && let Some(old) = shell.variables.get(name).and_then(|variable| variable.scalar()).map(str::to_owned)
        && !old.is_empty()
        && !is_name(&old)
        && split_subscript(&old).is_none()
    {
        shell.complain(format_args!("{builtin}: `{old}': invalid variable name for name reference"));
        return Ok(false);
    }
    let variable = shell.variables.entry(name);
    if variable.is_array() {
        shell.complain(format_args!("{builtin}: {name}: reference variable cannot be an array"));
        return Ok(false);
    }
    variable.attributes = variable.attributes.with(wishes.add);
    if let Some(target) = target {
        variable.value = Value::Scalar(target);
    }
    Ok(true)
}
