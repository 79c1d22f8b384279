//! What every route needs.

use std::sync::Arc;

use tokio::sync::watch;

use crate::agents::AgentSettings;
use crate::control::Control;
use crate::files::{FileFace, FileObserver};
use crate::http::Names;
use crate::http::events::Hub;
use crate::intents::{Changes, IntentSecrets, IntentSettings, Intents};
use crate::metrics::Metrics;
use crate::pools::Pools;
use crate::refusals::Refusals;
use crate::registrar::Registrar;
use crate::tokens::{AdminToken, TokenKey, TokenStore};

pub(crate) struct Secrets {
    pub(crate) tokens: TokenKey,
    pub(crate) admin: AdminToken,
    pub(crate) given: TokenStore,
    pub(crate) intents: IntentSecrets,
}

pub(crate) struct Faces {
    /// Names for any one of several resources.
    pub(crate) pools: Pools,
    pub(crate) control: Control,
    pub(crate) intents: IntentSettings,
    pub(crate) agents: AgentSettings,
    pub(crate) files: FileFace,
}

pub(crate) struct App {
    pub(crate) registrar: Registrar,
    pub(crate) tokens: TokenKey,
    pub(crate) admin: AdminToken,
    pub(crate) metrics: Arc<Metrics>,
    /// Why requests were refused, for whoever asks.
    pub(crate) refusals: Refusals,
    /// Where those who listen to events look.
    pub(crate) events: Arc<Hub>,
    /// The tokens that an admin made.
    pub(crate) given: TokenStore,
    /// How this server is called on the network; nothing where it does not listen there.
    pub(crate) names: Option<Names>,
    /// Names for any one of several resources.
    pub(crate) pools: Pools,
    /// The device, and whose hand is on it.
    pub(crate) control: Control,
    /// What is wanted, and what became of it.
    pub(crate) intents: Intents,
    pub(crate) agents: AgentSettings,
    /// Which session of a coding agent may change which file.
    pub(crate) files: FileFace,
    /// Who else may use the local socket, by user id.
    pub(crate) local_users: Vec<u32>,
    stopping: watch::Sender<bool>,
}

impl App {
    pub(crate) fn new(
        registrar: Registrar,
        secrets: Secrets,
        names: Option<Names>,
        local_users: Vec<u32>,
        faces: Faces,
    ) -> Self {
        let Faces { pools, control, intents, agents, files } = faces;
        let Secrets { tokens, admin, given, intents: intent_secrets } = secrets;
        let stopping = watch::Sender::new(false);
        let metrics = Arc::new(Metrics::new());
        let changes = Changes::new(registrar.view(), control.desk.clone());
        let observer = FileObserver::new(files.listeners(), changes.clone());
        let events = Hub::start(registrar.feed(), metrics.clone(), observer);
        let intents = Intents::new(intents, intent_secrets, changes);
        let refusals = Refusals::default();
        Self {
            registrar,
            tokens,
            admin,
            metrics,
            refusals,
            events,
            given,
            names,
            pools,
            control,
            intents,
            agents,
            files,
            local_users,
            stopping,
        }
    }

    /// Whoever wants to hear of the stop while doing something else.
    pub(crate) fn stop_signal(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// From now on `/readyz` sends callers elsewhere, nobody waits in line, and who listens to events is let go.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
        self.events.end();
    }

    /// Waits until the server is told to stop. What is open without end ends then.
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
