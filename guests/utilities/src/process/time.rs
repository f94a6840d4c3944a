//! `time`: how long a command takes.

use std::ffi::OsString;

use common::getopt::{self, Item, Spec};

use crate::command;
use crate::io::show;

/// Runs `time`: runs a command and prints how long it took.
pub fn time(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let spec = Spec { short: "+pvf:o:aq", long: &[("portability", getopt::Value::No, 'p'), ("verbose", getopt::Value::No, 'v')] };
    let items = match spec.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => {
            warn!("time: {message}");
            return 125;
        }
    };
    let (mut portable, mut format, mut command) = (false, None, Vec::new());
    for item in items {
        match item {
            Item::Operand(word) => command.push(word),
            Item::Opt('p', _) => portable = true,
            Item::Opt('f', value) => format = value,
            Item::Opt(..) => {}
        }
    }
    if command.is_empty() {
        warn!("Usage: time [-apvV] [-f format] [-o file] [--append] [--verbose]");
        return 125;
    }
    let start = std::time::Instant::now();
    let status = match command::spawn(&command, Vec::new(), None).and_then(command::wait) {
        Ok(status) => i32::from(status.shell_code()),
        Err(error) => {
            warn!("time: cannot run {}: {}", show(&command[0]), sys::message(&error));
            return if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
        }
    };
    let elapsed = start.elapsed().as_secs_f64();
    if let Some(format) = format {
        let clock = format!("{}:{:05.2}", (elapsed / 60.0) as u64, elapsed % 60.0);
        let text = show(&format)
            .replace("%e", &format!("{elapsed:.2}"))
            .replace("%E", &clock)
            .replace("%U", "0.00")
            .replace("%S", "0.00")
            .replace("%M", "0")
            .replace("%P", "0%")
            .replace("%x", &status.to_string())
            .replace("\\n", "\n");
        warn!("{text}");
    } else if portable {
        warn!("real {elapsed:.2}\nuser 0.00\nsys 0.00");
    } else {
        let clock = format!("{}:{:05.2}", (elapsed / 60.0) as u64, elapsed % 60.0);
        warn!(
            "0.00user 0.00system {clock}elapsed 0%CPU (0avgtext+0avgdata 0maxresident)k\n0inputs+0outputs (0major+0minor)pagefaults 0swaps"
        );
    }
    status
}
