//! Progress indicators for operations that take longer than a second: a spinner or a bar on standard error, only on a terminal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Operations faster than this show no indicator.
const PATIENCE: Duration = Duration::from_secs(1);

/// The interval of a spinner.
const TURN: Duration = Duration::from_millis(100);

/// Shows at most one operation at a time. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    on_terminal: bool,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    is_shown: AtomicBool,
    bar: Mutex<Option<ProgressBar>>,
}

/// A slow operation in progress; ends when dropped.
#[derive(Debug)]
pub(crate) struct Slow {
    bar: ProgressBar,
    ended: Option<Sender<()>>,
    watcher: Option<JoinHandle<()>>,
}

impl Progress {
    /// Creates an indicator that shows nothing unless there is a terminal.
    pub(crate) fn new(on_terminal: bool) -> Self {
        Self { on_terminal, shared: Arc::default() }
    }

    /// Shows a spinner at once, until something is printed.
    pub(crate) fn spin(&self, what: &str) {
        if !self.on_terminal {
            return;
        }
        let bar = spinner(what);
        bar.enable_steady_tick(TURN);
        *self.shared.bar.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar);
        self.shared.is_shown.store(true, Ordering::Release);
    }

    /// Removes the spinner of [`spin`](Self::spin). Called before anything is printed, so it costs one load.
    pub(crate) fn clear(&self) {
        if self.shared.is_shown.swap(false, Ordering::AcqRel)
            && let Some(bar) = self.shared.bar.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            bar.finish_and_clear();
        }
    }

    /// Starts an operation that may be slow; it is shown after a second.
    pub(crate) fn slow(&self, what: &str) -> Slow {
        let bar = spinner(what);
        bar.set_draw_target(ProgressDrawTarget::hidden());
        if !self.on_terminal {
            return Slow { bar, ended: None, watcher: None };
        }
        let (ended, end) = mpsc::channel();
        let shown = bar.clone();
        let watcher = thread::spawn(move || {
            if end.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TURN);
            }
        });
        Slow { bar, ended: Some(ended), watcher: Some(watcher) }
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        drop(self.ended.take());
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
        self.bar.finish_and_clear();
    }
}

fn spinner(what: &str) -> ProgressBar {
    ProgressBar::new_spinner().with_style(style("{spinner} {msg} ({elapsed})")).with_message(what.to_owned())
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
