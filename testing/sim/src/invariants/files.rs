//! Laws of files: an ended session holds none, a denial names only holders whose liveness was checked, one ticket has one
//! retry after 180 s, and a lease of a live session ends only by a commit, by idleness, with the session, or by a user.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::kernel::{
    ContentionNotice, Event, Fence, FileEvent, FileSessionEnd, Holder, IssuedLease, RecordedProcess,
    Resource, RevocationCause, Tick, Ticket,
};
use tenure_core::lease::ReleaseReason;

use super::{InvariantResult, ensure};

/// After how long the one retry is due, and after how long a session rests, in ticks.
const RETRY: u64 = 180_000_000;
const IDLE: u64 = 30_000_000;
/// In whose name files are held.
const OWNER: &str = "system:files";

/// Sessions and tickets as the ledger tells of them, and what is known of processes.
#[derive(Debug, Default)]
pub struct FilesModel {
    sessions: BTreeMap<Holder, FileSessionModel>,
    ended_sessions: BTreeSet<Holder>,
    held: BTreeMap<Fence, (Resource, Holder)>,
    tickets: BTreeMap<Ticket, RetryTicketModel>,
    dead: BTreeSet<Holder>,
    /// By request: who asks, and whose life was made sure of right before.
    verified_sessions: BTreeMap<u64, (Holder, Vec<Holder>)>,
    /// What was let go of by sessions that have to be over when this batch is.
    must_end: Vec<Holder>,
    /// Leases that have to go on in other hands when this batch is over: whose they were, and in which process.
    transferred: BTreeMap<Fence, (Holder, RecordedProcess)>,
}

#[derive(Debug)]
struct FileSessionModel {
    parent: Option<Holder>,
    process: RecordedProcess,
    turn_ended_at: Option<Tick>,
}

#[derive(Debug)]
struct RetryTicketModel {
    session: Holder,
    resource: Resource,
    retry_at: Tick,
    blocked: bool,
}

impl FilesModel {
    /// Somebody asks, and has made sure that these live.
    pub fn record_liveness_check(&mut self, request: u64, asking: Holder, living: Vec<Holder>) {
        self.verified_sessions.insert(request, (asking, living));
    }

    /// The request was answered, or never came.
    pub fn end_request(&mut self, request: u64) {
        self.verified_sessions.remove(&request);
    }

    /// The process of a session is gone.
    pub fn record_process_exit(&mut self, session: Holder) {
        self.dead.insert(session);
    }

    pub fn sessions(&self) -> impl Iterator<Item = &Holder> {
        self.sessions.keys()
    }

    /// Whether no session goes on, and nobody has or wants a file.
    pub fn is_idle(&self) -> bool {
        self.sessions.is_empty() && self.tickets.is_empty() && self.held.is_empty()
    }

    /// Judges what happens to leases on files.
    pub(super) fn apply_lease(&mut self, event: &Event) -> InvariantResult {
        match event {
            Event::Issued(issued) if issued.principal.as_str() == OWNER => self.apply_issued(issued),
            Event::Released { lease, at, reason, .. } => self.apply_released(*lease, *at, *reason),
            Event::Revoked { lease, cause, .. } => {
                let Some((_, holder)) = self.held.remove(lease) else { return Ok(()) };
                match cause {
                    RevocationCause::Transferred => {
                        let process = self.sessions.get(&holder).map(|session| session.process.clone());
                        self.transferred.insert(*lease, (holder, process.unwrap_or_default()));
                    }
                    RevocationCause::Reclaimed => self.must_end.push(holder),
                    _ => {}
                }
                Ok(())
            }
            Event::Expired { lease, .. } => {
                let file = self.held.remove(lease);
                ensure(file.is_none(), || format!("{lease:?} on a file expires: its owner lives"))
            }
            _ => Ok(()),
        }
    }

    /// Judges what happens to sessions and tickets.
    pub(super) fn apply(&mut self, event: &FileEvent) -> InvariantResult {
        match event {
            FileEvent::Began { session, .. } => {
                let known = self.sessions.contains_key(&session.id);
                ensure(!known, || format!("{} begins twice", session.id))?;
                let (parent, process) = (session.parent.clone(), session.process.clone());
                self.ended_sessions.remove(&session.id);
                let model = FileSessionModel { parent, process, turn_ended_at: None };
                self.sessions.insert(session.id.clone(), model);
                Ok(())
            }
            FileEvent::Seen { session, .. } => self.set_turn_end(session, None),
            FileEvent::TurnEnded { session, at } => self.set_turn_end(session, Some(*at)),
            FileEvent::Contended(contended) => self.apply_contended(contended),
            FileEvent::Blocked { ticket, report: found } => {
                let known = self.tickets.get_mut(ticket);
                ensure(known.is_some(), || format!("{ticket:?} is blocked and not there"))?;
                let Some(known) = known else { return Ok(()) };
                ensure(!known.blocked, || format!("{ticket:?} is tried again a second time"))?;
                ensure(found.at >= known.retry_at, || format!("{ticket:?} is tried again too early"))?;
                known.blocked = true;
                let session = known.session.clone();
                self.check_denial(&session, &found.owner.holder)
            }
            FileEvent::Closed { ticket, .. } => {
                let closed = self.tickets.remove(ticket);
                ensure(closed.is_some(), || format!("{ticket:?} is closed and not there"))
            }
            FileEvent::Ended { session, end, .. } => self.apply_ended(session, *end),
            FileEvent::Violated { .. } => Ok(()),
        }
    }

    /// Judges a moment between two batches.
    pub(super) fn check_between_batches(&mut self) -> InvariantResult {
        let active_session =
            std::mem::take(&mut self.must_end).into_iter().find(|id| self.sessions.contains_key(id));
        ensure(active_session.is_none(), || {
            format!("{active_session:?} lives and lost a file before its time")
        })?;
        let lost = std::mem::take(&mut self.transferred).pop_first();
        ensure(lost.is_none(), || format!("{lost:?} was handed over, and nobody has it"))
    }

    fn apply_issued(&mut self, issued: &IssuedLease) -> InvariantResult {
        let holder = &issued.holder;
        let known = self.sessions.get(holder);
        ensure(known.is_some(), || format!("{holder} is over, or never was, and gets a file"))?;
        let before = issued.continues.and_then(|before| self.transferred.remove(&before));
        if let (Some((before, process)), Some(known)) = (before, known) {
            let has_ended = !self.sessions.contains_key(&before);
            ensure(!has_ended || known.process == process, || {
                format!("{holder} goes on with what {before} had, in another process")
            })?;
        }
        self.held.insert(issued.fence, (issued.resource.clone(), holder.clone()));
        Ok(())
    }

    fn apply_released(&mut self, lease: Fence, at: Tick, reason: ReleaseReason) -> InvariantResult {
        let Some((_, holder)) = self.held.remove(&lease) else { return Ok(()) };
        let turn = self.sessions.get(&holder).and_then(|session| session.turn_ended_at);
        let rests = turn.is_some_and(|since| at.since(since).0 >= IDLE);
        if reason != ReleaseReason::Completed && !rests {
            self.must_end.push(holder);
        }
        Ok(())
    }

    fn set_turn_end(&mut self, session: &Holder, ended_at: Option<Tick>) -> InvariantResult {
        let known = self.sessions.get_mut(session);
        ensure(known.is_some(), || format!("{session} is heard of and over"))?;
        known.into_iter().for_each(|known| known.turn_ended_at = ended_at);
        Ok(())
    }

    fn apply_contended(&mut self, contended: &ContentionNotice) -> InvariantResult {
        let ContentionNotice { ticket, session, request, owner, at, retry_at, .. } = contended;
        ensure(self.sessions.contains_key(session), || format!("{session} is over and wants a file"))?;
        let exact = retry_at.since(*at).0 == RETRY;
        ensure(exact, || format!("{ticket:?} is to be tried again after {:?}", retry_at.since(*at)))?;
        let mut tickets = self.tickets.values();
        let twice = tickets.any(|other| other.session == *session && other.resource == request.resource);
        ensure(!twice, || format!("{session} has two tickets for {}", request.resource))?;
        let (session, resource) = (session.clone(), request.resource.clone());
        self.check_denial(&session, owner)?;
        let ticket = RetryTicketModel { session, resource, retry_at: *retry_at, blocked: false };
        self.tickets.insert(contended.ticket, ticket);
        Ok(())
    }

    /// Nobody is denied for the sake of a session that has nothing, or of which nobody knew that it lives.
    fn check_denial(&self, session: &Holder, owner: &Holder) -> InvariantResult {
        if !self.sessions.contains_key(owner) {
            // Somebody of another kind: it lives by its own word.
            return ensure(!self.ended_sessions.contains(owner), || {
                format!("{session} is denied for {owner}, who is over")
            });
        }
        let has = self.held.values().any(|(_, holder)| holder == owner);
        ensure(has, || format!("{session} is denied for {owner}, who has nothing"))?;
        let mut vouched = self.verified_sessions.values();
        let sure = vouched.any(|(asking, living)| asking == session && living.contains(owner));
        ensure(sure, || format!("{session} is denied for {owner}, and nobody made sure that it lives"))
    }

    fn apply_ended(&mut self, session: &Holder, end: FileSessionEnd) -> InvariantResult {
        let known = self.sessions.remove(session);
        ensure(known.is_some(), || format!("{session} ends twice"))?;
        let has = self.held.values().any(|(_, holder)| holder == session);
        ensure(!has, || format!("{session} is over and has files"))?;
        let wants = self.tickets.values().any(|ticket| ticket.session == *session);
        ensure(!wants, || format!("{session} is over and has a ticket"))?;
        let above = self.sessions.values().any(|other| other.parent.as_ref() == Some(session));
        ensure(!above, || format!("{session} ends before its subagents"))?;
        let is_dead = end != FileSessionEnd::Died || self.dead.contains(session);
        ensure(is_dead, || format!("{session} lives and is taken for dead"))?;
        self.ended_sessions.insert(session.clone());
        Ok(())
    }
}
