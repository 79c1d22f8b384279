//! The agents: how old each is, what it said it does, and who waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Misfit, State};
use crate::kernel::agent::{AgentEvent, Pending, Phase, Rank};
use crate::kernel::limits::AGENT_KEPT;
use crate::kernel::mode::Mode;
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::value::{Fence, Tick, Ticket};
use crate::kernel::want::Want;
use crate::rules::overlap::{has_parts, overlap};
use crate::rules::time::{is_over, lasts};

/// What is known of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its age in its present or last attempt; nothing before its first.
    pub priority: Option<u64>,
    /// To whom it belongs.
    pub principal: Principal,
    /// In which session it is.
    pub session: Arc<str>,
    /// What it said that it does.
    pub phase: Option<Phase>,
    /// How often it died in its attempt.
    pub deaths: u32,
    /// When it may come back, if it died last.
    pub retry_at: Option<Tick>,
    /// The leases that it had when it last said that it restarts: they have got their moment longer.
    pub graced: Vec<Fence>,
    /// When something last happened to it.
    pub changed_at: Tick,
}

/// Everything that is known of agents.
#[derive(Debug, Clone, Default)]
pub(crate) struct Agents {
    by_id: BTreeMap<Holder, Agent>,
    /// Who waits, the oldest first.
    pending: BTreeMap<(Rank, Ticket), Pending>,
    by_ticket: BTreeMap<Ticket, Rank>,
    deadlines: BTreeSet<(Tick, Ticket)>,
    by_change: BTreeSet<(Tick, Holder)>,
    /// What all of them wait for together.
    wanted: usize,
}

impl Agents {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(crate) fn get(&self, agent: &Holder) -> Option<&Agent> {
        self.by_id.get(agent)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Holder, &Agent)> {
        self.by_id.iter()
    }

    /// Who waits, the oldest first.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &Pending> {
        self.pending.values()
    }

    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(crate) fn waiting(&self, ticket: Ticket) -> Option<&Pending> {
        let rank = self.by_ticket.get(&ticket)?;
        self.pending.get(&(rank.clone(), ticket))
    }

    /// How many waits there are, and for how much.
    pub(crate) fn load(&self) -> (usize, usize) {
        (self.pending.len(), self.wanted)
    }

    pub(crate) fn next_deadline(&self) -> Option<Tick> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// The waits that are over at `now`, oldest end first.
    pub(crate) fn overdue(&self, now: Tick) -> impl Iterator<Item = &Pending> {
        let over = self.deadlines.iter().take_while(move |(at, _)| is_over(now.0, at.0));
        over.filter_map(|(_, ticket)| self.waiting(*ticket))
    }

    pub(crate) fn enter_pending(&mut self, pending: Pending) {
        self.wanted += pending.wants.len();
        self.by_ticket.insert(pending.ticket, pending.rank.clone());
        self.deadlines.insert((pending.until, pending.ticket));
        self.pending.insert((pending.rank.clone(), pending.ticket), pending);
    }

    pub(crate) fn remove_pending(&mut self, ticket: Ticket) -> Option<Pending> {
        let rank = self.by_ticket.remove(&ticket)?;
        let pending = self.pending.remove(&(rank, ticket))?;
        self.deadlines.remove(&(pending.until, ticket));
        self.wanted -= pending.wants.len();
        Some(pending)
    }

    pub(crate) fn enter(&mut self, id: Holder, agent: Agent) {
        self.by_change.insert((agent.changed_at, id.clone()));
        self.by_id.insert(id, agent);
    }

    fn change(&mut self, id: &Holder, at: Tick, change: impl FnOnce(&mut Agent)) {
        let Some(agent) = self.by_id.get_mut(id) else { return };
        self.by_change.remove(&(agent.changed_at, id.clone()));
        agent.changed_at = at;
        change(agent);
        self.by_change.insert((at, id.clone()));
    }
}

/// Whether what somebody waits for has something in common with `resource`, and does not go with `mode`.
pub(crate) fn wants_apart(wants: &[Want], resource: &Resource, mode: Mode) -> bool {
    let apart =
        |want: &Want| !want.mode.goes_with(mode) && overlap(want.resource.as_str(), resource.as_str());
    wants.iter().any(apart)
}

impl State {
    /// What is known of an agent.
    pub fn agent(&self, agent: &Holder) -> Option<&Agent> {
        self.agents.get(agent)
    }

    /// Every agent that is known, by its name.
    pub fn agents(&self) -> impl Iterator<Item = (&Holder, &Agent)> {
        self.agents.iter()
    }

    /// The agents that wait, the oldest first.
    pub fn pending(&self) -> impl Iterator<Item = &Pending> {
        self.agents.pending()
    }

    pub(crate) fn has_pending(&self) -> bool {
        self.agents.has_pending()
    }

    /// How many agents wait, and for how much.
    pub(crate) fn pending_load(&self) -> (usize, usize) {
        self.agents.load()
    }

    pub(crate) fn pending_under(&self, ticket: Ticket) -> Option<&Pending> {
        self.agents.waiting(ticket)
    }

    /// The waits of agents that are over at `now`.
    pub(crate) fn overdue_pending(&self, now: Tick) -> impl Iterator<Item = &Pending> {
        self.agents.overdue(now)
    }

    pub(super) fn apply_agent(&mut self, event: &AgentEvent) -> Result<(), Misfit> {
        match event {
            AgentEvent::Began { rank, principal, session, at } => {
                let before = self.agents.get(&rank.agent);
                let younger =
                    before.is_none_or(|agent| agent.priority.is_none_or(|old| old <= rank.priority));
                ensure(younger, "an agent is older than in its last attempt")?;
                ensure(!self.is_engaged(&rank.agent), "an attempt begins before the last one is over")?;
                self.know(&rank.agent, principal, session, *at, |agent| {
                    agent.priority = Some(rank.priority);
                    (agent.deaths, agent.retry_at) = (0, None);
                });
            }
            AgentEvent::Waits(pending) => self.apply_waits(pending)?,
            AgentEvent::Left { ticket, at, .. } => {
                let pending = self.agents.remove_pending(*ticket);
                let pending = pending.ok_or(Misfit("it ends a wait that is not there"))?;
                self.agents.change(&pending.rank.agent, *at, |_| {});
            }
            AgentEvent::Died { agent, at, retry_at } => {
                ensure(self.agents.get(agent).is_some(), "nobody knows who died")?;
                self.agents.change(agent, *at, |agent| {
                    agent.deaths = agent.deaths.saturating_add(1);
                    agent.retry_at = Some(*retry_at);
                });
            }
            AgentEvent::Reported { agent, principal, session, at, phase } => {
                let held = self.find_holder(agent).into_iter().flat_map(|slot| self.leases_of(slot));
                let mut held: Vec<Fence> = held.map(|lease| lease.fence).collect();
                held.sort_unstable();
                self.know(agent, principal, session, *at, |agent| {
                    agent.phase = Some(*phase);
                    match phase {
                        Phase::DieRestart => agent.graced = held,
                        // Whoever has given up, or is done, begins anew.
                        Phase::Completed | Phase::Aborted => (agent.deaths, agent.retry_at) = (0, None),
                        _ => {}
                    }
                });
            }
        }
        Ok(())
    }

    fn apply_waits(&mut self, pending: &Pending) -> Result<(), Misfit> {
        ensure(pending.ticket > self.last_ticket(), "its ticket was drawn before")?;
        ensure(lasts(pending.at.0, pending.until.0), "it waits no time")?;
        ensure(!pending.wants.is_empty(), "it waits for nothing")?;
        let age = self.agents.get(&pending.rank.agent).and_then(|agent| agent.priority);
        ensure(age == Some(pending.rank.priority), "it waits with another age than it has")?;
        let plain = |want: &Want| has_parts(want.resource.as_str()) && want.others.is_empty();
        ensure(pending.wants.iter().all(plain), "it waits for what agents do not wait for")?;
        self.last_ticket = pending.ticket;
        self.agents.change(&pending.rank.agent, pending.at, |_| {});
        self.agents.enter_pending(pending.clone());
        Ok(())
    }

    /// An agent got what it wanted: it is alive, and has died for nothing.
    pub(super) fn agent_was_granted(&mut self, agent: &Holder, ticket: Option<Ticket>, at: Tick) {
        if let Some(ticket) = ticket {
            self.agents.remove_pending(ticket);
        }
        self.agents.change(agent, at, |agent| (agent.deaths, agent.retry_at) = (0, None));
    }

    /// Whether its attempt goes on: it holds something or waits for something, or it died and has not come back.
    pub(crate) fn is_engaged(&self, agent: &Holder) -> bool {
        let holds = self.find_holder(agent).is_some_and(|slot| self.leases_of(slot).next().is_some());
        let waits = || self.agents.pending().any(|pending| pending.rank.agent == *agent);
        let died = || self.agents.get(agent).is_some_and(|agent| agent.retry_at.is_some());
        holds || waits() || died()
    }

    /// The age of whoever holds a lease, if it is an agent.
    pub(crate) fn rank_of(&self, holder: &Holder) -> Option<Rank> {
        let priority = self.agents.get(holder)?.priority?;
        Some(Rank { priority, agent: holder.clone() })
    }

    fn know(
        &mut self,
        id: &Holder,
        principal: &Principal,
        session: &Arc<str>,
        at: Tick,
        change: impl FnOnce(&mut Agent),
    ) {
        if self.agents.get(id).is_none() {
            let agent = Agent {
                priority: None,
                principal: principal.clone(),
                session: session.clone(),
                phase: None,
                deaths: 0,
                retry_at: None,
                graced: Vec::new(),
                changed_at: at,
            };
            self.agents.enter(id.clone(), agent);
        }
        self.agents.change(id, at, |agent| {
            (agent.principal, agent.session) = (principal.clone(), session.clone());
            change(agent);
        });
    }

    /// Drops agents of whom nothing was heard for a day, and who hold and wait for nothing.
    pub(super) fn forget_agents(&mut self) {
        while let Some((changed_at, id)) = self.agents.by_change.first().cloned() {
            if !is_over(self.now.0, changed_at.saturating_add(AGENT_KEPT).0) {
                break;
            }
            let holds = self.find_holder(&id).is_some_and(|slot| self.leases_of(slot).next().is_some());
            let waits = self.agents.pending().any(|pending| pending.rank.agent == id);
            if holds || waits {
                // Nothing happened to it, but it is there: look again a day later.
                let now = self.now;
                self.agents.change(&id, now, |_| {});
                continue;
            }
            self.agents.by_change.pop_first();
            self.agents.by_id.remove(&id);
        }
    }

    /// Whoever waits is older than everybody that it waits for, and so nobody waits in a circle.
    pub(super) fn invariant_waits_lead_from_old_to_young(&self) -> Result<(), String> {
        // What is over is in nobody's way, announced or not.
        let waits = |pending: &&Pending| !is_over(self.now.0, pending.until.0);
        let pending: Vec<&Pending> = self.agents.pending().filter(waits).collect();
        for (index, waiting) in pending.iter().enumerate() {
            let who = &waiting.rank;
            let known = self.agents.get(&who.agent).and_then(|agent| agent.priority) == Some(who.priority);
            super::ensure(known, || format!("{} waits with another age than it has", who.agent))?;
            for want in &waiting.wants {
                for lease in self.leases_around(&want.resource) {
                    let holder = self.holder_name(lease.holder);
                    let is_past = is_over(self.now.0, lease.expires_at.0);
                    if is_past || lease.mode.goes_with(want.mode) || *holder == who.agent {
                        continue;
                    }
                    let is_younger = self.rank_of(holder).is_some_and(|rank| rank > *who);
                    super::ensure(is_younger, || format!("{} waits for the older {holder}", who.agent))?;
                }
                for older in pending[..index].iter().filter(|older| older.rank.agent != who.agent) {
                    let apart = wants_apart(&older.wants, &want.resource, want.mode);
                    super::ensure(!apart, || format!("{} waits behind {}", who.agent, older.rank.agent))?;
                }
            }
        }
        let wanted = self.agents.pending().map(|pending| pending.wants.len()).sum();
        let count = self.agents.pending().count();
        super::ensure(self.agents.load() == (count, wanted), || "waits of agents are miscounted".into())
    }

    /// The lease that an agent has on exactly this resource.
    pub(crate) fn own_lease_on(&self, agent: &Holder, resource: &Resource) -> Option<(Fence, Mode)> {
        let slot = self.find_resource(resource)?;
        let own = self.leases_on(slot).find(|lease| self.holder_name(lease.holder) == agent)?;
        Some((own.fence, own.mode))
    }
}

fn ensure(holds: bool, otherwise: &'static str) -> Result<(), Misfit> {
    if holds { Ok(()) } else { Err(Misfit(otherwise)) }
}
