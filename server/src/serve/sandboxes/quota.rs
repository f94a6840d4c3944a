//! Quotas of tenants: sandboxes, bytes, and fuel by the hour.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use crate::serve::app::App;
use crate::serve::auth::Caller;
use crate::serve::catalog::HOUR;
use crate::serve::clock::{now, rfc3339};
use crate::serve::problem::Problem;

/// How long a count of a tenant's bytes is used.
const FRESH: Duration = Duration::from_secs(5);
/// When a client may look again whether there is room.
const LATER: u64 = 60;
/// Most files that are counted: more than a tenant within its quota has.
const MOST_FILES: usize = 1_000_000;

/// The bytes of each tenant, and those of all with the catalog, counted now and then.
#[derive(Default)]
pub(super) struct Stored(Mutex<HashMap<String, (Instant, u64)>>, AtomicU64);

impl Stored {
    /// Forgets a count: something large was added or removed.
    pub(super) fn forget(&self, tenant: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(tenant);
    }
}

fn exceeded(what: &str, quota: &'static str, used: u64, limit: u64, seconds: u64) -> Problem {
    Problem::limited(format!("the tenant's quota of {what} is used up"), seconds)
        .with_details(json!({ "quota": quota, "used": used, "limit": limit, "retry_after_seconds": seconds }))
}

impl App {
    /// Returns the bytes of a tenant's files and rows, at most a few seconds old.
    pub(crate) fn bytes_of(&self, tenant: &str) -> Result<u64, Problem> {
        let known = self.opened().stored.0.lock().unwrap_or_else(PoisonError::into_inner).get(tenant).copied();
        if let Some((at, bytes)) = known
            && at.elapsed() < FRESH
        {
            return Ok(bytes);
        }
        let sandboxes = self.tenant(tenant)?.directory("sandboxes")?;
        let rows = self.catalog().bytes_of_rows(tenant)?;
        let bytes = sandboxes.parent().map_or(0, size_below).saturating_add(rows);
        self.opened().stored.0.lock().unwrap_or_else(PoisonError::into_inner).insert(tenant.to_owned(), (Instant::now(), bytes));
        Ok(bytes)
    }

    /// Refuses to store more for a tenant that has no room left.
    pub(crate) fn require_room(&self, tenant: &str, more: u64) -> Result<(), Problem> {
        let (used, limit) = (self.bytes_of(tenant)?, self.allowed(tenant)?.bytes);
        if used.saturating_add(more) > limit {
            return Err(exceeded("bytes", "bytes", used, limit, LATER));
        }
        Ok(())
    }

    /// Bytes in the data directory, as they were counted last.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.opened().stored.1.load(Ordering::Relaxed)
    }

    /// Counts the bytes in the data directory.
    pub(super) fn count_stored_bytes(&self) {
        self.opened().stored.1.store(size_below(&self.config().data), Ordering::Relaxed);
    }

    /// Counts the bytes of a tenant again at the next query, because something large was stored.
    pub(crate) fn stored_more(&self, tenant: &str) {
        self.opened().stored.forget(tenant);
    }

    /// Refuses a run of a tenant that has used its fuel of this hour.
    pub(crate) fn require_fuel(&self, tenant: &str) -> Result<(), Problem> {
        let ((used, _), limit) = (self.catalog().spent(tenant)?, self.allowed(tenant)?.fuel_per_hour);
        if used >= limit {
            let left = (HOUR - now().rem_euclid(HOUR)) / 1000 + 1;
            return Err(exceeded("fuel in this hour", "fuel_per_hour", used, limit, u64::try_from(left).unwrap_or(LATER)));
        }
        Ok(())
    }
}

/// Refuses one more sandbox.
pub(super) fn too_many_sandboxes(limit: u64) -> Problem {
    exceeded("sandboxes", "sandboxes", limit, limit, LATER)
}

#[expect(clippy::disallowed_methods, reason = "the size of the server's own files")]
fn size_below(directory: &Path) -> u64 {
    let (mut bytes, mut left) = (0u64, vec![directory.to_owned()]);
    let mut files = 0;
    while let Some(directory) = left.pop() {
        let Ok(entries) = std::fs::read_dir(directory) else { continue };
        for entry in entries.flatten() {
            // Files come and go meanwhile.
            let Ok(metadata) = entry.metadata() else { continue };
            files += 1;
            if metadata.is_dir() {
                left.push(entry.path());
            } else {
                bytes = bytes.saturating_add(metadata.len());
            }
            if files > MOST_FILES {
                return bytes;
            }
        }
    }
    bytes
}

/// `GET /v1/usage`.
pub(super) async fn usage(State(app): State<App>, caller: Caller) -> Result<Json<Value>, Problem> {
    app.blocking(move |app| {
        let (fuel, runs) = app.catalog().spent(&caller.tenant)?;
        let hours = app.catalog().spent_by_hour(&caller.tenant)?.into_iter();
        let hours: Vec<Value> = hours.map(|(at, fuel, runs)| json!({ "at": rfc3339(at), "fuel": fuel, "runs": runs })).collect();
        Ok(Json(json!({
            "sandboxes": app.catalog().count_sandboxes(&caller.tenant)?,
            "bytes": app.bytes_of(&caller.tenant)?,
            "fuel_this_hour": fuel,
            "runs_this_hour": runs,
            "hours": hours,
            "limits": app.allowed(&caller.tenant)?.describe(),
        })))
    })
    .await
}

impl App {
    /// The same as [`require_room`](Self::require_room) for what may store something: a count that is old is renewed on a thread of its own.
    pub(crate) async fn require_known_room(&self, tenant: &str) -> Result<(), Problem> {
        let known = self.opened().stored.0.lock().unwrap_or_else(PoisonError::into_inner).get(tenant).copied();
        match known {
            Some((at, bytes)) if at.elapsed() < FRESH && bytes <= self.allowed(tenant)?.bytes => Ok(()),
            _ => {
                let tenant = tenant.to_owned();
                self.blocking(move |app| app.require_room(&tenant, 0)).await
            }
        }
    }
}
