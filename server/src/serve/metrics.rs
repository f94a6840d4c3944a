//! Counters in Prometheus's text format.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper ends of the buckets of request times, in seconds.
const BUCKETS: [f64; 9] = [0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0, 30.0];
/// Methods with counts of their own. HTTP allows any word as a method, so all others are counted together (T-NET-04).
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// The counters. Labels are few and never come from a client's text: routes, methods, statuses, kinds.
#[derive(Default)]
pub(crate) struct Metrics(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    requests: BTreeMap<(String, String, u16), u64>,
    times: [u64; BUCKETS.len()],
    time_sum: f64,
    time_count: u64,
    runs: BTreeMap<(&'static str, String), u64>,
    fuel: u64,
    limits: BTreeMap<String, u64>,
}

impl Metrics {
    fn counted(&self) -> std::sync::MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request by its route.
    pub(super) fn request(&self, method: &str, route: &str, status: u16, time: Duration) {
        let method = METHODS.into_iter().find(|known| *known == method).unwrap_or("other");
        let mut counted = self.counted();
        *counted.requests.entry((method.to_owned(), route.to_owned(), status)).or_default() += 1;
        let seconds = time.as_secs_f64();
        if let Some(bucket) = BUCKETS.iter().position(|most| seconds <= *most).and_then(|at| counted.times.get_mut(at)) {
            *bucket += 1;
        }
        counted.time_sum += seconds;
        counted.time_count += 1;
    }

    /// Counts a run by its kind and how it ended, with the fuel that it used.
    pub(crate) fn run(&self, kind: &'static str, status: impl Into<String>, fuel: u64) {
        let mut counted = self.counted();
        *counted.runs.entry((kind, status.into())).or_default() += 1;
        counted.fuel = counted.fuel.saturating_add(fuel);
    }

    /// Counts a run that a limit ended, by the name of the limit.
    pub(crate) fn limit(&self, name: impl Into<String>) {
        *self.counted().limits.entry(name.into()).or_default() += 1;
    }

    /// Returns all metrics as text. `gauges` are current values, `counters` the totals of other modules.
    pub(super) fn render(&self, gauges: &[(&str, &str, u64)], counters: &[(&str, &str, u64)]) -> String {
        let counted = self.counted();
        let mut text =
            String::from("# HELP sandlite_requests_total Requests by route and status\n# TYPE sandlite_requests_total counter\n");
        for ((method, route, status), count) in &counted.requests {
            let _ =
                writeln!(text, "sandlite_requests_total{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}} {count}");
        }
        text.push_str("# HELP sandlite_request_seconds Time of a request\n# TYPE sandlite_request_seconds histogram\n");
        let mut sum = 0;
        for (most, count) in BUCKETS.iter().zip(counted.times) {
            sum += count;
            let _ = writeln!(text, "sandlite_request_seconds_bucket{{le=\"{most}\"}} {sum}");
        }
        let _ = writeln!(text, "sandlite_request_seconds_bucket{{le=\"+Inf\"}} {}", counted.time_count);
        let _ = writeln!(text, "sandlite_request_seconds_sum {}", counted.time_sum);
        let _ = writeln!(text, "sandlite_request_seconds_count {}", counted.time_count);
        text.push_str("# HELP sandlite_runs_total Runs by kind and status\n# TYPE sandlite_runs_total counter\n");
        for ((kind, status), count) in &counted.runs {
            let _ = writeln!(text, "sandlite_runs_total{{kind=\"{kind}\",status=\"{status}\"}} {count}");
        }
        let _ = writeln!(
            text,
            "# HELP sandlite_fuel_total Fuel of all runs\n# TYPE sandlite_fuel_total counter\nsandlite_fuel_total {}",
            counted.fuel
        );
        text.push_str("# HELP sandlite_limits_total Runs that a limit ended\n# TYPE sandlite_limits_total counter\n");
        for (limit, count) in &counted.limits {
            let _ = writeln!(text, "sandlite_limits_total{{limit=\"{limit}\"}} {count}");
        }
        let typed = gauges.iter().map(|row| ("gauge", row)).chain(counters.iter().map(|row| ("counter", row)));
        for (kind, (name, help, value)) in typed {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // T-NET-04.
    #[test]
    fn methods_that_clients_make_up_share_one_count() {
        let metrics = Metrics::default();
        (0..1000).for_each(|number| metrics.request(&format!("WORD{number}"), "/health", 405, Duration::ZERO));
        metrics.request("PATCH", "/health", 405, Duration::ZERO);
        let text = metrics.render(&[], &[]);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("sandlite_requests_total{")).collect();
        let expected = [
            "sandlite_requests_total{method=\"PATCH\",route=\"/health\",status=\"405\"} 1",
            "sandlite_requests_total{method=\"other\",route=\"/health\",status=\"405\"} 1000",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn buckets_add_up() {
        let metrics = Metrics::default();
        metrics.request("GET", "/health", 200, Duration::from_millis(2));
        metrics.request("GET", "/health", 200, Duration::from_secs(60));
        metrics.run("skill", "success", 7);
        metrics.limit("wall");
        let text = metrics.render(&[("sandlite_waiting", "Requests that wait", 3)], &[("sandlite_lost_total", "Lost", 4)]);
        for line in [
            "sandlite_requests_total{method=\"GET\",route=\"/health\",status=\"200\"} 2",
            "sandlite_request_seconds_bucket{le=\"0.001\"} 0",
            "sandlite_request_seconds_bucket{le=\"0.0025\"} 1",
            "sandlite_request_seconds_bucket{le=\"30\"} 1",
            "sandlite_request_seconds_bucket{le=\"+Inf\"} 2",
            "sandlite_runs_total{kind=\"skill\",status=\"success\"} 1",
            "sandlite_fuel_total 7",
            "sandlite_limits_total{limit=\"wall\"} 1",
            "sandlite_waiting 3",
            "# TYPE sandlite_lost_total counter",
            "sandlite_lost_total 4",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}\n{text}");
        }
    }
}
