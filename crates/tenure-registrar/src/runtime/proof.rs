//! What a caller can show to others: the signature of a lease that it was granted, as a passport.

use std::borrow::Cow;

use tenure_core::kernel::{Event, Fence, KernelState, LeaseView, Tick};
use tenure_ledger::signing::{
    Leaf, LeaseSignature, LedgerId, LedgerSigningKey, Passport, SignedBatch, SignedTerms,
};

/// The signature over a batch, and what it signed.
#[derive(Debug)]
pub struct BatchProof {
    ledger: LedgerId,
    batch: SignedBatch,
    /// What was granted or renewed, from when to when, in the order of the leaves.
    granted: Vec<(Fence, Tick, Tick)>,
}

impl BatchProof {
    pub(crate) fn new(ledger: LedgerId, batch: SignedBatch, events: &[Event]) -> BatchProof {
        let granted = events.iter().filter_map(|event| match event {
            Event::Issued(issued) => Some((issued.fence, issued.terms.issued_at, issued.terms.expires_at)),
            Event::Renewed { lease, at, expires_at, .. } => Some((*lease, *at, *expires_at)),
            _ => None,
        });
        BatchProof { ledger, batch, granted: granted.collect() }
    }

    /// The passport of a lease that this batch granted or renewed; nothing if it did not. The longest time that the
    /// batch gave it counts.
    fn passport(&self, fence: Fence, state: &KernelState) -> Option<Passport> {
        let index = self.granted.iter().rposition(|(granted, ..)| *granted == fence)?;
        let (_, at, expires_at) = self.granted[index];
        let signature = self.batch.lease_signature(u16::try_from(index).ok()?).ok()?;
        let issue = |terms: SignedTerms<'_>| Passport::issue(self.ledger, terms, signature.clone());
        let live = state.lease(fence).map(|lease| issue(SignedTerms::of_renewed(lease, at, expires_at)));
        live.or_else(|| {
            let ended = state.ended_lease(fence)?;
            let (resource, holder) = (Cow::Borrowed(&ended.resource), Cow::Borrowed(&ended.holder));
            let mode = ended.terms.mode;
            let authority = ended.work_lease.as_ref().map(|work| Cow::Borrowed(&*work.authority));
            Some(issue(SignedTerms { resource, holder, mode, fence, at, expires_at, authority }))
        })
    }
}

/// The passport of a lease as it stands in `state`: with the signature of its batch where that is at hand, else
/// signed by itself. Nothing for a lease that is over.
pub(crate) fn passport(
    proof: Option<&BatchProof>,
    ledger: LedgerId,
    key: &LedgerSigningKey,
    fence: Fence,
    state: &KernelState,
) -> Option<Passport> {
    let from_batch = proof.and_then(|proof| proof.passport(fence, state));
    from_batch.or_else(|| {
        let terms = current_terms(state.lease(fence)?);
        let signature = LeaseSignature::sign_single(key, ledger, Leaf::of(ledger, &terms));
        Some(Passport::issue(ledger, terms, signature))
    })
}

/// A lease always ends a time to live after it was issued or last renewed.
fn current_terms(lease: LeaseView<'_>) -> SignedTerms<'_> {
    let at = Tick(lease.terms.expires_at.0.saturating_sub(lease.terms.ttl.0));
    SignedTerms::of_renewed(lease, at, lease.terms.expires_at)
}
