//! Whose turn it is: a bounded number of runs at a time, a bounded queue, and a fair share for each tenant.
//!
//! Tenants take turns: a flood of one waits in its own queue, and another's next run starts after at most one run of each tenant.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// What may run and wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Runs at a time.
    pub(crate) running: usize,
    /// Runs of one tenant at a time.
    pub(crate) running_of_tenant: usize,
    /// Requests of one tenant that wait.
    pub(crate) waiting_of_tenant: usize,
}

/// The queue. Clones share it.
#[derive(Clone)]
pub(crate) struct Admission(Arc<Mutex<Table>>);

struct Table {
    room: Room,
    running: usize,
    tenants: HashMap<String, Line>,
    /// Tenants with somebody waiting, in the order of their turns.
    turns: VecDeque<String>,
}

#[derive(Default)]
struct Line {
    running: usize,
    waiting: VecDeque<oneshot::Sender<Turn>>,
}

/// A run's place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    admission: Admission,
    tenant: String,
}

/// The tenant's queue is full.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Admission")
    }
}

impl Admission {
    pub(crate) fn new(room: Room) -> Self {
        Self(Arc::new(Mutex::new(Table { room, running: 0, tenants: HashMap::new(), turns: VecDeque::new() })))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a tenant's turn.
    pub(crate) async fn turn(&self, tenant: &str) -> Result<Turn, Full> {
        let receiver = {
            let mut table = self.table();
            let room = table.room;
            let line = table.tenants.entry(tenant.to_owned()).or_default();
            if line.waiting.len() >= room.waiting_of_tenant {
                return Err(Full);
            }
            let (sender, receiver) = oneshot::channel();
            line.waiting.push_back(sender);
            if line.waiting.len() == 1 {
                table.turns.push_back(tenant.to_owned());
            }
            receiver
        };
        self.go_on();
        receiver.await.map_err(|_| Full)
    }

    /// How many run and how many wait.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let table = self.table();
        (table.running, table.tenants.values().map(|line| line.waiting.len()).sum())
    }

    // Gives places to those whose turn it is. A request that was given up is passed over: its place comes back when its turn is dropped.
    fn go_on(&self) {
        let mut given = Vec::new();
        {
            let mut table = self.table();
            while let Some((tenant, sender)) = table.next() {
                given.push((sender, Turn { admission: self.clone(), tenant }));
            }
        }
        // Outside the lock: a turn that nobody takes is dropped here, and comes back.
        for (sender, turn) in given {
            drop(sender.send(turn));
        }
    }
}

impl Table {
    // The next request that may run, counted as running.
    fn next(&mut self) -> Option<(String, oneshot::Sender<Turn>)> {
        if self.running >= self.room.running {
            return None;
        }
        for _ in 0..self.turns.len() {
            let tenant = self.turns.pop_front()?;
            let line = self.tenants.get_mut(&tenant)?;
            if line.running >= self.room.running_of_tenant {
                self.turns.push_back(tenant);
                continue;
            }
            let sender = line.waiting.pop_front()?;
            line.running += 1;
            self.running += 1;
            if !line.waiting.is_empty() {
                self.turns.push_back(tenant.clone());
            }
            return Some((tenant, sender));
        }
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        {
            let mut table = self.admission.table();
            table.running -= 1;
            if let Some(line) = table.tenants.get_mut(&self.tenant) {
                line.running -= 1;
                if line.running == 0 && line.waiting.is_empty() {
                    table.tenants.remove(&self.tenant);
                }
            }
        }
        self.admission.go_on();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(running: usize, running_of_tenant: usize, waiting_of_tenant: usize) -> Admission {
        Admission::new(Room { running, running_of_tenant, waiting_of_tenant })
    }

    #[tokio::test]
    async fn tenants_take_turns_whatever_one_of_them_asks_for() {
        let admission = admission(1, 1, 100);
        let first = admission.turn("flood").await.unwrap();
        let mut flood: Vec<_> = (0..50).map(|_| Box::pin(admission.turn("flood"))).collect();
        for waiting in &mut flood {
            assert!(futures_util::poll!(waiting).is_pending());
        }
        let mut other = Box::pin(admission.turn("other"));
        assert!(futures_util::poll!(&mut other).is_pending());
        drop(first);
        // One of the flood was before; the next turn is the other tenant's.
        let second = flood.remove(0).await.unwrap();
        assert!(futures_util::poll!(&mut other).is_pending());
        drop(second);
        assert_eq!(other.await.unwrap().tenant, "other");
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_a_request_that_is_given_up_leaves_its_place() {
        let admission = admission(1, 1, 1);
        let first = admission.turn("a").await.unwrap();
        let mut waiting = Box::pin(admission.turn("a"));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        assert_eq!(admission.turn("a").await.err(), Some(Full));
        drop(waiting);
        drop(first);
        assert!(admission.turn("a").await.is_ok());
        assert_eq!(admission.counts(), (0, 0));
    }
}
