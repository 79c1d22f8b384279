//! Whose hand is on the device, and the pass without which nothing reaches it.
//!
//! The hand changes only when the ledger says so. A command gets a [`Pass`] at the gate, perhaps long before its body has
//! come in; the device looks at the pass again at the moment at which it would obey. So nothing that was let in before a
//! change of hands takes effect after it.

use std::sync::Arc;

use subtle::ConstantTimeEq as _;
use tenure_core::kernel::{Fence, Span, Tick};
use tenure_core::rules::time::{is_over, remaining};

use crate::matrix::{Class, Source, Standing, Verdict, judge};
use crate::millis::whole_millis;
use crate::refusal::{BLOCKED, EXPIRED, HELD, INVALID, REQUIRED, Refusal, RefusalCode, STREAM_NEEDS_LEASE};

/// What is kept of a lease's token. There is no way back.
#[derive(Clone)]
pub struct TokenDigest(blake3::Hash);

impl TokenDigest {
    /// What is kept of this token.
    pub fn of(token: &str) -> Self {
        Self(blake3::hash(token.as_bytes()))
    }

    /// Whether this is the token. How long that takes says nothing about it.
    pub fn is_of(&self, token: &str) -> bool {
        blake3::hash(token.as_bytes()).as_bytes().ct_eq(self.0.as_bytes()).into()
    }
}

/// A connection that may own a lease.
#[derive(Clone)]
pub struct Owner {
    /// A random name that no other connection ever has. The lease's holder, in the ledger.
    pub identity: Arc<str>,
    /// The number that is shown. It may be given out again.
    pub websocket_client_id: u32,
    pub client_name: Arc<str>,
    pub instance_id: Arc<str>,
    /// Of the token that was told this connection alone.
    pub token: TokenDigest,
}

#[derive(Clone)]
pub struct Held {
    pub fence: Fence,
    /// How clients call it: `cl_` and hexadecimal digits.
    pub lease_id: Arc<str>,
    pub owner: Owner,
    pub acquired_at: Tick,
    /// When it ends, as far as is known.
    pub expires_at: Tick,
    /// How long it lasts from each heartbeat.
    pub ttl: Span,
}

impl Held {
    /// Whether its time is over. Until the ledger says so it is in the way of others all the same: a heartbeat that came in
    /// time may still be on its way to the disk.
    pub fn is_past(&self, now: Tick) -> bool {
        is_over(now.0, self.expires_at.0)
    }

    /// How long it still lasts, in whole milliseconds.
    pub fn remaining_ms(&self, now: Tick) -> u32 {
        whole_millis(Span(remaining(now.0, self.expires_at.0)))
    }

    /// Its length in milliseconds.
    pub fn ttl_ms(&self) -> u32 {
        whole_millis(self.ttl)
    }

    fn refusal(&self, code: RefusalCode, message: &'static str, now: Tick) -> Refusal {
        let owner_client_name = self.owner.client_name.to_string();
        Refusal { code, message, owner_client_name, remaining_ms: self.remaining_ms(now) }
    }

    /// Why somebody else does not get it.
    pub fn locked(&self, now: Tick) -> Refusal {
        self.refusal(RefusalCode::ControlLocked, HELD, now)
    }

    /// Why a heartbeat or release with another id or token does nothing.
    pub fn invalid(&self, now: Tick) -> Refusal {
        self.refusal(RefusalCode::LeaseInvalid, INVALID, now)
    }
}

/// Why something that is over cannot be used.
pub fn expired() -> Refusal {
    nobodys(RefusalCode::LeaseExpired, EXPIRED)
}

fn nobodys(code: RefusalCode, message: &'static str) -> Refusal {
    Refusal { code, message, owner_client_name: String::new(), remaining_ms: 0 }
}

/// What a command needs to reach the device. It is worth nothing after the next change of hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    generation: u64,
    /// Commands that a change of hands does not concern: they read, or are exempt.
    is_free: bool,
    /// Whether it was given to the lease's owner.
    is_owners: bool,
}

impl Pass {
    /// Between which two changes of hands it was given.
    pub const fn generation(self) -> u64 {
        self.generation
    }

    /// Whether no change of hands concerns it.
    pub const fn is_free(self) -> bool {
        self.is_free
    }
}

/// Whose hand is on the device.
#[derive(Default)]
pub struct Hand {
    generation: u64,
    held: Option<Held>,
}

impl Hand {
    /// The lease, until the ledger has its end.
    pub fn held(&self) -> Option<&Held> {
        self.held.as_ref()
    }

    /// How many changes of hands there were.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    pub fn take(&mut self, held: Held) {
        self.generation += 1;
        self.held = Some(held);
    }

    pub fn extend(&mut self, fence: Fence, expires_at: Tick) -> bool {
        let held = self.held.as_mut().filter(|held| held.fence == fence);
        held.map(|held| held.expires_at = expires_at).is_some()
    }

    /// It ended. The answer is the lease that did.
    pub fn let_go(&mut self, fence: Fence) -> Option<Held> {
        let held = self.held.take_if(|held| held.fence == fence)?;
        self.generation += 1;
        Some(held)
    }

    /// Whether this connection's WebSocket may send a command of this class.
    pub fn pass_websocket(&self, identity: &str, class: Class, now: Tick) -> Result<Pass, Refusal> {
        let Some(held) = &self.held else {
            let refusal = || nobodys(RefusalCode::LeaseRequired, STREAM_NEEDS_LEASE);
            return self.decide(Source::WebSocket, class, Standing::Inactive, refusal);
        };
        if &*held.owner.identity != identity {
            let refusal = || held.refusal(RefusalCode::ControlLocked, BLOCKED, now);
            return self.decide(Source::WebSocket, class, Standing::Other, refusal);
        }
        // Over, and not announced yet: nobody's.
        let standing = if held.is_past(now) { Standing::Other } else { Standing::Owner };
        self.decide(Source::WebSocket, class, standing, || {
            held.refusal(RefusalCode::LeaseExpired, EXPIRED, now)
        })
    }

    /// Whether a request may do what is of this class. It shows a token, and perhaps says of which lease.
    pub fn pass_rest(
        &self,
        token: Option<&str>,
        lease_id: Option<&str>,
        class: Class,
        now: Tick,
    ) -> Result<Pass, Refusal> {
        let decide = |standing, code, message| {
            let refusal = || match &self.held {
                Some(held) => held.refusal(code, message, now),
                None => nobodys(code, message),
            };
            self.decide(Source::Rest, class, standing, refusal)
        };
        let Some(held) = &self.held else {
            // A token that is no lease's was one's: who shows it believes to be protected.
            let standing = if token.is_some() { Standing::Other } else { Standing::Inactive };
            return decide(standing, RefusalCode::LeaseExpired, EXPIRED);
        };
        let Some(token) = token else {
            return decide(Standing::Other, RefusalCode::LeaseRequired, REQUIRED);
        };
        let is_this_lease = lease_id.map(|id| id == &*held.lease_id);
        match (held.owner.token.is_of(token), is_this_lease) {
            (true, Some(false)) => decide(Standing::Other, RefusalCode::ControlLocked, BLOCKED),
            (true, _) if held.is_past(now) => decide(Standing::Other, RefusalCode::LeaseExpired, EXPIRED),
            (true, _) => decide(Standing::Owner, RefusalCode::LeaseInvalid, INVALID),
            (false, Some(true)) => decide(Standing::Other, RefusalCode::LeaseInvalid, INVALID),
            (false, _) => decide(Standing::Other, RefusalCode::ControlLocked, HELD),
        }
    }

    /// Whether the knob or the serial port may do what is of this class.
    pub fn pass_local(&self, source: Source, class: Class, now: Tick) -> Result<Pass, Refusal> {
        match &self.held {
            // Whoever turns the knob: it has no way to show a lease.
            Some(held) => self.decide(source, class, Standing::Owner, || {
                held.refusal(RefusalCode::ControlLocked, BLOCKED, now)
            }),
            None => self.decide(source, class, Standing::Inactive, || {
                nobodys(RefusalCode::LeaseRequired, STREAM_NEEDS_LEASE)
            }),
        }
    }

    /// Whether a pass still counts: asked by the device at the moment at which it would obey.
    pub fn still_counts(&self, pass: Pass, now: Tick) -> Result<(), Refusal> {
        if pass.is_free {
            return Ok(());
        }
        let is_past = || self.held.as_ref().is_some_and(|held| held.is_past(now));
        if pass.generation == self.generation && !(pass.is_owners && is_past()) {
            return Ok(());
        }
        Err(match &self.held {
            Some(held) if pass.generation != self.generation => {
                held.refusal(RefusalCode::ControlLocked, BLOCKED, now)
            }
            _ => expired(),
        })
    }

    fn decide(
        &self,
        source: Source,
        class: Class,
        standing: Standing,
        refusal: impl FnOnce() -> Refusal,
    ) -> Result<Pass, Refusal> {
        match judge(source, class, standing) {
            Verdict::Allow => Ok(Pass {
                generation: self.generation,
                is_free: matches!(class, Class::Reads | Class::Exempt),
                is_owners: standing == Standing::Owner,
            }),
            Verdict::Block => Err(refusal()),
        }
    }
}
