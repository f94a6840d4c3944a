//! `uname` and its parts: `arch`, `hostname`, `hostid`, `nproc`.

use crate::options::{self, Needs, No, Spec};
use crate::program::{self, Args, Outcome, Output, fail};
use crate::quote;

/// The machine's name.
pub const HOST: &str = "sandlite";

/// Runs `uname`.
pub fn uname(args: Args) -> Outcome {
    let spec = Spec {
        short: "asnrvmpio",
        long: &[
            ("all", No, 'a'),
            ("kernel-name", No, 's'),
            ("sysname", No, 's'),
            ("nodename", No, 'n'),
            ("kernel-release", No, 'r'),
            ("release", No, 'r'),
            ("kernel-version", No, 'v'),
            ("machine", No, 'm'),
            ("processor", No, 'p'),
            ("hardware-platform", No, 'i'),
            ("operating-system", No, 'o'),
        ],
        help: "[OPTION]...",
    };
    let given = options::parse(args, &spec)?;
    if let Some(operand) = given.operands.first() {
        return Err(program::extra_operand(operand));
    }
    let all = given.has('a');
    let facts = [
        ('s', "Linux"),
        ('n', HOST),
        ('r', "6.1.0-sandlite"),
        ('v', "#1 SMP PREEMPT_DYNAMIC Sandlite"),
        ('m', "x86_64"),
        ('p', "unknown"),
        ('i', "unknown"),
        ('o', "GNU/Linux"),
    ];
    let chosen: Vec<&str> = facts
        .iter()
        .filter(|(letter, fact)| {
            given.has(*letter) || (all && *fact != "unknown") || (given.options.is_empty() && *letter == 's')
        })
        .map(|(_, fact)| *fact)
        .collect();
    Output::new().line(chosen.join(" ").as_bytes(), b'\n');
    Ok(0)
}

/// Runs `arch`.
pub fn arch(args: Args) -> Outcome {
    options::none(args, "[OPTION]...")?;
    Output::new().text("x86_64\n");
    Ok(0)
}

/// Runs `hostname`.
pub fn hostname(args: Args) -> Outcome {
    let spec = Spec {
        short: "afsidIA",
        long: &[
            ("short", No, 's'),
            ("fqdn", No, 'f'),
            ("long", No, 'f'),
            ("domain", No, 'd'),
            ("ip-address", No, 'i'),
            ("all-ip-addresses", No, 'I'),
        ],
        help: "[-s|-f|-d|-i]",
    };
    let given = options::parse(args, &spec)?;
    if !given.operands.is_empty() {
        return Err(fail("you must be root to change the host name"));
    }
    let text = if given.has('i') || given.has('I') {
        "127.0.0.1"
    } else if given.has('d') {
        ""
    } else {
        HOST
    };
    Output::new().line(text.as_bytes(), b'\n');
    Ok(0)
}

/// Runs `hostid`.
pub fn hostid(args: Args) -> Outcome {
    options::none(args, "[OPTION]")?;
    Output::new().text("007f0100\n");
    Ok(0)
}

/// Runs `nproc`: a guest runs on one thread.
pub fn nproc(args: Args) -> Outcome {
    let spec = Spec { short: "", long: &[("all", No, 'a'), ("ignore", Needs, 'i')], help: "[OPTION]..." };
    let given = options::parse(args, &spec)?;
    if let Some(operand) = given.operands.first() {
        return Err(program::extra_operand(operand));
    }
    if let Some(value) = given.value('i')
        && value.to_str().and_then(|text| text.parse::<u64>().ok()).is_none()
    {
        return Err(fail(format!("invalid number: {}", quote::plain(value))));
    }
    Output::new().text("1\n");
    Ok(0)
}
