//! What is counted. No label names a lease, a resource, a holder or a token: there would be no end to them, and whoever
//! reads numbers need not read names.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::Method;
use parking_lot::Mutex;
use tenure_api::Code;

/// What was counted since the start.
#[derive(Default)]
pub(crate) struct Metrics {
    /// By route, because there are few.
    routes: Mutex<HashMap<String, Route>>,
    problems: Mutex<BTreeMap<&'static str, u64>>,
    writes: Histogram,
    connections: AtomicUsize,
}

#[derive(Default)]
struct Route {
    answers: BTreeMap<(&'static str, u16), u64>,
    seconds: Histogram,
}

/// The bounds of a histogram, in microseconds: from a write to a fast disk to a wait that is long.
const BOUNDS: [u64; 13] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 1_000_000, 5_000_000, 30_000_000];

#[derive(Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    microseconds: AtomicU64,
}

impl Metrics {
    /// Counts an answer. `route` is one of ours, or nothing where there was none.
    pub(crate) fn answered(
        &self,
        route: Option<&str>,
        method: &Method,
        status: u16,
        code: Option<Code>,
        took: Duration,
    ) {
        let route = route.unwrap_or("none");
        let mut routes = self.routes.lock();
        if !routes.contains_key(route) {
            routes.insert(route.to_owned(), Route::default());
        }
        if let Some(entry) = routes.get_mut(route) {
            *entry.answers.entry((name_of(method), status)).or_default() += 1;
            entry.seconds.add(took);
        }
        drop(routes);
        if let Some(code) = code {
            let mut problems = self.problems.lock();
            *problems.entry(code.as_str()).or_default() += 1;
        }
    }

    /// Counts a write to the ledger.
    pub(crate) fn written(&self, took: Duration) {
        self.writes.add(took);
    }

    /// Counts a connection as long as the answer lives.
    pub(crate) fn connected(self: &Arc<Self>) -> Connected {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Connected(self.clone())
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Everything that was counted, as Prometheus reads it.
    pub(crate) fn put(&self, text: &mut String) {
        let routes = self.routes.lock();
        let sorted: BTreeMap<_, _> = routes.iter().collect();
        head(text, "tenure_requests_total", "counter", "Requests that were answered.");
        for (route, entry) in &sorted {
            for ((method, status), count) in &entry.answers {
                let labels = format!("route=\"{route}\",method=\"{method}\",status=\"{status}\"");
                line(text, "tenure_requests_total", &labels, count);
            }
        }
        head(text, "tenure_request_seconds", "histogram", "How long it took until the answer began.");
        for (route, entry) in &sorted {
            entry.seconds.put(text, "tenure_request_seconds", &format!("route=\"{route}\""));
        }
        drop(routes);
        head(text, "tenure_problems_total", "counter", "Requests that did not get what they wanted.");
        let problems = self.problems.lock();
        for (code, count) in &*problems {
            line(text, "tenure_problems_total", &format!("code=\"{code}\""), count);
        }
        drop(problems);
        head(text, "tenure_ledger_write_seconds", "histogram", "How long a durable write took.");
        self.writes.put(text, "tenure_ledger_write_seconds", "");
    }
}

pub(crate) struct Connected(Arc<Metrics>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Histogram {
    fn add(&self, took: Duration) {
        let microseconds = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|bound| *bound < microseconds);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.microseconds.fetch_add(microseconds, Ordering::Relaxed);
    }

    fn put(&self, text: &mut String, name: &str, labels: &str) {
        let comma = if labels.is_empty() { "" } else { "," };
        // Read first, so that no bucket holds more than all of them.
        let buckets = BOUNDS.iter().zip(&self.buckets);
        let counts: Vec<_> = buckets.map(|(bound, bucket)| (bound, bucket.load(Ordering::Relaxed))).collect();
        let mut sum = 0;
        for (bound, count) in counts {
            sum += count;
            line(
                text,
                &format!("{name}_bucket"),
                &format!("{labels}{comma}le=\"{}\"", in_seconds(*bound)),
                &sum,
            );
        }
        let count = self.count.load(Ordering::Relaxed).max(sum);
        line(text, &format!("{name}_bucket"), &format!("{labels}{comma}le=\"+Inf\""), &count);
        line(text, &format!("{name}_sum"), labels, &in_seconds(self.microseconds.load(Ordering::Relaxed)));
        line(text, &format!("{name}_count"), labels, &count);
    }
}

pub(crate) fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

pub(crate) fn line(text: &mut String, name: &str, labels: &str, value: &dyn std::fmt::Display) {
    let _ = if labels.is_empty() {
        writeln!(text, "{name} {value}")
    } else {
        writeln!(text, "{name}{{{labels}}} {value}")
    };
}

pub(crate) fn single(text: &mut String, name: &str, kind: &str, help: &str, value: &dyn std::fmt::Display) {
    head(text, name, kind, help);
    line(text, name, "", value);
}

/// Without a floating point: 0.000250 is what is meant, not nearly that.
fn in_seconds(microseconds: u64) -> String {
    format!("{}.{:06}", microseconds / 1_000_000, microseconds % 1_000_000)
}

/// A caller may invent methods: they are all one label.
fn name_of(method: &Method) -> &'static str {
    const KNOWN: [(Method, &str); 7] = [
        (Method::GET, "GET"),
        (Method::HEAD, "HEAD"),
        (Method::POST, "POST"),
        (Method::PUT, "PUT"),
        (Method::DELETE, "DELETE"),
        (Method::PATCH, "PATCH"),
        (Method::OPTIONS, "OPTIONS"),
    ];
    KNOWN.iter().find(|(known, _)| known == method).map_or("other", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_written_as_prometheus_reads_it() {
        let metrics = Metrics::default();
        let took = Duration::from_micros(300);
        metrics.answered(Some("/v1/leases"), &Method::POST, 409, Some(Code::Held), took);
        metrics.answered(Some("/v1/leases"), &Method::POST, 409, Some(Code::Held), took);
        metrics.answered(None, &Method::from_bytes(b"INVENTED").unwrap(), 404, Some(Code::NotFound), took);
        metrics.written(Duration::from_secs(100));
        let mut text = String::new();
        metrics.put(&mut text);
        for line in [
            "tenure_requests_total{route=\"/v1/leases\",method=\"POST\",status=\"409\"} 2",
            "tenure_requests_total{route=\"none\",method=\"other\",status=\"404\"} 1",
            "tenure_request_seconds_bucket{route=\"/v1/leases\",le=\"0.000250\"} 0",
            "tenure_request_seconds_bucket{route=\"/v1/leases\",le=\"0.000500\"} 2",
            "tenure_request_seconds_sum{route=\"/v1/leases\"} 0.000600",
            "tenure_problems_total{code=\"HELD\"} 2",
            "tenure_ledger_write_seconds_bucket{le=\"30.000000\"} 0",
            "tenure_ledger_write_seconds_bucket{le=\"+Inf\"} 1",
            "tenure_ledger_write_seconds_count 1",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in:\n{text}");
        }
    }
}
