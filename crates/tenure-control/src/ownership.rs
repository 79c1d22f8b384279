//! The current owner of the device, and the permit that a command needs to reach it.
//!
//! Ownership changes only when the ledger says so. A command gets a [`Permit`], perhaps long before its body has arrived; the
//! device checks the permit again right before it executes the command. So a command that was permitted before an ownership
//! change has no effect after it.

use std::sync::Arc;

use subtle::ConstantTimeEq as _;
use tenure_core::kernel::{Fence, Tick, TickDuration};
use tenure_core::rules::{is_expired, remaining};

use crate::device_clock::whole_millis;
use crate::permission_matrix::{CommandClass, CommandSource, OwnershipStatus, PermissionVerdict, evaluate};
use crate::rejection::{
    BLOCKED, ControlRejection, ControlRejectionCode, EXPIRED, HELD, INVALID, REQUIRED, STREAM_REQUIRES_LEASE,
};

/// What is kept of a lease's token. There is no way back.
#[derive(Clone)]
pub struct TokenDigest(blake3::Hash);

impl TokenDigest {
    /// What is kept of this token.
    pub fn of(token: &str) -> Self {
        Self(blake3::hash(token.as_bytes()))
    }

    /// Whether this is the token. How long that takes says nothing about it.
    pub fn matches(&self, token: &str) -> bool {
        blake3::hash(token.as_bytes()).as_bytes().ct_eq(self.0.as_bytes()).into()
    }
}

/// A connection that may own a lease.
#[derive(Clone)]
pub struct ControlOwner {
    /// A random name that no other connection ever has. The lease's holder, in the ledger.
    pub identity: Arc<str>,
    /// The number that is shown. It may be given out again.
    pub websocket_client_id: u32,
    pub client_name: Arc<str>,
    pub instance_id: Arc<str>,
    /// Of the token that was told this connection alone.
    pub token_digest: TokenDigest,
}

#[derive(Clone)]
pub struct ControlLease {
    pub fence: Fence,
    /// How clients call it: `cl_` and hexadecimal digits.
    pub lease_id: Arc<str>,
    pub owner: ControlOwner,
    pub acquired_at: Tick,
    /// When it ends, as far as is known.
    pub expires_at: Tick,
    /// How long it lasts from each heartbeat.
    pub ttl: TickDuration,
}

impl ControlLease {
    /// Whether its time is over. Until the ledger says so it is in the way of others all the same: a heartbeat that came in
    /// time may still be on its way to the disk.
    pub fn is_expired(&self, now: Tick) -> bool {
        is_expired(now.0, self.expires_at.0)
    }

    /// How long it still lasts, in whole milliseconds.
    pub fn remaining_ms(&self, now: Tick) -> u32 {
        whole_millis(TickDuration(remaining(now.0, self.expires_at.0)))
    }

    /// Its length in milliseconds.
    pub fn ttl_ms(&self) -> u32 {
        whole_millis(self.ttl)
    }

    fn rejection(&self, code: ControlRejectionCode, message: &'static str, now: Tick) -> ControlRejection {
        let owner_client_name = self.owner.client_name.to_string();
        ControlRejection { code, message, owner_client_name, remaining_ms: self.remaining_ms(now) }
    }

    /// Why somebody else does not get it.
    pub fn locked_rejection(&self, now: Tick) -> ControlRejection {
        self.rejection(ControlRejectionCode::ControlLocked, HELD, now)
    }

    /// Why a heartbeat or release with another id or token does nothing.
    pub fn invalid_rejection(&self, now: Tick) -> ControlRejection {
        self.rejection(ControlRejectionCode::LeaseInvalid, INVALID, now)
    }
}

/// Why something that is over cannot be used.
pub fn expired_rejection() -> ControlRejection {
    rejection_without_owner(ControlRejectionCode::LeaseExpired, EXPIRED)
}

fn rejection_without_owner(code: ControlRejectionCode, message: &'static str) -> ControlRejection {
    ControlRejection { code, message, owner_client_name: String::new(), remaining_ms: 0 }
}

/// What a command needs to reach the device. It is worth nothing after the next change of hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permit {
    epoch: u64,
    /// Commands that a change of hands does not concern: they read, or are exempt.
    is_unconditional: bool,
    /// Whether it was given to the lease's owner.
    is_for_owner: bool,
}

impl Permit {
    /// Between which two changes of hands it was given.
    pub const fn epoch(self) -> u64 {
        self.epoch
    }

    /// Whether no change of hands concerns it.
    pub const fn is_unconditional(self) -> bool {
        self.is_unconditional
    }
}

/// Whose hand is on the device.
#[derive(Default)]
pub struct OwnershipState {
    epoch: u64,
    lease: Option<ControlLease>,
}

impl OwnershipState {
    /// The lease, until the ledger has its end.
    pub fn lease(&self) -> Option<&ControlLease> {
        self.lease.as_ref()
    }

    /// How many changes of hands there were.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    pub fn begin_lease(&mut self, held: ControlLease) {
        self.epoch += 1;
        self.lease = Some(held);
    }

    pub fn extend_lease(&mut self, fence: Fence, expires_at: Tick) -> bool {
        let held = self.lease.as_mut().filter(|held| held.fence == fence);
        held.map(|held| held.expires_at = expires_at).is_some()
    }

    /// It ended. The answer is the lease that did.
    pub fn end_lease(&mut self, fence: Fence) -> Option<ControlLease> {
        let held = self.lease.take_if(|held| held.fence == fence)?;
        self.epoch += 1;
        Some(held)
    }

    /// Whether this connection's WebSocket may send a command of this class.
    pub fn permit_websocket(
        &self,
        identity: &str,
        class: CommandClass,
        now: Tick,
    ) -> Result<Permit, ControlRejection> {
        let Some(held) = &self.lease else {
            let rejection =
                || rejection_without_owner(ControlRejectionCode::LeaseRequired, STREAM_REQUIRES_LEASE);
            return self.decide(CommandSource::WebSocket, class, OwnershipStatus::Inactive, rejection);
        };
        if &*held.owner.identity != identity {
            let rejection = || held.rejection(ControlRejectionCode::ControlLocked, BLOCKED, now);
            return self.decide(CommandSource::WebSocket, class, OwnershipStatus::Other, rejection);
        }
        // Over, and not announced yet: nobody's.
        let standing = if held.is_expired(now) { OwnershipStatus::Other } else { OwnershipStatus::Owner };
        self.decide(CommandSource::WebSocket, class, standing, || {
            held.rejection(ControlRejectionCode::LeaseExpired, EXPIRED, now)
        })
    }

    /// Whether a request may do what is of this class. It shows a token, and perhaps says of which lease.
    pub fn permit_rest(
        &self,
        token: Option<&str>,
        lease_id: Option<&str>,
        class: CommandClass,
        now: Tick,
    ) -> Result<Permit, ControlRejection> {
        let decide = |standing, code, message| {
            let rejection = || match &self.lease {
                Some(held) => held.rejection(code, message, now),
                None => rejection_without_owner(code, message),
            };
            self.decide(CommandSource::Rest, class, standing, rejection)
        };
        let Some(held) = &self.lease else {
            // A token that is no lease's was one's: who shows it believes to be protected.
            let standing = if token.is_some() { OwnershipStatus::Other } else { OwnershipStatus::Inactive };
            return decide(standing, ControlRejectionCode::LeaseExpired, EXPIRED);
        };
        let Some(token) = token else {
            return decide(OwnershipStatus::Other, ControlRejectionCode::LeaseRequired, REQUIRED);
        };
        let is_this_lease = lease_id.map(|id| id == &*held.lease_id);
        match (held.owner.token_digest.matches(token), is_this_lease) {
            (true, Some(false)) => {
                decide(OwnershipStatus::Other, ControlRejectionCode::ControlLocked, BLOCKED)
            }
            (true, _) if held.is_expired(now) => {
                decide(OwnershipStatus::Other, ControlRejectionCode::LeaseExpired, EXPIRED)
            }
            (true, _) => decide(OwnershipStatus::Owner, ControlRejectionCode::LeaseInvalid, INVALID),
            (false, Some(true)) => {
                decide(OwnershipStatus::Other, ControlRejectionCode::LeaseInvalid, INVALID)
            }
            (false, _) => decide(OwnershipStatus::Other, ControlRejectionCode::ControlLocked, HELD),
        }
    }

    /// Whether the knob or the serial port may do what is of this class.
    pub fn permit_local(
        &self,
        source: CommandSource,
        class: CommandClass,
        now: Tick,
    ) -> Result<Permit, ControlRejection> {
        match &self.lease {
            // Whoever turns the knob: it has no way to show a lease.
            Some(held) => self.decide(source, class, OwnershipStatus::Owner, || {
                held.rejection(ControlRejectionCode::ControlLocked, BLOCKED, now)
            }),
            None => self.decide(source, class, OwnershipStatus::Inactive, || {
                rejection_without_owner(ControlRejectionCode::LeaseRequired, STREAM_REQUIRES_LEASE)
            }),
        }
    }

    /// Whether a pass still counts: asked by the device at the moment at which it would obey.
    pub fn check_permit(&self, pass: Permit, now: Tick) -> Result<(), ControlRejection> {
        if pass.is_unconditional {
            return Ok(());
        }
        let is_past = || self.lease.as_ref().is_some_and(|held| held.is_expired(now));
        if pass.epoch == self.epoch && !(pass.is_for_owner && is_past()) {
            return Ok(());
        }
        Err(match &self.lease {
            Some(held) if pass.epoch != self.epoch => {
                held.rejection(ControlRejectionCode::ControlLocked, BLOCKED, now)
            }
            _ => expired_rejection(),
        })
    }

    fn decide(
        &self,
        source: CommandSource,
        class: CommandClass,
        standing: OwnershipStatus,
        rejection: impl FnOnce() -> ControlRejection,
    ) -> Result<Permit, ControlRejection> {
        match evaluate(source, class, standing) {
            PermissionVerdict::Allow => Ok(Permit {
                epoch: self.epoch,
                is_unconditional: matches!(class, CommandClass::Reads | CommandClass::Exempt),
                is_for_owner: standing == OwnershipStatus::Owner,
            }),
            PermissionVerdict::Block => Err(rejection()),
        }
    }
}
