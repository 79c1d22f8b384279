//! Records what happened to files.

use std::collections::btree_map::Entry;

use super::FileStore;
use crate::kernel::event::{IssuedLease, RevocationCause};
use crate::kernel::file::{
    FILES_PRINCIPAL, FileEvent, FileSession, FileSessionInfo, RetryTicket, UncommittedFile,
};
use crate::kernel::outcome::LeaseEnd;
use crate::kernel::state::apply::ensure;
use crate::kernel::state::{ApplyError, KernelState, Removed};
use crate::lease::ReleaseReason;
use crate::rules::{has_duration, is_expired, is_storable_text};
use crate::value::{Holder, LeaseMode, Resource, Tick, TickDuration, Ticket};

impl KernelState {
    pub(in crate::kernel) fn apply_file(&mut self, event: &FileEvent) -> Result<Option<Removed>, ApplyError> {
        match event {
            FileEvent::Began { session, at } => self.apply_began(session, *at)?,
            FileEvent::Seen { session, at, task } => {
                ensure(
                    task.as_ref().is_none_or(|task| is_storable_text(task)),
                    "it is at what cannot be stored",
                )?;
                let known = self.find_session_mut(session)?;
                known.seen_at = *at;
                known.turn_ended_at = None;
                if let Some(task) = task {
                    known.task = task.clone();
                }
            }
            FileEvent::TurnEnded { session, at } => {
                let known = self.find_session_mut(session)?;
                known.seen_at = *at;
                known.turn_ended_at = Some(*at);
            }
            FileEvent::Contended(contended) => {
                ensure(contended.ticket > self.last_ticket, "its ticket was drawn before")?;
                ensure(has_duration(contended.at.0, contended.retry_at.0), "its retry is due at once")?;
                self.find_session_mut(&contended.session)?;
                let request = &contended.request;
                let is_plain = request.mode == LeaseMode::Exclusive
                    && request.alternatives.is_empty()
                    && request.ttl > TickDuration(0);
                ensure(is_plain, "no file is wanted like this")?;
                let before = self.retry_ticket_for(&contended.session, &request.resource);
                ensure(before.is_none(), "there is a ticket for it already")?;
                self.last_ticket = contended.ticket;
                self.files.insert_ticket(RetryTicket {
                    ticket: contended.ticket,
                    session: contended.session.clone(),
                    request: contended.request.clone(),
                    at: contended.at,
                    retry_at: contended.retry_at,
                    cycle: contended.cycle.clone(),
                    blocked: None,
                    end: None,
                });
            }
            FileEvent::Blocked { ticket, report: found } => {
                let known = self.files.tickets.get_mut(ticket).ok_or(NO_TICKET)?;
                ensure(known.blocked.is_none(), "it was blocked before")?;
                ensure(is_expired(found.at.0, known.retry_at.0), "its retry was not due")?;
                ensure(found.held_since <= found.at && found.seen_at <= found.at, "it tells of the future")?;
                known.blocked = Some(found.clone());
            }
            FileEvent::Closed { ticket, at, end } => {
                let mut known = self.remove_retry_ticket(*ticket)?;
                if known.blocked.is_none() {
                    return Ok(Some(Removed::RetryTicket(Box::new(known))));
                }
                known.end = Some((*at, *end));
                self.files.insert_ticket(known);
            }
            FileEvent::Ended { session, .. } => return self.apply_ended(session),
            FileEvent::Violated { .. } => {}
        }
        Ok(None)
    }

    /// A session of an agent gets leases on files in the name of all of them, and nobody else gets any in that name.
    pub(in crate::kernel) fn check_file_lease_issued(&self, issued: &IssuedLease) -> Result<(), ApplyError> {
        let is_session = self.files.sessions.contains_key(&issued.holder);
        let is_ours = issued.principal.as_str() == FILES_PRINCIPAL;
        ensure(is_session == is_ours, "its holder is a session of an agent, or is not, and should be")?;
        let is_plain = issued.key.is_none() && issued.ticket.is_none() && issued.authority.is_none();
        ensure(
            !is_ours || (issued.terms.mode == LeaseMode::Exclusive && is_plain),
            "no file is held like this",
        )?;
        let has_ticket = self.retry_ticket_for(&issued.holder, &issued.resource).is_some();
        ensure(!has_ticket, "its holder has an open ticket for it")
    }

    /// A file that goes on in other hands was left without a commit by who had it, unless that is a subagent of who has it now.
    pub(in crate::kernel) fn record_uncommitted_transfer(&mut self, issued: &IssuedLease) {
        let Some(before) = issued.continues.and_then(|fence| self.ended_lease(fence)) else { return };
        let Some(session) = self.files.sessions.get(&before.holder) else { return };
        let is_heir = self.file_session_ancestors(&session.id).contains(&issued.holder);
        if !is_heir && session.id != issued.holder {
            let uncommitted = UncommittedFile { owner: session.owner(), at: issued.terms.issued_at };
            self.files.record_uncommitted(issued.resource.clone(), uncommitted);
        }
    }

    /// Nobody waits in the plain line under the name of a session.
    pub(in crate::kernel) fn check_not_a_file_session(&self, holder: &Holder) -> Result<(), ApplyError> {
        ensure(!self.files.sessions.contains_key(holder), "its holder is a session, which never waits")
    }

    fn apply_began(&mut self, session: &FileSessionInfo, at: Tick) -> Result<(), ApplyError> {
        ensure(!self.files.sessions.contains_key(&session.id), "there is such a session already")?;
        let has_parent =
            session.parent.as_ref().is_none_or(|parent| self.files.sessions.contains_key(parent));
        ensure(has_parent, "its parent is not known")?;
        let rests = self.find_holder(&session.id).is_none_or(|slot| self.is_holder_idle(slot));
        ensure(rests && self.agent(&session.id).is_none(), "somebody else has its name")?;
        ensure(self.intent_session(&session.id).is_none(), "a session of another kind has its name")?;
        let texts = [&session.agent, &session.session];
        ensure(texts.into_iter().all(|text| is_storable_text(text)), "it is called what cannot be stored")?;
        let task = session.task.clone().unwrap_or_else(|| "".into());
        ensure(is_storable_text(&task), "it is at what cannot be stored")?;
        self.files.insert_session(FileSession::begin(session, at));
        Ok(())
    }

    fn apply_ended(&mut self, id: &Holder) -> Result<Option<Removed>, ApplyError> {
        self.find_session_mut(id)?;
        let holds = self.find_holder(id).is_some_and(|slot| !self.is_holder_idle(slot));
        ensure(!holds, "it ends with what it holds")?;
        ensure(self.retry_tickets_of(id).next().is_none(), "it ends with an open ticket")?;
        ensure(self.file_session_descendants(id).is_empty(), "it ends before its subagents")?;
        let session = self.files.sessions.remove(id);
        if let Some(parent) = session.as_ref().and_then(|session| session.parent.clone())
            // There was one at least: this one.
            && let Entry::Occupied(mut children) = self.files.children.entry(parent)
        {
            children.get_mut().remove(id);
            if children.get().is_empty() {
                children.remove();
            }
        }
        Ok(session.map(|session| Removed::FileSession(Box::new(session))))
    }

    fn remove_retry_ticket(&mut self, ticket: Ticket) -> Result<RetryTicket, ApplyError> {
        let known = self.files.tickets.remove(&ticket).ok_or(NO_TICKET)?;
        if let Entry::Occupied(mut own) = self.files.by_request.entry(known.session.clone()) {
            own.get_mut().remove(&known.request.resource);
            if own.get().is_empty() {
                own.remove();
            }
        }
        Ok(known)
    }

    fn find_session_mut(&mut self, id: &Holder) -> Result<&mut FileSession, ApplyError> {
        self.files.sessions.get_mut(id).ok_or(ApplyError("there is no such session of an agent"))
    }
}

impl FileStore {
    /// Notes what became of a file whose lease ended.
    pub(in crate::kernel) fn record_lease_end(
        &mut self,
        resource: &Resource,
        holder: &Holder,
        at: Tick,
        end: LeaseEnd,
    ) {
        let Some(session) = self.sessions.get(holder) else { return };
        match end {
            LeaseEnd::Released(ReleaseReason::Completed) => self.remove_uncommitted(resource),
            // Somebody else has it at once: what that means is noted then.
            LeaseEnd::Revoked(RevocationCause::Transferred) => {}
            _ => {
                let owner = session.owner();
                self.record_uncommitted(resource.clone(), UncommittedFile { owner, at });
            }
        }
    }
}

const NO_TICKET: ApplyError = ApplyError("there is no such ticket for a file");
