//! Worker threads: each runs one guest process at a time and is reused afterwards.
//!
//! A thread that was idle for a while exits, so that an idle program holds none.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// How long an idle thread waits for more work.
const IDLE: Duration = Duration::from_secs(10);

/// Stack size of a worker: guests run on their own stacks, so this is only for the host's frames.
const STACK: usize = 512 << 10;

type Work = Box<dyn FnOnce() + Send>;
type Idle = Arc<Mutex<Vec<(ThreadId, SyncSender<Work>)>>>;

/// Idle threads.
#[derive(Default)]
pub(super) struct Workers(Idle);

impl Workers {
    /// Runs `work` on an idle thread, or on a new one.
    pub(super) fn run(&self, mut work: Work) -> io::Result<()> {
        while let Some(idle) = self.take_idle() {
            match idle.send(work) {
                Ok(()) => return Ok(()),
                // That thread has just exited.
                Err(refused) => work = refused.0,
            }
        }
        let pool = Arc::clone(&self.0);
        let builder = thread::Builder::new().name("sandlite".to_owned()).stack_size(STACK);
        builder.spawn(move || serve(work, &pool)).map(drop)
    }

    fn take_idle(&self) -> Option<SyncSender<Work>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().map(|(_, sender)| sender)
    }
}

fn serve(first: Work, pool: &Idle) {
    let mut next = Some(first);
    while let Some(work) = next {
        work();
        let (sender, receiver) = sync_channel(1);
        pool.lock().unwrap_or_else(PoisonError::into_inner).push((thread::current().id(), sender));
        next = wait(&receiver, pool);
    }
}

fn wait(receiver: &Receiver<Work>, pool: &Idle) -> Option<Work> {
    match receiver.recv_timeout(IDLE) {
        Ok(work) => Some(work),
        Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) => {
            let mut idle = pool.lock().unwrap_or_else(PoisonError::into_inner);
            match idle.iter().position(|(id, _)| *id == thread::current().id()) {
                Some(index) => {
                    idle.swap_remove(index);
                    None
                }
                // Another thread has taken us from the list and is about to send.
                None => {
                    drop(idle);
                    receiver.recv().ok()
                }
            }
        }
    }
}
