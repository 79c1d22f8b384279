//! What must never happen to files: a session that is over has none, nobody is denied for the sake of one whose life nobody
//! made sure of, one ticket has one retry after 180 s, and what a living session has ends by nothing but a commit, its rest,
//! its end or a person.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenure_core::kernel::{
    Cause, Contended, Event, Fence, FileEnd, FileEvent, Holder, Issued, Resource, Tick, Ticket,
};
use tenure_core::lease::ReleaseReason;

use super::{Lawful, law};

/// After how long the one retry is due, and after how long a session rests, in ticks.
const RETRY: u64 = 180_000_000;
const IDLE: u64 = 30_000_000;
/// In whose name files are held.
const OWNER: &str = "system:files";

/// Sessions and tickets as the ledger tells of them, and what is known of processes.
#[derive(Debug, Default)]
pub struct Files {
    sessions: BTreeMap<Holder, ModelSession>,
    over: BTreeSet<Holder>,
    held: BTreeMap<Fence, (Resource, Holder)>,
    tickets: BTreeMap<Ticket, ModelTicket>,
    dead: BTreeSet<Holder>,
    /// By request: who asks, and whose life was made sure of right before.
    vouched: BTreeMap<u64, (Holder, Vec<Holder>)>,
    /// What was let go of by sessions that have to be over when this batch is.
    ending: Vec<Holder>,
    /// Leases that have to go on in other hands when this batch is over: whose they were, and in which process.
    handed: BTreeMap<Fence, (Holder, Arc<str>)>,
}

#[derive(Debug)]
struct ModelSession {
    parent: Option<Holder>,
    process: Arc<str>,
    turn_ended_at: Option<Tick>,
}

#[derive(Debug)]
struct ModelTicket {
    session: Holder,
    resource: Resource,
    retry_at: Tick,
    blocked: bool,
}

impl Files {
    /// Somebody asks, and has made sure that these live.
    pub fn vouch(&mut self, request: u64, asking: Holder, living: Vec<Holder>) {
        self.vouched.insert(request, (asking, living));
    }

    /// The request was answered, or never came.
    pub fn answered(&mut self, request: u64) {
        self.vouched.remove(&request);
    }

    /// The process of a session is gone.
    pub fn died(&mut self, session: Holder) {
        self.dead.insert(session);
    }

    pub fn sessions(&self) -> impl Iterator<Item = &Holder> {
        self.sessions.keys()
    }

    /// Whether no session goes on, and nobody has or wants a file.
    pub fn is_quiet(&self) -> bool {
        self.sessions.is_empty() && self.tickets.is_empty() && self.held.is_empty()
    }

    /// Judges what happens to leases on files.
    pub(super) fn lease(&mut self, event: &Event) -> Lawful {
        match event {
            Event::Issued(issued) if issued.principal.as_str() == OWNER => self.issued(issued),
            Event::Released { lease, at, reason, .. } => self.released(*lease, *at, *reason),
            Event::Revoked { lease, cause, .. } => {
                let Some((_, holder)) = self.held.remove(lease) else { return Ok(()) };
                match cause {
                    Cause::Transferred => {
                        let process = self.sessions.get(&holder).map(|session| session.process.clone());
                        self.handed.insert(*lease, (holder, process.unwrap_or_default()));
                    }
                    Cause::Reclaimed => self.ending.push(holder),
                    _ => {}
                }
                Ok(())
            }
            Event::Expired { lease, .. } => {
                let file = self.held.remove(lease);
                law(file.is_none(), || format!("{lease:?} on a file expires: its owner lives"))
            }
            _ => Ok(()),
        }
    }

    /// Judges what happens to sessions and tickets.
    pub(super) fn step(&mut self, event: &FileEvent) -> Lawful {
        match event {
            FileEvent::Began { session, .. } => {
                let known = self.sessions.contains_key(&session.id);
                law(!known, || format!("{} begins twice", session.id))?;
                let (parent, process) = (session.parent.clone(), session.process.clone());
                self.over.remove(&session.id);
                let begun = ModelSession { parent, process, turn_ended_at: None };
                self.sessions.insert(session.id.clone(), begun);
                Ok(())
            }
            FileEvent::Seen { session, .. } => self.turn(session, None),
            FileEvent::TurnEnded { session, at } => self.turn(session, Some(*at)),
            FileEvent::Contended(contended) => self.contended(contended),
            FileEvent::Blocked { ticket, found } => {
                let known = self.tickets.get_mut(ticket);
                law(known.is_some(), || format!("{ticket:?} is blocked and not there"))?;
                let Some(known) = known else { return Ok(()) };
                law(!known.blocked, || format!("{ticket:?} is tried again a second time"))?;
                law(found.at >= known.retry_at, || format!("{ticket:?} is tried again too early"))?;
                known.blocked = true;
                let session = known.session.clone();
                self.is_denied_rightly(&session, &found.owner.holder)
            }
            FileEvent::Closed { ticket, .. } => {
                let closed = self.tickets.remove(ticket);
                law(closed.is_some(), || format!("{ticket:?} is closed and not there"))
            }
            FileEvent::Ended { session, end, .. } => self.ended(session, *end),
            FileEvent::Violated { .. } => Ok(()),
        }
    }

    /// Judges a moment between two batches.
    pub(super) fn are_in_order(&mut self) -> Lawful {
        let lives = std::mem::take(&mut self.ending).into_iter().find(|id| self.sessions.contains_key(id));
        law(lives.is_none(), || format!("{lives:?} lives and lost a file before its time"))?;
        let lost = std::mem::take(&mut self.handed).pop_first();
        law(lost.is_none(), || format!("{lost:?} was handed over, and nobody has it"))
    }

    fn issued(&mut self, issued: &Issued) -> Lawful {
        let holder = &issued.holder;
        let known = self.sessions.get(holder);
        law(known.is_some(), || format!("{holder} is over, or never was, and gets a file"))?;
        let before = issued.continues.and_then(|before| self.handed.remove(&before));
        if let (Some((before, process)), Some(known)) = (before, known) {
            let is_over = !self.sessions.contains_key(&before);
            law(!is_over || known.process == process, || {
                format!("{holder} goes on with what {before} had, in another process")
            })?;
        }
        self.held.insert(issued.fence, (issued.resource.clone(), holder.clone()));
        Ok(())
    }

    fn released(&mut self, lease: Fence, at: Tick, reason: ReleaseReason) -> Lawful {
        let Some((_, holder)) = self.held.remove(&lease) else { return Ok(()) };
        let turn = self.sessions.get(&holder).and_then(|session| session.turn_ended_at);
        let rests = turn.is_some_and(|since| at.since(since).0 >= IDLE);
        if reason != ReleaseReason::Completed && !rests {
            self.ending.push(holder);
        }
        Ok(())
    }

    fn turn(&mut self, session: &Holder, ended_at: Option<Tick>) -> Lawful {
        let known = self.sessions.get_mut(session);
        law(known.is_some(), || format!("{session} is heard of and over"))?;
        known.into_iter().for_each(|known| known.turn_ended_at = ended_at);
        Ok(())
    }

    fn contended(&mut self, contended: &Contended) -> Lawful {
        let Contended { ticket, session, want, owner, at, retry_at, .. } = contended;
        law(self.sessions.contains_key(session), || format!("{session} is over and wants a file"))?;
        let exact = retry_at.since(*at).0 == RETRY;
        law(exact, || format!("{ticket:?} is to be tried again after {:?}", retry_at.since(*at)))?;
        let mut others = self.tickets.values();
        let twice = others.any(|other| other.session == *session && other.resource == want.resource);
        law(!twice, || format!("{session} has two tickets for {}", want.resource))?;
        let (session, resource) = (session.clone(), want.resource.clone());
        self.is_denied_rightly(&session, owner)?;
        let ticket = ModelTicket { session, resource, retry_at: *retry_at, blocked: false };
        self.tickets.insert(contended.ticket, ticket);
        Ok(())
    }

    /// Nobody is denied for the sake of a session that has nothing, or of which nobody knew that it lives.
    fn is_denied_rightly(&self, session: &Holder, owner: &Holder) -> Lawful {
        if !self.sessions.contains_key(owner) {
            // Somebody of another kind: it lives by its own word.
            return law(!self.over.contains(owner), || {
                format!("{session} is denied for {owner}, who is over")
            });
        }
        let has = self.held.values().any(|(_, holder)| holder == owner);
        law(has, || format!("{session} is denied for {owner}, who has nothing"))?;
        let mut vouched = self.vouched.values();
        let sure = vouched.any(|(asking, living)| asking == session && living.contains(owner));
        law(sure, || format!("{session} is denied for {owner}, and nobody made sure that it lives"))
    }

    fn ended(&mut self, session: &Holder, end: FileEnd) -> Lawful {
        let known = self.sessions.remove(session);
        law(known.is_some(), || format!("{session} ends twice"))?;
        let has = self.held.values().any(|(_, holder)| holder == session);
        law(!has, || format!("{session} is over and has files"))?;
        let wants = self.tickets.values().any(|ticket| ticket.session == *session);
        law(!wants, || format!("{session} is over and has a ticket"))?;
        let above = self.sessions.values().any(|other| other.parent.as_ref() == Some(session));
        law(!above, || format!("{session} ends before its subagents"))?;
        let is_dead = end != FileEnd::Died || self.dead.contains(session);
        law(is_dead, || format!("{session} lives and is taken for dead"))?;
        self.over.insert(session.clone());
        Ok(())
    }
}
