//! `nice`: all processes of a sandbox are equally nice.

use crate::command::become_program;
use crate::options::{self, Needs, Spec};
use crate::program::{Args, Outcome, Output, fail, set_failure, usage};
use crate::quote;

/// Runs `nice`.
pub fn nice(mut args: Args) -> Outcome {
    set_failure(125);
    // `nice -5 command`: the old spelling.
    if let Some(first) = args.get(1).map(|arg| arg.to_string_lossy().into_owned())
        && first.len() > 1
        && first.starts_with('-')
        && first[1..].trim_start_matches(['-', '+']).bytes().all(|byte| byte.is_ascii_digit())
        && first != "--"
    {
        args[1] = format!("-n{}", &first[1..]).into();
    }
    let given =
        options::parse(args, &Spec { short: "+n:", long: &[("adjustment", Needs, 'n')], help: "[OPTION] [COMMAND [ARG]...]" })?;
    if let Some(value) = given.value('n')
        && value.to_string_lossy().trim().parse::<i64>().is_err()
    {
        return Err(fail(format!("invalid adjustment {}", quote::plain(value))));
    }
    if given.operands.is_empty() {
        if given.has('n') {
            return Err(usage("a command must be given with an adjustment"));
        }
        Output::new().text("0\n");
        return Ok(0);
    }
    Err(become_program(&given.operands, ""))
}
