//! What every route needs.

use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;
use tenure_core::kernel::{ClockAnchor, KernelState, Tick};
use tokio::sync::watch;

use crate::agents::AgentSettings;
use crate::control::ControlApi;
use crate::engine::{RegistrarHandle, hash_seed};
use crate::events::EventBuffer;
use crate::explain::denial_log::DenialLog;
use crate::files::FilesApi;
use crate::http::HostNames;
use crate::intents::{IntentSecrets, IntentSettings, IntentsApi};
use crate::leases::resource_pools::ResourcePools;
use crate::metrics::Metrics;
use crate::tokens::{AdminToken, LeaseTokenKey, TokenStore};

pub(crate) struct Secrets {
    pub(crate) token_key: LeaseTokenKey,
    pub(crate) admin: AdminToken,
    pub(crate) api_tokens: TokenStore,
    pub(crate) intents: IntentSecrets,
}

pub(crate) struct Apis {
    /// Names for any one of several resources.
    pub(crate) pools: ResourcePools,
    pub(crate) control: ControlApi,
    pub(crate) intents: IntentSettings,
    pub(crate) agents: AgentSettings,
    pub(crate) files: FilesApi,
}

pub(crate) struct App {
    pub(crate) registrar: RegistrarHandle,
    pub(crate) token_key: LeaseTokenKey,
    pub(crate) admin: AdminToken,
    pub(crate) metrics: Arc<Metrics>,
    /// Why requests were refused, for whoever asks.
    pub(crate) denials: DenialLog,
    /// Where those who listen to events look.
    pub(crate) events: Arc<EventBuffer>,
    /// The tokens that an admin made.
    pub(crate) api_tokens: TokenStore,
    /// How this server is called on the network; nothing where it does not listen there.
    pub(crate) host_names: Option<HostNames>,
    /// Names for any one of several resources.
    pub(crate) pools: ResourcePools,
    /// The device, and whose hand is on it.
    pub(crate) control: ControlApi,
    /// What is wanted, and what became of it.
    pub(crate) intents: IntentsApi,
    pub(crate) agents: AgentSettings,
    /// Which session of a coding agent may change which file.
    pub(crate) files: FilesApi,
    /// Who else may use the local socket, by user id.
    pub(crate) local_users: Vec<u32>,
    stop_requested: watch::Sender<bool>,
}

impl App {
    pub(crate) fn new(
        registrar: RegistrarHandle,
        secrets: Secrets,
        host_names: Option<HostNames>,
        local_users: Vec<u32>,
        apis: Apis,
    ) -> Self {
        let Apis { pools, control, intents, agents, files } = apis;
        let Secrets { token_key, admin, api_tokens, intents: intent_secrets } = secrets;
        let stop_requested = watch::Sender::new(false);
        let metrics = Arc::new(Metrics::new());
        let intents = IntentsApi::new(intents, intent_secrets, registrar.view());
        let feed = registrar.event_feed();
        // The server does not start without random bytes.
        let hash_seed = hash_seed().unwrap_or_default();
        let events = EventBuffer::new(feed, registrar.view(), hash_seed, metrics.clone());
        // The event buffer comes last: a subscriber can read an event as soon as the buffer has it. By then the device
        // must have its new owner, guards must no longer rely on a lease that ended, and the event must be counted.
        // The others do not depend on each other.
        feed.observe(control.controller.clone());
        feed.observe(intents.observer());
        feed.observe(files.observer());
        feed.observe(metrics.clone());
        feed.observe(events.clone());
        let denials = DenialLog::default();
        Self {
            registrar,
            token_key,
            admin,
            metrics,
            denials,
            events,
            api_tokens,
            host_names,
            pools,
            control,
            intents,
            agents,
            files,
            local_users,
            stop_requested,
        }
    }

    /// Whoever wants to hear of the stop while doing something else.
    pub(crate) fn stop_signal(&self) -> watch::Receiver<bool> {
        self.stop_requested.subscribe()
    }

    /// From now on `/readyz` sends callers elsewhere, nobody waits in line, and who listens to events is let go.
    pub(crate) fn stop(&self) {
        self.stop_requested.send_replace(true);
        self.events.end();
    }

    /// Waits until the server is told to stop. What is open without end ends then.
    pub(crate) async fn wait_for_stop(&self) {
        // An error means that the app is gone: the same.
        let _ = self.stop_requested.subscribe().wait_for(|is_requested| *is_requested).await;
    }

    /// Why requests will not be answered; nothing while they will.
    pub(crate) fn not_ready_reason(&self) -> Option<&'static str> {
        if self.registrar.has_ended() {
            Some("the ledger can no longer be written; the server is ending and must be started again")
        } else if *self.stop_requested.borrow() {
            Some("the server is stopping")
        } else {
            None
        }
    }
}

/// Unix milliseconds.
#[expect(
    clippy::disallowed_methods,
    reason = "the end of an API token is a date, which must mean the same after a restart; no lease depends on it"
)]
pub(crate) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Unix milliseconds as RFC 3339 in UTC.
pub(crate) fn format_unix_ms(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().and_then(|time| Timestamp::from_millisecond(time).ok());
    format!("{:.3}", time.unwrap_or(Timestamp::MAX))
}

/// A tick as RFC 3339 in UTC, with milliseconds. It decides nothing.
pub(crate) fn tick_to_rfc3339(state: &KernelState, tick: Tick) -> String {
    state.clock().map_or_else(
        || format_tick_with_anchor(ClockAnchor::default(), Tick(0)),
        |clock| format_tick_with_anchor(clock.anchor, tick),
    )
}

/// The same by an anchor that was noted before.
pub(crate) fn format_tick_with_anchor(anchor: ClockAnchor, tick: Tick) -> String {
    let wall = anchor.wall_time_of(tick);
    // 2^64 nanoseconds end in the year 2554.
    let time = Timestamp::from_nanosecond(wall.into()).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}
