//! `sandlite serve`: sandboxes and skills over HTTP for many tenants, with one program and one directory.
//!
//! Connections are those of [`listener`](crate::listener), which bounds their times and places. The order of a request:
//! [`requests`] (host, origin, id, log), [`auth`] (key, tenant, role, rate, audit), its route, [`admission`] (turn), a thread.

pub(crate) mod admission;
mod app;
mod auth;
mod bodies;
mod catalog;
mod clock;
mod config;
mod console;
mod idempotency;
mod mcp;
mod metrics;
mod openapi;
mod operate;
mod origins;
mod path;
mod problem;
mod requests;
mod sandboxes;
mod shares;
mod skillbox;
mod tenants;
mod traces;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use runtime::{Host, Sandbox};

use crate::Error;
use crate::http::Hosts;
use crate::listener::{Listener, Places, Times, stop_requested, threads};
use app::App;
use catalog::Catalog;
use problem::Problem;
use requests::Door;

pub use catalog::{KeyRow, NewKey, Quota, Role, TenantRow};
pub use config::{Config, Log, SETTINGS, Setting};
pub use traces::Collector;

/// The tenant of a server that has no other.
const DEFAULT_TENANT: &str = "default";
/// How long responses may take to be sent when the server stops and its runs have ended.
const LAST_RESPONSES: Duration = Duration::from_secs(2);

/// The reports of a running server.
pub struct Reports {
    /// Called once with the address that is listened on, and with the text of the first key if it was made now.
    pub ready: Box<dyn FnOnce(SocketAddr, Option<String>) + Send>,
    /// Called with each line of the request log.
    pub line: Arc<dyn Fn(&str) + Send + Sync>,
    /// Called after idle sandboxes have freed memory, to return it to the system.
    pub freed: Arc<dyn Fn() + Send + Sync>,
}

/// Serves clients until the process receives a signal to end.
///
/// # Errors
///
/// Returns an error if the data directory cannot be used, or the address cannot be listened on or is open to other machines and no host
/// name is given.
pub fn serve(config: Config, host: Host, reports: Reports) -> Result<(), Error> {
    let address = config.listen;
    config.check()?;
    let tls = config.tls()?;
    let hosts = Arc::new(Hosts::new(&config.hosts, config.scheme()));
    problem::log_faults(config.log, Arc::clone(&reports.line));
    let app = App::new(config, host)?;
    let _lock = app::lock(&app.config().data)?;
    let key = first_key(&app)?;
    app.recover()?;
    let threads = threads()?;
    let result = threads.block_on(async {
        let listener = Listener::bind(address, Places::for_many(), Times::default(), tls).await?;
        let connections = listener.connections();
        (reports.ready)(listener.address(), key);
        app.start_traces();
        let router = router(Door { app: app.clone(), hosts, line: reports.line });
        tokio::select! {
            () = listener.serve(router) => {}
            () = sandboxes::expire(app.clone(), reports.freed) => {}
            () = skillbox::expire(app.clone()) => {}
            () = stop_requested() => {}
        }
        app.stop().await;
        connections.finish(LAST_RESPONSES).await;
        app.traces().finish().await;
        Ok(())
    });
    threads.shutdown_background();
    result
}

fn router(door: Door) -> Router {
    let app = door.app.clone();
    let v1 = Router::new()
        .merge(operate::routes())
        .merge(tenants::routes())
        .merge(skillbox::routes())
        .merge(sandboxes::routes())
        .layer(from_fn_with_state(app.clone(), idempotency::once))
        .layer(from_fn_with_state(app.clone(), bodies::counted))
        .layer(from_fn_with_state(app.clone(), auth::require));
    Router::new()
        .nest("/v1", v1)
        .merge(operate::open_routes())
        .merge(console::routes())
        .merge(openapi::open_routes())
        .merge(mcp::routes(&app))
        .merge(skillbox::open_routes())
        .fallback(|| async { Problem::not_found("route") })
        .method_not_allowed_fallback(|| async {
            Problem::new(http::StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this route has other methods")
        })
        .layer(from_fn(operate::no_panic))
        .layer(from_fn_with_state(door, requests::pass))
        .with_state(app)
}

// The first key of a new data directory: the one that was given, or a new one if there is no other.
fn first_key(app: &App) -> Result<Option<String>, Error> {
    let new = NewKey {
        tenant: DEFAULT_TENANT.to_owned(),
        role: Role::Admin,
        view: None,
        name: "first".to_owned(),
        lifetime: None,
        is_service: false,
    };
    match &app.config().first_key {
        Some(given) => {
            // A key that was revoked stays revoked.
            if !app.catalog().knows_key(given)? {
                app.catalog().create_key(&new, Some(given))?;
            }
            Ok(None)
        }
        None if app.catalog().list_keys(None)?.is_empty() => Ok(Some(app.catalog().create_key(&new, None)?.0)),
        None => Ok(None),
    }
}

/// The keys of a data directory, for `sandlite keys`. A server that runs on the same directory sees changes at once.
pub struct Keys(Catalog);

impl Keys {
    /// Opens the keys of a data directory, created if it is missing.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be used.
    pub fn open(data: &Path) -> Result<Self, Error> {
        app::make_private(data).map_err(|source| Error::Data { path: data.to_owned(), source })?;
        Ok(Self(Catalog::open(data)?))
    }

    /// Makes a key and returns its text, which is not kept, and its id; `given` is kept instead of a random one.
    ///
    /// # Errors
    ///
    /// Returns an error if the view is invalid or the catalog cannot be changed.
    pub fn create(&self, new: &NewKey, given: Option<&str>) -> Result<(String, String), Error> {
        if let Some(view) = &new.view {
            let checked = sandboxes::check_view(Sandbox::builder(), view);
            checked.map_err(|error| Error::Setting(format!("the view of the key: {error}")))?;
        }
        Ok(self.0.create_key(new, given)?)
    }

    /// Lists the keys, oldest first.
    ///
    /// # Errors
    ///
    /// Returns an error if the catalog cannot be read.
    pub fn list(&self, tenant: Option<&str>) -> Result<Vec<KeyRow>, Error> {
        Ok(self.0.list_keys(tenant)?)
    }

    /// Revokes a key at once; `false` if there is no such key.
    ///
    /// # Errors
    ///
    /// Returns an error if the catalog cannot be changed.
    pub fn revoke(&self, id: &str) -> Result<bool, Error> {
        Ok(self.0.revoke_key(None, id)?)
    }
}

/// The tenants of a data directory, for `sandlite tenants`. A server that runs on the same directory applies changes within a second.
pub struct Tenants(Catalog);

impl Tenants {
    /// Opens the tenants of a data directory, created if it is missing.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be used.
    pub fn open(data: &Path) -> Result<Self, Error> {
        Ok(Self(Keys::open(data)?.0))
    }

    /// Lists the tenants by name.
    ///
    /// # Errors
    ///
    /// Returns an error if the catalog cannot be read.
    pub fn list(&self) -> Result<Vec<TenantRow>, Error> {
        Ok(self.0.tenants()?)
    }

    /// Changes limits of a tenant, by name, and returns all of its own; `None` is the server's limit again.
    ///
    /// # Errors
    ///
    /// Returns an error if the name of the tenant or a limit is invalid, or if the catalog cannot be changed.
    pub fn set(&self, tenant: &str, limits: &[(String, Option<u64>)]) -> Result<Quota, Error> {
        if !catalog::is_tenant(tenant) {
            return Err(Error::Setting(format!("invalid tenant `{}`", runtime::actions::quoted(tenant))));
        }
        self.0.change_quota(tenant, limits)?.map_err(Error::Setting)
    }
}
