//! What must never happen to a session: none goes back, none is lost, none disagrees with its leases.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::kernel::{Fence, Holder, IntentEvent, IntentKey, Resource, SessionState, Target};

use super::{Lawful, Violation, law};

/// The sessions as the ledger tells of them.
#[derive(Debug, Default)]
pub struct Sessions {
    live: BTreeMap<Holder, ModelSession>,
    ended: BTreeSet<Holder>,
}

#[derive(Debug, Clone)]
pub struct ModelSession {
    pub state: SessionState,
    /// Who took it, and under which guard.
    pub worker: Option<(Holder, Fence)>,
    /// What it needs: its target, and its tuner once it has one.
    pub needs: Vec<String>,
    key: IntentKey,
}

impl Sessions {
    pub fn live(&self) -> impl Iterator<Item = (&Holder, &ModelSession)> {
        self.live.iter()
    }

    /// Whether a session was ever accepted.
    pub fn knows(&self, session: &Holder) -> bool {
        self.live.contains_key(session) || self.ended.contains(session)
    }

    /// Judges a step that has become durable.
    pub(super) fn step(&mut self, event: &IntentEvent) -> Lawful {
        let (id, next) = (event.session(), event.leads_to());
        if let IntentEvent::Accepted(accepted) = event {
            law(!self.knows(id), || format!("{id} begins twice"))?;
            let twin = self.live.iter().find(|(_, session)| session.key == accepted.key);
            law(twin.is_none(), || format!("{id} and {twin:?} are one intent"))?;
            let target = match &accepted.intent.target {
                Target::Service(service) => format!("service:{service}"),
                Target::Recording { id, start_ms } => format!("recording:{id}:{}", start_ms / 1_000),
            };
            let (worker, needs, key) = (None, vec![target], accepted.key);
            self.live.insert(id.clone(), ModelSession { state: next, worker, needs, key });
            return Ok(());
        }
        let session = self.live.get_mut(id);
        let session = session.ok_or_else(|| Violation(format!("{id} goes on and is over")))?;
        let from = session.state;
        law(next > from, || format!("{id} goes back from {from:?} to {next:?}"))?;
        if let IntentEvent::Starting { worker, guard, slot, .. } = event {
            session.worker = Some((worker.clone(), *guard));
            session.needs.extend(slot.map(|slot| format!("tuner:{slot}")));
        }
        let is_carried_out = next != SessionState::Ended;
        law(!is_carried_out || session.worker.is_some(), || format!("{id} is {next:?} with nobody"))?;
        session.state = next;
        if next == SessionState::Ended {
            self.live.remove(id);
            self.ended.insert(id.clone());
        }
        Ok(())
    }

    /// Judges a moment between two batches: each session that is taken holds what it needs, and what is over nothing.
    pub(super) fn agree_with<'a>(
        &self,
        leases: impl Iterator<Item = (Fence, &'a Resource, &'a Holder)>,
    ) -> Lawful {
        let mut held: BTreeMap<&Holder, Vec<&str>> = BTreeMap::new();
        for (_, resource, holder) in leases {
            law(!self.ended.contains(holder), || format!("{holder} is over and holds {resource}"))?;
            held.entry(holder).or_default().push(resource.as_str());
        }
        for (id, session) in self.live.iter().filter(|(_, session)| session.state.is_taken()) {
            let own = held.remove(id).unwrap_or_default();
            let is_whole = own.len() == session.needs.len()
                && own.iter().all(|one| session.needs.iter().any(|need| need == one));
            law(is_whole, || format!("{id} is {:?} and holds {own:?}", session.state))?;
        }
        Ok(())
    }
}
