//! What every route needs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::http::events::Hub;
use crate::registrar::Registrar;
use crate::tokens::{AdminToken, TokenKey};

/// What every route needs.
pub(crate) struct App {
    pub(crate) registrar: Registrar,
    pub(crate) tokens: TokenKey,
    pub(crate) admin: AdminToken,
    /// Where those who listen to events look.
    pub(crate) events: Arc<Hub>,
    /// Where we listen, with the real port.
    pub(crate) address: SocketAddr,
    is_stopping: AtomicBool,
}

impl App {
    pub(crate) fn new(
        registrar: Registrar,
        tokens: TokenKey,
        admin: AdminToken,
        address: SocketAddr,
    ) -> Self {
        let events = Hub::start(registrar.feed());
        Self { registrar, tokens, admin, events, address, is_stopping: AtomicBool::new(false) }
    }

    /// From now on `/readyz` sends callers elsewhere, nobody waits in line, and who listens to events is let go.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.registrar.send_away();
        self.events.end();
    }

    /// Why requests will not be answered; nothing while they will.
    pub(crate) fn why_not_ready(&self) -> Option<&'static str> {
        if self.registrar.has_ended() {
            Some("the ledger can no longer be written; the server is ending and must be started again")
        } else if self.is_stopping.load(Ordering::Relaxed) {
            Some("the server is stopping")
        } else {
            None
        }
    }
}
