//! What every route needs.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;

use crate::http::events::Hub;
use crate::metrics::Metrics;
use crate::refusals::Refusals;
use crate::registrar::Registrar;
use crate::tokens::{AdminToken, TokenKey};

/// What every route needs.
pub(crate) struct App {
    pub(crate) registrar: Registrar,
    pub(crate) tokens: TokenKey,
    pub(crate) admin: AdminToken,
    pub(crate) metrics: Arc<Metrics>,
    /// Why requests were refused, for whoever asks.
    pub(crate) refusals: Refusals,
    /// Where those who listen to events look.
    pub(crate) events: Arc<Hub>,
    /// Where we listen, with the real port.
    pub(crate) address: SocketAddr,
    stopping: watch::Sender<bool>,
}

impl App {
    pub(crate) fn new(
        registrar: Registrar,
        tokens: TokenKey,
        admin: AdminToken,
        address: SocketAddr,
    ) -> Self {
        let metrics = Arc::new(Metrics::default());
        let events = Hub::start(registrar.feed(), metrics.clone());
        Self {
            registrar,
            tokens,
            admin,
            metrics,
            refusals: Refusals::default(),
            events,
            address,
            stopping: watch::Sender::new(false),
        }
    }

    /// From now on `/readyz` sends callers elsewhere, nobody waits in line, and who listens to events is let go.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
        self.registrar.send_away();
        self.events.end();
    }

    /// Waits until the server is told to stop. What is open without end, a wait or a stream of events, ends then.
    pub(crate) async fn stopping(&self) {
        // An error means that the app is gone: the same.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    /// Why requests will not be answered; nothing while they will.
    pub(crate) fn why_not_ready(&self) -> Option<&'static str> {
        if self.registrar.has_ended() {
            Some("the ledger can no longer be written; the server is ending and must be started again")
        } else if *self.stopping.borrow() {
            Some("the server is stopping")
        } else {
            None
        }
    }
}
