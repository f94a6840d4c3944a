//! The live Python interpreters of a sandbox, by the names of their sessions.
//!
//! They exist only in memory: a reopened sandbox, a fork and an import start without any. An interpreter that was idle for a
//! while is ended, and so are all of them with the sandbox. Idle ones together hold no more memory than one command may use;
//! beyond that the least recently used one is ended first (T-DOS-03).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::python::Interpreter;
use crate::history::TURN;
use crate::run::{Command, Output};
use crate::sandbox::Sandbox;
use crate::{Error, clock};

/// Default idle time of an interpreter.
pub(crate) const IDLE: Duration = Duration::from_secs(600);

/// How often a call that waits for another one of its session checks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(1);

/// Maximum number of live interpreters of one sandbox: each holds 40 MB of address space and the memory of its globals.
const MAX_LIVE: usize = 16;

/// The interpreters.
pub(crate) struct Interpreters {
    live: Mutex<Live>,
    idle: Duration,
    // Maximum memory of all idle interpreters.
    memory: u64,
    // Notified when the last user of these interpreters is dropped.
    over: Arc<(Mutex<bool>, Condvar)>,
}

#[derive(Default)]
struct Live {
    by_name: HashMap<String, Slot>,
    watched: bool,
    // Number of unnamed interpreters held so far.
    held: u64,
}

/// An interpreter that one owner holds. It is not idle while this lives.
pub(crate) struct Held {
    name: String,
    _interpreter: Arc<Mutex<Interpreter>>,
}

/// The prefix of reserved names that no session can have.
const UNNAMED: char = '\0';

impl Held {
    /// Returns its internal name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

struct Slot {
    // Locked while a call runs: calls of one session take turns.
    interpreter: Arc<Mutex<Interpreter>>,
    last_used: Instant,
    // Its memory after its last call.
    memory: u64,
}

impl Live {
    // Removes the least recently used interpreter that is not in use from the list.
    fn end_oldest(&mut self) -> Option<Slot> {
        // A running call holds a second reference.
        let idle = self.by_name.iter().filter(|(_, slot)| Arc::strong_count(&slot.interpreter) == 1);
        let oldest = idle.min_by_key(|(_, slot)| slot.last_used).map(|(name, _)| name.clone())?;
        self.by_name.remove(&oldest)
    }

    // Removes as many as exceed `memory` bytes together.
    fn trim(&mut self, memory: u64) -> Vec<Slot> {
        let mut ended = Vec::new();
        while self.by_name.values().map(|slot| slot.memory).sum::<u64>() > memory {
            let Some(oldest) = self.end_oldest() else { break };
            ended.push(oldest);
        }
        ended
    }
}

impl Interpreters {
    /// Creates an empty list; each interpreter is ended after `idle` without a call, and all of them hold at most `memory` bytes.
    pub(crate) fn new(idle: Duration, memory: u64) -> Arc<Self> {
        Arc::new(Self { live: Mutex::default(), idle, memory, over: Arc::default() })
    }

    /// Returns the same settings without any interpreter, for a fork.
    pub(crate) fn none(&self) -> Arc<Self> {
        Self::new(self.idle, self.memory)
    }

    fn lock(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs Python code in the interpreter of a session, starting it if necessary.
    pub(crate) fn run(self: &Arc<Self>, sandbox: &Sandbox, name: &str, mut command: Command) -> Result<Output, Error> {
        let interpreter = self.get(sandbox, name)?;
        let (output, memory) = {
            let mut interpreter = turn(&interpreter, &command)?;
            command.new_python_of = (!interpreter.is_live() && !name.starts_with(UNNAMED)).then(|| name.to_owned());
            let output = interpreter.run(sandbox, command);
            (output, interpreter.memory())
        };
        drop(interpreter);
        let mut live = self.lock();
        if let Some(slot) = live.by_name.get_mut(name) {
            (slot.last_used, slot.memory) = (clock::now(), memory);
        }
        let ended = live.trim(self.memory);
        drop(live);
        // Freeing the memory takes a while, so it is done without holding the list.
        drop(ended);
        output
    }

    /// Creates an unnamed interpreter that has not run yet.
    pub(crate) fn hold(self: &Arc<Self>, sandbox: &Sandbox) -> Result<Held, Error> {
        let number = {
            let mut live = self.lock();
            live.held += 1;
            live.held
        };
        let name = format!("{UNNAMED}{number}");
        Ok(Held { _interpreter: self.get(sandbox, &name)?, name })
    }

    fn get(self: &Arc<Self>, sandbox: &Sandbox, name: &str) -> Result<Arc<Mutex<Interpreter>>, Error> {
        let mut live = self.lock();
        if let Some(slot) = live.by_name.get_mut(name) {
            slot.last_used = clock::now();
            return Ok(Arc::clone(&slot.interpreter));
        }
        let ended = if live.by_name.len() >= MAX_LIVE { live.end_oldest() } else { None };
        if live.by_name.len() >= MAX_LIVE {
            return Err(Error::Invalid(format!(
                "too many sessions are running Python (maximum {MAX_LIVE}): wait until one of them ends"
            )));
        }
        let interpreter = Arc::new(Mutex::new(Interpreter::new(sandbox)?));
        live.by_name.insert(name.to_owned(), Slot { interpreter: Arc::clone(&interpreter), last_used: clock::now(), memory: 0 });
        if !live.watched {
            self.watch()?;
            live.watched = true;
        }
        drop(live);
        drop(ended);
        Ok(interpreter)
    }

    /// Returns whether the next call in a session finds the state of earlier ones.
    pub(crate) fn is_live(&self, name: &str) -> bool {
        let interpreter = self.lock().by_name.get(name).map(|slot| Arc::clone(&slot.interpreter));
        // A running one has state.
        interpreter.is_some_and(|interpreter| interpreter.try_lock().map_or(true, |interpreter| interpreter.is_live()))
    }

    /// Ends the interpreter of a session and returns whether there was one.
    pub(crate) fn end(&self, name: &str) -> bool {
        self.lock().by_name.remove(name).is_some()
    }

    // A thread that ends idle interpreters, as long as there are any.
    fn watch(self: &Arc<Self>) -> Result<(), Error> {
        let (watched, over, idle) = (Arc::downgrade(self), Arc::clone(&self.over), self.idle);
        let watching = move || {
            let mut wait = idle;
            while !is_over(&over, wait) {
                match Self::sweep(&watched) {
                    Some(next) => wait = next,
                    None => return,
                }
            }
        };
        thread::Builder::new().name("sandlite idle".to_owned()).spawn(watching).map(drop).map_err(Error::Thread)
    }

    // Ends interpreters that were idle for too long; returns how long to wait for the next, if any.
    fn sweep(watched: &Weak<Self>) -> Option<Duration> {
        let interpreters = watched.upgrade()?;
        let now = clock::now();
        let mut live = interpreters.lock();
        let expires = |slot: &Slot| slot.last_used + interpreters.idle;
        // A running call holds a second reference.
        live.by_name.retain(|_, slot| expires(slot) > now || Arc::strong_count(&slot.interpreter) > 1);
        let next = live.by_name.values().map(|slot| expires(slot).saturating_duration_since(now)).min();
        live.watched = next.is_some();
        next.map(|next| next.max(Duration::from_millis(10)))
    }
}

// Waits for the running call of the same session; a call that is killed meanwhile gives up.
fn turn<'a>(interpreter: &'a Mutex<Interpreter>, command: &Command) -> Result<MutexGuard<'a, Interpreter>, Error> {
    let until = clock::now() + TURN;
    loop {
        match interpreter.try_lock() {
            Ok(free) => return Ok(free),
            Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if command.cancel.is_killed() || clock::now() >= until => {
                return Err(sqlite_fs::Error::Busy.into());
            }
            Err(TryLockError::WouldBlock) => thread::park_timeout(LOOK),
        }
    }
}

fn is_over(over: &(Mutex<bool>, Condvar), wait: Duration) -> bool {
    let over_now = over.0.lock().unwrap_or_else(PoisonError::into_inner);
    *over.1.wait_timeout_while(over_now, wait, |over| !*over).unwrap_or_else(PoisonError::into_inner).0
}

impl Drop for Interpreters {
    fn drop(&mut self) {
        *self.over.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.over.1.notify_all();
    }
}

impl fmt::Debug for Interpreters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interpreters").field("live", &self.lock().by_name.len()).finish_non_exhaustive()
    }
}
