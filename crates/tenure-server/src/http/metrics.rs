//! `GET /metrics`: metrics for Prometheus, and the middleware that counts responses.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use serde::Serialize;
use tenure_api::Code;
use tenure_core::kernel::IntentSessionState;
use tokio::time::Instant;
use utoipa::ToSchema;

use super::response::{HttpError, json};
use crate::app::App;
use crate::metrics::{Label, PREFIX};

/// Counts every response.
pub(super) async fn count(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let response = next.run(request).await;
    let code = response.extensions().get::<Code>().copied();
    let route = route.as_ref().map(MatchedPath::as_str);
    app.metrics.count_response(route, &method, response.status().as_u16(), code, started.elapsed());
    response
}

/// Get metrics for Prometheus.
///
/// No label contains a lease, a resource, a holder or a token.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "service",
    operation_id = "metrics",
    responses((status = 200, description = "OpenMetrics 1.0 text", body = String, content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8")),
)]
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let mut body = String::with_capacity(16 << 10);
    text::encode_registry(&mut body, &current(&app))
        .and_then(|()| text::encode(&mut body, &app.metrics.registry))
        .expect("a String takes any text");
    let headers = [
        (header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, body).into_response()
}

/// Metrics that are read from the state of the server at scrape time. They get a registry per scrape: a `Collector` in the
/// registry of [`Metrics`](crate::metrics::Metrics) would need a reference back to `App`.
fn current(app: &App) -> Registry {
    let (registrar, feed) = (&app.registrar, app.registrar.event_feed());
    let sessions = Family::<Label<&str>, Gauge>::default();
    let by_state =
        IntentSessionState::ALL.map(|state| sessions.get_or_create_owned(&[("state", state.as_str())]));
    let (leases, waiting, agents, agents_waiting) = registrar.read(|state| {
        for session in state.intent_sessions() {
            by_state[session.state as usize].inc();
        }
        (state.lease_count(), state.waiter_count(), state.agents().count(), state.waiting_agents().count())
    });
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register("build", "Version of the server", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
    let mut gauge = |name, help, value: usize| registry.register(name, help, ConstGauge::new(value));
    gauge("ready", "Readiness: 1 while requests are answered", app.not_ready_reason().is_none().into());
    gauge("leases", "Active leases", leases);
    gauge("waiting", "Requests waiting in a queue", waiting);
    gauge("inbox_depth", "Requests waiting for the writer", registrar.inbox_depth());
    gauge("agents", "Known agents", agents);
    gauge("agents_waiting", "Manifests waiting for their leases", agents_waiting);
    registry.register("sessions", "Intent sessions, by state", sessions);
    registry.register("ledger_seq", "Number of the last event", ConstGauge::new(feed.head().seq.0));
    registry.register(
        "ledger_batches",
        "Durable writes since the start",
        ConstCounter::new(feed.published_batch_count()),
    );
    let control_events = app.control.controller.counters.events.clone();
    registry.register("control_events", "Control lease changes and blocked inputs", control_events);
    registry
}

/// The health of the server.
#[derive(Serialize, ToSchema)]
struct Health {
    /// Health: `alive` or `ready`.
    status: &'static str,
}

/// Check that the process is running.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "service",
    operation_id = "alive",
    responses((status = 200, description = "Process is running", body = Health)),
)]
pub(super) async fn alive() -> Response {
    json(StatusCode::OK, &Health { status: "alive" })
}

/// Check that the server is ready.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "service",
    operation_id = "ready",
    responses((status = 200, description = "Server is ready", body = Health)),
    extensions(("x-codes" = json!(["UNAVAILABLE"])))
)]
pub(super) async fn ready(State(app): State<Arc<App>>) -> Result<Response, HttpError> {
    match app.not_ready_reason() {
        None => Ok(json(StatusCode::OK, &Health { status: "ready" })),
        Some(reason) => Err(HttpError::new(Code::Unavailable, reason)),
    }
}
