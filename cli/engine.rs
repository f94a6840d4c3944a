//! This program's engine. It takes about as long to start as it takes to understand the command line, so both happen at once.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use runtime::{Builder, Command, Host, HostBuilder, Starting};

use crate::printer::Printer;

/// The engine that is being started, until somebody takes it.
static STARTING: Mutex<Option<Starting>> = Mutex::new(None);

/// Who tells what takes long, once the command line has said how.
static TELLER: OnceLock<Printer> = OnceLock::new();

/// Where compiled guests came with the program.
static SHIPPED: OnceLock<PathBuf> = OnceLock::new();

/// Names that directory.
pub(crate) fn set_shipped(directory: PathBuf) {
    let _ = SHIPPED.set(directory);
}

/// Begins to start the engine if a command will want one. Nobody is told that it fails: whoever needs it starts another.
pub(crate) fn start_early(words: &[OsString]) {
    let next = words.iter().find_map(|word| match word.to_str() {
        Some("bash") => Some(Command::bash("")),
        Some("python") => Some(Command::python("")),
        _ => None,
    });
    if let Some(next) = next {
        *starting() = settings().start_for(&next).ok();
    }
}

/// From now on people are told what takes long.
pub(crate) fn tell(printer: &Printer) {
    let _ = TELLER.set(printer.clone());
}

/// The engine's settings. Most programs run one command and end.
pub(crate) fn settings() -> HostBuilder {
    let settings = SHIPPED.get().map_or_else(Host::builder, |directory| Host::builder().shipped(directory)).unpooled();
    settings.progress(|what| {
        if let Some(printer) = TELLER.get() {
            printer.verbose(what);
            printer.progress().spin(what);
        }
    })
}

/// The sandbox with the engine that is being started, or with one of its own.
pub(crate) fn give(sandbox: Builder) -> Builder {
    match starting().take() {
        Some(starting) => sandbox.starting_host(starting),
        None => sandbox.own_host(settings()),
    }
}

fn starting() -> std::sync::MutexGuard<'static, Option<Starting>> {
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}
