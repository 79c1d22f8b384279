//! What must never happen to a session: none goes back, none is lost, none disagrees with its leases.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::kernel::{
    Fence, Holder, IntentEvent, IntentKey, IntentSessionState, IntentTarget, Resource,
};

use super::{InvariantResult, Violation, ensure};

/// The sessions as the ledger tells of them.
#[derive(Debug, Default)]
pub struct IntentSessionsModel {
    live: BTreeMap<Holder, IntentSessionModel>,
    ended: BTreeSet<Holder>,
}

#[derive(Debug, Clone)]
pub struct IntentSessionModel {
    pub state: IntentSessionState,
    /// Who took it, and under which guard.
    pub worker: Option<(Holder, Fence)>,
    /// What it needs: its target, and its tuner once it has one.
    pub resources: Vec<String>,
    key: IntentKey,
}

impl IntentSessionsModel {
    pub fn active(&self) -> impl Iterator<Item = (&Holder, &IntentSessionModel)> {
        self.live.iter()
    }

    /// Whether a session was ever accepted.
    pub fn has_session(&self, session: &Holder) -> bool {
        self.live.contains_key(session) || self.ended.contains(session)
    }

    /// Judges a step that has become durable.
    pub(super) fn apply(&mut self, event: &IntentEvent) -> InvariantResult {
        let (id, next) = (event.session(), event.next_state());
        if let IntentEvent::Accepted(accepted) = event {
            ensure(!self.has_session(id), || format!("{id} begins twice"))?;
            let twin = self.live.iter().find(|(_, session)| session.key == accepted.key);
            ensure(twin.is_none(), || format!("{id} and {twin:?} are one intent"))?;
            let target = match &accepted.intent.target {
                IntentTarget::Service(service) => format!("service:{service}"),
                IntentTarget::Recording { id, start_ms } => format!("recording:{id}:{}", start_ms / 1_000),
            };
            let (worker, resources, key) = (None, vec![target], accepted.key);
            self.live.insert(id.clone(), IntentSessionModel { state: next, worker, resources, key });
            return Ok(());
        }
        let session = self.live.get_mut(id);
        let session = session.ok_or_else(|| Violation(format!("{id} goes on and is over")))?;
        let from = session.state;
        ensure(next > from, || format!("{id} goes back from {from:?} to {next:?}"))?;
        if let IntentEvent::Starting { worker, leader: guard, slot, .. } = event {
            session.worker = Some((worker.clone(), *guard));
            session.resources.extend(slot.map(|slot| format!("tuner:{slot}")));
        }
        let is_carried_out = next != IntentSessionState::Ended;
        ensure(!is_carried_out || session.worker.is_some(), || format!("{id} is {next:?} with nobody"))?;
        session.state = next;
        if next == IntentSessionState::Ended {
            self.live.remove(id);
            self.ended.insert(id.clone());
        }
        Ok(())
    }

    /// Judges a moment between two batches: each session that is taken holds what it needs, and what is over nothing.
    pub(super) fn check_leases<'a>(
        &self,
        leases: impl Iterator<Item = (Fence, &'a Resource, &'a Holder)>,
    ) -> InvariantResult {
        let mut held: BTreeMap<&Holder, Vec<&str>> = BTreeMap::new();
        for (_, resource, holder) in leases {
            ensure(!self.ended.contains(holder), || format!("{holder} is over and holds {resource}"))?;
            held.entry(holder).or_default().push(resource.as_str());
        }
        for (id, session) in self.live.iter().filter(|(_, session)| session.state.is_taken()) {
            let own = held.remove(id).unwrap_or_default();
            let is_whole = own.len() == session.resources.len()
                && own.iter().all(|one| session.resources.iter().any(|resource| resource == one));
            ensure(is_whole, || format!("{id} is {:?} and holds {own:?}", session.state))?;
        }
        Ok(())
    }
}
