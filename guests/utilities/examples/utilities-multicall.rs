//! The utilities as one native program, for the tests: the first argument's base name says which.

fn main() {
    sys::init();
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    let name = args.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let base = name.rsplit('/').next().unwrap_or_default();
    match utilities::find(base) {
        Some(utility) => std::process::exit(utility(args)),
        None => {
            eprintln!("{base}: no such utility");
            std::process::exit(127);
        }
    }
}
