//! What a caller can show to others: the signature of a lease that it was granted, as a passport.

use tenure_core::kernel::{Event, Fence, LeaseView, State, Tick};
use tenure_ledger::signing::{Leaf, LeaseSignature, LedgerId, NodeKey, Passport, SealedBatch, Terms};

/// The signature over a batch, and what it signed.
#[derive(Debug)]
pub struct Proof {
    ledger: LedgerId,
    sealed: SealedBatch,
    /// What was granted or renewed, from when to when, in the order of the leaves.
    granted: Vec<(Fence, Tick, Tick)>,
}

impl Proof {
    pub(crate) fn new(ledger: LedgerId, sealed: SealedBatch, events: &[Event]) -> Proof {
        let granted = events.iter().filter_map(|event| match event {
            Event::Issued(issued) => Some((issued.fence, issued.at, issued.expires_at)),
            Event::Renewed { lease, at, expires_at, .. } => Some((*lease, *at, *expires_at)),
            _ => None,
        });
        Proof { ledger, sealed, granted: granted.collect() }
    }

    /// The passport of a lease that this batch granted or renewed; nothing if it did not. The longest time that the
    /// batch gave it counts.
    fn passport(&self, fence: Fence, state: &State) -> Option<Passport> {
        let index = self.granted.iter().rposition(|(granted, ..)| *granted == fence)?;
        let (_, at, expires_at) = self.granted[index];
        let signature = self.sealed.signature_of(u16::try_from(index).ok()?).ok()?;
        let issue = |terms: Terms<'_>| Passport::issue(self.ledger, &terms, signature.clone());
        let live = state.lease(fence).map(|lease| issue(Terms::of_renewed(lease, at, expires_at)));
        live.or_else(|| {
            let ended = state.ended(fence)?;
            let (resource, holder, mode) = (&ended.resource, &ended.holder, ended.terms.mode);
            let authority = ended.work.as_ref().map(|work| &*work.authority);
            Some(issue(Terms { resource, holder, mode, fence, at, expires_at, authority }))
        })
    }
}

/// The passport of a lease as it stands in `state`: with the signature of its batch where that is at hand, else
/// signed by itself. Nothing for a lease that is over.
pub(crate) fn passport(
    proof: Option<&Proof>,
    ledger: LedgerId,
    key: &NodeKey,
    fence: Fence,
    state: &State,
) -> Option<Passport> {
    let from_batch = proof.and_then(|proof| proof.passport(fence, state));
    from_batch.or_else(|| {
        let terms = terms_now(state.lease(fence)?);
        let signature = LeaseSignature::alone(key, ledger, Leaf::of(ledger, &terms));
        Some(Passport::issue(ledger, &terms, signature))
    })
}

/// A lease always ends a time to live after it was issued or last renewed.
fn terms_now(lease: LeaseView<'_>) -> Terms<'_> {
    let at = Tick(lease.terms.expires_at.0.saturating_sub(lease.terms.ttl.0));
    Terms::of_renewed(lease, at, lease.terms.expires_at)
}
