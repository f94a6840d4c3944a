//! Runs one utility natively: by the name of the link it was started through, or by the first argument.

use std::path::Path;

#[global_allocator]
static ALLOCATOR: sys::memory::refusing::Allocator = sys::memory::refusing::Allocator;

fn main() {
    sys::memory::report_overflow();
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
    let name = args.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    sys::memory::set_name(name.rsplit('/').next().unwrap_or_default().to_owned().leak());
    std::process::exit(run(args))
}
