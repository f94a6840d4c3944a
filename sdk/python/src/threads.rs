//! A thread pool: a command costs a wake-up, not a new thread.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::fork;

type Job = Box<dyn FnOnce() + Send>;

/// Maximum number of idle threads.
const KEPT: usize = 8;

/// How long an idle thread stays awake: in a loop of calls the next one arrives sooner, and waking a thread takes as long as the
/// rest of the hand-over.
const AWAKE: Duration = Duration::from_micros(100);

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
            match receive_awake(&receiver, AWAKE).map_or_else(|| receiver.recv(), Ok) {
                Ok(next) => job = next,
                Err(_) => return,
            }
        }
    })?;
    Ok(())
}

/// Receives a value that is expected soon without sleeping; `None` if it does not arrive in time. Other threads that can run go
/// first.
pub(crate) fn receive_awake<T>(receiver: &Receiver<T>, time: Duration) -> Option<T> {
    let start = Instant::now();
    loop {
        if let Ok(value) = receiver.try_recv() {
            return Some(value);
        }
        if start.elapsed() >= time {
            return None;
        }
        thread::yield_now();
    }
}
