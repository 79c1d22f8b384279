//! What is shown of files and of those who have them.

use tenure_api::{FileOwner, FileView, FileWaiter, HeldBy, LeftBy};
use tenure_core::kernel::{FileTicket, Holder, LeaseView, LeftFile, Owner, Resource, State, Tick, Ticket};
use tenure_gate::paths::FileKey;
use tenure_gate::process::Liveness;

use super::identity;
use crate::app::App;
use crate::http::names::time_of;

pub(super) fn report_id(ticket: Ticket) -> String {
    format!("R-{}", ticket.0)
}

/// The path of a file below its tree, for people.
pub(super) fn relative(file: &FileKey) -> String {
    file.relative.to_string_lossy().into_owned()
}

/// The path that a name in the ledger means; the name itself where it means none.
pub(super) fn path(app: &App, resource: &Resource) -> String {
    app.files.trees.named(resource).map_or_else(|| resource.as_str().to_owned(), |named| named.shown())
}

/// Where its tree is, if that is known.
pub(super) fn root(app: &App, resource: &Resource) -> Option<String> {
    let root = app.files.trees.named(resource)?.root?;
    Some(root.to_string_lossy().into_owned())
}

/// Whoever it is, as it is now. It looks at the process.
pub(super) fn owner(owner: &Owner) -> FileOwner {
    let process = identity::process_in(&owner.process);
    let liveness = process.as_ref().map_or(Liveness::Dead, |process| process.liveness());
    FileOwner {
        agent: owner.agent.to_string(),
        session: if owner.session.is_empty() {
            owner.holder.as_str().to_owned()
        } else {
            owner.session.to_string()
        },
        holder: owner.holder.as_str().to_owned(),
        pid: process.map_or(0, |process| process.pid),
        alive: liveness != Liveness::Dead,
        suspended: liveness == Liveness::Suspended,
        task: owner.task.to_string(),
    }
}

/// Who has this name, as far as that is known.
pub(super) fn owner_of(state: &State, holder: &Holder) -> Owner {
    state.file_session(holder).map_or_else(|| Owner::named(holder.clone()), |session| session.owner())
}

/// A file that somebody has who is in the way.
pub(super) fn held_by(app: &App, resource: &Resource, holder: &Holder, now: Tick) -> HeldBy {
    let (found, since, seen) = app.registrar.read(|state| {
        let lease = state.file_lease(resource).filter(|(_, _, other)| *other == holder);
        let since = lease.map_or(now, |(_, since, _)| since);
        let seen = state.file_session(holder).map_or(since, |session| session.seen_at.max(since));
        (owner_of(state, holder), since, seen)
    });
    HeldBy {
        path: path(app, resource),
        resource: resource.as_str().to_owned(),
        owner: owner(&found),
        held_ms: now.since(since).as_millis(),
        idle_ms: now.since(seen).as_millis(),
    }
}

/// A file that somebody left without a commit.
pub(super) fn left_by(app: &App, resource: &Resource, left: &LeftFile, now: Tick) -> LeftBy {
    LeftBy { path: path(app, resource), owner: owner(&left.owner), left_ms: now.since(left.at).as_millis() }
}

/// A file that a session has. Who owns it is looked at later, where nobody waits for it.
pub(super) struct Seen {
    pub(super) resource: Resource,
    pub(super) owner: Owner,
    view: FileView,
}

impl Seen {
    pub(super) fn of(state: &State, lease: &LeaseView<'_>, now: Tick) -> Option<Self> {
        let session = state.file_session(lease.holder)?;
        let tickets = state.file_tickets().filter(|ticket| ticket.want.resource == *lease.resource);
        let waiters: Vec<FileWaiter> = tickets.map(|ticket| waiter(state, ticket, now)).collect();
        let due = session.turn_ended_at.map(|at| at.saturating_add(state.limits().file_idle));
        let found = session.owner();
        // Who gets a file is heard of, though signs of life within a second count once.
        let seen_at = session.seen_at.max(lease.terms.issued_at);
        let view = FileView {
            path: String::new(),
            root: None,
            resource: lease.resource.as_str().to_owned(),
            owner: unlooked(&found),
            acquired_at: time_of(state, lease.terms.issued_at),
            last_heartbeat_at: time_of(state, seen_at),
            lease_state: if waiters.is_empty() { "OWNED" } else { "CONTENDED" }.to_owned(),
            held_ms: now.since(lease.terms.issued_at).as_millis(),
            idle_ms: now.since(seen_at).as_millis(),
            released_in_ms: due.map(|due| due.since(now).as_millis()),
            waiters,
        };
        Some(Self { resource: lease.resource.clone(), owner: found, view })
    }

    /// As it is shown. It looks at processes; nothing for one more name of a file that has another.
    pub(super) fn shown(self, app: &App) -> Option<FileView> {
        let named = app.files.trees.named(&self.resource)?;
        let root = named.root.as_ref().map(|root| root.to_string_lossy().into_owned());
        Some(FileView { path: named.shown(), root, owner: owner(&self.owner), ..self.view })
    }
}

fn unlooked(found: &Owner) -> FileOwner {
    FileOwner {
        agent: found.agent.to_string(),
        session: found.session.to_string(),
        holder: found.holder.as_str().to_owned(),
        pid: 0,
        alive: false,
        suspended: false,
        task: found.task.to_string(),
    }
}

fn waiter(state: &State, ticket: &FileTicket, now: Tick) -> FileWaiter {
    let found = owner_of(state, &ticket.session);
    let is_blocked = ticket.blocked.is_some();
    FileWaiter {
        session: found.session.to_string(),
        agent: found.agent.to_string(),
        retry_in_ms: if is_blocked { 0 } else { ticket.retry_at.since(now).as_millis() },
        state: if is_blocked { "BLOCKED" } else { "RETRY_PENDING" }.to_owned(),
        report: is_blocked.then(|| report_id(ticket.ticket)),
    }
}
