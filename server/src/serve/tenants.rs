//! The limits of tenants: the server's settings, with a tenant's own limits in their place; and the routes that set them (T-NET-08).
//!
//! These routes need the operator's token besides the role: an admin of one tenant must not widen its own limits.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::routing::{get, patch};
use axum::{Json, Router};
use http::HeaderMap;
use serde_json::{Value, json};

use super::app::App;
use super::auth::Caller;
use super::catalog::{Quota, TenantRow, is_tenant};
use super::path::Path;
use super::problem::Problem;
use super::{Config, skillbox};

/// How long limits are used before they are read again: those that another process sets apply after it.
const FRESH: Duration = Duration::from_secs(1);

/// The limits of one tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allowed {
    pub(crate) concurrent: usize,
    pub(crate) queue: usize,
    pub(crate) requests_per_second: u32,
    pub(crate) sandboxes: u64,
    pub(crate) keys: u64,
    pub(crate) bytes: u64,
    pub(crate) fuel_per_hour: u64,
}

impl Allowed {
    fn new(config: &Config, own: &Quota) -> Self {
        let count = |own: Option<u64>, most: usize| own.map_or(most, |own| usize::try_from(own).unwrap_or(usize::MAX));
        let rate = |own: u64| u32::try_from(own).unwrap_or(u32::MAX);
        Self {
            concurrent: count(own.concurrent, config.concurrent_of_tenant).max(1),
            queue: count(own.queue, config.queue_of_tenant).max(1),
            requests_per_second: own.requests_per_second.map_or(config.requests_per_second, rate).max(1),
            sandboxes: own.sandboxes.unwrap_or(config.sandboxes_of_tenant),
            keys: own.keys.unwrap_or(config.keys_of_tenant),
            bytes: own.bytes.unwrap_or(config.bytes_of_tenant),
            fuel_per_hour: own.fuel_per_hour.unwrap_or(config.fuel_per_hour),
        }
    }

    /// Returns them by name.
    pub(crate) fn describe(&self) -> Value {
        json!({
            "concurrent": self.concurrent,
            "queue": self.queue,
            "requests_per_second": self.requests_per_second,
            "sandboxes": self.sandboxes,
            "keys": self.keys,
            "bytes": self.bytes,
            "fuel_per_hour": self.fuel_per_hour,
        })
    }
}

/// The limits of tenants as they were read last.
#[derive(Default)]
pub(super) struct Known(Mutex<HashMap<String, (Instant, Allowed)>>);

impl Known {
    fn table(&self) -> MutexGuard<'_, HashMap<String, (Instant, Allowed)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl App {
    /// Returns the limits of a tenant, as of its last request.
    pub(crate) fn allowed(&self, tenant: &str) -> Result<Allowed, Problem> {
        let known = self.known_limits().table().get(tenant).map(|(_, allowed)| *allowed);
        known.map_or_else(|| self.read_limits(tenant), Ok)
    }

    /// Returns the same for a request that begins, read again if they are not fresh.
    pub(super) fn renew_limits(&self, tenant: &str) -> Result<Allowed, Problem> {
        let known = self.known_limits().table().get(tenant).copied();
        match known {
            Some((at, allowed)) if at.elapsed() < FRESH => Ok(allowed),
            _ => self.read_limits(tenant),
        }
    }

    fn read_limits(&self, tenant: &str) -> Result<Allowed, Problem> {
        let own = self.catalog().quota(tenant)?;
        let allowed = Allowed::new(self.config(), &own);
        let has_own = own.concurrent.is_some() || own.queue.is_some();
        self.admission().set_own(tenant, has_own.then_some((allowed.concurrent, allowed.queue)));
        self.known_limits().table().insert(tenant.to_owned(), (Instant::now(), allowed));
        Ok(allowed)
    }
}

/// Routes of the operator.
pub(super) fn routes() -> Router<App> {
    Router::new().route("/admin/tenants", get(list)).route("/admin/tenants/{name}", patch(change))
}

fn require(app: &App, caller: &Caller, headers: &HeaderMap) -> Result<(), Problem> {
    skillbox::require_admin(app, caller, headers)?;
    if app.config().admin_token.is_none() {
        let text = "limits of tenants need an `admin-token` of the server, or `sandlite tenants` on its machine";
        return Err(Problem::forbidden(text));
    }
    Ok(())
}

fn described(app: &App, row: &TenantRow) -> Value {
    let effective = Allowed::new(app.config(), &row.limits).describe();
    json!({ "name": row.name, "created_at": row.created_at, "limits": row.limits, "effective": effective })
}

/// `GET /v1/admin/tenants`.
async fn list(State(app): State<App>, caller: Caller, headers: HeaderMap) -> Result<Json<Value>, Problem> {
    require(&app, &caller, &headers)?;
    app.blocking(|app| {
        let rows = app.catalog().tenants()?;
        Ok(Json(rows.iter().map(|row| described(app, row)).collect()))
    })
    .await
}

/// `PATCH /v1/admin/tenants/{name}`: an absent limit is unchanged, `null` is the server's again.
async fn change(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Result<Json<BTreeMap<String, Option<u64>>>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    require(&app, &caller, &headers)?;
    let Json(changes) = body?;
    if !is_tenant(&name) {
        return Err(Problem::bad_request("invalid tenant: expected 1 to 64 of the characters A-Z a-z 0-9 . _ -"));
    }
    app.blocking(move |app| {
        let changes: Vec<(String, Option<u64>)> = changes.into_iter().collect();
        let limits = app.catalog().change_quota(&name, &changes)?.map_err(Problem::bad_request)?;
        app.read_limits(&name)?;
        let row = app.catalog().tenants()?.into_iter().find(|row| row.name == name);
        let row = row.unwrap_or(TenantRow { name, created_at: None, limits });
        Ok(Json(described(app, &row)))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_limits_replace_those_of_the_server_in_both_directions() {
        let mut config = Config::new("/data".into());
        (config.bytes_of_tenant, config.sandboxes_of_tenant, config.concurrent_of_tenant) = (10, 10, 10);
        let own = Quota { bytes: Some(5), sandboxes: Some(20), requests_per_second: Some(u64::MAX), ..Quota::default() };
        let allowed = Allowed::new(&config, &own);
        assert_eq!((allowed.bytes, allowed.sandboxes, allowed.concurrent), (5, 20, 10));
        assert_eq!(allowed.requests_per_second, u32::MAX);
        assert_eq!(Allowed::new(&config, &Quota::default()).bytes, 10);
    }
}
