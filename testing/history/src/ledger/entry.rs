//! What stands in a ledger, as far as leases and waiters go.

use std::fmt;
use std::path::Path;

use tenure_core::kernel::{self, decode};
use tenure_ledger::{OpenError, open_read_only};
use thiserror::Error;

use crate::operation::LeaseMode;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    pub seq: u64,
    /// Its tick.
    pub at: u64,
    pub event: LedgerEvent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerEvent {
    Issued {
        fence: u64,
        id: String,
        resource: String,
        holder: String,
        mode: LeaseMode,
        /// Its end, in ticks.
        expires_at: u64,
        /// Its length, in ticks.
        ttl: u64,
        ticket: Option<u64>,
        /// The lease that this one continues.
        continues: Option<u64>,
    },
    Renewed {
        fence: u64,
        expires_at: u64,
    },
    Released {
        fence: u64,
    },
    Expired {
        fence: u64,
    },
    Revoked {
        fence: u64,
        cause: String,
    },
    Queued {
        ticket: u64,
        holder: String,
        requests: Vec<(String, LeaseMode)>,
        /// Until when.
        until: u64,
    },
    /// Somebody waits no longer, and got nothing.
    WaitEnded {
        ticket: u64,
    },
    /// What the clock said at this tick.
    Clock {
        clock: String,
        /// Its microseconds.
        microseconds: u64,
    },
}

/// Why a ledger cannot be compared with anything.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    #[error("the ledger cannot be read")]
    Open(#[from] OpenError),
    #[error("entry {seq} of the ledger cannot be understood")]
    Decode { seq: u64, source: kernel::DecodeError },
    #[error("entry {seq} has the mode {mode}; histories know `exclusive` and `shared` alone")]
    Mode { seq: u64, mode: &'static str },
    #[error("the first entries were pruned; keep them, or nothing can be said about what they explain")]
    Pruned,
}

/// Reads the ledger in `directory`, without a lock and without changing it.
pub fn load(directory: &Path) -> Result<Vec<LedgerEntry>, LoadError> {
    let archive = open_read_only(directory)?.tolerate_active_writer();
    if archive.oldest_checkpoint().is_some() {
        return Err(LoadError::Pruned);
    }
    let tag = archive.ledger().tag();
    let mut batches = archive.batches();
    let mut entries = Vec::new();
    while let Some(placed) = batches.next_batch()? {
        for (seq, record) in (placed.batch.first.0..).zip(&placed.batch.records) {
            let event = decode(record, tag).map_err(|source| LoadError::Decode { seq, source })?;
            let Some(event) = event else { continue };
            if let Some(known) = convert_event(seq, &event, tag)? {
                entries.push(LedgerEntry { seq, at: event.occurred_at().0, event: known });
            }
        }
    }
    Ok(entries)
}

fn convert_event(
    seq: u64,
    event: &kernel::Event,
    tag: kernel::LedgerTag,
) -> Result<Option<LedgerEvent>, LoadError> {
    let mode = |mode: kernel::LeaseMode| match mode {
        kernel::LeaseMode::Exclusive => Ok(LeaseMode::Exclusive),
        kernel::LeaseMode::Shared => Ok(LeaseMode::Shared),
        other => Err(LoadError::Mode { seq, mode: other.as_str() }),
    };
    Ok(Some(match event {
        kernel::Event::Issued(issued) => LedgerEvent::Issued {
            fence: issued.fence.0,
            id: tag.lease_id(issued.fence),
            resource: issued.resource.as_str().to_owned(),
            holder: issued.holder.as_str().to_owned(),
            mode: mode(issued.terms.mode)?,
            expires_at: issued.terms.expires_at.0,
            ttl: issued.terms.ttl.0,
            ticket: issued.ticket.map(|ticket| ticket.0),
            continues: issued.continues.map(|fence| fence.0),
        },
        kernel::Event::Renewed { lease, expires_at, .. } => {
            LedgerEvent::Renewed { fence: lease.0, expires_at: expires_at.0 }
        }
        kernel::Event::Released { lease, .. } => LedgerEvent::Released { fence: lease.0 },
        kernel::Event::Expired { lease, .. } => LedgerEvent::Expired { fence: lease.0 },
        kernel::Event::Revoked { lease, cause, .. } => {
            LedgerEvent::Revoked { fence: lease.0, cause: cause.as_str().to_owned() }
        }
        kernel::Event::Queued(queued) => {
            let requests = queued
                .requests
                .iter()
                .map(|request| Ok((request.resource.as_str().to_owned(), mode(request.mode)?)));
            LedgerEvent::Queued {
                ticket: queued.ticket.0,
                holder: queued.holder.as_str().to_owned(),
                requests: requests.collect::<Result<_, LoadError>>()?,
                until: queued.until.0,
            }
        }
        kernel::Event::Left { ticket, .. } => LedgerEvent::WaitEnded { ticket: ticket.0 },
        kernel::Event::Marked { reading, .. } | kernel::Event::Resumed { reading, .. } => {
            LedgerEvent::Clock { clock: reading.clock.to_string(), microseconds: reading.microseconds }
        }
        _ => return Ok(None),
    }))
}

impl fmt::Display for LedgerEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "entry {:>6} at tick {:>12}  ", self.seq, self.at)?;
        match &self.event {
            LedgerEvent::Issued { fence, resource, holder, mode, expires_at, ticket, continues, .. } => {
                write!(formatter, "issued {fence} on {resource} to {holder}, {mode}, until {expires_at}")?;
                ticket.map_or(Ok(()), |ticket| write!(formatter, ", for ticket {ticket}"))?;
                continues.map_or(Ok(()), |before| write!(formatter, ", in place of {before}"))
            }
            LedgerEvent::Renewed { fence, expires_at } => {
                write!(formatter, "renewed {fence} until {expires_at}")
            }
            LedgerEvent::Released { fence } => write!(formatter, "released {fence}"),
            LedgerEvent::Expired { fence } => write!(formatter, "expired {fence}"),
            LedgerEvent::Revoked { fence, cause } => write!(formatter, "revoked {fence}: {cause}"),
            LedgerEvent::Queued { ticket, holder, requests: wants, until } => {
                let wants: Vec<_> = wants.iter().map(|(name, mode)| format!("{name} {mode}")).collect();
                write!(
                    formatter,
                    "{holder} waits with ticket {ticket} for {} until {until}",
                    wants.join(" and ")
                )
            }
            LedgerEvent::WaitEnded { ticket } => write!(formatter, "ticket {ticket} left"),
            LedgerEvent::Clock { microseconds, .. } => write!(formatter, "the clock said {microseconds} us"),
        }
    }
}
