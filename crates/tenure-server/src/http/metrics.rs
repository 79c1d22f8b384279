//! `GET /metrics`: numbers for Prometheus, and the layer that counts.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tenure_api::Code;
use tenure_core::kernel::SessionState;
use tokio::time::Instant;

use crate::app::App;
use crate::metrics::{head, line, single};

/// Counts every answer.
pub(super) async fn count(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let response = next.run(request).await;
    let code = response.extensions().get::<Code>().copied();
    let route = route.as_ref().map(MatchedPath::as_str);
    app.metrics.answered(route, &method, response.status().as_u16(), code, began.elapsed());
    response
}

/// Numbers for Prometheus.
///
/// No label names a lease, a resource, a holder or a token.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "service",
    operation_id = "metrics",
    responses((status = 200, description = "Numbers in the text format, version 0.0.4", body = String, content_type = "text/plain; version=0.0.4; charset=utf-8")),
)]
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let mut text = String::with_capacity(16 << 10);
    head(&mut text, "tenure_build_info", "gauge", "Which version this is.");
    line(&mut text, "tenure_build_info", concat!("version=\"", env!("CARGO_PKG_VERSION"), "\""), &1);
    let ready = u8::from(app.why_not_ready().is_none());
    single(&mut text, "tenure_ready", "gauge", "Whether requests are answered.", &ready);
    put_state(&mut text, &app);
    put_sessions(&mut text, &app);
    app.agents.counters.put(&mut text, &app);
    app.control.desk.counters.put(&mut text);
    app.metrics.put(&mut text);
    let headers = [
        (header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, text).into_response()
}

fn put_sessions(text: &mut String, app: &App) {
    let states = app.registrar.read(|state| {
        let mut counts = [0_usize; SessionState::ALL.len()];
        state.sessions().for_each(|session| counts[session.state as usize] += 1);
        counts
    });
    head(text, "tenure_sessions", "gauge", "Sessions that go on, or are over and remembered.");
    for (state, count) in SessionState::ALL.iter().zip(states) {
        line(text, "tenure_sessions", &format!("state=\"{}\"", state.as_str()), &count);
    }
    let accepted = app.intents.accepted();
    single(text, "tenure_intents_accepted_total", "counter", "Intents that became sessions.", &accepted);
}

fn put_state(text: &mut String, app: &App) {
    let registrar = &app.registrar;
    let (live, waiting) = registrar.read(|state| (state.live_leases(), state.waiting_count()));
    let feed = registrar.feed();
    let mut put = |name, kind, help, value: &dyn std::fmt::Display| single(text, name, kind, help, value);
    put("tenure_leases", "gauge", "Leases that nobody has announced to be over.", &live);
    put("tenure_waiting", "gauge", "Requests that wait in line.", &waiting);
    put("tenure_connections", "gauge", "Connections that are open.", &app.metrics.connections());
    put("tenure_inbox_depth", "gauge", "Requests that wait to be decided.", &registrar.inbox_depth());
    put("tenure_ledger_seq", "gauge", "The number of the last event in the ledger.", &feed.head().seq.0);
    put("tenure_ledger_batches_total", "counter", "Durable writes since the start.", &feed.batches());
    put("tenure_events_total", "counter", "Events since the start.", &app.events.events());
    put("tenure_event_streams", "gauge", "Who listens to events.", &app.events.listeners());
}
