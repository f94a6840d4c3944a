//! `who`, `users`, `uptime` and `tty`: who is there, since when, and where.

use crate::options::{self, No, Spec};
use crate::program::{self, Args, Outcome, Output, usage};
use crate::quote;

/// Runs `users`: no user is logged in to a sandbox.
pub fn users(args: Args) -> Outcome {
    let given = options::parse(args, &Spec { short: "", long: &[], help: "[OPTION]... [FILE]" })?;
    given.operands.get(1).map_or(Ok(0), |extra| Err(program::extra_operand(extra)))
}

/// Runs `who`.
pub fn who(args: Args) -> Outcome {
    let spec = Spec {
        short: "abdlmpqrstuwHT",
        long: &[("all", No, 'a'), ("count", No, 'q'), ("heading", No, 'H')],
        help: "[OPTION]... [ FILE | ARG1 ARG2 ]",
    };
    let given = options::parse(args, &spec)?;
    let mut out = Output::new();
    if given.has('H') {
        out.text("NAME     LINE         TIME             COMMENT\n");
    }
    if given.has('q') {
        out.text("\n# users=0\n");
    }
    Ok(0)
}

/// Runs `tty`.
pub fn tty(args: Args) -> Outcome {
    program::set_failure(2);
    let spec = Spec { short: "s", long: &[("silent", No, 's'), ("quiet", No, 's')], help: "[OPTION]..." };
    let given = options::parse(args, &spec)?;
    if let Some(operand) = given.operands.first() {
        return Err(program::extra_operand(operand));
    }
    let terminal = sys::is_terminal(0);
    if !given.has('s') {
        Output::new().text(if terminal { "/dev/tty\n" } else { "not a tty\n" });
    }
    Ok(i32::from(!terminal))
}

/// Runs `uptime`, with the sandbox's own clocks.
pub fn uptime(args: Args) -> Outcome {
    let spec = Spec { short: "ps", long: &[("pretty", No, 'p'), ("since", No, 's')], help: "[OPTION]..." };
    let given = options::parse(args, &spec)?;
    if let Some(operand) = given.operands.first() {
        return Err(usage(format!("extra operand {}", quote::plain(operand))));
    }
    let now = i64::try_from(sys::now_ns() / 1_000_000_000).unwrap_or(0);
    let mut out = Output::new();
    if given.has('p') {
        out.text("up 0 minutes\n");
    } else if given.has('s') {
        let (date, time) = (now.div_euclid(86400), now.rem_euclid(86400));
        let (year, month, day) = sys::calendar::from_days(date);
        out.text(format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}\n", time / 3600, time / 60 % 60, time % 60));
    } else {
        let time = now.rem_euclid(86400);
        out.text(format!(
            " {:02}:{:02}:{:02} up 0 min,  0 users,  load average: 0.00, 0.00, 0.00\n",
            time / 3600,
            time / 60 % 60,
            time % 60
        ));
    }
    Ok(0)
}
