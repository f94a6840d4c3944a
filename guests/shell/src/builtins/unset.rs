//! `unset`.

use super::parse_options;
use crate::shell::{Done, Shell};
use crate::state::assign::{Subscript, is_name, split_subscript};
use crate::state::variables::{Attributes, Value};

pub(super) fn unset(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "fvn") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("unset", &wrong)),
    };
    let has = |wanted: char| options.iter().any(|(letter, _)| *letter == wanted);
    let (functions, variables, reference) = (has('f'), has('v'), has('n'));
    if functions && variables {
        shell.complain("unset: cannot simultaneously unset a function and a variable");
        return Ok(1);
    }
    let mut status = 0;
    for name in args.get(at..).unwrap_or_default() {
        if functions {
            status |= unset_function(shell, name);
            continue;
        }
        let ok = if let Some((base, subscript)) = split_subscript(name) {
            unset_element(shell, base, subscript)?
        } else if !is_name(name) {
            if !variables && shell.functions.contains_key(name) {
                status |= unset_function(shell, name);
                continue;
            }
            if !variables {
                // It could only have been a function.
                continue;
            }
            shell.complain(format_args!("unset: `{name}': not a valid identifier"));
            false
        } else if !variables && shell.variables.get(name).is_none() && shell.functions.contains_key(name) {
            status |= unset_function(shell, name);
            continue;
        } else {
            unset_name(shell, name, reference)?
        };
        if !ok {
            status = 1;
        }
    }
    Ok(status)
}

fn unset_function(shell: &mut Shell, name: &str) -> i32 {
    if shell.functions.get(name).is_some_and(|entry| entry.readonly) {
        shell.complain(format_args!("unset: {name}: cannot unset: readonly function"));
        return 1;
    }
    shell.functions.remove(name);
    0
}

fn unset_name(shell: &mut Shell, name: &str, reference: bool) -> Done<bool> {
    let mut name = name.to_owned();
    if !reference && shell.is_reference(&name) {
        let (target, subscript) = shell.resolve(&name);
        if let Some(subscript) = subscript {
            return unset_element(shell, &target, &subscript);
        }
        name = target;
    }
    if !shell.unset_variable(&name) {
        shell.complain(format_args!("unset: {name}: cannot unset: readonly variable"));
        return Ok(false);
    }
    Ok(true)
}

fn unset_element(shell: &mut Shell, name: &str, subscript: &str) -> Done<bool> {
    let (name, _) = shell.resolve(name);
    let Some(variable) = shell.variables.get(&name) else { return Ok(true) };
    if variable.attributes.has(Attributes::READONLY) {
        shell.complain(format_args!("unset: {name}: cannot unset: readonly variable"));
        return Ok(false);
    }
    match &variable.value {
        Value::Indexed(_) if matches!(subscript, "@" | "*") => {
            shell.set_array(&name, []);
            return Ok(true);
        }
        Value::Associative(map) => {
            let map_has = map.get(subscript).is_some();
            if matches!(subscript, "@" | "*") && !map_has {
                shell.variables.unset(&name);
                return Ok(true);
            }
            let key = if map_has { subscript.to_owned() } else { shell.expand_subscript_text(subscript)? };
            return shell.unset_element(&name, &Subscript::Key(key));
        }
        Value::Scalar(_) | Value::Unset if subscript != "0" => {
            let number = shell.evaluate(subscript)?;
            if number != 0 {
                shell.complain(format_args!("unset: {name}: not an array variable"));
                return Ok(false);
            }
        }
        _ => {}
    }
    let subscript_value = shell.subscript(&name, subscript)?;
    let ok = shell.unset_element(&name, &subscript_value)?;
    if !ok {
        shell.complain(format_args!("unset: [{subscript}]: bad array subscript"));
    }
    Ok(ok)
}
