//! What stands in a ledger, as far as leases and waiters go.

use std::fmt;
use std::path::Path;

use tenure_core::kernel::{self, decode};
use tenure_ledger::embedded::{Archive, OpenError};
use thiserror::Error;

use crate::operation::Mode;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub seq: u64,
    /// Its tick.
    pub at: u64,
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Issued {
        fence: u64,
        id: String,
        resource: String,
        holder: String,
        mode: Mode,
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
        wants: Vec<(String, Mode)>,
        /// Until when.
        until: u64,
    },
    /// Somebody waits no longer, and got nothing.
    Left {
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
pub fn load(directory: &Path) -> Result<Vec<Entry>, LoadError> {
    let archive = Archive::open(directory)?.beside_a_writer();
    if archive.beginning().is_some() {
        return Err(LoadError::Pruned);
    }
    let tag = archive.identity().ledger.tag();
    let mut batches = archive.batches();
    let mut entries = Vec::new();
    while let Some(placed) = batches.next_batch()? {
        for (seq, record) in (placed.batch.first.0..).zip(&placed.batch.records) {
            let event = decode(record, tag).map_err(|source| LoadError::Decode { seq, source })?;
            let Some(event) = event else { continue };
            if let Some(known) = understand(seq, &event, tag)? {
                entries.push(Entry { seq, at: event.at().0, event: known });
            }
        }
    }
    Ok(entries)
}

fn understand(seq: u64, event: &kernel::Event, tag: kernel::LedgerTag) -> Result<Option<Event>, LoadError> {
    let mode = |mode: kernel::Mode| match mode {
        kernel::Mode::Exclusive => Ok(Mode::Exclusive),
        kernel::Mode::Shared => Ok(Mode::Shared),
        other => Err(LoadError::Mode { seq, mode: other.as_str() }),
    };
    Ok(Some(match event {
        kernel::Event::Issued(issued) => Event::Issued {
            fence: issued.fence.0,
            id: tag.lease_id(issued.fence),
            resource: issued.resource.as_str().to_owned(),
            holder: issued.holder.as_str().to_owned(),
            mode: mode(issued.mode)?,
            expires_at: issued.expires_at.0,
            ttl: issued.ttl.0,
            ticket: issued.ticket.map(|ticket| ticket.0),
            continues: issued.continues.map(|fence| fence.0),
        },
        kernel::Event::Renewed { lease, expires_at, .. } => {
            Event::Renewed { fence: lease.0, expires_at: expires_at.0 }
        }
        kernel::Event::Released { lease, .. } => Event::Released { fence: lease.0 },
        kernel::Event::Expired { lease, .. } => Event::Expired { fence: lease.0 },
        kernel::Event::Revoked { lease, cause, .. } => {
            Event::Revoked { fence: lease.0, cause: cause.as_str().to_owned() }
        }
        kernel::Event::Queued(queued) => {
            let wants =
                queued.wants.iter().map(|want| Ok((want.resource.as_str().to_owned(), mode(want.mode)?)));
            Event::Queued {
                ticket: queued.ticket.0,
                holder: queued.holder.as_str().to_owned(),
                wants: wants.collect::<Result<_, LoadError>>()?,
                until: queued.until.0,
            }
        }
        kernel::Event::Left { ticket, .. } => Event::Left { ticket: ticket.0 },
        kernel::Event::Marked { reading, .. } | kernel::Event::Resumed { reading, .. } => {
            Event::Clock { clock: reading.clock.to_string(), microseconds: reading.microseconds }
        }
        _ => return Ok(None),
    }))
}

impl fmt::Display for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "entry {:>6} at tick {:>12}  ", self.seq, self.at)?;
        match &self.event {
            Event::Issued { fence, resource, holder, mode, expires_at, ticket, continues, .. } => {
                write!(formatter, "issued {fence} on {resource} to {holder}, {mode}, until {expires_at}")?;
                ticket.map_or(Ok(()), |ticket| write!(formatter, ", for ticket {ticket}"))?;
                continues.map_or(Ok(()), |before| write!(formatter, ", in place of {before}"))
            }
            Event::Renewed { fence, expires_at } => write!(formatter, "renewed {fence} until {expires_at}"),
            Event::Released { fence } => write!(formatter, "released {fence}"),
            Event::Expired { fence } => write!(formatter, "expired {fence}"),
            Event::Revoked { fence, cause } => write!(formatter, "revoked {fence}: {cause}"),
            Event::Queued { ticket, holder, wants, until } => {
                let wants: Vec<_> = wants.iter().map(|(name, mode)| format!("{name} {mode}")).collect();
                write!(
                    formatter,
                    "{holder} waits with ticket {ticket} for {} until {until}",
                    wants.join(" and ")
                )
            }
            Event::Left { ticket } => write!(formatter, "ticket {ticket} left"),
            Event::Clock { microseconds, .. } => write!(formatter, "the clock said {microseconds} us"),
        }
    }
}
