//! An open sandbox of Python: how it is used, and how it is replaced by one that is made from it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use runtime::{Error, Sandbox};

use crate::about::About;
use crate::operation::{Done, short};
use crate::{commands, errors, fork, host_tools, running};

/// A sandbox, open or closed.
#[pyclass(frozen, name = "Sandbox", module = "sandlite._native")]
pub(crate) struct NativeSandbox {
    number: u64,
    now: Mutex<Now>,
    /// Held while the sandbox is replaced by one that is made from it.
    remaking: Mutex<()>,
}

/// The current sandbox, `None` once it is closed, and its data. Each replacement has other data.
struct Now {
    sandbox: Option<Sandbox>,
    about: Arc<About>,
}

impl NativeSandbox {
    pub(crate) fn new(sandbox: Sandbox, about: About) -> Self {
        let now = Now { sandbox: Some(sandbox), about: Arc::new(about) };
        Self { number: now.about.number, now: Mutex::new(now), remaking: Mutex::new(()) }
    }

    /// Creates another handle of the same sandbox.
    pub(crate) fn with(&self, py: Python<'_>, make: impl FnOnce(&Sandbox) -> Result<Sandbox, Error>) -> PyResult<Self> {
        let (sandbox, about) = self.both(py)?;
        let made = make(&sandbox).map_err(|error| errors::raise(py, &error))?;
        Ok(Self::new(made, about.of_view()))
    }

    /// Returns its number in this process.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    // Never held while Python code runs: another thread would wait for it with the interpreter lock.
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns its data.
    pub(crate) fn about(&self) -> Arc<About> {
        Arc::clone(&self.now().about)
    }

    /// Returns whether it is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.now().sandbox.is_none()
    }

    /// Closes it for later calls, and returns what was open.
    pub(crate) fn take(&self) -> (Option<Sandbox>, Arc<About>) {
        let mut now = self.now();
        (now.sandbox.take(), Arc::clone(&now.about))
    }

    fn parts(&self) -> (Option<Sandbox>, Arc<About>) {
        let now = self.now();
        (now.sandbox.clone(), Arc::clone(&now.about))
    }

    /// Returns the sandbox for reading, which never waits, with its data.
    pub(crate) fn both(&self, py: Python<'_>) -> PyResult<(Sandbox, Arc<About>)> {
        fork::check(py)?;
        let (sandbox, about) = self.parts();
        Ok((sandbox.ok_or_else(|| errors::closed(py))?, about))
    }

    /// Returns the sandbox for reading.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<Sandbox> {
        self.both(py).map(|(sandbox, _)| sandbox)
    }

    /// Returns the sandbox for operations that take turns. A tool, and the reader of a command's output, would wait for the
    /// command that waits for them.
    pub(crate) fn get_for_change(&self, py: Python<'_>) -> PyResult<Sandbox> {
        let sandbox = self.get(py)?;
        if host_tools::is_inside(py, self.number)? {
            return Err(errors::busy(py));
        }
        if running::is_reading(py, self.number)? {
            return Err(errors::busy_reading(py));
        }
        Ok(sandbox)
    }

    /// Reads something: at once, or with a completion callback.
    pub(crate) fn look(
        &self,
        py: Python<'_>,
        done: Option<Py<PyAny>>,
        work: impl FnOnce(&Sandbox) -> Result<Done, Error> + Send + 'static,
    ) -> PyResult<Py<PyAny>> {
        short(py, done, self.get(py)?, work)
    }

    /// Changes something: at once, or with a completion callback.
    pub(crate) fn change(
        &self,
        py: Python<'_>,
        done: Option<Py<PyAny>>,
        work: impl FnOnce(&Sandbox) -> Result<Done, Error> + Send + 'static,
    ) -> PyResult<Py<PyAny>> {
        short(py, done, self.get_for_change(py)?, work)
    }

    /// Uses a sandbox made from the current one from now on, unless it is closed; returns whether there is one. One call at a
    /// time, without the interpreter lock, so that none loses what another has just made.
    pub(crate) fn remake(
        &self,
        make: impl FnOnce(&Sandbox, &About) -> Result<Option<(Sandbox, About)>, Error>,
    ) -> Result<bool, Error> {
        let _turn = self.remaking.lock().unwrap_or_else(PoisonError::into_inner);
        let (sandbox, mut seen) = self.parts();
        let made = sandbox.map(|sandbox| make(&sandbox, &seen)).transpose()?.flatten();
        let Some((mut sandbox, mut about)) = made else { return Ok(false) };
        // Commands are added without a turn, also meanwhile.
        while let Err(latest) = self.replace(&seen, &sandbox, &about) {
            sandbox = commands::in_fork(sandbox, &latest)?;
            about.commands = Arc::clone(&latest.commands);
            seen = latest;
        }
        Ok(true)
    }

    /// The same for what is made at once, with the interpreter lock: it waits for nothing, and is made again if another call was
    /// faster.
    pub(crate) fn remake_now(
        &self,
        py: Python<'_>,
        make: impl Fn(&Sandbox, &About) -> Result<(Sandbox, About), Error>,
    ) -> PyResult<()> {
        loop {
            let (sandbox, seen) = self.both(py)?;
            let (made, about) = make(&sandbox, &seen).map_err(|error| errors::raise(py, &error))?;
            if self.replace(&seen, &made, &about).is_ok() {
                return Ok(());
            }
        }
    }

    // Replaces the sandbox if its data is still what was seen; otherwise returns the current data.
    fn replace(&self, seen: &Arc<About>, sandbox: &Sandbox, about: &About) -> Result<(), Arc<About>> {
        let mut now = self.now();
        if !Arc::ptr_eq(&now.about, seen) {
            return Err(Arc::clone(&now.about));
        }
        if now.sandbox.is_some() {
            let made = Now { sandbox: Some(sandbox.clone()), about: Arc::new(about.clone()) };
            let previous = std::mem::replace(&mut *now, made);
            drop(now);
            drop(previous);
        }
        Ok(())
    }
}

impl Drop for NativeSandbox {
    fn drop(&mut self) {
        if fork::is_copy() {
            // The database belongs to the parent, whose threads do not exist here.
            let now = self.now.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(now.sandbox.take());
        }
    }
}
