//! This program's engine. Starting it takes about as long as parsing the command line, so both happen in parallel.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use runtime::{Builder, Command, Host, HostBuilder, Starting};

use crate::printer::Printer;

/// The directory of compiled guests next to the program.
const BESIDE: &str = "sandlite-guests";

/// The engine that is being started, until it is taken.
static STARTING: Mutex<Option<Starting>> = Mutex::new(None);

/// The progress callback, set once the command line is parsed.
static TELLER: OnceLock<Printer> = OnceLock::new();

/// The directory of compiled guests shipped with the program.
static SHIPPED: OnceLock<PathBuf> = OnceLock::new();

/// Sets that directory.
pub(crate) fn set_shipped(directory: PathBuf) {
    let _ = SHIPPED.set(directory);
}

/// Starts the engine in the background if a command will need one. A failure is ignored here: the code that needs an engine then
/// starts another and reports the error.
pub(crate) fn start_early(words: &[OsString]) {
    // A server has its own.
    if words.get(1).and_then(|word| word.to_str()).is_some_and(|word| word.starts_with("--server")) {
        return;
    }
    let next = words.iter().find_map(|word| match word.to_str() {
        Some("bash") => Some(Command::bash("")),
        Some("python") => Some(Command::python("")),
        Some("wasm") => Some(Command::program("", [""; 0])),
        _ => None,
    });
    if let Some(next) = next {
        *starting() = settings().start_for(&next).ok();
    }
}

/// Shows progress for slow operations from now on.
pub(crate) fn tell(printer: &Printer) {
    let _ = TELLER.set(printer.clone());
}

/// Returns the engine's settings. Most processes run one command and exit.
pub(crate) fn settings() -> HostBuilder {
    let builder = match SHIPPED.get() {
        Some(directory) => Host::builder().shipped(directory),
        None => with_shipped(Host::builder()),
    };
    builder.unpooled().progress(|what| {
        if let Some(printer) = TELLER.get() {
            printer.verbose(what);
            printer.progress().spin(what);
        }
    })
}

/// Returns the settings with the compiled guests shipped with this program, if any.
pub(crate) fn with_shipped(builder: HostBuilder) -> HostBuilder {
    match std::env::current_exe().ok().and_then(|program| shipped(&program)) {
        Some(directory) => builder.shipped(directory),
        None => builder,
    }
}

// Next to the program, where `cargo xtask dist` puts them. They are native code, so they are used only if no one but the
// program's owner can have written them.
fn shipped(program: &Path) -> Option<PathBuf> {
    let directory = program.parent()?.join(BESIDE);
    let found = std::fs::symlink_metadata(&directory).ok().filter(|found| found.is_dir() && found.mode() & 0o022 == 0)?;
    let owner = std::fs::metadata(program).ok()?.uid();
    (found.uid() == owner).then_some(directory)
}

/// Sets the sandbox's engine: the one that is being started, or a new one.
pub(crate) fn give(sandbox: Builder) -> Builder {
    match starting().take() {
        Some(starting) => sandbox.starting_host(starting),
        None => sandbox.own_host(settings()),
    }
}

fn starting() -> std::sync::MutexGuard<'static, Option<Starting>> {
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    // T-SUP-02.
    #[test]
    fn guests_beside_the_program_are_used_only_if_no_one_else_can_write_there() {
        let place = tempfile::tempdir().unwrap();
        let (program, directory) = (place.path().join("sandlite"), place.path().join(BESIDE));
        fs::write(&program, "").unwrap();
        assert_eq!(shipped(&program), None);
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(shipped(&program), Some(directory.clone()));
        fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
        assert_eq!(shipped(&program), None);
        fs::remove_dir(&directory).unwrap();
        std::os::unix::fs::symlink("/usr", &directory).unwrap();
        assert_eq!(shipped(&program), None);
    }
}
