//! Whose turn it is: a bounded number of runs at a time, a bounded queue, and a fair share for each tenant.
//!
//! A tenant's first run starts at once, whatever others do. Its further runs take turns with those of others while a core is free, and are
//! at most its share of the cores: all of them for one that is alone, half for one of two that were active in the last second. So a flood of
//! one tenant waits in its own queue, and leaves another a core. A run that sleeps or waits for input rests: it uses no core, and counts
//! only towards the total of its tenant and of the server.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use runtime::Cancel;
use tokio::sync::oneshot;

/// A run that used no fuel for this long rests: it sleeps, or waits for input.
pub(crate) const REST: Duration = Duration::from_millis(100);

/// Limits for running and waiting requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Runs at a time.
    pub(crate) running: usize,
    /// Runs at a time that compute and are not the only one of their tenant: as many as there are cores.
    pub(crate) sharing: usize,
    /// Runs of one tenant at a time, including those that rest.
    pub(crate) running_of_tenant: usize,
    /// Requests of one tenant that wait.
    pub(crate) waiting_of_tenant: usize,
    /// How long a tenant keeps its share after its last run.
    pub(crate) recent: Duration,
}

/// The queue. Clones share it.
#[derive(Clone)]
pub(crate) struct Admission(Arc<Mutex<Table>>);

struct Table {
    room: Room,
    running: usize,
    /// Those of `running` that use no core.
    resting: usize,
    tenants: HashMap<String, Line>,
    /// The running and the waiting requests of tenants with limits of their own.
    own: HashMap<String, (usize, usize)>,
    /// Tenants with waiting requests, in the order of their turns.
    turns: VecDeque<String>,
    /// The last removal of tenants that are no longer active.
    looked: Instant,
}

struct Line {
    /// When its last run ended, or its last request arrived.
    used: Instant,
    running: usize,
    resting: usize,
    waiting: VecDeque<oneshot::Sender<Turn>>,
}

/// A run's place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    admission: Admission,
    tenant: String,
    is_resting: AtomicBool,
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
        Self(Arc::new(Mutex::new(Table {
            room,
            running: 0,
            resting: 0,
            tenants: HashMap::new(),
            own: HashMap::new(),
            turns: VecDeque::new(),
            looked: Instant::now(),
        })))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a tenant's turn.
    pub(crate) async fn turn(&self, tenant: &str) -> Result<Turn, Full> {
        let receiver = {
            let mut table = self.table();
            let most = table.own.get(tenant).map_or(table.room.waiting_of_tenant, |(_, waiting)| *waiting);
            let line = table.tenants.entry(tenant.to_owned()).or_insert_with(Line::new);
            line.used = Instant::now();
            if line.waiting.len() >= most {
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

    /// Sets how many requests of a tenant may run and wait at a time, if they are not as many as of the others.
    pub(crate) fn set_own(&self, tenant: &str, own: Option<(usize, usize)>) {
        let before = {
            let mut table = self.table();
            match own {
                Some(own) => table.own.insert(tenant.to_owned(), own),
                None => table.own.remove(tenant),
            }
        };
        if before != own {
            // More of them may run now.
            self.go_on();
        }
    }

    /// Returns how many run and how many wait.
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
                given.push((sender, Turn { admission: self.clone(), tenant, is_resting: AtomicBool::new(false) }));
            }
        }
        // Outside the lock: a turn that is not taken is dropped here, which returns it.
        for (sender, turn) in given {
            drop(sender.send(turn));
        }
    }
}

impl Line {
    fn new() -> Self {
        Self { used: Instant::now(), running: 0, resting: 0, waiting: VecDeque::new() }
    }
}

impl Table {
    // Computing runs that one tenant may have at a time, now.
    fn share(&mut self) -> usize {
        let now = Instant::now();
        if now.duration_since(self.looked) >= self.room.recent / 10 {
            self.looked = now;
            let recent = self.room.recent;
            self.tenants.retain(|_, line| line.running + line.waiting.len() > 0 || now.duration_since(line.used) < recent);
        }
        let of_each = self.room.sharing / self.tenants.len().max(1);
        if self.running - self.resting < self.room.sharing { of_each.max(1) } else { 1 }
    }

    // The next request that may run, counted as running.
    fn next(&mut self) -> Option<(String, oneshot::Sender<Turn>)> {
        if self.running >= self.room.running {
            return None;
        }
        let most = self.share();
        for _ in 0..self.turns.len() {
            let tenant = self.turns.pop_front()?;
            let most_of_tenant = self.own.get(&tenant).map_or(self.room.running_of_tenant, |(running, _)| *running);
            let line = self.tenants.get_mut(&tenant)?;
            if line.running - line.resting >= most || line.running >= most_of_tenant {
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

impl Turn {
    /// Sets whether the run rests, so that another one can use its core.
    pub(crate) fn set_resting(&self, is_resting: bool) {
        {
            let mut table = self.admission.table();
            if self.is_resting.swap(is_resting, Ordering::Relaxed) == is_resting {
                return;
            }
            let change = |count: &mut usize| if is_resting { *count += 1 } else { *count -= 1 };
            change(&mut table.resting);
            if let Some(line) = table.tenants.get_mut(&self.tenant) {
                change(&mut line.resting);
            }
        }
        self.admission.go_on();
    }
}

/// Notices when a run rests. It does not keep the run's turn.
pub(crate) struct Watch {
    turn: Weak<Turn>,
    cancel: Cancel,
    spent: Option<u64>,
}

impl Watch {
    pub(crate) fn new(turn: &Arc<Turn>, cancel: Cancel) -> Self {
        Self { turn: Arc::downgrade(turn), cancel, spent: None }
    }

    /// Compares the fuel with that of the last call, [`REST`] ago.
    pub(crate) fn look(&mut self) {
        let before = std::mem::replace(&mut self.spent, self.cancel.fuel_spent());
        if let Some(turn) = self.turn.upgrade() {
            turn.set_resting(self.spent.is_some() && self.spent == before);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        {
            let mut table = self.admission.table();
            let rested = usize::from(*self.is_resting.get_mut());
            table.running -= 1;
            table.resting -= rested;
            if let Some(line) = table.tenants.get_mut(&self.tenant) {
                line.running -= 1;
                line.resting -= rested;
                line.used = Instant::now();
            }
        }
        self.admission.go_on();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(running: usize, running_of_tenant: usize, waiting_of_tenant: usize) -> Admission {
        Admission::new(Room { running, sharing: running, running_of_tenant, waiting_of_tenant, recent: Duration::ZERO })
    }

    #[tokio::test]
    async fn a_tenant_with_nothing_running_does_not_wait_for_a_flood() {
        let recent = Duration::ZERO;
        let admission = Admission::new(Room { running: 4, sharing: 2, running_of_tenant: 4, waiting_of_tenant: 100, recent });
        let first = admission.turn("flood").await.unwrap();
        let _second = admission.turn("flood").await.unwrap();
        let mut third = Box::pin(admission.turn("flood"));
        assert!(futures_util::poll!(&mut third).is_pending());
        let other = admission.turn("other").await.unwrap();
        // A core is not free yet: the flood has one run, the other tenant one.
        drop(first);
        assert!(futures_util::poll!(&mut third).is_pending());
        drop(other);
        let third = third.await.unwrap();
        assert_eq!(third.tenant, "flood");
        // Never more than may run at all.
        let _others = [admission.turn("b").await.unwrap(), admission.turn("c").await.unwrap()];
        assert!(futures_util::poll!(Box::pin(admission.turn("d"))).is_pending());
    }

    #[tokio::test]
    async fn a_flood_leaves_the_share_of_a_tenant_that_was_active_a_moment_ago() {
        let recent = Duration::from_secs(3600);
        let admission = Admission::new(Room { running: 8, sharing: 4, running_of_tenant: 4, waiting_of_tenant: 100, recent });
        drop(admission.turn("other").await.unwrap());
        let _flood = [admission.turn("flood").await.unwrap(), admission.turn("flood").await.unwrap()];
        let mut third = Box::pin(admission.turn("flood"));
        assert!(futures_util::poll!(&mut third).is_pending());
        let _others = [admission.turn("other").await.unwrap(), admission.turn("other").await.unwrap()];
        assert!(futures_util::poll!(&mut third).is_pending());
        // A tenant that is alone has all cores.
        let alone = Admission::new(Room { running: 8, sharing: 4, running_of_tenant: 4, waiting_of_tenant: 100, recent });
        let mut runs = Vec::new();
        for _ in 0..4 {
            runs.push(alone.turn("one").await.unwrap());
        }
        assert!(futures_util::poll!(Box::pin(alone.turn("one"))).is_pending());
    }

    #[tokio::test]
    async fn a_tenant_with_limits_of_its_own_has_more_or_fewer_runs_and_places_in_the_queue() {
        let admission = admission(8, 2, 2);
        admission.set_own("few", Some((1, 1)));
        let first = admission.turn("few").await.unwrap();
        let mut second = Box::pin(admission.turn("few"));
        assert!(futures_util::poll!(&mut second).is_pending());
        assert_eq!(admission.turn("few").await.unwrap_err(), Full);
        // A wider limit is that of requests that wait, too.
        admission.set_own("few", Some((3, 4)));
        let runs = [first, second.await.unwrap(), admission.turn("few").await.unwrap()];
        assert!(futures_util::poll!(Box::pin(admission.turn("few"))).is_pending());
        drop(runs);
        admission.set_own("few", None);
        let _others = [admission.turn("few").await.unwrap(), admission.turn("few").await.unwrap()];
        assert!(futures_util::poll!(Box::pin(admission.turn("few"))).is_pending());
    }

    #[tokio::test]
    async fn a_run_that_rests_leaves_its_core_to_another_of_its_tenant() {
        let recent = Duration::ZERO;
        let admission = Admission::new(Room { running: 8, sharing: 2, running_of_tenant: 4, waiting_of_tenant: 100, recent });
        let sleeping = [admission.turn("one").await.unwrap(), admission.turn("one").await.unwrap()];
        let mut third = Box::pin(admission.turn("one"));
        assert!(futures_util::poll!(&mut third).is_pending());
        sleeping[0].set_resting(true);
        let third = third.await.unwrap();
        // It computes again: two compute, and no other may start.
        sleeping[0].set_resting(false);
        drop(third);
        let mut fourth = Box::pin(admission.turn("one"));
        assert!(futures_util::poll!(&mut fourth).is_pending());
        sleeping.iter().for_each(|turn| turn.set_resting(true));
        let others = [fourth.await.unwrap(), admission.turn("one").await.unwrap()];
        others.iter().for_each(|turn| turn.set_resting(true));
        // Resting runs count towards the total of their tenant.
        let mut fifth = Box::pin(admission.turn("one"));
        assert!(futures_util::poll!(&mut fifth).is_pending());
        drop(sleeping);
        drop(fifth.await.unwrap());
        drop(others);
        assert_eq!((admission.counts(), admission.table().resting), ((0, 0), 0));
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
