//! What the events say of sessions and leases, as simple as can be: it shares no rule with the kernel.

use std::collections::BTreeMap;

use tenure_core::kernel::{Event, Fence, IntentEvent, IntentKey, IntentSessionState, IntentTarget, Tick};

/// What is known, by names.
#[derive(Debug, Default)]
pub struct IntentSessionModel {
    pub leases: BTreeMap<Fence, ModelLease>,
    pub sessions: BTreeMap<String, ModelIntentSession>,
}

#[derive(Debug, Clone)]
pub struct ModelLease {
    pub resource: String,
    pub holder: String,
    pub expires_at: Tick,
}

#[derive(Debug, Clone)]
pub struct ModelIntentSession {
    pub state: IntentSessionState,
    pub key: IntentKey,
    pub leader: Option<Fence>,
    required_resources: Vec<String>,
    start_by: Tick,
}

impl IntentSessionModel {
    /// Records one event, whatever it is.
    pub fn record(&mut self, event: &Event) {
        match event {
            Event::Issued(issued) => {
                let (resource, holder) = (issued.resource.to_string(), issued.holder.to_string());
                let expires_at = issued.terms.expires_at;
                self.leases.insert(issued.fence, ModelLease { resource, holder, expires_at });
            }
            Event::Renewed { lease, expires_at, .. } => {
                self.leases.get_mut(lease).expect("it lives").expires_at = *expires_at;
            }
            Event::Released { lease, .. } | Event::Expired { lease, .. } | Event::Revoked { lease, .. } => {
                self.leases.remove(lease).expect("it lives");
            }
            Event::Intent(event) => self.step(event),
            _ => {}
        }
    }

    fn step(&mut self, event: &IntentEvent) {
        let id = event.session().to_string();
        if let IntentEvent::Accepted(accepted) = event {
            let target = match &accepted.intent.target {
                IntentTarget::Service(service) => format!("service:{service}"),
                IntentTarget::Recording { id, start_ms } => format!("recording:{id}:{}", start_ms / 1_000),
            };
            let session = ModelIntentSession {
                state: IntentSessionState::New,
                key: accepted.key,
                leader: None,
                required_resources: vec![target],
                start_by: accepted.start_by,
            };
            assert!(self.sessions.insert(id, session).is_none(), "a name is used again");
            return;
        }
        let session = self.sessions.get_mut(&id).expect("it was accepted");
        let (from, next) = (session.state, event.next_state());
        assert!(from != IntentSessionState::Ended && next > from, "{id} goes from {from:?} to {next:?}");
        if let IntentEvent::Starting { leader: guard, slot, .. } = event {
            assert_eq!(from, IntentSessionState::New, "{id}");
            session.leader = Some(*guard);
            session.required_resources.extend(slot.map(|slot| format!("tuner:{slot}")));
        }
        assert!(
            next == IntentSessionState::Ended || session.leader.is_some(),
            "{id} is {next:?} with nobody"
        );
        session.state = next;
    }

    /// What must hold between two decisions.
    pub fn check(&self) {
        let mut holders: BTreeMap<&str, &str> = BTreeMap::new();
        for lease in self.leases.values() {
            let before = holders.insert(&lease.resource, &lease.holder);
            assert_eq!(before, None, "{} has two", lease.resource);
        }
        let mut keys = BTreeMap::new();
        for (id, session) in &self.sessions {
            let mut held = self.held_by(id);
            let mut required: Vec<&str> = session.required_resources.iter().map(String::as_str).collect();
            held.sort_unstable();
            required.sort_unstable();
            match session.state {
                IntentSessionState::Ended => assert!(held.is_empty(), "{id} is over and holds {held:?}"),
                IntentSessionState::New => {
                    assert!(held.is_empty() || held == required, "{id} holds {held:?}")
                }
                _ => assert_eq!(held, required, "{id} is {:?}", session.state),
            }
            if session.state != IntentSessionState::Ended {
                // A channel and a recording may have one key: they are two wishes all the same.
                let is_recording = required.iter().any(|name| name.starts_with("recording:"));
                let other = keys.insert((session.key, is_recording), id);
                assert_eq!(other, None, "{id} has somebody's key");
            }
        }
    }

    fn held_by(&self, id: &str) -> Vec<&str> {
        let own = self.leases.values().filter(|lease| lease.holder == id);
        own.map(|lease| lease.resource.as_str()).collect()
    }

    /// When the first of a session's leases is over.
    pub fn earliest_expiry(&self, id: &str) -> Option<Tick> {
        let own = self.leases.values().filter(|lease| lease.holder == id);
        own.map(|lease| lease.expires_at).min()
    }

    /// Whether a session goes on at `now`, announced or not.
    pub fn is_active(&self, id: &str, now: Tick) -> bool {
        let session = &self.sessions[id];
        match session.state {
            IntentSessionState::Ended => false,
            IntentSessionState::New => now < session.start_by,
            _ => self.earliest_expiry(id).is_some_and(|until| now < until),
        }
    }

    /// Whether a fence is that of the guard, here and now.
    pub fn is_leader_fence(&self, fence: Fence, now: Tick) -> bool {
        let lease = self.leases.get(&fence);
        lease.is_some_and(|lease| lease.resource.ends_with("guard_lock") && now < lease.expires_at)
    }
}
