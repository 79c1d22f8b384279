//! What happened to agents since the start, counted as the ledger has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure_core::kernel::{AgentEvent, Event, State};
use tenure_ledger::Seq;
use tenure_registrar::shell::Observer;

use crate::app::App;
use crate::metrics::single;

/// Hears of every event on the thread that tells everybody.
pub(crate) struct Counters {
    waits: AtomicU64,
    deaths: AtomicU64,
    strays: AtomicU64,
    used_up: AtomicU64,
    /// Who else is told of everything, first.
    next: Arc<dyn Observer>,
}

impl Counters {
    pub(crate) fn new(next: Arc<dyn Observer>) -> Arc<Self> {
        let zero = AtomicU64::default;
        Arc::new(Self { waits: zero(), deaths: zero(), strays: zero(), used_up: zero(), next })
    }

    pub(crate) fn put(&self, text: &mut String, app: &App) {
        let (known, waiting) = app.registrar.read(|state| (state.agents().count(), state.pending().count()));
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut put = |name, kind, help, value: &dyn std::fmt::Display| single(text, name, kind, help, value);
        put("tenure_agents", "gauge", "Agents of which something is known.", &known);
        put("tenure_agents_waiting", "gauge", "Manifests that wait for their turn.", &waiting);
        put("tenure_agent_waits_total", "counter", "Manifests that had to wait.", &count(&self.waits));
        put(
            "tenure_agent_deaths_total",
            "counter",
            "Agents that had to come back later.",
            &count(&self.deaths),
        );
        let help = "Things that agents touched without a lease for them.";
        put("tenure_agent_strays_total", "counter", help, &count(&self.strays));
        let help = "Agents that had held leases for too long.";
        put("tenure_agents_used_up_total", "counter", help, &count(&self.used_up));
    }
}

impl Observer for Counters {
    fn happens(&self, seq: Seq, event: &Event, before: &State) {
        self.next.happens(seq, event, before);
        let Event::Agent(event) = event else { return };
        let (counter, more) = match &**event {
            AgentEvent::Waits(_) => (&self.waits, 1),
            AgentEvent::Died { .. } => (&self.deaths, 1),
            AgentEvent::Strayed { outside, .. } => (&self.strays, outside.len() as u64),
            AgentEvent::UsedUp { .. } => (&self.used_up, 1),
            _ => return,
        };
        counter.fetch_add(more, Ordering::Relaxed);
    }

    fn told(&self, took: Duration) {
        self.next.told(took);
    }
}
