//! A thread pool: a command costs a wake-up, not a new thread.

use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::fork;

type Job = Box<dyn FnOnce() + Send>;

/// Maximum number of idle threads.
const KEPT: usize = 8;

static IDLE: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

/// Runs a job on its own thread.
pub(crate) fn run(job: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let mut job: Job = Box::new(job);
    loop {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(thread) => match thread.send(job) {
                Ok(()) => return Ok(()),
                Err(mpsc::SendError(back)) => job = back,
            },
            None => return start(job),
        }
    }
}

fn start(first: Job) -> std::io::Result<()> {
    fork::claim();
    let (sender, receiver) = mpsc::channel::<Job>();
    thread::Builder::new().name("sandlite".to_owned()).spawn(move || {
        let mut job = first;
        loop {
            job();
            {
                let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
                if idle.len() >= KEPT {
                    return;
                }
                idle.push(sender.clone());
            }
            match receiver.recv() {
                Ok(next) => job = next,
                Err(_) => return,
            }
        }
    })?;
    Ok(())
}
