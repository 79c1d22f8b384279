//! A client of the work API: it claims, derives, spends, renews and releases, and repeats what was not answered.

use tenure_core::authority::{Budget, LeaseScope, Purpose};
use tenure_core::kernel::{
    ClaimWork, Command, CommandOutcome, DeriveLease, Fence, Holder, IdempotencyKey, Labels, LeaseCredential,
    Nonce, Principal, Rejection, RequestDigest, SpendBudget, TickDuration, WorkCommand,
};
use tenure_core::lease::ReleaseReason;

use super::{SECOND, TEAM_SIZE, is_temporary};
use crate::invariants::key_of;
use crate::rng::Rng;

/// What one client knows.
#[derive(Debug)]
pub(super) struct SimulatedWorkClient {
    number: usize,
    /// Its process does not run until then.
    pub(super) gone_until: u64,
    /// It sends and receives nothing until then.
    pub(super) cut_off_until: u64,
    leases: Vec<HeldWorkLease>,
    pending: Vec<PendingRequest>,
    last_request: u64,
}

/// A lease as its client knows it. The server may know better.
#[derive(Debug, Clone)]
pub(super) struct HeldWorkLease {
    fence: Fence,
    scope: LeaseScope,
    remaining: Budget,
    ttl: TickDuration,
    expires_at: u64,
}

/// A request without an answer.
#[derive(Debug)]
struct PendingRequest {
    number: u64,
    command: Command,
    repeat_at: u64,
    stop_at: u64,
    /// The client that will hold the granted lease.
    recipient: usize,
}

/// A client repeats a request for so long. The server remembers keys for 60 s, and what is sent last may be under way for 10 s
/// and then wait for a server that is paused, again and again.
const REPEAT_FOR: u64 = 25 * SECOND;
const MAX_LEASES: usize = 5;
const WORK_ITEMS: u64 = 60;
const TOOLS: [&str; 4] = ["build", "search", "shell", "test"];
/// `src/website` and `src-old` begin like others and are not below them.
const NAMESPACES: [&str; 6] = ["src", "src/web", "src/website", "src-old", "docs", "docs/api"];

impl SimulatedWorkClient {
    pub(super) fn new(number: usize) -> Self {
        Self {
            number,
            gone_until: 0,
            cut_off_until: 0,
            leases: Vec::new(),
            pending: Vec::new(),
            last_request: 0,
        }
    }

    pub(super) fn holder(&self) -> Holder {
        holder_of(self.number)
    }

    fn principal(&self) -> Principal {
        Principal::parse(&format!("team-{}", self.number / TEAM_SIZE)).expect("a plain name")
    }

    /// Whether it has no lease and waits for no answer.
    pub(super) fn is_idle(&self) -> bool {
        self.leases.is_empty() && self.pending.is_empty()
    }

    pub(super) fn add_lease(&mut self, lease: HeldWorkLease) {
        self.leases.push(lease);
    }

    /// Its process exits, and the next starts later. Only a journal remembers what was not answered.
    pub(super) fn crash(&mut self, gone_until: u64, keeps_journal: bool) {
        self.gone_until = gone_until;
        self.leases.clear();
        if !keeps_journal {
            self.pending.clear();
        }
    }

    /// What it sends now: requests with their numbers, repeated ones first. `foreign` is a lease of another client that it
    /// uses, with the holder.
    pub(super) fn due_requests(
        &mut self,
        now: u64,
        is_winding_down: bool,
        foreign: Option<(Fence, Holder)>,
        rng: &mut Rng,
    ) -> Vec<(u64, Command)> {
        if self.gone_until > now {
            return Vec::new();
        }
        // Without faults each of them is answered soon.
        self.pending
            .retain(|request| request.stop_at > now || is_winding_down && is_repeatable(&request.command));
        // For some time it tries to use what has expired.
        self.leases.retain(|lease| lease.expires_at + 2 * SECOND > now);
        let mut due = Vec::new();
        for request in self.pending.iter_mut().filter(|request| request.repeat_at <= now) {
            request.repeat_at = now + 2 * SECOND;
            due.push((request.number, request.command.clone()));
        }
        if self.pending.len() < 3 {
            self.last_request += 1;
            let new = match foreign.filter(|_| !is_winding_down) {
                Some((lease, holder)) => Some((self.foreign_request(lease, holder, rng), self.number)),
                None => self.next_request(is_winding_down, now, rng),
            };
            if let Some((command, recipient)) = new {
                due.push((self.last_request, command.clone()));
                let (repeat_at, stop_at) = if is_repeatable(&command) {
                    (now + 2 * SECOND, now + REPEAT_FOR)
                } else {
                    (u64::MAX, now + 12 * SECOND)
                };
                let number = self.last_request;
                self.pending.push(PendingRequest { number, command, repeat_at, stop_at, recipient });
            }
        }
        due
    }

    /// Learns what came of a request; returns the lease that was granted, and for which client.
    pub(super) fn handle_answer(
        &mut self,
        request: u64,
        answer: &CommandOutcome,
        now: u64,
    ) -> Option<(usize, HeldWorkLease)> {
        let index = self.pending.iter().position(|pending| pending.number == request)?;
        if matches!(answer, CommandOutcome::Rejected(rejection) if is_temporary(rejection)) {
            return None;
        }
        let PendingRequest { command, recipient, .. } = self.pending.swap_remove(index);
        match answer {
            CommandOutcome::Granted { leases } => {
                let Command::Work(work) = command else { return None };
                let (WorkCommand::Claim(claim) | WorkCommand::Derive(DeriveLease { child: claim, .. })) =
                    *work
                else {
                    return None;
                };
                let (ttl, remaining) = (claim.ttl, claim.budget);
                let fence = *leases.first()?;
                let lease =
                    HeldWorkLease { fence, scope: claim.scope, remaining, ttl, expires_at: now + ttl.0 };
                return Some((recipient, lease));
            }
            CommandOutcome::Spent { lease, remaining } => {
                self.update(*lease, |held| held.remaining = *remaining)
            }
            CommandOutcome::Renewed { lease, .. } => {
                self.update(*lease, |held| held.expires_at = now + held.ttl.0)
            }
            CommandOutcome::Released { lease } | CommandOutcome::Rejected(Rejection::Ended { lease, .. }) => {
                self.leases.retain(|held| held.fence != *lease);
            }
            CommandOutcome::Rejected(Rejection::BudgetExceeded { remaining }) => {
                if let Command::Work(work) = command
                    && let WorkCommand::Spend(SpendBudget { lease, .. })
                    | WorkCommand::Derive(DeriveLease { parent: lease, .. }) = *work
                {
                    self.update(lease, |held| held.remaining = *remaining);
                }
            }
            _ => {}
        }
        None
    }

    fn update(&mut self, fence: Fence, change: impl FnOnce(&mut HeldWorkLease)) {
        if let Some(held) = self.leases.iter_mut().find(|held| held.fence == fence) {
            change(held);
        }
    }

    /// A request of its own, and the client for which it is.
    fn next_request(&mut self, is_winding_down: bool, now: u64, rng: &mut Rng) -> Option<(Command, usize)> {
        if is_winding_down {
            let lease = self.leases.first()?.fence;
            return Some((self.release(lease, rng), self.number));
        }
        if self.leases.is_empty() && rng.percent(60) || self.leases.len() < MAX_LEASES && rng.percent(5) {
            let work_id = any_work_id(rng);
            let claim = self.any_claim(work_id, any_scope(rng), any_budget(rng), self.number, rng);
            return Some((work(WorkCommand::Claim(claim)), self.number));
        }
        if self.leases.is_empty() {
            return None;
        }
        let held = rng.pick(&self.leases).clone();
        Some(match rng.below(100) {
            0..30 => self.derive(&held, now, rng),
            30..80 => (self.spend(&held, rng), self.number),
            80..95 => {
                let ttl = rng.percent(70).then(|| any_ttl(rng));
                let credential = self.own_credential(rng);
                (Command::Renew { lease: held.fence, credential, ttl }, self.number)
            }
            _ => (self.release(held.fence, rng), self.number),
        })
    }

    fn derive(&self, held: &HeldWorkLease, now: u64, rng: &mut Rng) -> (Command, usize) {
        let recipient = if rng.percent(40) {
            self.number
        } else {
            let teammate = usize::try_from(rng.below(TEAM_SIZE as u64)).unwrap_or(0);
            self.number / TEAM_SIZE * TEAM_SIZE + teammate
        };
        let work_id = match held.scope.names() {
            Some([work_ids, ..]) if !work_ids.is_empty() && rng.percent(85) => {
                (*rng.pick(&work_ids)).to_owned()
            }
            _ => any_work_id(rng),
        };
        let scope = match rng.below(10) {
            0 => any_scope(rng),
            1 => held.scope.clone(),
            _ => narrower_scope(&held.scope, rng),
        };
        let budget = match rng.below(10) {
            0 => held.remaining,
            1 => exceeding(held.remaining, rng),
            _ => Budget::from_amounts(held.remaining.amounts().map(|amount| rng.below(amount / 2 + 1))),
        };
        let mut child = self.any_claim(work_id, scope, budget, recipient, rng);
        // Mostly it expires before its parent.
        if rng.percent(85) {
            let remaining_ms = held.expires_at.saturating_sub(now) / 1_000;
            let ttl_ms = rng.between(remaining_ms / 2, remaining_ms.max(1)).max(1_000);
            child.ttl = TickDuration::from_millis(ttl_ms);
        }
        let credential = self.own_credential(rng);
        (work(WorkCommand::Derive(DeriveLease { parent: held.fence, credential, child })), recipient)
    }

    fn spend(&self, held: &HeldWorkLease, rng: &mut Rng) -> Command {
        let amount = match rng.below(12) {
            0 => Budget::ZERO,
            1 => held.remaining,
            2 => exceeding(held.remaining, rng),
            _ => Budget::from_amounts([0; 4].map(|_: u64| rng.below(4))),
        };
        self.spend_of(held.fence, amount, any_purpose(&held.scope, rng), self.own_credential(rng), rng)
    }

    fn spend_of(
        &self,
        lease: Fence,
        amount: Budget,
        purpose: Purpose,
        credential: LeaseCredential,
        rng: &mut Rng,
    ) -> Command {
        work(WorkCommand::Spend(SpendBudget { lease, credential, amount, purpose, key: self.next_key(rng) }))
    }

    fn release(&self, lease: Fence, rng: &mut Rng) -> Command {
        let reasons = [ReleaseReason::Completed, ReleaseReason::Aborted, ReleaseReason::Voluntary];
        Command::Release { lease, claim: self.own_credential(rng), reason: *rng.pick(&reasons) }
    }

    /// A request about the lease of another client, with its own name or a stolen one.
    fn foreign_request(&self, lease: Fence, holder: Holder, rng: &mut Rng) -> Command {
        let credential = if rng.percent(50) {
            LeaseCredential::Holder { holder: self.holder(), principal: self.principal() }
        } else {
            let principal = Principal::parse("stranger").expect("a plain name");
            LeaseCredential::Holder { holder, principal }
        };
        match rng.below(5) {
            0 => Command::Renew { lease, credential, ttl: Some(any_ttl(rng)) },
            1 => Command::Release { lease, claim: credential, reason: ReleaseReason::Aborted },
            2 => {
                let budget = Budget::ZERO;
                let scope = LeaseScope::limited([], [], []).expect("no names");
                let child = self.any_claim(any_work_id(rng), scope, budget, self.number, rng);
                work(WorkCommand::Derive(DeriveLease { parent: lease, credential, child }))
            }
            _ => {
                let amount = Budget::from_amounts([0, 0, rng.below(2), rng.below(2)]);
                self.spend_of(lease, amount, Purpose::default(), credential, rng)
            }
        }
    }

    fn any_claim(
        &self,
        work_id: String,
        scope: LeaseScope,
        budget: Budget,
        holder: usize,
        rng: &mut Rng,
    ) -> ClaimWork {
        ClaimWork {
            principal: self.principal(),
            holder: holder_of(holder),
            work_id: work_id.into(),
            ttl: any_ttl(rng),
            nonce: Nonce([6; 16]),
            labels: Labels::default(),
            scope,
            budget,
            key: self.next_key(rng),
        }
    }

    /// Its own lease is known by its token, or by its names.
    fn own_credential(&self, rng: &mut Rng) -> LeaseCredential {
        if rng.percent(50) {
            return LeaseCredential::Token;
        }
        LeaseCredential::Holder { holder: self.holder(), principal: self.principal() }
    }

    fn next_key(&self, rng: &mut Rng) -> Option<IdempotencyKey> {
        let key = RequestDigest::of(format!("{}.{}", self.number, self.last_request).as_bytes());
        rng.percent(93).then_some(IdempotencyKey { key, body: key })
    }
}

fn holder_of(client: usize) -> Holder {
    Holder::parse(&format!("client-{client:02}")).expect("a plain name")
}

fn work(command: WorkCommand) -> Command {
    Command::Work(Box::new(command))
}

/// Renewals and releases need no key for that.
fn is_repeatable(command: &Command) -> bool {
    !matches!(command, Command::Work(_)) || key_of(command).is_some()
}

fn any_ttl(rng: &mut Rng) -> TickDuration {
    TickDuration::from_millis(rng.between(5_000, 60_000))
}

fn any_work_id(rng: &mut Rng) -> String {
    format!("T-{}", rng.below(WORK_ITEMS))
}

fn any_budget(rng: &mut Rng) -> Budget {
    Budget::from_amounts([0; 4].map(|_: u64| match rng.below(6) {
        0 => Budget::MAX_AMOUNT,
        1 => 1_000,
        _ => rng.between(5, 300),
    }))
}

/// One amount of it is more than there is.
fn exceeding(remaining: Budget, rng: &mut Rng) -> Budget {
    let mut amounts = remaining.amounts();
    let amount = &mut amounts[usize::try_from(rng.below(4)).unwrap_or(0)];
    *amount = (*amount + 1).min(Budget::MAX_AMOUNT);
    Budget::from_amounts(amounts)
}

fn any_scope(rng: &mut Rng) -> LeaseScope {
    if rng.percent(30) {
        return LeaseScope::Unlimited;
    }
    let work_ids: Vec<String> = (0..WORK_ITEMS).map(|number| format!("T-{number}")).collect();
    let work_ids: Vec<&str> = work_ids.iter().map(String::as_str).collect();
    some_of([work_ids, TOOLS.to_vec(), NAMESPACES.to_vec()], rng)
}

/// A part of a scope. Some of its namespaces are below those of the scope.
fn narrower_scope(scope: &LeaseScope, rng: &mut Rng) -> LeaseScope {
    let Some([work_ids, tools, namespaces]) = scope.names() else { return any_scope(rng) };
    let deeper: Vec<String> = namespaces.iter().map(|name| format!("{name}/deep")).collect();
    let below: Vec<&str> = namespaces
        .iter()
        .zip(&deeper)
        .map(|(own, deeper)| if rng.percent(80) { own } else { deeper.as_str() })
        .collect();
    some_of([work_ids, tools, below], rng)
}

fn some_of(names: [Vec<&str>; 3], rng: &mut Rng) -> LeaseScope {
    let [work_ids, tools, namespaces] =
        names.map(|names| names.into_iter().filter(|_| rng.percent(75)).collect::<Vec<_>>());
    LeaseScope::limited(work_ids, tools, namespaces).expect("plain names")
}

/// Mostly what the scope allows.
fn any_purpose(scope: &LeaseScope, rng: &mut Rng) -> Purpose {
    let [work_ids, tools, namespaces] = scope.names().unwrap_or_default();
    let mut name = |named: &[&str], usual: &[&str]| {
        if !rng.percent(40) {
            return None;
        }
        let name = match rng.below(10) {
            0 => "src/../etc",
            1 => rng.pick(usual),
            _ if named.is_empty() => return None,
            _ => rng.pick(named),
        };
        Some(name.into())
    };
    Purpose {
        work_id: name(&work_ids, &["T-0", "T-1", "T-2"]),
        tool: name(&tools, &TOOLS),
        namespace: name(&namespaces, &NAMESPACES),
    }
}
