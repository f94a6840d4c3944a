//! Who asks: the key, its tenant and its role (T-NET-05, T-NET-06), how often it may ask, and what is noted of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::Method;
use http::header::AUTHORIZATION;
use http::request::Parts;
use runtime::actions::Permission;

use super::app::App;
use super::catalog::Role;
use super::problem::Problem;
use super::requests::RequestId;
use crate::http::only;
use crate::listener::{Place, REFUSAL_TIME};

/// Keys whose rate is remembered.
const MOST_RATES: usize = 10_000;

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) tenant: String,
    pub(crate) role: Role,
    /// The id of the key.
    pub(crate) key: String,
    /// The principal with labels that the caller sees sandboxes as.
    pub(crate) view: Option<String>,
}

impl Caller {
    /// Refuses what the role may not do.
    pub(crate) fn require(&self, role: Role) -> Result<(), Problem> {
        if self.role >= role {
            return Ok(());
        }
        Err(Problem::forbidden(format!("the role {} is needed; this key has {}", role.as_str(), self.role.as_str())))
    }

    /// Refuses an action that the role may not do.
    pub(crate) fn require_permission(&self, permission: Permission) -> Result<(), Problem> {
        match permission {
            Permission::WriteSkills => self.require(Role::Publisher),
            Permission::HostFiles => Err(Problem::forbidden("directories of the server's machine cannot be used over HTTP")),
            _ => Ok(()),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(Problem::unauthorized)
    }
}

/// Lets a request with a key in, as its [`Caller`]; what changes something is noted in the audit log.
pub(super) async fn require(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let caller = match admit(&app, &request) {
        Ok(caller) => caller,
        Err(problem) => {
            if problem.status == http::StatusCode::UNAUTHORIZED {
                tokio::time::sleep(REFUSAL_TIME).await;
            }
            return problem.into_response();
        }
    };
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let noted = changes.then(|| (request.method().clone(), request.uri().path().to_owned()));
    let id = request.extensions().get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default();
    request.extensions_mut().insert(caller.clone());
    let mut response = next.run(request).await;
    if let Some((method, path)) = noted {
        let status = response.status().as_u16();
        let row = app.blocking(move |app| {
            let path = runtime::actions::shortened(path, 512);
            Ok(app.catalog().audit(&caller.tenant, [&caller.key, method.as_str(), &path, &id], status)?)
        });
        // What cannot be noted is not acknowledged.
        if let Err(problem) = row.await {
            response = problem.into_response();
        }
    }
    response
}

fn admit(app: &App, request: &Request) -> Result<Caller, Problem> {
    let headers = request.headers();
    let shown = only(headers, &AUTHORIZATION).and_then(|value| value.split_once(' '));
    let shown = shown.filter(|(scheme, key)| scheme.eq_ignore_ascii_case("bearer") && !key.trim().is_empty());
    let (_, text) = shown.ok_or_else(Problem::unauthorized)?;
    let key = app.catalog().find_key(text.trim())?.ok_or_else(Problem::unauthorized)?;
    if let Some(named) = headers.get("x-tenant-id")
        && named.as_bytes() != key.tenant.as_bytes()
    {
        return Err(Problem::forbidden("the key belongs to another tenant than X-Tenant-ID names"));
    }
    if let Some(place) = request.extensions().get::<Arc<Place>>()
        && !place.admit()
    {
        return Err(Problem { retry_after: Some(1), ..Problem::limited("too many connections at a time", 1) });
    }
    app.rates().take(&key.id)?;
    Ok(Caller { tenant: key.tenant, role: key.role, key: key.id, view: key.view })
}

/// How often each key may ask: a bucket that fills by the second.
pub(super) struct Rates {
    per_second: f64,
    buckets: Mutex<HashMap<String, (f64, Instant)>>,
}

impl Rates {
    pub(super) fn new(per_second: u32) -> Self {
        Self { per_second: f64::from(per_second.max(1)), buckets: Mutex::default() }
    }

    fn take(&self, key: &str) -> Result<(), Problem> {
        let now = Instant::now();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MOST_RATES {
            buckets.retain(|_, (_, at)| now.duration_since(*at) < Duration::from_secs(60));
        }
        let (left, at) = buckets.entry(key.to_owned()).or_insert((self.per_second, now));
        *left = (*left + now.duration_since(*at).as_secs_f64() * self.per_second).min(self.per_second);
        *at = now;
        if *left < 1.0 {
            return Err(Problem::limited(format!("more than {} requests in a second", self.per_second), 1));
        }
        *left -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_asks_too_often_is_refused_and_others_are_not() {
        let rates = Rates::new(3);
        assert!((0..3).all(|_| rates.take("a").is_ok()));
        let refused = rates.take("a").unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.retry_after), (429, Some(1)));
        assert!(rates.take("b").is_ok());
    }

    #[test]
    fn roles_include_those_before_them() {
        let caller = |role| Caller { tenant: "t".to_owned(), role, key: "k".to_owned(), view: None };
        assert!(caller(Role::Admin).require(Role::Publisher).is_ok());
        assert_eq!(caller(Role::Consumer).require(Role::Publisher).unwrap_err().status.as_u16(), 403);
        assert!(caller(Role::Consumer).require_permission(Permission::Execute).is_ok());
        assert!(caller(Role::Admin).require_permission(Permission::HostFiles).is_err());
    }
}
