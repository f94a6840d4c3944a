//! `getopts`.

use crate::shell::{Done, Shell};
use crate::state::assign::is_name;

pub(super) fn getopts(shell: &mut Shell, args: &[String]) -> Done {
    let mut at = 1;
    match args.get(1).map(String::as_str) {
        Some("--") => at = 2,
        Some(option) if option.starts_with('-') && option.len() > 1 => {
            return Ok(shell.refuse_option("getopts", option.get(..2).unwrap_or(option)));
        }
        _ => {}
    }
    let (Some(spec), Some(name)) = (args.get(at).cloned(), args.get(at + 1).cloned()) else {
        return Ok(shell.usage("getopts"));
    };
    let words: Vec<String> = match args.get(at + 2..) {
        Some(words) if !words.is_empty() => words.to_vec(),
        _ => shell.positional.clone(),
    };
    let silent = spec.starts_with(':');
    let spec = spec.trim_start_matches(':');
    let index = shell.get("OPTIND").and_then(|text| text.trim().parse::<usize>().ok()).unwrap_or(1).clamp(1, words.len() + 1);
    step(shell, &name, spec, silent, &words, index)
}

fn step(shell: &mut Shell, name: &str, spec: &str, silent: bool, words: &[String], mut index: usize) -> Done {
    let position = shell.getopts_at;
    let word = words.get(index - 1).map(String::as_str).unwrap_or_default();
    let fresh = position == 0 || position >= word.chars().count();
    let position = if fresh { 1 } else { position };
    if fresh && (index > words.len() || !word.starts_with('-') || word == "-" || word == "--") {
        if word == "--" && index <= words.len() {
            index += 1;
        }
        return finish(shell, name, "?", None, index, 0).map(|status| if status == 0 { 1 } else { status });
    }
    let Some(letter) = word.chars().nth(position) else {
        return finish(shell, name, "?", None, index, 0).map(|_| 1);
    };
    let last = position + 1 >= word.chars().count();
    let (next_index, next_position) = if last { (index + 1, 0) } else { (index, position + 1) };
    let place = spec.find(letter).filter(|_| letter != ':' && letter != '?');
    let Some(place) = place else {
        if silent {
            return finish(shell, name, "?", Some(letter.to_string()), next_index, next_position);
        }
        report(shell, format!("illegal option -- {letter}"));
        return finish(shell, name, "?", None, next_index, next_position);
    };
    let takes_value = spec.get(place + letter.len_utf8()..).is_some_and(|rest| rest.starts_with(':'));
    if !takes_value {
        return finish(shell, name, &letter.to_string(), None, next_index, next_position);
    }
    if !last {
        let value: String = word.chars().skip(position + 1).collect();
        return finish(shell, name, &letter.to_string(), Some(value), index + 1, 0);
    }
    match words.get(index) {
        Some(value) => {
            let value = value.clone();
            finish(shell, name, &letter.to_string(), Some(value), index + 2, 0)
        }
        None if silent => finish(shell, name, ":", Some(letter.to_string()), index + 1, 0),
        None => {
            report(shell, format!("option requires an argument -- {letter}"));
            finish(shell, name, "?", None, index + 1, 0)
        }
    }
}

fn report(shell: &mut Shell, message: String) {
    if shell.get("OPTERR").as_deref() == Some("0") {
        return;
    }
    let name = shell.name.clone();
    shell.write_error(&format!("{name}: {message}\n"));
}

fn finish(shell: &mut Shell, name: &str, value: &str, argument: Option<String>, index: usize, position: usize) -> Done {
    shell.set_plain("OPTIND", index.to_string());
    shell.getopts_at = position;
    match argument {
        Some(argument) => shell.assign("OPTARG", argument, false)?,
        None => {
            shell.unset_variable("OPTARG");
        }
    }
    if !is_name(name) {
        shell.complain(format_args!("getopts: `{name}': not a valid identifier"));
        return Ok(1);
    }
    match shell.assign(name, value.to_owned(), false) {
        Err(crate::shell::Flow::Discard(_)) => Ok(1),
        other => other.map(|()| 0),
    }
}
