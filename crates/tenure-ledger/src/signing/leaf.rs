//! What is signed of one lease: its terms, as bytes that nothing else has.
//!
//! ```text
//! leaf = BLAKE3("tenure.lease.v1" | ledger id, 16 | lease id, text | resource, text | holder, text
//!               | mode, 1 | fence, 8 | at, 8 | expires at, 8)
//! ```
//!
//! A lease with authority has a leaf of another kind, so that one never passes for the other:
//!
//! ```text
//! leaf = BLAKE3("tenure.authority.v1" | … as above … | parent's lease id, text | scope, bytes | budget, 4 times 8)
//! ```
//!
//! The scope has its length before it, as a text has. What was used up is not in it: a signature over that would break with
//! the first token. The parent's id is empty where there is none.
//!
//! The last leaf of a batch stands for all its events, also those that give nobody anything:
//!
//! ```text
//! leaf = BLAKE3("tenure.events.v1" | ledger id, 16 | hash of the batch before, 32 | the batch without its seal)
//! ```
//!
//! Numbers are big-endian; a text has its length before it, in 4 bytes. Each part ends where it must, so two
//! different leases never have the same bytes.

use std::borrow::Cow;
use std::fmt;

use tenure_core::authority::Authority;
use tenure_core::kernel::{
    Event, Fence, Holder, IssuedLease, KernelState, LeaseMode, LeaseView, Resource, Tick,
};

use super::put_text;
use crate::batch::{BatchBytes, ChainHash};
use crate::ledger::LedgerId;

const PREFIX: &[u8; 15] = b"tenure.lease.v1";
const AUTHORITY_PREFIX: &[u8; 19] = b"tenure.authority.v1";
const EVENTS_PREFIX: &[u8; 16] = b"tenure.events.v1";

/// What a lease says of itself, as it was issued or renewed: only values that never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedTerms<'a> {
    /// On what, by its full name.
    pub resource: Cow<'a, Resource>,
    /// Who holds it, by the full name.
    pub holder: Cow<'a, Holder>,
    /// How it is held.
    pub mode: LeaseMode,
    /// Its number: a resource refuses any that is lower than the highest it has seen.
    pub fence: Fence,
    /// When it was issued, or renewed to these terms, on the registrar's clock.
    pub at: Tick,
    /// When it is over on that clock, unless it is renewed again: at this tick it is dead.
    pub expires_at: Tick,
    /// What its holder may do, as it was when the lease began: not what is left of it.
    pub authority: Option<Cow<'a, Authority>>,
}

impl<'a> SignedTerms<'a> {
    /// The terms of a renewal at `at`, of a lease that stays what it is in all but its end.
    pub fn of_renewed(lease: LeaseView<'a>, at: Tick, expires_at: Tick) -> Self {
        let LeaseView { resource, holder, fence, work, .. } = lease;
        let (resource, holder) = (Cow::Borrowed(resource), Cow::Borrowed(holder));
        let authority = work.map(|work| Cow::Borrowed(&*work.authority));
        Self { resource, holder, mode: lease.terms.mode, fence, at, expires_at, authority }
    }

    pub(super) fn into_owned(self) -> SignedTerms<'static> {
        SignedTerms {
            resource: Cow::Owned(self.resource.into_owned()),
            holder: Cow::Owned(self.holder.into_owned()),
            authority: self.authority.map(|authority| Cow::Owned(authority.into_owned())),
            ..self
        }
    }

    /// The bytes that the leaf is the hash of.
    pub fn to_bytes(&self, ledger: LedgerId) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.max_bytes());
        self.encode_into(ledger, &mut bytes);
        bytes
    }

    /// No longer than this.
    fn max_bytes(&self) -> usize {
        let authority = self.authority.as_ref().map_or(0, |authority| 128 + authority.scope.byte_size());
        112 + self.resource.as_str().len() + self.holder.as_str().len() + authority
    }

    fn encode_into(&self, ledger: LedgerId, bytes: &mut Vec<u8>) {
        match &self.authority {
            None => bytes.extend_from_slice(PREFIX),
            Some(_) => bytes.extend_from_slice(AUTHORITY_PREFIX),
        }
        bytes.extend_from_slice(&ledger.0);
        put_text(bytes, ledger.tag().lease_id_text(self.fence).as_bytes());
        put_text(bytes, self.resource.as_str());
        put_text(bytes, self.holder.as_str());
        bytes.push(mode_code(self.mode));
        bytes.extend_from_slice(&self.fence.0.to_be_bytes());
        bytes.extend_from_slice(&self.at.0.to_be_bytes());
        bytes.extend_from_slice(&self.expires_at.0.to_be_bytes());
        if let Some(authority) = &self.authority {
            let parent = authority.parent.map(|parent| ledger.lease_id(parent)).unwrap_or_default();
            put_text(bytes, parent);
            put_text(bytes, authority.scope.canonical_bytes());
            bytes.extend_from_slice(&authority.budget.canonical_bytes());
        }
    }
}

impl<'a> From<&'a IssuedLease> for SignedTerms<'a> {
    fn from(issued: &'a IssuedLease) -> Self {
        let IssuedLease { fence, resource, holder, terms, authority, .. } = issued;
        Self {
            resource: Cow::Borrowed(resource),
            holder: Cow::Borrowed(holder),
            mode: terms.mode,
            fence: *fence,
            at: terms.issued_at,
            expires_at: terms.expires_at,
            authority: authority.as_deref().map(Cow::Borrowed),
        }
    }
}

/// The hash of one lease's terms: a leaf of the tree that a batch signs.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Leaf(pub(super) [u8; 32]);

impl Leaf {
    /// The leaf of a lease with these terms.
    pub fn of(ledger: LedgerId, terms: &SignedTerms<'_>) -> Leaf {
        Leaf::of_with_buffer(ledger, terms, &mut Vec::new())
    }

    /// The same, with room to write in that is used again and again: a batch has hundreds of these.
    fn of_with_buffer(ledger: LedgerId, terms: &SignedTerms<'_>, buffer: &mut Vec<u8>) -> Leaf {
        buffer.clear();
        buffer.reserve(terms.max_bytes());
        terms.encode_into(ledger, buffer);
        Leaf(*blake3::hash(buffer).as_bytes())
    }

    /// The leaf of a lease that begins.
    pub fn of_issued(ledger: LedgerId, issued: &IssuedLease) -> Leaf {
        Leaf::of(ledger, &SignedTerms::from(issued))
    }

    /// The leaf of a lease that is renewed at `at`.
    pub fn of_renewed(ledger: LedgerId, lease: LeaseView<'_>, at: Tick, expires_at: Tick) -> Leaf {
        Leaf::of(ledger, &SignedTerms::of_renewed(lease, at, expires_at))
    }

    /// The leaf of what `event` grants or renews, where `state` is what it is part of already; nothing for events
    /// that give nobody anything.
    /// `buffer` is scratch space and can be reused for the next event.
    pub fn of_event(
        ledger: LedgerId,
        state: &KernelState,
        event: &Event,
        buffer: &mut Vec<u8>,
    ) -> Option<Leaf> {
        let terms = match event {
            Event::Issued(issued) => SignedTerms::from(issued),
            Event::Renewed { lease, at, expires_at, .. } => {
                SignedTerms::of_renewed(state.lease(*lease)?, *at, *expires_at)
            }
            _ => return None,
        };
        Some(Leaf::of_with_buffer(ledger, &terms, buffer))
    }

    /// The leaf of all events of a batch, whatever they say: releases and expiries are signed by it. It is the last
    /// one of its batch. `previous` is the hash of the batch before.
    pub fn of_batch(ledger: LedgerId, previous: ChainHash, unsealed: &BatchBytes) -> Leaf {
        let mut hasher = blake3::Hasher::new();
        hasher.update(EVENTS_PREFIX).update(&ledger.0).update(&previous.0).update(unsealed.as_slice());
        Leaf(*hasher.finalize().as_bytes())
    }

    /// The hash itself.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Leaf {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Leaf({})", hex::encode(&self.0[..4]))
    }
}

/// The number that stands for a mode in stored events. It is signed, so it must never change.
pub(super) fn mode_code(mode: LeaseMode) -> u8 {
    match mode {
        LeaseMode::Exclusive => 1,
        LeaseMode::Shared => 2,
        LeaseMode::Provides => 3,
        LeaseMode::Consumes => 4,
        LeaseMode::DependsOn => 5,
        LeaseMode::Mutates => 6,
        LeaseMode::Deletes => 7,
        LeaseMode::Renames => 8,
    }
}

/// The mode that `code` stands for.
pub(super) fn mode_from_code(code: u8) -> Option<LeaseMode> {
    LeaseMode::ALL.into_iter().find(|mode| mode_code(*mode) == code)
}
