//! Runs one utility natively: by the name of the link it was started through, or by the first argument.

use std::path::Path;

fn main() {
    let mut args: Vec<_> = std::env::args_os().collect();
    let called = |arg: &std::ffi::OsString| Path::new(arg).file_name().and_then(|name| name.to_str()).and_then(text::find);
    let run = args.first().and_then(called).or_else(|| {
        args.remove(0);
        args.first().and_then(called)
    });
    let Some(run) = run else {
        eprintln!("usage: text-multicall UTILITY [ARGUMENT]...");
        std::process::exit(127)
    };
    std::process::exit(run(args))
}
