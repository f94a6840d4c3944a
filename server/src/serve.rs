//! `sandlite serve`: sandboxes and skills over HTTP for many tenants, with one program and one directory.
//!
//! Routes are axum's; connections stay with hyper, whose times and places are bounded as those of `sandlite mcp --http`. The order of a
//! request: [`requests`] (host, origin, id, log), [`auth`] (key, tenant, role, rate, audit), its route, [`admission`] (turn), a thread.

mod admission;
mod app;
mod auth;
mod catalog;
mod clock;
mod config;
mod console;
mod idempotency;
mod mcp;
mod metrics;
mod openapi;
mod operate;
mod problem;
mod requests;
mod sandboxes;
mod skillbox;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use runtime::Host;
use tokio::net::{TcpListener, TcpStream};

use crate::Error;
use crate::http::{Hosts, Patient, Place, Places, Times, told_to_end};
use app::App;
use catalog::{Catalog, NewKey};
use problem::Problem;
use requests::Door;

pub use catalog::{KeyRow, Role};
pub use config::{Config, Log, SETTINGS, Setting};

/// The tenant of a server that has no other.
const DEFAULT_TENANT: &str = "default";
/// Bytes of request line and headers.
const HEADER_BYTES: usize = 64 << 10;

/// What a server reports while it runs.
pub struct Reports {
    /// Called once with the address that is listened on, and with the text of the first key if it was made now.
    pub ready: Box<dyn FnOnce(SocketAddr, Option<String>) + Send>,
    /// Called with each line of the request log.
    pub line: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Serves clients until the process receives a signal to end.
///
/// # Errors
///
/// Returns an error if the data directory cannot be used, or the address cannot be listened on or is open to other machines and no host
/// name is given.
pub fn serve(config: Config, host: Host, reports: Reports) -> Result<(), Error> {
    let address = config.listen;
    if !address.ip().is_loopback() && config.hosts.is_empty() {
        return Err(Error::NotLoopback(address));
    }
    let hosts = Arc::new(Hosts::new(&config.hosts));
    problem::log_faults(config.log, Arc::clone(&reports.line));
    let app = App::new(config, host)?;
    let key = first_key(&app)?;
    app.recover()?;
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(Error::Threads)?;
    let result = threads.block_on(async {
        let failed = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        (reports.ready)(listener.local_addr().map_err(failed)?, key);
        let router = router(Door { app: app.clone(), hosts, line: reports.line });
        tokio::select! {
            () = accept(listener, router) => {}
            () = sandboxes::expire(app.clone()) => {}
            () = skillbox::expire(app.clone()) => {}
            () = told_to_end() => {}
        }
        app.stop().await;
        Ok(())
    });
    threads.shutdown_background();
    result
}

fn router(door: Door) -> Router {
    let app = door.app.clone();
    let v1 = Router::new()
        .merge(operate::routes())
        .merge(skillbox::routes())
        .merge(sandboxes::routes())
        .layer(from_fn_with_state(app.clone(), idempotency::once))
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
    let new =
        NewKey { tenant: DEFAULT_TENANT.to_owned(), role: Role::Admin, view: None, name: "first".to_owned(), expires_at: None };
    match &app.config().first_key {
        Some(given) => {
            if app.catalog().find_key(given)?.is_none() {
                app.catalog().create_key(&new, Some(given))?;
            }
            Ok(None)
        }
        None if app.catalog().list_keys(None)?.is_empty() => Ok(Some(app.catalog().create_key(&new, None)?.0)),
        None => Ok(None),
    }
}

async fn accept(listener: TcpListener, router: Router) {
    let places = Places::for_many();
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            // Out of descriptors, most likely: others have to end first.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let place = Arc::new(places.enter(address.ip()));
        tokio::spawn(connection(stream, router.clone(), place));
    }
}

async fn connection(stream: TcpStream, router: Router, place: Arc<Place>) {
    let times = Times::default();
    let routed = router.layer(axum::Extension(Arc::clone(&place)));
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(times.idle)
        .max_buf_size(HEADER_BYTES)
        .serve_connection(TokioIo::new(Patient::new(stream, times.write)), TowerToHyperService::new(routed));
    let unknown_for_too_long = async {
        tokio::time::sleep(times.key).await;
        if place.is_known() {
            std::future::pending().await
        }
    };
    tokio::select! {
        _ = connection => {}
        () = place.evicted() => {}
        () = unknown_for_too_long => {}
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
    /// Returns an error if the catalog cannot be changed.
    pub fn create(
        &self,
        tenant: &str,
        role: Role,
        view: Option<String>,
        name: &str,
        lifetime: Option<std::time::Duration>,
        given: Option<&str>,
    ) -> Result<(String, String), Error> {
        let expires_at = lifetime.map(|time| clock::now().saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)));
        let new = NewKey { tenant: tenant.to_owned(), role, view, name: name.to_owned(), expires_at };
        Ok(self.0.create_key(&new, given)?)
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
