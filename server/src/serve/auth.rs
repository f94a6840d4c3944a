//! Authentication: the key of a request, its tenant and role (T-NET-05, T-NET-06), its rate, and the audit log of its changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use runtime::actions::Permission;

use super::app::App;
use super::catalog::{Role, is_tenant};
use super::problem::Problem;
use super::requests::{RequestId, WholePath};
use crate::http::only;
use crate::listener::{Place, REFUSAL_TIME};

/// The tenant that a request is for.
const TENANT: HeaderName = HeaderName::from_static("x-tenant-id");
/// Tenants whose rate is remembered.
const MOST_RATES: usize = 10_000;
/// Longest path in the audit log.
const LONGEST_PATH: usize = 512;
/// The status of a change in the audit log whose client closed the connection before the response.
const CLIENT_GONE: u16 = 499;

/// The caller of a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) tenant: String,
    pub(crate) role: Role,
    /// The id of the key.
    pub(crate) key: String,
    /// The principal with labels that the caller sees sandboxes as.
    pub(crate) view: Option<String>,
}

/// The caller, for the line of a request in the log.
#[derive(Clone, Debug)]
pub(super) struct Who {
    pub(super) tenant: String,
    pub(super) key: String,
}

impl Caller {
    /// Rejects operations that the role does not allow.
    pub(crate) fn require(&self, role: Role) -> Result<(), Problem> {
        if self.role >= role {
            return Ok(());
        }
        Err(Problem::forbidden(format!("the role {} is needed; this key has {}", role.as_str(), self.role.as_str())))
    }

    /// Refuses a key that was revoked or has expired since its request began: for streams, which stay open.
    pub(crate) async fn require_valid_key(&self, app: &App) -> Result<(), Problem> {
        let key = self.key.clone();
        let valid = app.blocking(move |app| Ok(app.catalog().is_valid_key(&key)?)).await?;
        valid.then_some(()).ok_or_else(Problem::invalid_key)
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
        parts.extensions.get::<Self>().cloned().ok_or_else(Problem::no_key)
    }
}

/// Admits a request with a valid key as its [`Caller`]; changes are recorded in the audit log.
pub(super) async fn require(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let shown = Shown::of(&request);
    let admitted = match shown {
        Ok(shown) => app.look_up(move |app| shown.admit(app)).await,
        Err(problem) => Err(problem),
    };
    let (caller, is_unnoted) = match admitted {
        Ok(admitted) => admitted,
        Err(problem) => {
            if problem.status == http::StatusCode::UNAUTHORIZED {
                tokio::time::sleep(REFUSAL_TIME).await;
            }
            return problem.into_response();
        }
    };
    if is_unnoted {
        let key = caller.key.clone();
        if let Err(problem) = app.blocking(move |app| Ok(app.catalog().use_key(&key)?)).await {
            return problem.into_response();
        }
    }
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let change = changes.then(|| Change::new(&app, &caller, &request));
    let who = Who { tenant: caller.tenant.clone(), key: caller.key.clone() };
    request.extensions_mut().insert(caller);
    let mut response = next.run(request).await;
    if let Some(change) = change
        // A change that cannot be recorded is not acknowledged.
        && let Err(problem) = change.note(response.status().as_u16()).await
    {
        response = problem.into_response();
    }
    response.extensions_mut().insert(who);
    response
}

/// A request that changes something. It is noted in the audit log even if its client does not wait for the response.
struct Change {
    app: App,
    tenant: String,
    /// The key, the method, the path and the request; `None` once they are noted.
    row: Option<[String; 4]>,
}

impl Change {
    fn new(app: &App, caller: &Caller, request: &Request) -> Self {
        let id = request.extensions().get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default();
        let path = request.extensions().get::<WholePath>().map(|path| path.0.clone()).unwrap_or_default();
        let path = runtime::actions::shortened(path, LONGEST_PATH);
        let row = [caller.key.clone(), request.method().as_str().to_owned(), path, id];
        Self { app: app.clone(), tenant: caller.tenant.clone(), row: Some(row) }
    }

    async fn note(mut self, status: u16) -> Result<(), Problem> {
        let Some(row) = self.row.take() else { return Ok(()) };
        let tenant = self.tenant.clone();
        self.app.blocking(move |app| Ok(app.catalog().audit(&tenant, row.each_ref().map(String::as_str), status)?)).await
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        let Some(row) = self.row.take() else { return };
        let (app, tenant) = (self.app.clone(), std::mem::take(&mut self.tenant));
        tokio::task::spawn_blocking(move || app.catalog().audit(&tenant, row.each_ref().map(String::as_str), CLIENT_GONE));
    }
}

/// Returns the key that a request shows.
pub(super) fn shown_key(headers: &HeaderMap) -> Result<&str, Problem> {
    if headers.get(AUTHORIZATION).is_none_or(HeaderValue::is_empty) {
        return Err(Problem::no_key());
    }
    let shown = only(headers, &AUTHORIZATION).and_then(|value| value.split_once(' '));
    match shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) {
        None => Err(Problem::unauthorized("Authorization header must use Bearer scheme")),
        Some((_, key)) if key.trim().is_empty() => Err(Problem::unauthorized("empty bearer token")),
        Some((_, key)) => Ok(key.trim()),
    }
}

/// What a request shows of its caller.
struct Shown {
    key: String,
    /// The tenants that it names.
    tenants: Vec<HeaderValue>,
    place: Option<Arc<Place>>,
}

impl Shown {
    fn of(request: &Request) -> Result<Self, Problem> {
        let headers = request.headers();
        let key = shown_key(headers)?.to_owned();
        let tenants = headers.get_all(TENANT).iter().filter(|named| !named.is_empty()).cloned().collect();
        Ok(Self { key, tenants, place: request.extensions().get::<Arc<Place>>().cloned() })
    }

    // Returns the caller, and whether this use of the key is to be noted.
    fn admit(self, app: &App) -> Result<(Caller, bool), Problem> {
        let key = app.catalog().find_key(&self.key)?.ok_or_else(Problem::invalid_key)?;
        // The connection is one of the key's own tenant: later requests on it may be for others.
        if self.place.is_some_and(|place| !place.admit(&key.tenant)) {
            return Err(Problem { retry_after: Some(1), ..Problem::limited("too many connections at a time", 1) });
        }
        let tenant = acting_for(&key.tenant, key.is_service, &self.tenants);
        let refused = || Problem::forbidden("X-Tenant-ID header does not match the API key's tenant");
        let tenant = tenant.ok_or_else(refused)?.to_owned();
        app.rates().take(&tenant, app.renew_limits(&tenant)?.requests_per_second)?;
        Ok((Caller { tenant, role: key.role, key: key.id, view: key.view }, key.is_unnoted))
    }
}

// The tenant of a request: that of its key, or the one that a service key names.
fn acting_for<'a>(own: &'a str, is_service: bool, named: &'a [HeaderValue]) -> Option<&'a str> {
    match named {
        [] => Some(own),
        all if all.iter().all(|named| named.as_bytes() == own.as_bytes()) => Some(own),
        [one] if is_service => one.to_str().ok().filter(|named| is_tenant(named)),
        _ => None,
    }
}

/// How often each tenant may ask, with all its keys together: a bucket that fills by the second.
#[derive(Default)]
pub(super) struct Rates(Mutex<HashMap<String, (f64, Instant)>>);

impl Rates {
    fn take(&self, tenant: &str, per_second: u32) -> Result<(), Problem> {
        let (now, most) = (Instant::now(), f64::from(per_second.max(1)));
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MOST_RATES {
            buckets.retain(|_, (_, at)| now.duration_since(*at) < Duration::from_secs(60));
        }
        let (left, at) = buckets.entry(tenant.to_owned()).or_insert((most, now));
        *left = (*left + now.duration_since(*at).as_secs_f64() * most).min(most);
        *at = now;
        if *left < 1.0 {
            return Err(Problem::limited(format!("more than {most} requests of this tenant in a second"), 1));
        }
        *left -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_that_asks_too_often_is_refused_and_others_are_not() {
        let rates = Rates::default();
        assert!((0..3).all(|_| rates.take("a", 3).is_ok()));
        let refused = rates.take("a", 3).unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.retry_after), (429, Some(1)));
        assert!(rates.take("b", 3).is_ok());
    }

    // T-NET-05.
    #[test]
    fn only_a_service_key_acts_for_a_tenant_that_it_names() {
        let check = |named: &[&'static str], of_key: Option<&str>, of_service: Option<&str>| {
            let named: Vec<HeaderValue> = named.iter().copied().map(HeaderValue::from_static).collect();
            assert_eq!(acting_for("own", false, &named), of_key, "{named:?}");
            assert_eq!(acting_for("own", true, &named), of_service, "{named:?}");
        };
        check(&[], Some("own"), Some("own"));
        check(&["own"], Some("own"), Some("own"));
        check(&["other"], None, Some("other"));
        for named in [&["a b"][..], &["../other"], &["other", "third"], &["own", "other"]] {
            check(named, None, None);
        }
    }

    #[test]
    fn a_request_without_a_key_is_rejected_with_the_reason() {
        let check = |values: &[&'static str], expected: Result<&str, &str>| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, HeaderValue::from_static(value));
            }
            let shown = shown_key(&headers).map_err(|problem| problem.message);
            assert_eq!(shown.as_deref().map_err(String::as_str), expected, "{values:?}");
        };
        check(&["Bearer sk-1"], Ok("sk-1"));
        check(&["bearer  sk-1 "], Ok("sk-1"));
        for values in [&[][..], &[""]] {
            check(values, Err("missing Authorization header"));
        }
        for values in [&["Basic sk-1"][..], &["sk-1"], &["Bearer"], &["Bearer sk-1", "Bearer sk-2"]] {
            check(values, Err("Authorization header must use Bearer scheme"));
        }
        check(&["Bearer  "], Err("empty bearer token"));
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
