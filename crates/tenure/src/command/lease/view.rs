//! Leases and waiters as people read them.

use tenure_api::{Lease, LeaseGrant, LeaseState, Waiter};

use crate::duration::format_short;
use crate::output::Table;

pub fn table(leases: &[Lease]) -> Table {
    let mut table =
        Table::with_header(&["LEASE", "RESOURCE", "HOLDER", "MODE", "FENCE", "STATE", "LEFT", "SINCE"]);
    for lease in leases {
        let Lease { id, resource, holder, mode, .. } = lease;
        let texts = [id, resource, holder, mode].map(Clone::clone);
        let remaining = remaining(lease);
        let rest = [lease.fence.to_string(), state(lease), remaining, lease.acquired_at.clone()];
        table.row(texts.into_iter().chain(rest));
    }
    table
}

pub fn fields(lease: &Lease) -> Table {
    let mut table = Table::default();
    table.field("lease", &lease.id);
    table.field("resource", &lease.resource);
    table.field("holder", &lease.holder);
    table.field("mode", &lease.mode);
    table.field("fence", lease.fence);
    table.field("state", state(lease));
    table.field("acquired", &lease.acquired_at);
    match &lease.ended_at {
        Some(ended_at) => table.field("ended", ended_at),
        None => {
            table.field("expires", format!("{}, in {}", lease.expires_at, format_short(lease.remaining_ms)))
        }
    }
    table.field("renewals", lease.renewal_count);
    for (name, value) in &lease.labels {
        table.field("label", format!("{name}={value}"));
    }
    if let Some(waiters) = &lease.recall {
        let additional = match waiters.waiting {
            0 | 1 => String::new(),
            waiting => format!(" and {} more", waiting - 1),
        };
        table.field(
            "wanted by",
            format!("{}{additional}, for another {}", waiters.by, format_short(waiters.remaining_ms)),
        );
    }
    table
}

/// What was granted. The token stands in it, unless it is kept elsewhere.
pub fn granted_lease_table(granted: &LeaseGrant, shows_token: bool) -> Table {
    let mut table = Table::default();
    let LeaseGrant { lease, token, .. } = granted;
    table.field("lease", &lease.id);
    table.field("resource", &lease.resource);
    table.field("holder", &lease.holder);
    table.field("fence", lease.fence);
    table.field("expires", format!("{}, in {}", lease.expires_at, format_short(lease.remaining_ms)));
    if shows_token {
        table.field("token", token);
    }
    table
}

/// Those who wait, one line each.
pub fn queue(waiting: &[Waiter]) -> Table {
    let mut table = Table::with_header(&["PLACE", "HOLDER", "MODE", "WAITED", "WAITS ANOTHER", "FOR"]);
    for waiter in waiting {
        table.row([
            waiter.position.to_string(),
            waiter.holder.clone(),
            waiter.mode.clone(),
            format_short(waiter.waited_ms),
            format_short(waiter.remaining_ms),
            waiter.resources.join(", "),
        ]);
    }
    table
}

/// Whether it lives, and if not how it ended.
fn state(lease: &Lease) -> String {
    match (&lease.end, lease.state) {
        (Some(end), LeaseState::Released) => format!("RELEASED ({end})"),
        (_, state) => state.to_string(),
    }
}

fn remaining(lease: &Lease) -> String {
    if lease.state == LeaseState::Active { format_short(lease.remaining_ms) } else { "-".to_owned() }
}
