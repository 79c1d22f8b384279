//! Who waits because of a lease: a holder that is done early, or can hand over, need not keep them waiting.

use std::collections::BTreeMap;

use tenure_api::Recall;
use tenure_core::kernel::{LeaseView, Mode, Resource, State, Tick};
use tenure_core::rules::time::{is_over, remaining};

/// Looks for recalls at one moment. Many leases may be on one resource, with a long queue: it is walked once.
pub(super) struct Recalls<'a> {
    state: &'a State,
    at: Tick,
    known: BTreeMap<(&'a Resource, Mode), Option<Recall>>,
}

impl<'a> Recalls<'a> {
    pub(super) fn new(state: &'a State, at: Tick) -> Self {
        Self { state, at, known: BTreeMap::new() }
    }

    /// Who waits because this lease lives, if anybody does.
    pub(super) fn of(&mut self, lease: &LeaseView<'a>) -> Option<Recall> {
        let (state, at) = (self.state, self.at);
        let look = || recall(state, lease.resource, lease.mode, at);
        self.known.entry((lease.resource, lease.mode)).or_insert_with(look).clone()
    }
}

fn recall(state: &State, resource: &Resource, held: Mode, at: Tick) -> Option<Recall> {
    let waits = state.queue_of(resource).filter(|waiting| !is_over(at.0, waiting.until.0));
    let mut kept_out = waits.filter(|waiting| waiting.is_kept_out_of(resource, held));
    let first = kept_out.next()?;
    Some(Recall {
        by: first.holder.as_str().to_owned(),
        waiting: 1 + kept_out.count(),
        remaining_ms: remaining(at.0, first.until.0) / 1_000,
    })
}
