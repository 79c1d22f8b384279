//! State of the agents API: age, phase and wait of each agent, and the resources that it touched.

mod apply;
mod wait_index;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::wait_index::AgentWaitIndex;
use crate::kernel::agent::{AgentPhase, AgentRank, AgentWait};
use crate::kernel::lease::lease_request::LeaseRequest;
use crate::kernel::state::{KernelState, LeaseEntry, ensure};
use crate::rules::is_expired;
use crate::rules::overlap::overlaps;
use crate::value::{Fence, Holder, LeaseMode, Limits, Principal, Resource, Tick, TickDuration, Ticket};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRecord {
    /// Its age in its present or last attempt; nothing before its first.
    pub priority: Option<u64>,
    pub principal: Principal,
    pub session: Arc<str>,
    pub phase: Option<AgentPhase>,
    /// Which of its lives this is, as it last said.
    pub epoch: u64,
    /// How often it died in its attempt.
    pub abort_count: u32,
    /// When it may come back, if it died last.
    pub retry_at: Option<Tick>,
    /// The leases that it had when it last said that it restarts: they have got their moment longer.
    pub extended_leases: Vec<Fence>,
    /// When it last said so.
    pub restarting_at: Option<Tick>,
    /// What it touched in this attempt without a lease for it, the first ones.
    pub outside_resources: Vec<Resource>,
    /// Since when it holds anything, without a gap.
    pub holding_since: Option<Tick>,
    /// For how long it held anything before that, with this age.
    pub earlier_hold_time: TickDuration,
    /// That was as long as it may be: its next attempt has to be younger.
    pub hold_time_used_up: bool,
    pub changed_at: Tick,
}

impl AgentRecord {
    /// Somebody of whom only this is known.
    fn new(principal: Principal, session: Arc<str>, at: Tick) -> Self {
        Self {
            priority: None,
            principal,
            session,
            phase: None,
            epoch: 0,
            abort_count: 0,
            retry_at: None,
            extended_leases: Vec::new(),
            restarting_at: None,
            outside_resources: Vec::new(),
            holding_since: None,
            earlier_hold_time: TickDuration(0),
            hold_time_used_up: false,
            changed_at: at,
        }
    }

    /// For how long it has held leases with this age.
    pub fn hold_time(&self, now: Tick) -> TickDuration {
        let since = self.holding_since.map_or(TickDuration(0), |since| now.since(since));
        TickDuration(self.earlier_hold_time.0.saturating_add(since.0))
    }

    /// From when on it would have held leases, had it done so without a gap.
    fn hold_start(&self) -> Option<Tick> {
        self.holding_since.map(|since| Tick(since.0.saturating_sub(self.earlier_hold_time.0)))
    }
}

#[derive(Debug, Clone, Default)]
pub(in crate::kernel) struct AgentStore {
    by_id: BTreeMap<Holder, AgentRecord>,
    pub(in crate::kernel) wait_index: AgentWaitIndex,
    by_change: BTreeSet<(Tick, Holder)>,
    /// Those who hold something, by [`Agent::clock`].
    by_hold_start: BTreeSet<(Tick, Holder)>,
    /// When what a lease is for was last touched, or the lease got: of leases that agents have in order to change something.
    touched: BTreeMap<Fence, Tick>,
    by_touch: BTreeSet<(Tick, Fence)>,
}

impl AgentStore {
    pub(in crate::kernel) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(in crate::kernel) fn get(&self, agent: &Holder) -> Option<&AgentRecord> {
        self.by_id.get(agent)
    }

    pub(in crate::kernel) fn iter(&self) -> impl Iterator<Item = (&Holder, &AgentRecord)> {
        self.by_id.iter()
    }

    /// The waits of an agent: all of them are of the age that it has.
    pub(in crate::kernel) fn wait_entries_of<'a>(
        &'a self,
        agent: &Holder,
    ) -> impl Iterator<Item = &'a AgentWait> {
        let priority = self.get(agent).and_then(|known| known.priority);
        let rank = priority.map(|priority| AgentRank { priority, agent: agent.clone() });
        rank.into_iter().flat_map(|rank| self.wait_index.of_rank(&rank).collect::<Vec<_>>())
    }

    /// When the first wait is over, or the first agent has held leases or left one untouched for as long as is permitted.
    pub(in crate::kernel) fn next_deadline(&self, limits: &Limits) -> Option<Tick> {
        let wait = self.wait_index.next_timeout();
        let clock = self.by_hold_start.first().zip(limits.max_agent_hold_time);
        let touch = self.by_touch.first().zip(limits.max_agent_idle_time);
        let clock = clock.map(|((from, _), longest)| from.saturating_add(longest));
        let touch = touch.map(|((from, _), longest)| from.saturating_add(longest));
        wait.into_iter().chain(clock).chain(touch).min()
    }

    /// Who has held leases for at least so long.
    pub(in crate::kernel) fn held_for_at_least(
        &self,
        longest: TickDuration,
        now: Tick,
    ) -> impl Iterator<Item = &Holder> {
        let is_due = move |(from, _): &&(Tick, Holder)| is_expired(now.0, from.saturating_add(longest).0);
        self.by_hold_start.iter().take_while(is_due).map(|(_, agent)| agent)
    }

    /// The leases whose resources were not touched for at least so long.
    pub(in crate::kernel) fn untouched_for_at_least(
        &self,
        longest: TickDuration,
        now: Tick,
    ) -> impl Iterator<Item = Fence> {
        let is_due = move |(from, _): &&(Tick, Fence)| is_expired(now.0, from.saturating_add(longest).0);
        self.by_touch.iter().take_while(is_due).map(|(_, fence)| *fence)
    }

    /// The leases that agents have in order to change something, and when that was last touched.
    pub(in crate::kernel) fn touches(&self) -> impl Iterator<Item = (Fence, Tick)> {
        self.touched.iter().map(|(fence, at)| (*fence, *at))
    }

    pub(in crate::kernel) fn touch(&mut self, lease: Fence, at: Tick) {
        if let Some(before) = self.touched.insert(lease, at) {
            self.by_touch.remove(&(before, lease));
        }
        self.by_touch.insert((at, lease));
    }

    fn forget_touch(&mut self, lease: Fence) {
        if let Some(before) = self.touched.remove(&lease) {
            self.by_touch.remove(&(before, lease));
        }
    }

    pub(in crate::kernel) fn insert(&mut self, id: Holder, agent: AgentRecord) {
        self.by_change.insert((agent.changed_at, id.clone()));
        self.by_hold_start.extend(agent.hold_start().map(|clock| (clock, id.clone())));
        self.by_id.insert(id, agent);
    }

    fn update(&mut self, id: &Holder, at: Tick, change: impl FnOnce(&mut AgentRecord)) {
        let Some(agent) = self.by_id.get_mut(id) else { return };
        let (changed_at, clock) = (agent.changed_at, agent.hold_start());
        agent.changed_at = at;
        change(agent);
        if changed_at != at {
            self.by_change.remove(&(changed_at, id.clone()));
            self.by_change.insert((at, id.clone()));
        }
        let now = agent.hold_start();
        if clock != now {
            clock.into_iter().for_each(|clock| _ = self.by_hold_start.remove(&(clock, id.clone())));
            self.by_hold_start.extend(now.map(|now| (now, id.clone())));
        }
    }

    fn remove(&mut self, id: &Holder) {
        if let Some(agent) = self.by_id.remove(id) {
            self.by_change.remove(&(agent.changed_at, id.clone()));
            agent
                .hold_start()
                .into_iter()
                .for_each(|clock| _ = self.by_hold_start.remove(&(clock, id.clone())));
        }
    }
}

/// Whether what somebody waits for has something in common with `resource`, and does not go with `mode`.
pub(in crate::kernel) fn conflicts_with(
    requests: &[LeaseRequest],
    resource: &Resource,
    mode: LeaseMode,
) -> bool {
    let conflicts = |request: &LeaseRequest| {
        !request.mode.is_compatible(mode) && overlaps(request.resource.as_str(), resource.as_str())
    };
    requests.iter().any(conflicts)
}

fn oldest_first<'a>(entries: impl Iterator<Item = &'a AgentWait>) -> Vec<&'a AgentWait> {
    let mut entries: Vec<&AgentWait> = entries.collect();
    entries.sort_unstable_by(|one, other| (&one.rank, one.ticket).cmp(&(&other.rank, other.ticket)));
    entries.dedup_by_key(|pending| pending.ticket);
    entries
}

impl KernelState {
    pub fn agent(&self, agent: &Holder) -> Option<&AgentRecord> {
        self.agents.get(agent)
    }

    /// Every agent that is known, by its name.
    pub fn agents(&self) -> impl Iterator<Item = (&Holder, &AgentRecord)> {
        self.agents.iter()
    }

    /// The agents that wait, the oldest first.
    pub fn waiting_agents(&self) -> impl Iterator<Item = &AgentWait> {
        self.agents.wait_index.iter()
    }

    pub(in crate::kernel) fn has_waiting_agents(&self) -> bool {
        !self.agents.wait_index.is_empty()
    }

    /// How many agents wait, and for how much.
    pub(in crate::kernel) fn waiting_agent_counts(&self) -> (usize, usize) {
        self.agents.wait_index.counts()
    }

    pub fn agent_wait(&self, ticket: Ticket) -> Option<&AgentWait> {
        self.agents.wait_index.get(ticket)
    }

    pub fn wait_entries_of(&self, agent: &Holder) -> impl Iterator<Item = &AgentWait> {
        self.agents.wait_entries_of(agent)
    }

    /// The waits of agents for something that has something in common with `resource`, the oldest first, each once.
    pub fn waiting_agents_overlapping<'a>(&'a self, resource: &'a Resource) -> Vec<&'a AgentWait> {
        oldest_first(self.agents.wait_index.overlapping(resource))
    }

    /// Those of them that want it in a way that does not go with `mode`.
    pub(in crate::kernel) fn waiting_agents_conflicting<'a>(
        &'a self,
        resource: &'a Resource,
        mode: LeaseMode,
    ) -> Vec<&'a AgentWait> {
        oldest_first(self.agents.wait_index.conflicting(resource, mode))
    }

    /// The waits of agents that are over at `now`.
    pub(in crate::kernel) fn overdue_waiting_agents(&self, now: Tick) -> impl Iterator<Item = &AgentWait> {
        self.agents.wait_index.timed_out(now)
    }

    /// When what a lease is for was last touched, if an agent has it in order to change something.
    pub fn touched_at(&self, lease: Fence) -> Option<Tick> {
        self.agents.touched.get(&lease).copied()
    }

    /// Every lease that an agent has in order to change something, and when that was last touched.
    pub(in crate::kernel) fn touches(&self) -> impl Iterator<Item = (Fence, Tick)> {
        self.agents.touches()
    }

    pub(in crate::kernel) fn agents_holding_for_at_least(
        &self,
        longest: TickDuration,
        now: Tick,
    ) -> impl Iterator<Item = &Holder> {
        self.agents.held_for_at_least(longest, now)
    }

    pub(in crate::kernel) fn leases_untouched_for_at_least(
        &self,
        longest: TickDuration,
        now: Tick,
    ) -> impl Iterator<Item = &LeaseEntry> {
        self.agents.untouched_for_at_least(longest, now).filter_map(|fence| self.find_lease(fence))
    }

    /// Whether its attempt goes on: it holds something or waits for something, or it died and has not come back.
    pub(in crate::kernel) fn has_active_attempt(&self, agent: &Holder) -> bool {
        let holds = self.find_holder(agent).is_some_and(|slot| self.leases_of(slot).next().is_some());
        let is_waiting = || self.agents.wait_entries_of(agent).next().is_some();
        let died = || self.agents.get(agent).is_some_and(|agent| agent.retry_at.is_some());
        holds || is_waiting() || died()
    }

    /// The age of whoever holds a lease, if it is an agent.
    pub(in crate::kernel) fn rank_of(&self, holder: &Holder) -> Option<AgentRank> {
        let priority = self.agents.get(holder)?.priority?;
        Some(AgentRank { priority, agent: holder.clone() })
    }

    /// The lease that an agent has on exactly this resource.
    pub(in crate::kernel) fn own_lease_on(
        &self,
        agent: &Holder,
        resource: &Resource,
    ) -> Option<(Fence, LeaseMode)> {
        let slot = self.find_resource(resource)?;
        let own = self.leases_on(slot).find(|lease| self.holder_name(lease.holder) == agent)?;
        Some((own.fence, own.terms.mode))
    }
}

impl KernelState {
    /// Whoever waits is older than everybody that it waits for, and so nobody waits in a circle.
    pub(in crate::kernel) fn invariant_agents_wait_only_for_younger(&self) -> Result<(), String> {
        // What is over is in nobody's way, announced or not.
        let is_waiting = |pending: &&AgentWait| !is_expired(self.now().0, pending.until.0);
        let pending: Vec<&AgentWait> = self.agents.wait_index.iter().filter(is_waiting).collect();
        for (index, waiting) in pending.iter().enumerate() {
            let rank = &waiting.rank;
            let known = self.agents.get(&rank.agent).and_then(|agent| agent.priority) == Some(rank.priority);
            ensure(known, || format!("{} waits with another age than it has", rank.agent))?;
            for request in &waiting.requests {
                for lease in self.leases_overlapping(&request.resource) {
                    let holder = self.holder_name(lease.holder);
                    let is_past = is_expired(self.now().0, lease.terms.expires_at.0);
                    if is_past || lease.terms.mode.is_compatible(request.mode) || *holder == rank.agent {
                        continue;
                    }
                    let is_younger = self.rank_of(holder).is_some_and(|other| other > *rank);
                    ensure(is_younger, || format!("{} waits for the older {holder}", rank.agent))?;
                }
                for older in pending[..index].iter().filter(|older| older.rank.agent != rank.agent) {
                    let conflicts = conflicts_with(&older.requests, &request.resource, request.mode);
                    ensure(!conflicts, || format!("{} waits behind {}", rank.agent, older.rank.agent))?;
                }
            }
        }
        ensure(self.agents.wait_index.is_consistent(), || "waits of agents are miscounted".into())
    }

    /// Whoever is known to hold something does, and what agents change is noted as long as they have it, and no longer.
    pub(in crate::kernel) fn invariant_agent_holdings_are_indexed(&self) -> Result<(), String> {
        for (id, agent) in self.agents() {
            let holds = self.find_holder(id).is_some_and(|slot| self.leases_of(slot).next().is_some());
            ensure(holds == agent.holding_since.is_some(), || format!("{id} is miscounted as a holder"))?;
        }
        let clocks = self.agents().filter(|(_, agent)| agent.holding_since.is_some()).count();
        ensure(self.agents.by_hold_start.len() == clocks, || "clocks of agents are miscounted".into())?;
        for (fence, _) in self.touches() {
            let lease = self.find_lease(fence).ok_or_else(|| format!("{fence:?} is over, and noted"))?;
            ensure(lease.terms.mode.is_mutating(), || format!("{fence:?} changes nothing, and is noted"))?;
        }
        let both = self.agents.touched.len() == self.agents.by_touch.len();
        ensure(both, || "touches of agents are miscounted".into())
    }
}
