//! Who among agents waits, who dies, and whose turn has come.

use super::agent::{AgentAnswer, AgentEvent, Pending, PendingEnd, Rank};
use super::draft::{Draft, Grant};
use super::event::{Cause, Event};
use super::mode::Mode;
use super::name::{Holder, Principal, Resource};
use super::state::{LeaseEntry, wants_apart};
use super::value::{Fence, Span, Tick, Ticket};
use super::want::Want;
use crate::rules::overlap::has_parts;
use crate::rules::time::{extends, is_over};

/// What is to become of somebody who wants something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nobody is in the way.
    Free,
    /// Only younger ones are.
    Waits(Vec<Holder>),
    /// An older one is, or somebody without an age.
    Dies(Vec<Holder>),
}

impl<'a> Draft<'a> {
    /// What becomes of an agent that wants all of this.
    pub(crate) fn fate(&self, wants: &[Want], rank: &Rank) -> Fate {
        let mut ahead: Vec<(Holder, bool)> = Vec::new();
        for want in wants {
            let (resource, mode) = (&want.resource, want.mode);
            let holders = self.holders_apart(resource, mode).filter(|holder| *holder != rank.agent);
            ahead.extend(holders.map(|holder| {
                // Who stands in line may wait for this one, whatever its age.
                let is_younger =
                    self.age_of(&holder).is_some_and(|other| other > *rank) && !self.waits_in_line(&holder);
                (holder, is_younger)
            }));
            let older =
                self.pending_now().filter(|pending| pending.rank < *rank && pending.rank.agent != rank.agent);
            let older = older.filter(|pending| wants_apart(&pending.wants, resource, mode));
            ahead.extend(older.map(|pending| (pending.rank.agent.clone(), false)));
        }
        ahead.extend(self.ahead_in_line(&rank.agent, wants).into_iter().map(|holder| (holder, false)));
        let dies = ahead.iter().any(|(_, is_younger)| !is_younger);
        let mut names: Vec<Holder> = ahead.into_iter().map(|(holder, _)| holder).collect();
        names.sort_unstable();
        names.dedup();
        match (names.is_empty(), dies) {
            (true, _) => Fate::Free,
            (false, false) => Fate::Waits(names),
            (false, true) => Fate::Dies(names),
        }
    }

    /// Lets in whose turn has come: agents first, who have an age, then everybody else.
    pub(crate) fn serve_agents_and_waiters(&mut self) {
        if std::mem::take(&mut self.parts_freed) {
            self.settle_agents();
        }
        self.serve_waiters();
    }

    /// Agents that wait for something that has something in common with `resource`, and does not go with `mode`.
    pub(crate) fn pending_apart<'b>(
        &'b self,
        resource: &'b Resource,
        mode: Mode,
    ) -> impl Iterator<Item = &'b Pending> {
        let any = (self.state.has_pending() && has_parts(resource.as_str())).then(|| self.state.pending());
        let pending = any.into_iter().flatten().filter(|pending| self.pends(pending));
        pending.filter(move |pending| wants_apart(&pending.wants, resource, mode))
    }

    /// Whether an agent's attempt goes on, as this decision leaves it.
    pub(crate) fn is_engaged(&self, agent: &Holder) -> bool {
        let waits = || self.pending_now().any(|pending| pending.rank.agent == *agent);
        let died = || self.state.agent(agent).is_some_and(|agent| agent.retry_at.is_some());
        let gets = || self.granted().any(|issued| issued.holder == *agent);
        !self.living_leases_of(agent).is_empty() || gets() || waits() || died()
    }

    /// What an agent is told that was told to wait, once everything is settled.
    pub(crate) fn after_settling(&self, answer: AgentAnswer) -> AgentAnswer {
        let AgentAnswer::Wait { ticket, blocked_by, .. } = &answer else { return answer };
        if let Some((_, leases)) = self.served_agents.iter().find(|(served, _)| served == ticket) {
            return AgentAnswer::Granted { leases: leases.clone() };
        }
        if !self.has_gone(*ticket) {
            return answer;
        }
        let retry_at = self.events().iter().rev().find_map(|event| match event {
            Event::Agent(event) => match &**event {
                AgentEvent::Died { retry_at, .. } => Some(*retry_at),
                _ => None,
            },
            _ => None,
        });
        let (retry_at, blocked_by) = (retry_at.unwrap_or(self.now), blocked_by.clone());
        AgentAnswer::Die { retry_at, blocked_by, ended: Vec::new() }
    }

    /// Whoever of those who wait would wait for an older one dies, and whoever has everything free gets it, until neither is
    /// left. To be called after anything that an agent was given or waits for, and after anything came free.
    pub(crate) fn settle_agents(&mut self) {
        while self.let_one_die() || self.serve_one() {}
    }

    /// Announces that waits of agents are over, at most so many. Says whether there are more.
    pub(crate) fn time_out_agents(&mut self, most: usize) -> bool {
        let state = self.state;
        let mut overdue = state.overdue_pending(self.now);
        for pending in overdue.by_ref().take(most) {
            if !self.has_gone(pending.ticket) {
                self.push_left(pending.ticket, PendingEnd::TimedOut);
            }
        }
        overdue.next().is_some()
    }

    /// Lets an agent die: it may come back later, and what an older one waits for is over.
    pub(crate) fn die(&mut self, rank: &Rank) -> (Tick, Vec<Fence>) {
        let retry_at = self.now.saturating_add(self.backoff_of(&rank.agent));
        self.push(Event::Agent(Box::new(AgentEvent::Died {
            agent: rank.agent.clone(),
            at: self.now,
            retry_at,
        })));
        let mut ended = Vec::new();
        for lease in self.living_leases_of(&rank.agent) {
            if self.an_older_one_waits_for(lease, rank) {
                let by = self.state.principal_of(lease.holder).1.clone();
                self.revoke(lease, Cause::Died, &by, "an older agent waits for it");
                ended.push(lease.fence);
            }
        }
        (retry_at, ended)
    }

    /// Whether there is anything to be ended if this one dies.
    pub(crate) fn holds_what_an_older_one_waits_for(&self, rank: &Rank) -> bool {
        let leases = self.living_leases_of(&rank.agent);
        leases.into_iter().any(|lease| self.an_older_one_waits_for(lease, rank))
    }

    fn an_older_one_waits_for(&self, lease: &LeaseEntry, rank: &Rank) -> bool {
        let resource = self.state.resource_name(lease.resource);
        let mut older = self.pending_now().filter(|pending| pending.rank < *rank);
        older.any(|pending| wants_apart(&pending.wants, resource, lease.mode))
    }

    /// Gives an agent all that it wants: what it has is renewed or made stronger, the rest is issued.
    pub(crate) fn give(
        &mut self,
        agent: &Holder,
        principal: &Principal,
        wants: &[Want],
        ticket: Option<Ticket>,
    ) -> Vec<Fence> {
        let before = self.granted().count();
        let leases = wants.iter().map(|want| self.give_one(agent, principal, want, ticket)).collect();
        if let Some(ticket) = ticket {
            // A wait ends with the first lease that is issued for it. Where none is, it has to be said.
            if self.granted().count() == before {
                self.push_left(ticket, PendingEnd::Served);
            }
            self.mark_served(ticket);
        }
        leases
    }

    fn give_one(
        &mut self,
        agent: &Holder,
        principal: &Principal,
        want: &Want,
        ticket: Option<Ticket>,
    ) -> Fence {
        let state = self.state;
        let own = self
            .living_leases_of(agent)
            .into_iter()
            .find(|lease| *state.resource_name(lease.resource) == want.resource);
        let mut continues = None;
        if let Some(lease) = own {
            if lease.mode.covers(want.mode) {
                let expires_at = self.now.saturating_add(want.ttl);
                if extends(lease.expires_at.0, expires_at.0) {
                    self.push(Event::Renewed { lease: lease.fence, at: self.now, expires_at, ttl: want.ttl });
                }
                return lease.fence;
            }
            self.revoke(lease, Cause::Transferred, principal, "its agent wants it in a stronger way");
            continues = Some(lease.fence);
        }
        // It may have got it in this very decision, for another manifest of its own.
        let got = self.granted_on(&want.resource).filter(|issued| issued.holder == *agent).last();
        if let Some((fence, mode)) = got.map(|issued| (issued.fence, issued.mode)) {
            if mode.covers(want.mode) {
                return fence;
            }
            let (by, detail) = (principal.clone(), "its agent wants it in a stronger way".into());
            self.push(Event::Revoked { lease: fence, at: self.now, cause: Cause::Transferred, by, detail });
            continues = Some(fence);
        }
        let (holder, resource, key) = (agent, &want.resource, None);
        let grant = Grant { holder, principal, want, resource, key, ticket, continues };
        self.issue(grant).expect("time and fences were looked at before")
    }

    /// Whether there are numbers and time for all of this.
    pub(crate) fn has_means_for(&self, wants: &[Want]) -> bool {
        let has_time = |want: &Want| self.now.checked_add(want.ttl).is_some();
        self.fences_left() >= wants.len() as u64 && wants.iter().all(has_time)
    }

    /// Who waits here and now, the oldest first.
    pub(crate) fn pending_now(&self) -> impl Iterator<Item = &Pending> {
        let of_state = self.state.pending().filter(|pending| self.pends(pending));
        let new = self.new_pending.iter().filter(|pending| self.pends(pending));
        let mut all: Vec<&Pending> = of_state.chain(new).collect();
        if self.new_pending.is_some() {
            all.sort_unstable_by(|one, other| (&one.rank, one.ticket).cmp(&(&other.rank, other.ticket)));
        }
        all.into_iter()
    }

    /// The age of an agent, as this decision leaves it.
    pub(crate) fn age_of(&self, agent: &Holder) -> Option<Rank> {
        let begun = self.begun.iter().find(|rank| rank.agent == *agent).cloned();
        begun.or_else(|| self.state.rank_of(agent))
    }

    fn pends(&self, pending: &Pending) -> bool {
        !is_over(self.now.0, pending.until.0) && !self.has_gone(pending.ticket)
    }

    fn holders_apart(&self, resource: &Resource, mode: Mode) -> impl Iterator<Item = Holder> {
        let leases = self.state.leases_around(resource);
        let leases = leases.filter(|lease| !lease.mode.goes_with(mode) && self.lives(lease));
        let leases = leases.map(|lease| self.state.holder_name(lease.holder).clone());
        let granted = self.granted_around(resource).filter(|issued| !issued.mode.goes_with(mode));
        let held: Vec<Holder> = leases.chain(granted.map(|issued| issued.holder.clone())).collect();
        held.into_iter()
    }

    fn let_one_die(&mut self) -> bool {
        let dying = self
            .pending_now()
            .find(|pending| matches!(self.fate(&pending.wants, &pending.rank), Fate::Dies(_)));
        let Some(Pending { rank, ticket, .. }) = dying.cloned() else { return false };
        self.push_left(ticket, PendingEnd::Died);
        self.die(&rank);
        true
    }

    fn serve_one(&mut self) -> bool {
        if self.check_may_grant().is_err() || self.is_full() {
            return false;
        }
        let free = self.pending_now().find(|pending| {
            self.has_means_for(&pending.wants) && self.fate(&pending.wants, &pending.rank) == Fate::Free
        });
        let Some(Pending { rank, ticket, wants, .. }) = free.cloned() else { return false };
        let agent = self.state.agent(&rank.agent).map(|agent| agent.principal.clone());
        let Some(principal) = agent.or_else(|| self.declaring.clone()) else { return false };
        let leases = self.give(&rank.agent, &principal, &wants, Some(ticket));
        self.served_agents.push((ticket, leases));
        true
    }

    pub(super) fn push_left(&mut self, ticket: Ticket, end: PendingEnd) {
        self.push(Event::Agent(Box::new(AgentEvent::Left { ticket, at: self.now, end })));
        self.mark_served(ticket);
    }

    /// Twice as long with every death, up to a bound, and a little longer by chance: by a chance that a replay finds again.
    fn backoff_of(&self, agent: &Holder) -> Span {
        let (base, most) = self.state.limits().backoff;
        let deaths = self.state.agent(agent).map_or(0, |agent| agent.deaths);
        let delay = base.0.saturating_mul(1 << deaths.min(32)).min(most.0);
        let mut hasher = blake3::Hasher::new();
        hasher
            .update(agent.as_str().as_bytes())
            .update(&deaths.to_be_bytes())
            .update(&self.now.0.to_be_bytes());
        let [a, b, c, d, ..] = *hasher.finalize().as_bytes();
        Span(delay + u64::from(u32::from_be_bytes([a, b, c, d])) % (delay / 4 + 1))
    }
}
