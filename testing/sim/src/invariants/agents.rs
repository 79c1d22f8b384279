//! Laws of agents: no two hold incompatible leases, none waits for an older one or in a cycle, every wait ends, and an age
//! stays the same for the whole attempt.
//!
//! Which resources overlap and which modes are compatible is said here once more, so that a mistake in the kernel's tables is
//! not repeated by the laws.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::kernel::{
    AgentEvent, AgentPhase, AgentRank, AgentWait, AgentWaitEnd, Fence, Holder, LeaseMode, Resource, Tick,
    Ticket,
};

use super::{InvariantResult, LeaseModel, ensure};

/// The agents as the ledger tells of them.
#[derive(Debug, Default)]
pub struct AgentsModel {
    ages: BTreeMap<Holder, u64>,
    wait_entries: BTreeMap<Ticket, AgentWait>,
    /// Those who died and have neither come back nor given up.
    aborted: BTreeSet<Holder>,
    /// Leases that have to be over when this batch is.
    must_end: BTreeSet<Fence>,
}

type Leases = BTreeMap<Fence, LeaseModel>;

impl AgentsModel {
    pub fn wait_entries(&self) -> impl Iterator<Item = &AgentWait> {
        self.wait_entries.values()
    }

    /// Judges what happened to an agent.
    pub(super) fn apply(&mut self, event: &AgentEvent, leases: &Leases) -> InvariantResult {
        match event {
            AgentEvent::Began { rank, at, .. } => self.record_attempt(rank, *at, leases),
            AgentEvent::Waits(pending) => {
                let known = self.wait_entries.contains_key(&pending.ticket);
                ensure(!known, || format!("{:?} twice", pending.ticket))?;
                let age = self.ages.get(&pending.rank.agent);
                ensure(age == Some(&pending.rank.priority), || {
                    format!("{:?} waits with another age than it has", pending.rank)
                })?;
                self.wait_entries.insert(pending.ticket, pending.clone());
                Ok(())
            }
            AgentEvent::Left { ticket, at, end } => {
                let wait = self.wait_entries.remove(ticket);
                ensure(wait.is_some(), || format!("{ticket:?} leaves without having come"))?;
                let in_time = wait.is_none_or(|wait| (*at < wait.until) == (*end != AgentWaitEnd::TimedOut));
                ensure(in_time, || format!("{ticket:?} leaves at {at:?} by {end:?}"))
            }
            AgentEvent::Died { agent, at, .. } => {
                self.aborted.insert(agent.clone());
                let Some(own) = self.rank(agent) else {
                    return ensure(false, || format!("{agent} has no age"));
                };
                let older: Vec<&AgentWait> =
                    self.wait_entries.values().filter(|wait| wait.rank < own).collect();
                let own = leases.iter().filter(|(_, lease)| lease.holder == *agent && *at < lease.expires_at);
                let requested_by_older =
                    own.filter(|(_, lease)| older.iter().any(|wait| is_blocked_by(lease, wait)));
                self.must_end.extend(requested_by_older.map(|(fence, _)| *fence));
                Ok(())
            }
            AgentEvent::Reported { agent, phase, .. } => {
                if matches!(phase, AgentPhase::Completed | AgentPhase::Aborted) {
                    self.aborted.remove(agent);
                }
                Ok(())
            }
            AgentEvent::UsedUp { agent, .. } => {
                self.aborted.remove(agent);
                Ok(())
            }
            AgentEvent::Touched { .. } | AgentEvent::Strayed { .. } => Ok(()),
        }
    }

    /// An age stands until the attempt is over, and nobody becomes older.
    fn record_attempt(&mut self, rank: &AgentRank, at: Tick, leases: &Leases) -> InvariantResult {
        let before = self.ages.insert(rank.agent.clone(), rank.priority);
        let Some(before) = before else { return Ok(()) };
        ensure(before <= rank.priority, || format!("{} becomes older", rank.agent))?;
        let holds = leases.values().any(|lease| lease.holder == rank.agent && at < lease.expires_at);
        let is_waiting =
            self.wait_entries.values().any(|wait| wait.rank.agent == rank.agent && at < wait.until);
        let died = self.aborted.contains(&rank.agent);
        ensure(!(holds || is_waiting || died), || format!("{} changes its age within an attempt", rank.agent))
    }

    /// Somebody gets a lease: perhaps because it has waited for it.
    pub(super) fn record_grant(
        &mut self,
        holder: &Holder,
        ticket: Option<Ticket>,
        at: Tick,
    ) -> InvariantResult {
        self.aborted.remove(holder);
        let Some(wait) = ticket.and_then(|ticket| self.wait_entries.remove(&ticket)) else { return Ok(()) };
        ensure(at < wait.until, || format!("{:?} is served after its patience", wait.ticket))?;
        ensure(wait.rank.agent == *holder, || format!("{:?} is served to another", wait.ticket))
    }

    /// Judges a moment between two batches.
    pub(super) fn check_between_batches(&mut self, leases: &Leases, now: Tick) -> InvariantResult {
        let outliving_lease =
            std::mem::take(&mut self.must_end).into_iter().find(|fence| leases.contains_key(fence));
        ensure(outliving_lease.is_none(), || {
            format!("{outliving_lease:?} outlives a death, and an older one waits for it")
        })?;
        let mut blockers_by_agent: BTreeMap<&Holder, BTreeSet<&Holder>> = BTreeMap::new();
        for wait in self.wait_entries.values().filter(|wait| now < wait.until) {
            for lease in leases.values().filter(|lease| now < lease.expires_at) {
                if !is_blocked_by(lease, wait) {
                    continue;
                }
                let is_younger = self.rank(&lease.holder).is_some_and(|age| age > wait.rank);
                ensure(is_younger, || format!("{:?} waits for the older {}", wait.rank, lease.holder))?;
                blockers_by_agent.entry(&wait.rank.agent).or_default().insert(&lease.holder);
            }
        }
        for start in blockers_by_agent.keys() {
            let (mut seen, mut next) = (BTreeSet::new(), vec![*start]);
            while let Some(holder) = next.pop() {
                let ahead = blockers_by_agent.get(holder).into_iter().flatten();
                let new: Vec<&Holder> = ahead.copied().filter(|other| seen.insert(*other)).collect();
                next.extend(new);
            }
            ensure(!seen.contains(start), || format!("{start} waits in a circle"))?;
        }
        Ok(())
    }

    /// Judges a moment in which nothing is left to do: whoever waits waits for somebody, and not beyond its end.
    pub(super) fn check_no_stuck_agent(&self, leases: &Leases, now: Tick) -> InvariantResult {
        for wait in self.wait_entries.values() {
            ensure(now < wait.until, || format!("{:?} waits beyond its end", wait.ticket))?;
            let blocked = leases.values().any(|lease| is_blocked_by(lease, wait));
            ensure(blocked, || format!("{:?} waits, and what it wants is free", wait.ticket))?;
        }
        Ok(())
    }

    fn rank(&self, agent: &Holder) -> Option<AgentRank> {
        Some(AgentRank { priority: *self.ages.get(agent)?, agent: agent.clone() })
    }
}

fn is_blocked_by(lease: &LeaseModel, wait: &AgentWait) -> bool {
    let conflicts = |resource: &Resource, mode: LeaseMode| {
        overlaps(resource.as_str(), lease.resource.as_str()) && !is_compatible(mode, lease.mode)
    };
    lease.holder != wait.rank.agent
        && wait.requests.iter().any(|request| conflicts(&request.resource, request.mode))
}

/// Whether two leases of different holders may live at once.
pub(super) fn is_compatible(one: LeaseMode, other: LeaseMode) -> bool {
    let looks =
        |mode: LeaseMode| matches!(mode, LeaseMode::Shared | LeaseMode::Consumes | LeaseMode::DependsOn);
    let makes = |mode: LeaseMode| mode == LeaseMode::Provides;
    looks(one) && (looks(other) || makes(other)) || makes(one) && looks(other)
}

/// Whether two names have something in common.
pub(super) fn overlaps(one: &str, other: &str) -> bool {
    // What every name below this one begins with, if there is anything below it.
    let beginning = |name: &str| -> Option<usize> {
        let kinds = ["FILE:", "SYMBOL:", "API_ENDPOINT:", "DATABASE_TABLE:", "CONFIG_KEY:"];
        if !kinds.iter().any(|kind| name.starts_with(kind)) {
            return None;
        }
        name.find('*').or_else(|| name.ends_with('/').then_some(name.len()))
    };
    match (beginning(one), beginning(other)) {
        (None, None) => one == other,
        (Some(end), None) => other.starts_with(&one[..end]),
        (None, Some(end)) => one.starts_with(&other[..end]),
        (Some(end), Some(till)) => {
            let (one, other) = (&one[..end], &other[..till]);
            one.starts_with(other) || other.starts_with(one)
        }
    }
}
