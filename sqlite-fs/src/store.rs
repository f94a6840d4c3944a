//! The state of a transaction: the writing connection with its caches.
//!
//! Names are written through (one row each); inodes and file contents are written back, at commit or when the caches are full.
//! The caches outlive the transaction: SQLite's `data_version` shows whether another connection wrote meanwhile, and the turn
//! shows whether that was one of our processes.

mod changes;
mod data;
mod names;
mod nodes;
mod room;
pub(crate) mod write;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;

pub use changes::{Change, ChangeKind};
pub(crate) use names::SEARCH;

use crate::budget::Budgets;
use crate::calls::{Call, OpenCall};
use crate::clock::{self, Clock};
use crate::contents::Contents;
use crate::error::{self, Error, Fault, FsError};
use crate::gauge::Gauge;
use crate::interrupt::Interrupter;
use crate::memory::{Memory, MemoryBudget};
use crate::node::Ino;
use crate::options::{Durability, Options};
use crate::past::{Past, PastMark};
use crate::patience::Patience;
use crate::quota::{Quota, Usage};
use crate::turn::Turn;
use crate::{calls, gather, rows};
use changes::Journal;
use data::Chunks;
use names::Names;
use nodes::Node;

/// Inode numbers are assigned by us, so a multiplication distributes them well enough.
#[derive(Default)]
pub(crate) struct InoHasher(u64);

impl Hasher for InoHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

pub(crate) type InoMap<V> = HashMap<Ino, V, BuildHasherDefault<InoHasher>>;

/// Bytes of cache per cached inode.
const BYTES_PER_NODE: usize = 512;
/// Bytes of cache per cached name.
const BYTES_PER_NAME: usize = 128;
/// Longer than any commit.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
/// Minimum size of a rolled-back log that is truncated soon.
const LONG_LOG: u64 = 64 << 20;
/// The cost of one inode, or of one name in the list of changes, as an equivalent number of content bytes.
const ROW_BYTES: u64 = 1024;
/// Maximum number of inodes that differ from their rows, which bounds the work of a commit.
const CHANGED_NODES: usize = 1024;
/// Number of bytes removed before the free pages of the file are counted.
const FREED_LOOK: u64 = 16 << 20;

/// Fails once the deadline of a commit has passed.
fn in_time(until: Option<Instant>) -> Result<(), Fault> {
    match until {
        Some(until) if clock::instant() > until => Err(FsError::Interrupted.into()),
        _ => Ok(()),
    }
}

/// Returns a number that changes when another connection commits.
fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

pub(crate) struct Store {
    pub(crate) connection: Connection,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) quota: Quota,
    cache_bytes: usize,
    pub(crate) interrupter: Interrupter,
    pub(crate) patience: Patience,
    /// The turn among the processes that have the file open.
    pub(crate) turn: Option<Turn>,
    pub(crate) open_calls: Vec<OpenCall>,
    pub(crate) next_call: Option<i64>,
    /// Cached facts about the contents of files.
    pub(crate) contents: Arc<Contents>,
    /// The first number assigned to a call of this transaction.
    pub(crate) first_call: Option<i64>,
    /// The call that was finished last; reopened if the commit is abandoned.
    pub(crate) last_finished: Option<OpenCall>,
    chunk_bytes: usize,
    nodes: InoMap<Node>,
    /// The inodes that differ from their rows: a commit costs what changed, not what is cached.
    changed_nodes: BTreeSet<Ino>,
    /// Unlinked but held: in no table once the transaction ends.
    orphans: InoMap<Node>,
    holds: InoMap<u32>,
    /// Files with whole chunks without a row, and the first such chunk; foreign readers need the rows, so commit adds zeros.
    sparse: HashMap<Ino, u64>,
    /// Their maximum size.
    hole_bytes: u64,
    /// Erased inodes whose rows still exist, and their sizes; in order, so that they are removed in runs.
    doomed: BTreeMap<Ino, u64>,
    /// Their total size.
    doomed_bytes: u64,
    /// The total size of the orphans.
    orphan_bytes: u64,
    /// Bytes removed since the free pages were last counted.
    freed_bytes: u64,
    pub(crate) gauge: Arc<Gauge>,
    /// Whether the log is longer on the disk than its committed part.
    pub(crate) is_log_long: bool,
    /// Whether a long log is left for the next transaction or the next open.
    pub(crate) leaves_log: bool,
    /// Maximum size of a transaction's log.
    log_max: u64,
    /// The deadline of the running commit.
    until: Option<Instant>,
    names: Names,
    chunks: Chunks,
    journal: Journal,
    usage: Option<Usage>,
    pub(crate) budgets: Budgets,
    /// Another program wrote to the file: its stored budgets are not trusted until the next commit.
    pub(crate) distrusts_sums: bool,
    /// The file exceeds its page ceiling, so a call has to find room in it before it is recorded.
    pub(crate) is_oversized: bool,
    next_ino: Option<Ino>,
    next_entry: Option<i64>,
    /// The state of saving changed rows.
    pub(crate) past: Past,
    data_version: i64,
    /// The number of this transaction, from 1 on.
    number: u64,
    began: bool,
    /// Whether the owner's permission bits are enforced in this transaction.
    pub(crate) obeys_modes: bool,
    savepoints: u32,
    /// For rows in memory: their size and their limit.
    pub(crate) memory: Option<(Arc<Memory>, Arc<dyn MemoryBudget>)>,
    /// The reason SQLite rolled the transaction back by itself.
    lost: Option<String>,
}

/// The state at a savepoint, besides SQLite's.
pub(crate) struct Mark {
    number: u32,
    orphans: InoMap<Node>,
    orphan_bytes: u64,
    sparse: HashMap<Ino, u64>,
    journal: Journal,
    usage: Option<Usage>,
    budgets: Budgets,
    open_calls: usize,
    past: PastMark,
}

impl Store {
    pub(crate) fn new(
        connection: Connection,
        chunk_bytes: usize,
        options: &Options,
        interrupter: Interrupter,
        turn: Option<Turn>,
        patience: Patience,
    ) -> Self {
        let gauge = gather::gauge(&connection).unwrap_or_default();
        gauge.set_syncs(options.durability == Durability::PowerSafe);
        Self {
            connection,
            doomed_bytes: 0,
            orphan_bytes: 0,
            // The last holder of the file may have left it in this mode.
            freed_bytes: FREED_LOOK,
            gauge,
            is_log_long: false,
            leaves_log: false,
            log_max: options.quota.log_max(),
            until: None,
            clock: Arc::clone(&options.clock),
            quota: options.quota,
            cache_bytes: options.cache,
            interrupter,
            patience,
            turn,
            open_calls: Vec::new(),
            next_call: None,
            first_call: None,
            contents: Arc::default(),
            last_finished: None,
            chunk_bytes,
            nodes: InoMap::default(),
            changed_nodes: BTreeSet::new(),
            orphans: InoMap::default(),
            holds: InoMap::default(),
            sparse: HashMap::new(),
            hole_bytes: 0,
            doomed: BTreeMap::new(),
            names: Names::default(),
            chunks: Chunks::default(),
            journal: Journal::default(),
            usage: None,
            budgets: Budgets::default(),
            distrusts_sums: false,
            is_oversized: false,
            next_ino: None,
            next_entry: None,
            past: Past::new(options.versions, options.past_allowed()),
            data_version: 0,
            number: 1,
            began: false,
            obeys_modes: false,
            savepoints: 0,
            memory: None,
            lost: None,
        }
    }

    /// Returns the connection. No transaction is running.
    pub(crate) fn into_connection(self) -> Connection {
        self.connection
    }

    /// Runs one operation: starts the SQLite transaction if it is the first, and records whether SQLite rolled it back.
    pub(crate) fn run<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.lost.is_some() {
            return Err(FsError::Io.into());
        }
        if self.interrupter.take() {
            return Err(FsError::Interrupted.into());
        }
        self.patience.refill();
        if !self.began {
            self.start()?;
        }
        let result = work(self).map_err(|fault| self.patience.explain(fault));
        self.gauge.set_pending(self.pending());
        if let Err(Fault::Sql(error)) = &result {
            if self.connection.is_autocommit() {
                self.lost = Some(error::sentence(error));
            }
            self.interrupter.clear();
        }
        result
    }

    /// Returns the bytes of rows that a commit would have to write or remove.
    fn pending(&self) -> u64 {
        let rows = self.changed_nodes.len() + self.journal.len();
        let holes = self.hole_bytes.min(data::HOLES_MAX);
        self.doomed_bytes + self.orphan_bytes + holes + self.chunks.dirty_bytes() + rows as u64 * ROW_BYTES
    }

    /// Rejects more rows once the transaction has filled its share of the log (T-DOS-07).
    fn room_in_log(&self) -> Result<(), Fault> {
        if self.gauge.bytes() > self.log_max { Err(FsError::NoSpace.into()) } else { Ok(()) }
    }

    /// Waits for this process's turn, and records the call of a process that died during its own.
    pub(crate) fn take_turn(&mut self, deadline: Option<Instant>) -> Result<(), Error> {
        let Some(turn) = &mut self.turn else { return Ok(()) };
        let note = turn.take(deadline)?;
        // The transaction looks for commits of others when it begins; a call may have its number before.
        if turn.is_moved() || note.is_some() {
            self.next_call = None;
        }
        if let Some(note) = note {
            calls::recover(&self.connection, &note, self.clock.now())?;
            turn.clear_left();
        }
        Ok(())
    }

    /// Releases the turn to another process.
    pub(crate) fn give_turn_back(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.give_back();
        }
    }

    fn start(&mut self) -> Result<(), Fault> {
        self.gauge.reset();
        self.set_leaves_log(false);
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.began = true;
        if self.is_oversized {
            self.past.give_up();
        }
        Ok(self.notice_others()?)
    }

    /// Looks for commits of others since the last transaction.
    fn notice_others(&mut self) -> rusqlite::Result<()> {
        let version = data_version(&self.connection)?;
        if version != self.data_version {
            self.forget();
            self.contents.forget();
            // At first there is nothing to compare with; `schema::after_visit` looks for traces of others.
            if self.data_version != 0 && !self.turn.as_mut().is_some_and(Turn::is_ours) {
                self.distrusts_sums = true;
                self.past.visit();
            }
            self.data_version = version;
        }
        Ok(())
    }

    /// Continues with a compact copy of the same rows, which is not a change by another program.
    pub(crate) fn expect_replacement(&mut self) {
        if self.data_version != 0
            && let Ok(version) = data_version(&self.connection)
        {
            self.data_version = version;
        }
    }

    /// Checks that the owner's permission bits include `bits`, if they are enforced.
    pub(crate) fn permit(&mut self, ino: Ino, bits: u32) -> Result<(), Fault> {
        if self.obeys_modes && self.node(ino)?.stat.mode & bits != bits {
            return Err(FsError::Access.into());
        }
        Ok(())
    }

    /// Reserves memory for `bytes` more, if the rows are in memory (T-DOS-03).
    fn hold_memory(&self, bytes: u64) -> Result<(), FsError> {
        match &self.memory {
            Some((memory, budget)) if !budget.hold(memory.resident().saturating_add(bytes)) => Err(FsError::NoSpace),
            _ => Ok(()),
        }
    }

    /// Called between two statements of a longer operation. A commit is not interrupted, but ends in time.
    fn breathe(&self) -> Result<(), Fault> {
        match self.until {
            None if self.interrupter.take() => Err(FsError::Interrupted.into()),
            until => in_time(until),
        }
    }

    pub(crate) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    pub(crate) fn now(&self) -> i64 {
        self.clock.now()
    }

    pub(crate) fn usage(&mut self) -> Result<Usage, Fault> {
        if let Some(usage) = self.usage {
            return Ok(usage);
        }
        // Called only before anything was written, or after `flush`, so the rows are current.
        self.flush()?;
        let mut usage = self.interrupter.reading(|| rows::usage(&self.connection))?;
        for node in self.orphans.values() {
            usage.inodes += 1;
            if node.stat.is_file() {
                usage.bytes += node.stat.size;
            }
        }
        self.usage = Some(usage);
        Ok(usage)
    }

    /// Writes everything that is only in memory, as rows of the open transaction.
    pub(crate) fn flush(&mut self) -> Result<(), Fault> {
        self.flush_doomed()?;
        self.flush_chunks()?;
        self.flush_nodes()
    }

    fn trim_names(&mut self) {
        self.names.trim(self.cache_bytes / BYTES_PER_NAME, self.orphans.keys());
    }

    /// Keeps the caches within their limits.
    fn trim(&mut self) -> Result<(), Fault> {
        if self.nodes.len() > self.cache_bytes / BYTES_PER_NODE {
            self.flush()?;
            self.nodes.clear();
        } else if self.changed_nodes.len() > CHANGED_NODES {
            self.flush_nodes()?;
        }
        self.trim_names();
        Ok(())
    }

    pub(crate) fn commit(&mut self) -> Result<(), Error> {
        if let Some(cause) = self.lost.take() {
            self.rollback();
            return Err(Error::RolledBack(cause));
        }
        if self.began {
            self.interrupter.clear();
            self.patience.refill();
            // Far in the future, because a commit is not interrupted.
            self.until = clock::instant().checked_add(FAR);
            let written = self.write_all();
            self.until = None;
            if let Err(fault) = written {
                self.rollback();
                return Err(fault.into());
            }
            self.distrusts_sums = false;
        }
        self.end();
        Ok(())
    }

    /// Commits unless that would end after `until`. Otherwise everything except the calls is rolled back, the call that was
    /// finished last is reopened, and the result is `false`.
    pub(crate) fn commit_by(&mut self, until: Instant) -> Result<bool, Error> {
        if self.lost.is_some() || !self.began {
            return self.commit().map(|()| true);
        }
        self.interrupter.clear();
        self.patience.refill();
        let finished = self.last_finished.clone();
        let recorded = self.recorded_calls(finished.as_ref().map(OpenCall::id))?;
        self.until = Some(until);
        self.gauge.limit(Some(until));
        let written = self.write_all();
        self.gauge.limit(None);
        self.until = None;
        match written {
            Ok(()) => {
                self.end();
                Ok(true)
            }
            // A log that failed for another reason after the deadline is retried when the call is recorded.
            Err(_) if clock::instant() > until => {
                self.take_back(recorded)?;
                self.open_calls.extend(finished);
                Ok(false)
            }
            Err(fault) => {
                self.rollback();
                Err(fault.into())
            }
        }
    }

    /// Rolls everything back except the calls; the transaction continues from there.
    pub(crate) fn restart(&mut self) -> Result<(), Error> {
        let recorded = self.recorded_calls(None)?;
        self.take_back(recorded)
    }

    fn take_back(&mut self, recorded: Vec<Call>) -> Result<(), Error> {
        let (open_calls, next_call) = (std::mem::take(&mut self.open_calls), self.next_call);
        self.rollback();
        self.open_calls = open_calls;
        self.next_call = next_call;
        self.restore_calls(recorded)
    }

    /// Brings the rows to the state that a commit would store.
    pub(crate) fn settle(&mut self) -> Result<(), Fault> {
        self.drop_orphans();
        self.flush_doomed()?;
        self.flush_chunks()?;
        self.fill_holes()?;
        self.flush_nodes()?;
        self.flush_sums()
    }

    fn write_all(&mut self) -> Result<(), Fault> {
        self.settle()?;
        self.flush_version()?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.past.committed();
        self.contents.committed(self.journal.changed_contents(), self.journal.has_linked());
        Ok(())
    }

    /// Rolls everything back.
    pub(crate) fn rollback(&mut self) {
        if self.began && !self.connection.is_autocommit() {
            // Fails only if there is nothing to roll back.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        self.is_log_long |= self.gauge.bytes() > LONG_LOG;
        if self.began {
            self.forget();
        }
        self.end();
    }

    fn end(&mut self) {
        self.began = false;
        self.obeys_modes = false;
        self.savepoints = 0;
        self.memory = None;
        self.lost = None;
        self.holds.clear();
        self.orphans.clear();
        self.orphan_bytes = 0;
        self.journal = Journal::default();
        self.last_finished = None;
        self.first_call = None;
        self.number += 1;
        self.past.end();
        self.gauge.reset();
    }

    /// Frees what is cached between transactions.
    pub(crate) fn release_memory(&mut self) {
        if self.began || !self.open_calls.is_empty() {
            return;
        }
        self.forget();
        (self.nodes, self.changed_nodes, self.orphans, self.holds) = Default::default();
        self.contents.forget();
        self.connection.flush_prepared_statement_cache();
        // Without success the pages stay.
        let _ = self.connection.release_memory();
    }

    /// Empties the caches, discarding unwritten data.
    fn forget(&mut self) {
        self.nodes.clear();
        self.changed_nodes.clear();
        self.orphans.clear();
        self.orphan_bytes = 0;
        self.sparse.clear();
        self.hole_bytes = 0;
        self.doomed.clear();
        self.doomed_bytes = 0;
        self.names = Names::default();
        self.chunks = Chunks::default();
        self.usage = None;
        self.budgets = Budgets::default();
        self.next_ino = None;
        self.next_entry = None;
        self.next_call = None;
        self.past.forget();
    }

    pub(crate) fn savepoint(&mut self) -> Result<Mark, Fault> {
        self.flush()?;
        self.savepoints += 1;
        self.connection.execute_batch(&format!("SAVEPOINT s{}", self.savepoints))?;
        Ok(Mark {
            number: self.savepoints,
            orphans: self.orphans.clone(),
            orphan_bytes: self.orphan_bytes,
            sparse: self.sparse.clone(),
            journal: self.journal.clone(),
            usage: self.usage,
            budgets: self.budgets,
            open_calls: self.open_calls.len(),
            past: self.past.mark(),
        })
    }

    pub(crate) fn rollback_to(&mut self, mark: &Mark) -> Result<(), Fault> {
        self.connection.execute_batch(&format!("ROLLBACK TO s{}", mark.number))?;
        let next_ino = self.next_ino;
        let next_call = self.next_call;
        let next_entry = self.next_entry;
        self.forget();
        self.past.return_to(mark.past);
        self.next_entry = next_entry;
        // Numbers are not reused in one transaction, because a descriptor may still hold one.
        self.next_ino = next_ino;
        self.next_call = next_call;
        self.orphans = mark.orphans.clone();
        self.orphan_bytes = mark.orphan_bytes;
        self.sparse = mark.sparse.clone();
        self.journal = mark.journal.clone();
        self.usage = mark.usage;
        self.budgets = mark.budgets;
        self.open_calls.truncate(mark.open_calls);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
