//! OpenTelemetry traces, with a collector that is a socket of the test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::Server;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// A collector that accepts everything: its address, and the spans that come.
fn collector() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, spans) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut line, mut length, mut head) = (String::new(), 0, String::new());
            while stream.read_line(&mut line).unwrap() > 2 {
                let lower = line.to_ascii_lowercase();
                length = lower.strip_prefix("content-length: ").map_or(length, |value| value.trim().parse().unwrap());
                head.push_str(&lower);
                line.clear();
            }
            assert!(head.starts_with("post /v1/traces http/1.1") && head.contains("content-type: application/json"), "{head}");
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            let resource = &body["resourceSpans"][0];
            assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "sandlite");
            for span in resource["scopeSpans"][0]["spans"].as_array().unwrap() {
                let _ = sender.send(span.clone());
            }
            stream
                .get_mut()
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
                .unwrap();
        }
    });
    (address, spans)
}

/// The spans that have arrived and were not asked for: a short run may end before the request that began it.
struct Arriving {
    spans: Receiver<Value>,
    kept: Vec<Value>,
}

impl Arriving {
    /// The next span of this name.
    fn next(&mut self, name: &str) -> Value {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(at) = self.kept.iter().position(|span| span["name"] == name) {
                return self.kept.remove(at);
            }
            self.kept.push(self.spans.recv_timeout(until.saturating_duration_since(Instant::now())).unwrap());
        }
    }
}

fn attribute(span: &Value, key: &str) -> Value {
    let found = span["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == key);
    found.unwrap_or_else(|| panic!("no {key}: {span}"))["value"].clone()
}

#[test]
fn a_request_and_its_run_are_spans_of_the_clients_trace() {
    let (address, spans) = collector();
    let mut spans = Arriving { spans, kept: Vec::new() };
    let server = Server::start(&[&format!("otlp={address}")]);
    let made = server.post("/v1/sandboxes", &json!({})).expect(201).json();
    let id = made["id"].as_str().unwrap();
    let bash = |flags: &str, more: &[(&str, &str)]| {
        let parent = format!("00-{TRACE}-{SPAN}-{flags}");
        let headers = [&[("traceparent", parent.as_str()), ("X-Request-ID", flags)], more].concat();
        server.with_json("POST", &format!("/v1/sandboxes/{id}/actions/bash"), &headers, &json!({ "command": "true" }))
    };
    bash("00", &[]).expect(200);
    bash("01", &[]).expect(200);
    let run = spans.next("run");
    let request = spans.next("POST /v1/sandboxes/{id}/actions/{action}");
    assert_eq!((&request["traceId"], &request["parentSpanId"], &request["kind"]), (&json!(TRACE), &json!(SPAN), &json!(2)));
    assert_eq!((&run["traceId"], &run["parentSpanId"], &run["kind"]), (&json!(TRACE), &request["spanId"], &json!(1)));
    assert_eq!(attribute(&request, "http.response.status_code")["intValue"], "200");
    // The one that the client did not want recorded came first, and is not here.
    assert_eq!(attribute(&request, "sandlite.request_id")["stringValue"], "01");
    assert_eq!(attribute(&run, "sandlite.tenant")["stringValue"], "default");
    let nanoseconds = |span: &Value, name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
    assert!(nanoseconds(&request, "startTimeUnixNano") <= nanoseconds(&run, "startTimeUnixNano"));
    assert!(nanoseconds(&run, "endTimeUnixNano") <= nanoseconds(&request, "endTimeUnixNano"));
    // A job's run belongs to the request that began it, though that has ended.
    bash("01", &[("Prefer", "respond-async")]).expect(202);
    let request = spans.next("POST /v1/sandboxes/{id}/actions/{action}");
    let run = spans.next("run");
    assert_eq!(run["parentSpanId"], request["spanId"]);
    assert!(server.get("/metrics").text().contains("\nsandlite_spans_dropped_total 0\n"));
}

#[test]
fn a_missing_collector_loses_spans_and_nothing_else() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Server::start(&[&format!("otlp=http://{address}")]);
    let began = Instant::now();
    server.get("/health").expect(200);
    let dropped = || {
        let text = server.get("/metrics").text();
        let line = text.lines().find_map(|line| line.strip_prefix("sandlite_spans_dropped_total "));
        line.unwrap_or_else(|| panic!("{text}")).parse::<u64>().unwrap()
    };
    while dropped() == 0 {
        assert!(began.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(50));
    }
    let quiet = Server::start(&[]);
    assert!(!quiet.get("/metrics").text().contains("sandlite_spans"));
}
