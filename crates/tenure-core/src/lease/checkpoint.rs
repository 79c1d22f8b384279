//! A projection as bytes and back, so that a start need not replay from the first event.
//!
//! ```text
//! version   4 bytes, big-endian
//! digest   32 bytes, BLAKE3 of the version and the body
//! body      protobuf: the leases, in the order of their ids
//! ```
//!
//! The index is not stored: it follows from the leases, and what is not stored cannot contradict them.

use prost::Message;

use super::{HtfTick, Lease, LeaseError, LeaseReducerState, LeaseState, ReleaseReason};

/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;

impl LeaseReducerState {
    /// The state as bytes. Equal states give equal bytes.
    pub fn to_checkpoint(&self) -> Vec<u8> {
        let mut leases: Vec<&Lease> = self.leases.values().collect();
        leases.sort_unstable_by(|one, other| one.lease_id.cmp(&other.lease_id));
        let body =
            CheckpointBody { leases: leases.into_iter().map(StoredLease::from).collect() }.encode_to_vec();
        let mut bytes = VERSION.to_be_bytes().to_vec();
        bytes.extend_from_slice(digest(VERSION, &body).as_bytes());
        bytes.extend_from_slice(&body);
        bytes
    }

    /// The state that [`to_checkpoint`](Self::to_checkpoint) wrote.
    ///
    /// Nothing is believed that does not prove itself: another version, a damaged byte, a lease that could
    /// not have come about by events, and two active leases on one work item are all refused. Replay the
    /// ledger instead; a checkpoint saves time and is never the only copy.
    ///
    /// ```
    /// use tenure_core::lease::LeaseReducerState;
    /// let bytes = LeaseReducerState::new().to_checkpoint();
    /// assert!(LeaseReducerState::from_checkpoint(&bytes)?.is_empty());
    /// assert!(LeaseReducerState::from_checkpoint(&bytes[1..]).is_err());
    /// # Ok::<(), tenure_core::lease::LeaseError>(())
    /// ```
    pub fn from_checkpoint(bytes: &[u8]) -> Result<Self, LeaseError> {
        let too_short = || refused("ends within its own header");
        let (version, rest) = bytes.split_first_chunk::<4>().ok_or_else(too_short)?;
        let version = u32::from_be_bytes(*version);
        if version != VERSION {
            return Err(refused(format!("has version {version}; this program reads {VERSION}")));
        }
        let (expected, body) = rest.split_first_chunk::<32>().ok_or_else(too_short)?;
        if digest(version, body) != *expected {
            return Err(refused("is damaged: its digest does not match"));
        }
        let mut state = Self::new();
        for stored in CheckpointBody::decode(body)?.leases {
            state.restore(stored.try_into()?)?;
        }
        state.check_invariants().map_err(refused)?;
        Ok(state)
    }

    fn restore(&mut self, lease: Lease) -> Result<(), LeaseError> {
        if lease.is_active()
            && let Some(other) =
                self.active_leases_by_work.insert(lease.work_id.clone(), lease.lease_id.clone())
        {
            return Err(LeaseError::WorkAlreadyLeased { work_id: lease.work_id, existing_lease_id: other });
        }
        match self.leases.insert(lease.lease_id.clone(), lease) {
            Some(twice) => Err(LeaseError::LeaseAlreadyExists { lease_id: twice.lease_id }),
            None => Ok(()),
        }
    }
}

fn digest(version: u32, body: &[u8]) -> blake3::Hash {
    blake3::Hasher::new().update(&version.to_be_bytes()).update(body).finalize()
}

fn refused(reason: impl Into<String>) -> LeaseError {
    LeaseError::invalid("checkpoint", reason)
}

#[derive(Clone, PartialEq, Message)]
struct CheckpointBody {
    #[prost(message, repeated, tag = "1")]
    leases: Vec<StoredLease>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredLease {
    #[prost(string, tag = "1")]
    lease_id: String,
    #[prost(string, tag = "2")]
    work_id: String,
    #[prost(string, tag = "3")]
    actor_id: String,
    #[prost(string, tag = "4")]
    state: String,
    #[prost(uint64, tag = "5")]
    issued_at: u64,
    #[prost(uint64, tag = "6")]
    expires_at: u64,
    #[prost(message, optional, tag = "7")]
    issued_at_tick: Option<StoredTick>,
    #[prost(message, optional, tag = "8")]
    expires_at_tick: Option<StoredTick>,
    #[prost(bytes = "vec", tag = "9")]
    registrar_signature: Vec<u8>,
    #[prost(uint32, tag = "10")]
    renewal_count: u32,
    #[prost(uint64, optional, tag = "11")]
    last_renewed_at: Option<u64>,
    #[prost(string, optional, tag = "12")]
    release_reason: Option<String>,
    #[prost(uint64, optional, tag = "13")]
    terminated_at: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct StoredTick {
    #[prost(uint64, tag = "1")]
    value: u64,
    #[prost(uint64, tag = "2")]
    tick_rate_hz: u64,
}

impl From<HtfTick> for StoredTick {
    fn from(tick: HtfTick) -> Self {
        Self { value: tick.value(), tick_rate_hz: tick.tick_rate_hz() }
    }
}

impl From<StoredTick> for HtfTick {
    fn from(tick: StoredTick) -> Self {
        Self::new(tick.value, tick.tick_rate_hz)
    }
}

impl From<&Lease> for StoredLease {
    fn from(lease: &Lease) -> Self {
        Self {
            lease_id: lease.lease_id.clone(),
            work_id: lease.work_id.clone(),
            actor_id: lease.actor_id.clone(),
            state: lease.state.as_str().to_owned(),
            issued_at: lease.issued_at,
            expires_at: lease.expires_at,
            issued_at_tick: lease.issued_at_tick.map(StoredTick::from),
            expires_at_tick: lease.expires_at_tick.map(StoredTick::from),
            registrar_signature: lease.registrar_signature.clone(),
            renewal_count: lease.renewal_count,
            last_renewed_at: lease.last_renewed_at,
            release_reason: lease.release_reason.map(|reason| reason.as_str().to_owned()),
            terminated_at: lease.terminated_at,
        }
    }
}

impl TryFrom<StoredLease> for Lease {
    type Error = LeaseError;

    fn try_from(stored: StoredLease) -> Result<Self, Self::Error> {
        Ok(Self {
            state: LeaseState::parse(&stored.state)?,
            release_reason: stored.release_reason.as_deref().map(ReleaseReason::parse).transpose()?,
            lease_id: stored.lease_id,
            work_id: stored.work_id,
            actor_id: stored.actor_id,
            issued_at: stored.issued_at,
            expires_at: stored.expires_at,
            issued_at_tick: stored.issued_at_tick.map(HtfTick::from),
            expires_at_tick: stored.expires_at_tick.map(HtfTick::from),
            registrar_signature: stored.registrar_signature,
            renewal_count: stored.renewal_count,
            last_renewed_at: stored.last_renewed_at,
            terminated_at: stored.terminated_at,
        })
    }
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
