//! Every request, before and after its route: host names and origins, its id, its log line, its headers.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, HeaderName, ORIGIN, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};

use super::app::App;
use super::auth::Who;
use super::catalog::new_id;
use super::problem::{FaultId, Problem};
use super::traces::within;
use super::{Log, clock, origins};
use crate::http::{Hosts, only};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that a client may give its request.
const LONGEST_ID: usize = 128;

/// The id of a request.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub(crate) String);

/// The path of a request: a route below `/v1` sees it without that prefix.
#[derive(Clone, Debug)]
pub(crate) struct WholePath(pub(crate) String);

/// The layers that every request passes.
#[derive(Clone)]
pub(super) struct Door {
    pub(super) app: App,
    pub(super) hosts: Arc<Hosts>,
    pub(super) line: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Passes a request on, if its host name and origin are served.
pub(super) async fn pass(State(door): State<Door>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let given = only(request.headers(), &REQUEST_ID);
    let is_plain = |id: &&str| (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
    let id = given.filter(is_plain).map_or_else(new_id, str::to_owned);
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map_or_else(|| "other".to_owned(), |path| path.as_str().to_owned());
    let traces = door.app.traces();
    let span = traces.begin_request(request.headers());
    let mut response = match door.check(&request) {
        Ok(()) => {
            let path = WholePath(request.uri().path().to_owned());
            request.extensions_mut().insert(path);
            request.extensions_mut().insert(RequestId(id.clone()));
            let origin = origins::listed(request.headers(), &door.app.config().origins);
            let mut response = match origin.as_ref().and_then(|_| origins::preflight(&request)) {
                Some(response) => response,
                None => within(span.as_ref(), next.run(request)).await,
            };
            if let Some(origin) = origin {
                origins::show(&mut response, origin);
            }
            response
        }
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    let (status, time) = (response.status().as_u16(), began.elapsed());
    if span.is_some() {
        let attributes: [(&str, serde_json::Value); 4] = [
            ("http.request.method", method.as_str().into()),
            ("http.route", route.as_str().into()),
            ("http.response.status_code", status.into()),
            ("sandlite.request_id", id.as_str().into()),
        ];
        traces.end(span, &format!("{method} {route}"), status >= 500, &attributes);
    }
    door.app.metrics().request(method.as_str(), &route, status, time);
    let milliseconds = time.as_secs_f64() * 1000.0;
    let fault = response.extensions().get::<FaultId>().map(|fault| fault.0.clone());
    let who = response.extensions().get::<Who>().cloned();
    let config = door.app.config();
    match config.log {
        _ if status < config.log_from => {}
        Log::Off => {}
        Log::Text => {
            let who =
                who.map(|who| format!(" tenant {} key {}", runtime::actions::quoted(&who.tenant), who.key)).unwrap_or_default();
            let fault = fault.map(|fault| format!(" fault {fault}")).unwrap_or_default();
            (door.line)(&format!("{method} {route} {status} {milliseconds:.1} ms {id}{who}{fault}"));
        }
        Log::Json => {
            let at = clock::rfc3339(clock::now());
            let mut line = serde_json::json!({
                "at": at, "method": method.as_str(), "route": route, "status": status, "ms": milliseconds, "request_id": id,
            });
            if let Some(fields) = line.as_object_mut() {
                let (tenant, key) = who.map(|who| (who.tenant, who.key)).unzip();
                let more = [("tenant", tenant), ("key", key), ("fault", fault)];
                fields.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))));
            }
            (door.line)(&line.to_string());
        }
    }
    response
}

impl Door {
    // T-NET-01: a page that rebinds its own name to this machine, and a page of another site.
    fn check(&self, request: &Request) -> Result<(), Problem> {
        if !self.hosts.serves(request.uri(), request.headers()) {
            return Err(Problem::forbidden("this host name is not served: start the server with `--allow-host NAME`"));
        }
        let headers = request.headers();
        if headers.contains_key(ORIGIN) && !self.is_welcome(only(headers, &ORIGIN), only(headers, &http::header::HOST)) {
            return Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", "pages of this origin are not served"));
        }
        Ok(())
    }

    // The console's own origin is the host of the request, which was checked.
    fn is_welcome(&self, origin: Option<&str>, host: Option<&str>) -> bool {
        let (Some(origin), Some(host)) = (origin, host) else { return false };
        let is_own = ["http://", "https://"]
            .iter()
            .any(|scheme| origin.strip_prefix(scheme).is_some_and(|named| named.eq_ignore_ascii_case(host)));
        is_own || self.app.config().origins.iter().any(|allowed| allowed == origin)
    }
}
