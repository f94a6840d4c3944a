//! OpenTelemetry traces by option: a span for each request and each run, sent to a collector as JSON (OTLP over HTTP).
//!
//! Written here because the OpenTelemetry crates need more code than this server has. Spans wait in a bounded queue. A span that finds it
//! full, or that the collector does not accept, is dropped and counted; a request never waits for the collector.

mod export;

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderMap, HeaderName, Uri};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::clock;
use crate::http::{only, random_hex};

/// The header of W3C Trace Context.
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
/// Spans that wait to be sent.
const QUEUE: usize = 4096;
/// How long the last spans have when the server ends.
const LAST_SPANS: Duration = Duration::from_secs(2);

tokio::task_local! {
    static CURRENT: Option<Context>;
}

/// The address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    authority: String,
    path: String,
}

impl FromStr for Collector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected http://HOST:PORT; for TLS, name a collector on this machine that passes the spans on";
        let uri: Uri = text.parse().map_err(|_| expected.to_owned())?;
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http")).ok_or(expected)?;
        let port = authority.port_u16().unwrap_or(80);
        Ok(Self {
            authority: format!("{}:{port}", authority.host()),
            path: format!("{}/v1/traces", uri.path().trim_end_matches('/')),
        })
    }
}

/// Where a span belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Context {
    trace: String,
    span: String,
}

/// A span that has begun.
pub(crate) struct Span {
    context: Context,
    parent: Option<String>,
    began: u64,
    is_request: bool,
}

/// Where spans go. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Traces(Option<Arc<Inner>>);

struct Inner {
    queue: mpsc::Sender<Value>,
    dropped: AtomicU64,
    sent: AtomicU64,
    ending: Notify,
    ended: Notify,
}

impl Traces {
    /// Starts to send spans to a collector; without one nothing is recorded. Must be called on the server's threads.
    pub(super) fn start(collector: Option<&Collector>) -> Self {
        let Some(collector) = collector.cloned() else { return Self::default() };
        let (queue, waiting) = mpsc::channel(QUEUE);
        let inner = Arc::new(Inner {
            queue,
            dropped: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            ending: Notify::new(),
            ended: Notify::new(),
        });
        tokio::spawn(export::run(collector, waiting, Arc::clone(&inner)));
        Self(Some(inner))
    }

    /// Begins the span of a request, below the one that the client names.
    pub(super) fn begin_request(&self, headers: &HeaderMap) -> Option<Span> {
        self.0.as_ref()?;
        match only(headers, &TRACE_PARENT).map(parent) {
            Some(Some((parent, true))) => Span::new(Some(parent), true),
            // The client requests that this trace is not recorded.
            Some(Some((_, false))) => None,
            // A header that is not valid is ignored, as the standard has it.
            Some(None) | None => Span::new(None, true),
        }
    }

    /// Begins a span below that of the current task; outside any request, a new trace.
    pub(super) fn begin(&self) -> Option<Span> {
        self.0.as_ref()?;
        match CURRENT.try_with(Clone::clone) {
            Ok(Some(current)) => Span::new(Some(current), false),
            // The request is not recorded.
            Ok(None) => None,
            Err(_) => Span::new(None, false),
        }
    }

    /// Ends a span; `is_error` marks it as failed.
    pub(super) fn end(&self, span: Option<Span>, name: &str, is_error: bool, attributes: &[(&str, Value)]) {
        let (Some(inner), Some(span)) = (&self.0, span) else { return };
        let sent = inner.queue.try_send(span.into_json(name, is_error, attributes));
        if sent.is_err() {
            inner.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns how many spans were accepted by the collector, and how many were dropped; `None` if nothing is recorded.
    pub(super) fn counts(&self) -> Option<(u64, u64)> {
        let inner = self.0.as_ref()?;
        Some((inner.sent.load(Ordering::Relaxed), inner.dropped.load(Ordering::Relaxed)))
    }

    /// Sends the remaining spans, for a short time.
    pub(super) async fn finish(&self) {
        let Some(inner) = &self.0 else { return };
        inner.ending.notify_one();
        let _ = tokio::time::timeout(LAST_SPANS, inner.ended.notified()).await;
    }
}

impl Span {
    fn new(parent: Option<Context>, is_request: bool) -> Option<Self> {
        let span = random_hex::<8>().ok()?;
        let (trace, parent) = match parent {
            Some(parent) => (parent.trace, Some(parent.span)),
            None => (random_hex::<16>().ok()?, None),
        };
        Some(Self { context: Context { trace, span }, parent, began: clock::nanoseconds(), is_request })
    }

    fn into_json(self, name: &str, is_error: bool, attributes: &[(&str, Value)]) -> Value {
        let typed = |value: &Value| match value {
            // Numbers of 64 bits are texts in OTLP's JSON.
            Value::Number(number) => json!({ "intValue": number.to_string() }),
            Value::String(text) => json!({ "stringValue": text }),
            other => json!({ "stringValue": other.to_string() }),
        };
        let attributes: Vec<Value> = attributes.iter().map(|(key, value)| json!({ "key": key, "value": typed(value) })).collect();
        let (internal, server, error) = (1, 2, 2);
        json!({
            "traceId": self.context.trace,
            "spanId": self.context.span,
            "parentSpanId": self.parent.unwrap_or_default(),
            "name": name,
            "kind": if self.is_request { server } else { internal },
            "startTimeUnixNano": self.began.to_string(),
            "endTimeUnixNano": clock::nanoseconds().to_string(),
            "attributes": attributes,
            "status": if is_error { json!({ "code": error }) } else { json!({}) },
        })
    }
}

/// Does something as part of a span: spans that begin meanwhile are below it.
pub(super) async fn within<T>(span: Option<&Span>, work: impl Future<Output = T>) -> T {
    CURRENT.scope(span.map(|span| span.context.clone()), work).await
}

/// The same for a new task, below the span of the present one.
pub(crate) fn carried<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let current = CURRENT.try_with(Clone::clone).ok().flatten();
    CURRENT.scope(current, work)
}

// The context of `00-TRACE-SPAN-FLAGS`, and whether it is recorded.
fn parent(text: &str) -> Option<(Context, bool)> {
    let mut parts = text.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    let is_valid = is_hex(version, 2) && version != "ff" && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    if !is_valid || is_zero(trace) || is_zero(span) || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let is_recorded = u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1);
    Some((Context { trace: trace.to_owned(), span: span.to_owned() }, is_recorded))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn the_header_of_a_client_is_read_as_the_standard_has_it() {
        let read = |text: &str| parent(text).map(|(context, is_recorded)| (context.trace, context.span, is_recorded));
        let expected = |is_recorded| Some((TRACE.to_owned(), "00f067aa0ba902b7".to_owned(), is_recorded));
        assert_eq!(read(&format!("00-{TRACE}-00f067aa0ba902b7-01")), expected(true));
        assert_eq!(read(&format!("00-{TRACE}-00f067aa0ba902b7-00")), expected(false));
        assert_eq!(read(&format!("01-{TRACE}-00f067aa0ba902b7-03-more")), expected(true));
        for invalid in [
            String::new(),
            format!("00-{TRACE}-00f067aa0ba902b7"),
            format!("00-{TRACE}-00f067aa0ba902b7-01-more"),
            format!("ff-{TRACE}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()),
        ] {
            assert_eq!(read(&invalid), None, "{invalid}");
        }
    }

    #[test]
    fn a_collector_is_an_address_without_tls() {
        let of = |text: &str| text.parse::<Collector>().map(|collector| (collector.authority, collector.path));
        assert_eq!(of("http://127.0.0.1:4318"), Ok(("127.0.0.1:4318".to_owned(), "/v1/traces".to_owned())));
        assert_eq!(of("http://box/otel/"), Ok(("box:80".to_owned(), "/otel/v1/traces".to_owned())));
        assert!(of("https://box").unwrap_err().contains("http://HOST:PORT"));
        assert!(of("box:4318").is_err());
    }

    #[tokio::test]
    async fn a_full_queue_drops_spans_and_counts_them() {
        let (queue, _waiting) = mpsc::channel(2);
        let inner =
            Inner { queue, dropped: AtomicU64::new(0), sent: AtomicU64::new(0), ending: Notify::new(), ended: Notify::new() };
        let traces = Traces(Some(Arc::new(inner)));
        for _ in 0..5 {
            traces.end(traces.begin_request(&HeaderMap::new()), "GET /", false, &[]);
        }
        assert_eq!(traces.counts(), Some((0, 3)));
        assert!(Traces::default().begin_request(&HeaderMap::new()).is_none() && Traces::default().counts().is_none());
    }
}
