//! Metrics that are counted as requests and events happen. No label names a lease, resource, holder or token: their number
//! is unbounded, and a reader of metrics may not be permitted to see them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use tenure_api::Code;
use tenure_core::kernel::{AgentEvent, Event, IntentEvent};
use tenure_registrar::runtime::{AppliedEvent, Observer};

/// The name of every metric begins with this and an underscore.
pub(crate) const PREFIX: &str = "tenure";

/// A label set of one label: its name and value.
pub(crate) type Label<V> = [(&'static str, V); 1];

/// Requests by route. A `Family` for each of both metrics would make every request look up two label sets, and own them.
#[derive(Debug, Clone, Default)]
struct Routes(Arc<Mutex<HashMap<String, RouteMetrics>>>);

#[derive(Debug)]
struct RouteMetrics {
    /// By method and status.
    requests: BTreeMap<(&'static str, u16), u64>,
    /// By route only: a histogram has many series.
    seconds: Histogram,
}

pub(crate) struct Metrics {
    /// All metrics below.
    pub(crate) registry: Registry,
    routes: Routes,
    problems: Family<Label<&'static str>, Counter>,
    ledger_write_seconds: Histogram,
    pub(crate) connections: Gauge,
    pub(crate) event_streams: Gauge,
    events: Counter,
    intents_accepted: Counter,
    manifests_waited: Counter,
    manifests_aborted: Counter,
    unleased_accesses: Counter,
    agents_used_up: Counter,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let r = &mut registry;
        let routes = Routes::default();
        r.register_collector(Box::new(routes.clone()));
        Self {
            routes,
            problems: add(r, "problems", "Problem responses, by error code", Family::default()),
            ledger_write_seconds: add(r, "ledger_write_seconds", "Duration of durable writes", histogram()),
            connections: add(r, "connections", "Open connections", Gauge::default()),
            event_streams: add(r, "event_streams", "Open event streams", Gauge::default()),
            events: add(r, "events", "Durable events since the start", Counter::default()),
            intents_accepted: add(r, "intents_accepted", "New intent sessions", Counter::default()),
            manifests_waited: add(r, "agent_waits", "Manifests that had to wait", Counter::default()),
            manifests_aborted: add(r, "agent_deaths", "Manifests aborted by wait-die", Counter::default()),
            unleased_accesses: add(
                r,
                "agent_strays",
                "Resources touched without a lease",
                Counter::default(),
            ),
            agents_used_up: add(r, "agents_used_up", "Agents over their lease time", Counter::default()),
            registry,
        }
    }

    /// Counts a response. `route` is the path template, `None` for an unknown path.
    pub(crate) fn count_response(
        &self,
        route: Option<&str>,
        method: &Method,
        status: u16,
        code: Option<Code>,
        elapsed: Duration,
    ) {
        // Clients may invent methods.
        const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];
        if let Some(code) = code {
            self.problems.get_or_create(&[("code", code.as_str())]).inc();
        }
        let method = METHODS.into_iter().find(|known| method == *known).unwrap_or("other");
        let route = route.unwrap_or("none");
        let routes = &mut *self.routes.0.lock();
        let route = match routes.get_mut(route) {
            Some(route) => route,
            None => routes
                .entry(route.to_owned())
                .or_insert_with(|| RouteMetrics { requests: BTreeMap::new(), seconds: histogram() }),
        };
        *route.requests.entry((method, status)).or_default() += 1;
        route.seconds.observe(elapsed.as_secs_f64());
    }
}

impl Observer for Metrics {
    fn event_applied(&self, applied: AppliedEvent<'_>) {
        self.events.inc();
        let (counter, count) = match applied.event {
            Event::Intent(event) if matches!(**event, IntentEvent::Accepted(_)) => {
                (&self.intents_accepted, 1)
            }
            Event::Agent(event) => match &**event {
                AgentEvent::Waits(_) => (&self.manifests_waited, 1),
                AgentEvent::Died { .. } => (&self.manifests_aborted, 1),
                AgentEvent::Strayed { outside, .. } => (&self.unleased_accesses, outside.len() as u64),
                AgentEvent::UsedUp { .. } => (&self.agents_used_up, 1),
                _ => return,
            },
            _ => return,
        };
        counter.inc_by(count);
    }

    fn batch_published(&self, write_time: Duration) {
        self.ledger_write_seconds.observe(write_time.as_secs_f64());
    }
}

impl Collector for Routes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let routes = self.0.lock();
        let mut requests =
            encoder.encode_descriptor("requests", "Requests answered.", None, MetricType::Counter)?;
        for (name, route) in &*routes {
            for ((method, status), count) in &route.requests {
                let labels = ([("route", name.as_str()), ("method", method)], [("status", *status)]);
                ConstCounter::new(*count).encode(requests.encode_family(&labels)?)?;
            }
        }
        let help = "Time until the response began.";
        let mut seconds = encoder.encode_descriptor("request_seconds", help, None, MetricType::Histogram)?;
        for (name, route) in &*routes {
            route.seconds.encode(seconds.encode_family(&[("route", name.as_str())])?)?;
        }
        Ok(())
    }
}

fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// Buckets in seconds: from a write to a fast disk to a long wait in a queue.
fn histogram() -> Histogram {
    Histogram::new([0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0])
}

/// Counts one in a gauge until it is dropped.
pub(crate) struct GaugeGuard(Gauge);

impl GaugeGuard {
    pub(crate) fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_encoded_as_openmetrics() {
        let metrics = Metrics::new();
        let took = Duration::from_micros(300);
        metrics.count_response(Some("/v1/leases"), &Method::POST, 409, Some(Code::Held), took);
        metrics.count_response(Some("/v1/leases"), &Method::POST, 409, Some(Code::Held), took);
        let invented = Method::from_bytes(b"INVENTED").unwrap();
        metrics.count_response(None, &invented, 404, Some(Code::NotFound), took);
        metrics.batch_published(Duration::from_secs(100));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &metrics.registry).unwrap();
        for line in [
            "tenure_requests_total{route=\"/v1/leases\",method=\"POST\",status=\"409\"} 2",
            "tenure_requests_total{route=\"none\",method=\"other\",status=\"404\"} 1",
            "tenure_request_seconds_bucket{le=\"0.00025\",route=\"/v1/leases\"} 0",
            "tenure_request_seconds_bucket{le=\"0.0005\",route=\"/v1/leases\"} 2",
            "tenure_request_seconds_sum{route=\"/v1/leases\"} 0.0006",
            "tenure_problems_total{code=\"HELD\"} 2",
            "tenure_ledger_write_seconds_bucket{le=\"30.0\"} 0",
            "tenure_ledger_write_seconds_bucket{le=\"+Inf\"} 1",
            "tenure_ledger_write_seconds_count 1",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in:\n{text}");
        }
    }
}
