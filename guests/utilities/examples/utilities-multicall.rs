//! The programs as one native program, for the tests, selected by the first argument's base name.

#[global_allocator]
static ALLOCATOR: sys::memory::refusing::Allocator = sys::memory::refusing::Allocator;

fn main() {
    sys::memory::report_overflow();
    sys::init();
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    let name = args.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let base: &'static str = name.rsplit('/').next().unwrap_or_default().to_owned().leak();
    sys::memory::set_name(base);
    match utilities::find(base) {
        Some(utility) => std::process::exit(utility(args)),
        None => {
            eprintln!("{base}: no such utility");
            std::process::exit(127);
        }
    }
}
