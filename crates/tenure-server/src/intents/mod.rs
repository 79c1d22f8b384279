//! Intents API: accepts intents; one worker takes their sessions and holds the leases.
//!
//! ```text
//! request ──> lan        only from the local network
//!             parse      the strict parser
//!             key        the idempotency key
//!             submit     accepts an intent, or finds the session of an earlier one; stops sessions
//!             sessions   reads sessions, and waits for their changes; `view`: as JSON
//! worker ───> worker     takes, renews and finishes sessions: over HTTP, or `WorkerApi` in this process
//! ```
//!
//! The ledger is the bus: a worker learns of an accepted intent from its feed (`IntentSessionWaker` in `sessions`).

mod key;
mod lan;
mod parse;
mod sessions;
mod submit;
mod view;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tenure_core::kernel::TickDuration;
use tenure_registrar::runtime::{Observer, StateView};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::key::IntentKeyDeriver;
pub use self::key::{EmptySecret, IntentSecret, IntentSecrets};
pub(crate) use self::lan::lan_only;
pub use self::lan::{InvalidNetwork, Network};
use self::sessions::IntentSessionWaker;
pub(crate) use self::view::view_of;
pub use self::worker::WorkerApi;
use crate::app::App;

/// What every route of intents begins with.
pub(crate) const BELOW: &str = "/api/v3/";
/// What the names of resources and principals begin with that are the server's own.
pub(crate) const DOMAIN: &str = "system:";

/// The intents face.
pub(crate) struct IntentsApi {
    settings: IntentSettings,
    keys: IntentKeyDeriver,
    /// Whether an intent takes its lease when it is accepted, and not only when a worker takes it.
    api_leases: AtomicBool,
    session_waker: Arc<IntentSessionWaker>,
}

impl IntentsApi {
    pub(crate) fn new(settings: IntentSettings, secrets: IntentSecrets, view: &StateView) -> Self {
        let api_leases = AtomicBool::new(settings.api_leases);
        let session_waker = Arc::new(IntentSessionWaker::new(view));
        Self { settings, keys: IntentKeyDeriver::new(secrets), api_leases, session_waker }
    }

    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        self.session_waker.clone()
    }

    /// From the next intent on, the lease is taken when it is accepted, or is not. What was accepted stays as it is.
    pub(crate) fn set_api_leases(&self, on: bool) {
        self.api_leases.store(on, Ordering::Release);
    }

    fn patience(&self) -> TickDuration {
        TickDuration::from_millis(self.settings.start_within_ms)
    }

    /// How long the lease lasts that an intent takes when it is accepted; nothing where it takes none.
    fn lease_at_once(&self) -> Option<TickDuration> {
        let is_on = self.api_leases.load(Ordering::Acquire);
        is_on.then(|| TickDuration::from_millis(self.settings.lease_ttl_ms))
    }
}

/// The routes of intents and of the worker.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(submit::submit_intent))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::show, submit::stop))
        .merge(worker::routes())
}

/// What was chosen. The secrets are not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentSettings {
    /// Whether the API takes the lease of a channel or recording itself, and refuses an intent whose lease is held.
    pub api_leases: bool,
    /// How long a session waits for a worker, in milliseconds.
    pub start_within_ms: u64,
    /// How long the lease lasts that the API takes, in milliseconds; then a worker has to have renewed it.
    pub lease_ttl_ms: u64,
    /// Whether only some networks may ask.
    pub lan_guard: bool,
    pub lan_allowed: Vec<Network>,
    /// Proxies whose word on where a request comes from counts.
    pub trusted_proxies: Vec<Network>,
}

impl Default for IntentSettings {
    fn default() -> Self {
        Self {
            api_leases: false,
            start_within_ms: 300_000,
            lease_ttl_ms: 30_000,
            lan_guard: true,
            lan_allowed: Network::private_and_loopback(),
            trusted_proxies: Vec::new(),
        }
    }
}

impl IntentSettings {
    /// Shorter, and no worker can be in time; longer, and nobody remembers what was wanted.
    pub const START_WITHIN_MS: std::ops::RangeInclusive<u64> = 1_000..=86_400_000;
}
