//! `/v1/sandboxes`: sandboxes by id, with a route for each action of the table.

mod actions;
mod events;
mod files;
mod input;
mod jobs;
mod lifecycle;
mod opened;
mod packages;
mod quota;
mod stream;
mod tar;
mod transfer;
mod trees;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{MethodRouter, delete, get, patch, post, put};

use super::app::App;
use super::openapi::{Route, SANDBOX_ROUTES};
use super::problem::Problem;
use lifecycle::remove;

pub(super) use actions::FAILED;
pub(crate) use actions::{Known, measure, offered};
pub(crate) use files::Download;
pub(crate) use input::{IN_MEMORY, bytes, query};
pub(crate) use lifecycle::named;
pub(crate) use opened::Opened;
pub(super) use opened::check_view;

/// The interval at which expired and idle sandboxes are searched for.
const SWEEP: Duration = Duration::from_secs(5);
/// How often the bytes of the data directory are counted, in sweeps.
const COUNTED: u64 = 12;
/// How often old responses, hours and files are removed, in sweeps.
const RARELY: u64 = 120;

/// Routes that need a key: exactly those of the document.
pub(super) fn routes() -> Router<App> {
    SANDBOX_ROUTES
        .iter()
        .fold(Router::new(), |router, route| match handler(route) {
            Some(method) => {
                let path = route.path.strip_prefix("/v1").unwrap_or(route.path);
                match path.strip_suffix("/{*path}").filter(|above| above.ends_with("/tree")) {
                    // The whole tree has an empty path, which the rest of a path cannot be.
                    Some(above) => {
                        router.route(above, method.clone()).route(&format!("{above}/"), method.clone()).route(path, method)
                    }
                    None => router.route(path, method),
                }
            }
            None => router,
        })
        // Bodies are bounded where they are read.
        .layer(axum::extract::DefaultBodyLimit::disable())
}

/// Returns the handler of a row of the table.
fn handler(route: &Route) -> Option<MethodRouter<App>> {
    Some(match route.operation {
        "createSandbox" => post(lifecycle::create),
        "listSandboxes" => get(lifecycle::list),
        "importSandbox" => post(transfer::import),
        "getSandbox" => get(lifecycle::show),
        "changeSandbox" => patch(lifecycle::change),
        "deleteSandbox" => delete(lifecycle::delete),
        "forkSandbox" => post(lifecycle::fork),
        "exportSandbox" => get(transfer::export),
        "act" => post(actions::act),
        "listJobs" => get(jobs::list),
        "getJob" => get(jobs::show),
        "cancelJob" => delete(jobs::cancel),
        "readFile" => get(files::read),
        "writeFile" => put(files::write),
        "deleteFile" => delete(files::delete),
        "readTree" => get(trees::pack),
        "writeTree" => put(trees::unpack),
        "listPackages" => get(packages::list),
        "installPackage" => put(packages::install),
        "uninstallPackage" => delete(packages::uninstall),
        "listShellSessions" => get(packages::sessions),
        "endShellSession" => delete(packages::end_session),
        "followEvents" => get(events::follow),
        "usage" => get(quota::usage),
        _ => return None,
    })
}

/// Removes sandboxes whose time is over, frees the memory of idle ones and tidies the catalog, for ever.
pub(super) async fn expire(app: App, freed: Arc<dyn Fn() + Send + Sync>) {
    let mut round = 0u64;
    loop {
        if round.is_multiple_of(RARELY) {
            // Nothing waits for it, and the next round tries again.
            let _ = app.blocking(forget_old).await;
        }
        if round.is_multiple_of(COUNTED) {
            let count = app.blocking(|app| {
                app.count_stored_bytes();
                Ok(())
            });
            let _ = count.await;
        }
        let _ = app.blocking(|app| Ok(app.catalog().checkpoint()?)).await;
        let freed = Arc::clone(&freed);
        let rested = app.blocking(move |app| {
            if app.opened().rest() > 0 {
                freed();
            }
            Ok(())
        });
        let _ = rested.await;
        if let Ok(rows) = app.blocking(|app| Ok(app.catalog().expired_sandboxes()?)).await {
            for row in rows {
                let _ = remove(&app, row).await;
            }
        }
        round += 1;
        tokio::time::sleep(SWEEP).await;
    }
}

fn forget_old(app: &App) -> Result<(), Problem> {
    app.catalog().forget_spent()?;
    app.catalog().forget_answers()?;
    app.opened().jobs.forget_old();
    for tenant in app.catalog().tenant_names()? {
        opened::sweep(app, &tenant)?;
    }
    Ok(())
}
