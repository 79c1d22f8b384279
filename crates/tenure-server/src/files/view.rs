//! Files and their holders as JSON.

use tenure_api::{FileView, FileWaiter, HeldFileView, UncommittedFile};
use tenure_core::kernel::{self, Holder, KernelState, LeaseView, Resource, RetryTicket, Tick, Ticket};
use tenure_host::paths::FileKey;

use super::caller::{known_owner, owner_view, unchecked_owner_view};
use crate::app::{App, tick_to_rfc3339};

pub(super) fn report_id(ticket: Ticket) -> String {
    format!("R-{}", ticket.0)
}

/// The path of a file below its tree, for people.
pub(super) fn relative(file: &FileKey) -> String {
    file.relative.to_string_lossy().into_owned()
}

/// The path that a name in the ledger means; the name itself where it means none.
pub(super) fn path(app: &App, resource: &Resource) -> String {
    app.files.trees.locate(resource).map_or_else(|| resource.as_str().to_owned(), |named| named.display())
}

/// Where its tree is, if that is known.
pub(super) fn root(app: &App, resource: &Resource) -> Option<String> {
    let root = app.files.trees.locate(resource)?.root?;
    Some(root.to_string_lossy().into_owned())
}

/// A file that somebody has who is in the way.
pub(super) fn held_file_view(app: &App, resource: &Resource, holder: &Holder, now: Tick) -> HeldFileView {
    let (found, since, seen) = app.registrar.read(|state| {
        let lease = state.file_lease(resource).filter(|(_, _, other)| *other == holder);
        let since = lease.map_or(now, |(_, since, _)| since);
        let seen = state.file_session(holder).map_or(since, |session| session.seen_at.max(since));
        (known_owner(state, holder), since, seen)
    });
    HeldFileView {
        path: path(app, resource),
        resource: resource.as_str().to_owned(),
        owner: owner_view(&found),
        held_ms: now.since(since).as_millis(),
        idle_ms: now.since(seen).as_millis(),
    }
}

/// A file that somebody left without a commit.
pub(super) fn uncommitted_file(
    app: &App,
    resource: &Resource,
    uncommitted: &kernel::UncommittedFile,
    now: Tick,
) -> UncommittedFile {
    UncommittedFile {
        path: path(app, resource),
        owner: owner_view(&uncommitted.owner),
        left_ms: now.since(uncommitted.at).as_millis(),
    }
}

/// A file that a session has. Who owns it is looked at later, where nobody waits for it.
pub(super) struct HeldFileSnapshot {
    pub(super) resource: Resource,
    pub(super) owner: kernel::FileOwner,
    view: FileView,
}

impl HeldFileSnapshot {
    pub(super) fn of(state: &KernelState, lease: &LeaseView<'_>, now: Tick) -> Option<Self> {
        let session = state.file_session(lease.holder)?;
        let tickets = state.retry_tickets().filter(|ticket| ticket.request.resource == *lease.resource);
        let waiters: Vec<FileWaiter> = tickets.map(|ticket| waiter(state, ticket, now)).collect();
        let due = session.turn_ended_at.map(|at| at.saturating_add(state.limits().file_idle_timeout));
        let found = session.owner();
        // Who gets a file is heard of, though signs of life within a second count once.
        let seen_at = session.seen_at.max(lease.terms.issued_at);
        let view = FileView {
            path: String::new(),
            root: None,
            resource: lease.resource.as_str().to_owned(),
            owner: unchecked_owner_view(&found),
            acquired_at: tick_to_rfc3339(state, lease.terms.issued_at),
            last_heartbeat_at: tick_to_rfc3339(state, seen_at),
            lease_state: if waiters.is_empty() { "OWNED" } else { "CONTENDED" }.to_owned(),
            held_ms: now.since(lease.terms.issued_at).as_millis(),
            idle_ms: now.since(seen_at).as_millis(),
            released_in_ms: due.map(|due| due.since(now).as_millis()),
            waiters,
        };
        Some(Self { resource: lease.resource.clone(), owner: found, view })
    }

    /// As it is shown. It looks at processes; nothing for one more name of a file that has another.
    pub(super) fn into_view(self, app: &App) -> Option<FileView> {
        let named = app.files.trees.locate(&self.resource)?;
        let root = named.root.as_ref().map(|root| root.to_string_lossy().into_owned());
        Some(FileView { path: named.display(), root, owner: owner_view(&self.owner), ..self.view })
    }
}

fn waiter(state: &KernelState, ticket: &RetryTicket, now: Tick) -> FileWaiter {
    let found = known_owner(state, &ticket.session);
    let is_blocked = ticket.blocked.is_some();
    FileWaiter {
        session: found.session.to_string(),
        agent: found.agent.to_string(),
        retry_in_ms: if is_blocked { 0 } else { ticket.retry_at.since(now).as_millis() },
        state: if is_blocked { "BLOCKED" } else { "RETRY_PENDING" }.to_owned(),
        report: is_blocked.then(|| report_id(ticket.ticket)),
    }
}
