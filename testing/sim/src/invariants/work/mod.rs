//! What must never happen to work leases: [`WorkLaw`] names each law.
//!
//! The model is fed with requests, durable events and answers. It has its own rules for scopes and budgets, so that it does
//! not repeat a mistake of the kernel's.

mod answers;
mod law;

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::authority::{Authority, Budget, LeaseScope, Purpose};
use tenure_core::kernel::{
    ClaimWork, Command, DeriveLease, Event, Fence, Holder, IdempotencyKey, IssuedLease, KernelState,
    LeaseCredential, Principal, RequestDigest, RevocationCause, SpendBudget, Tick, WorkCommand, WorkEvent,
};

use super::{InvariantResult, Violation};
pub(crate) use answers::key_of;
pub use law::WorkLaw;

/// The work leases of a ledger, and what clients requested of them.
#[derive(Debug, Default)]
pub struct WorkModel {
    /// Ended ones too.
    leases: BTreeMap<Fence, WorkLeaseModel>,
    /// By the lease that each is about; fence 0 has the claims.
    requests: BTreeMap<Fence, Vec<Command>>,
    /// Keys in the ledger. Clients use no key for two requests, and repeat none after the server may have forgotten it.
    used_keys: BTreeSet<RequestDigest>,
    /// Keys of requests that were rejected for good.
    rejected_keys: BTreeSet<RequestDigest>,
    /// Leases of this write that were revoked because of their parent, with the parent.
    ended_with_parent: BTreeMap<Fence, Fence>,
}

#[derive(Debug)]
struct WorkLeaseModel {
    parent: Option<Fence>,
    work_id: String,
    holder: Holder,
    principal: Principal,
    scope: ScopeModel,
    budget: Amounts,
    key: Option<IdempotencyKey>,
    spent: Amounts,
    /// Budgets of the leases derived from it, whether these were spent or not.
    delegated: Amounts,
    /// Spent by it and by every lease below it.
    spent_below: Amounts,
    remaining: History<Amounts>,
    expires_at: History<Tick>,
    ended_at: Option<Tick>,
    /// Those that have not ended.
    children: BTreeSet<Fence>,
    spends: Vec<SpendModel>,
}

#[derive(Debug)]
struct SpendModel {
    amount: Amounts,
    purpose: Purpose,
    key: Option<IdempotencyKey>,
    /// After it.
    remaining: Amounts,
    is_acknowledged: bool,
}

/// Episodes, tool calls, tokens and milliseconds.
type Amounts = [u64; 4];

impl WorkModel {
    /// Judges a durable event.
    pub(in crate::invariants) fn apply(&mut self, event: &Event) -> InvariantResult {
        match event {
            Event::Issued(issued) => issued
                .authority
                .as_ref()
                .map_or(Ok(()), |authority| self.apply_issued(issued, authority, event)),
            Event::Renewed { lease, at, expires_at, .. } if self.leases.contains_key(lease) => {
                self.apply_renewed(*lease, *at, *expires_at, event)
            }
            Event::Released { lease, at, .. }
            | Event::Expired { lease, at }
            | Event::Revoked { lease, at, .. }
                if self.leases.contains_key(lease) =>
            {
                self.apply_ended(*lease, *at, event)
            }
            Event::Work(spent) => self.apply_spent(spent, event),
            _ => Ok(()),
        }
    }

    /// Judges a moment between two writes.
    pub(in crate::invariants) fn check_between_batches(&mut self) -> InvariantResult {
        for (lease, parent) in std::mem::take(&mut self.ended_with_parent) {
            let has_ended = self.leases.get(&parent).is_some_and(|parent| parent.ended_at.is_some());
            WorkLaw::EndsWithParent
                .ensure(has_ended, || format!("{lease:?} ended, its parent {parent:?} did not"))?;
        }
        Ok(())
    }

    /// Compares the sums of a state that was replayed, or restored from a checkpoint.
    pub fn check_sums(&self, state: &KernelState) -> InvariantResult {
        for (fence, lease) in &self.leases {
            let ended = state.ended_lease(*fence).map(|ended| ended.work_lease.as_deref());
            let work = match (lease.ended_at, ended) {
                (None, _) => state.work_lease(*fence),
                (Some(_), Some(work)) => work,
                // Forgotten, ten minutes after its end.
                (Some(_), None) => continue,
            };
            let is_same = work.is_some_and(|work| {
                [work.remaining, work.spent, work.delegated].map(Budget::amounts)
                    == [*lease.remaining.last(), lease.spent, lease.delegated]
                    && work.children == lease.children
            });
            WorkLaw::ReplayedSums.ensure(is_same, || format!("{fence:?} is {work:?}, expected {lease:?}"))?;
        }
        Ok(())
    }

    /// The leases that have not ended, with their holders.
    pub fn active_leases(&self) -> impl Iterator<Item = (Fence, &Holder)> {
        let active = self.leases.iter().filter(|(_, lease)| lease.ended_at.is_none());
        active.map(|(fence, lease)| (*fence, &lease.holder))
    }

    fn apply_issued(
        &mut self,
        issued: &IssuedLease,
        authority: &Authority,
        event: &Event,
    ) -> InvariantResult {
        let (fence, at) = (issued.fence, issued.terms.issued_at);
        let budget = authority.budget.amounts();
        let resource = issued.resource.as_str();
        let work_id = resource.strip_prefix("work:").unwrap_or(resource).to_owned();
        let scope = ScopeModel::new(&authority.scope);
        if let Some(parent_fence) = authority.parent {
            let parent = self.lease_mut(parent_fence)?;
            WorkLaw::EndWithinParent.ensure(parent.is_active(at), || {
                format!("{fence:?} is derived from {parent_fence:?}, which has ended")
            })?;
            WorkLaw::EndWithinParent.ensure(issued.terms.expires_at <= *parent.expires_at.last(), || {
                format!("{fence:?} expires after {parent_fence:?}")
            })?;
            let is_part = scope.is_within(&parent.scope) && parent.scope.allows(WORK_IDS, &work_id);
            WorkLaw::ScopeWithinParent.ensure(is_part, || {
                format!("{fence:?} on {work_id} has {scope:?}, its parent {:?}", parent.scope)
            })?;
            let remaining = minus(*parent.remaining.last(), budget);
            let remaining = WorkLaw::BudgetFromParent.require(remaining, || {
                format!("{fence:?} has {budget:?}, its parent {:?}", parent.remaining)
            })?;
            parent.delegated = plus(parent.delegated, budget);
            parent.remaining.set(at, remaining);
            parent.children.insert(fence);
        }
        self.check_requested(authority.parent.unwrap_or_default(), event)?;
        self.use_key(issued.key, event)?;
        let lease = WorkLeaseModel {
            parent: authority.parent,
            work_id,
            holder: issued.holder.clone(),
            principal: issued.principal.clone(),
            scope,
            budget,
            key: issued.key,
            spent: Amounts::default(),
            delegated: Amounts::default(),
            spent_below: Amounts::default(),
            remaining: History::new(at, budget),
            expires_at: History::new(at, issued.terms.expires_at),
            ended_at: None,
            children: BTreeSet::new(),
            spends: Vec::new(),
        };
        self.leases.insert(fence, lease);
        Ok(())
    }

    fn apply_renewed(&mut self, fence: Fence, at: Tick, expires_at: Tick, event: &Event) -> InvariantResult {
        self.check_requested(fence, event)?;
        let parent = self.lease(fence)?.parent.map(|parent| self.lease(parent)).transpose()?;
        let is_within = parent.is_none_or(|parent| expires_at <= *parent.expires_at.last());
        WorkLaw::EndWithinParent.ensure(is_within, || format!("{fence:?} is renewed beyond its parent"))?;
        self.lease_mut(fence)?.expires_at.set(at, expires_at);
        Ok(())
    }

    fn apply_ended(&mut self, fence: Fence, at: Tick, event: &Event) -> InvariantResult {
        let lease = self.lease(fence)?;
        WorkLaw::ChildrenEndFirst
            .ensure(lease.children.is_empty(), || format!("{fence:?} ends before {:?}", lease.children))?;
        let parent = lease.parent;
        match event {
            Event::Released { .. } => self.check_requested(fence, event)?,
            // An administrator revokes in its own name, the server in the name of the lease's principal.
            Event::Revoked { by, cause: RevocationCause::Revoked, .. } if *by == lease.principal => {
                let parent =
                    WorkLaw::EndsWithParent.require(parent, || format!("{fence:?} has no parent"))?;
                let younger = self.lease(parent)?.children.range(fence..).find(|child| **child != fence);
                WorkLaw::YoungestEndsFirst.ensure(younger.is_none(), || {
                    format!("{fence:?} ends before {younger:?}, which was derived from {parent:?} later")
                })?;
                self.ended_with_parent.insert(fence, parent);
            }
            _ => {}
        }
        self.lease_mut(fence)?.ended_at = Some(at);
        if let Some(parent) = parent {
            self.lease_mut(parent)?.children.remove(&fence);
        }
        Ok(())
    }

    fn apply_spent(&mut self, spent: &WorkEvent, event: &Event) -> InvariantResult {
        let WorkEvent::Spent { lease: fence, at, amount, purpose, key } = spent;
        let amount = amount.amounts();
        let law = WorkLaw::SpendWithinLease;
        law.ensure(self.leases.contains_key(fence), || format!("{fence:?} has no authority"))?;
        let mut ancestor = Some(*fence);
        while let Some(above) = ancestor {
            let lease = self.lease_mut(above)?;
            lease.spent_below = plus(lease.spent_below, amount);
            WorkLaw::SpentBelowWithinBudget
                .ensure(minus(lease.budget, lease.spent_below).is_some(), || {
                    format!("{:?} was spent below {above:?}, which had {:?}", lease.spent_below, lease.budget)
                })?;
            ancestor = lease.parent;
        }
        let lease = self.lease_mut(*fence)?;
        law.ensure(lease.is_active(*at), || format!("{fence:?} had ended at {at:?}"))?;
        let is_allowed = lease.scope.allows_purpose(purpose);
        law.ensure(is_allowed, || format!("{purpose:?} is outside of {:?} of {fence:?}", lease.scope))?;
        let remaining = minus(*lease.remaining.last(), amount);
        let remaining = law.require(remaining, || {
            format!("{amount:?} of {fence:?}, which had {:?}", lease.remaining.last())
        })?;
        lease.remaining.set(*at, remaining);
        lease.spent = plus(lease.spent, amount);
        let (purpose, key) = (purpose.clone(), *key);
        lease.spends.push(SpendModel { amount, purpose, key, remaining, is_acknowledged: false });
        self.check_requested(*fence, event)?;
        self.use_key(key, event)
    }

    /// The ledger has a request with this key.
    fn use_key(&mut self, key: Option<IdempotencyKey>, event: &Event) -> InvariantResult {
        let Some(IdempotencyKey { key, .. }) = key else { return Ok(()) };
        WorkLaw::OncePerKey.ensure(self.used_keys.insert(key), || format!("a second one: {event:?}"))?;
        let is_new = !self.rejected_keys.contains(&key);
        WorkLaw::RejectedChangesNothing.ensure(is_new, || format!("it was rejected before: {event:?}"))
    }

    fn check_requested(&self, subject: Fence, event: &Event) -> InvariantResult {
        let mut requests = self.requests.get(&subject).into_iter().flatten();
        let is_requested =
            requests.any(|command| self.is_authorized(command) && is_request_of(command, event));
        WorkLaw::HolderOnly.ensure(is_requested, || format!("no such request of the holder: {event:?}"))
    }

    /// Whether a request has the credential of the lease that it is about. The simulator has no forged tokens.
    fn is_authorized(&self, command: &Command) -> bool {
        let LeaseCredential::Holder { holder, principal } = credential_of(command) else { return true };
        let lease = self.leases.get(&subject_of(command));
        lease.is_some_and(|lease| lease.holder == *holder && lease.principal == *principal)
    }

    fn lease(&self, fence: Fence) -> Result<&WorkLeaseModel, Violation> {
        self.leases.get(&fence).ok_or_else(|| unknown_lease(fence))
    }

    fn lease_mut(&mut self, fence: Fence) -> Result<&mut WorkLeaseModel, Violation> {
        self.leases.get_mut(&fence).ok_or_else(|| unknown_lease(fence))
    }
}

impl WorkLeaseModel {
    fn is_active(&self, at: Tick) -> bool {
        self.ended_at.is_none() && at < *self.expires_at.last()
    }
}

fn unknown_lease(fence: Fence) -> Violation {
    Violation(format!("{fence:?} has no authority in the ledger"))
}

/// The lease that a request is about: fence 0, which no lease has, for a claim.
fn subject_of(command: &Command) -> Fence {
    match command {
        Command::Renew { lease, .. } | Command::Release { lease, .. } => *lease,
        Command::Work(work) => match &**work {
            WorkCommand::Claim(_) => Fence::default(),
            WorkCommand::Derive(derive) => derive.parent,
            WorkCommand::Spend(spend) => spend.lease,
        },
        other => panic!("not a request of a client: {other:?}"),
    }
}

fn credential_of(command: &Command) -> &LeaseCredential {
    match command {
        Command::Renew { credential, .. } | Command::Release { claim: credential, .. } => credential,
        Command::Work(work) => match &**work {
            WorkCommand::Claim(_) => &LeaseCredential::Token,
            WorkCommand::Derive(DeriveLease { credential, .. })
            | WorkCommand::Spend(SpendBudget { credential, .. }) => credential,
        },
        other => panic!("not a request of a client: {other:?}"),
    }
}

/// Whether `event` is what `command` requests of its lease.
fn is_request_of(command: &Command, event: &Event) -> bool {
    match (command, event) {
        (Command::Renew { ttl: requested, .. }, Event::Renewed { ttl, .. }) => {
            requested.is_none_or(|requested| requested == *ttl)
        }
        (Command::Release { reason: requested, .. }, Event::Released { reason, .. }) => requested == reason,
        (Command::Work(work), Event::Issued(issued)) => match &**work {
            WorkCommand::Claim(claim) => is_grant_of(claim, issued),
            WorkCommand::Derive(derive) => is_grant_of(&derive.child, issued),
            WorkCommand::Spend(_) => false,
        },
        (Command::Work(work), Event::Work(spent)) => {
            let WorkEvent::Spent { amount, purpose, key, .. } = &**spent;
            matches!(&**work, WorkCommand::Spend(spend)
                if (&spend.amount, &spend.purpose, &spend.key) == (amount, purpose, key))
        }
        _ => false,
    }
}

fn is_grant_of(claim: &ClaimWork, issued: &IssuedLease) -> bool {
    let authority = issued.authority.as_deref();
    let has_authority = authority.is_some_and(|authority| {
        authority.budget == claim.budget && ScopeModel::new(&authority.scope) == ScopeModel::new(&claim.scope)
    });
    let has_names = issued.holder == claim.holder && issued.principal == claim.principal;
    has_authority && has_names && (issued.terms.ttl, issued.key) == (claim.ttl, claim.key)
}

/// Work ids, tools and namespaces; without names, everything.
#[derive(Debug, PartialEq, Eq)]
struct ScopeModel(Option<[BTreeSet<String>; 3]>);

const WORK_IDS: usize = 0;
const TOOLS: usize = 1;
const NAMESPACES: usize = 2;

impl ScopeModel {
    fn new(scope: &LeaseScope) -> Self {
        Self(scope.names().map(|names| names.map(|names| names.into_iter().map(str::to_owned).collect())))
    }

    /// A namespace allows itself and what is below it. No scope allows a path with `..`.
    fn allows(&self, kind: usize, name: &str) -> bool {
        let Self(Some(names)) = self else { return !name.split('/').any(|part| part == "..") };
        let below = |own: &String| name.strip_prefix(own.as_str()).is_some_and(|rest| rest.starts_with('/'));
        let is_named = names[kind].iter().any(|own| own == name || kind == NAMESPACES && below(own));
        is_named && !name.split('/').any(|part| part == "..")
    }

    fn allows_purpose(&self, purpose: &Purpose) -> bool {
        let named = [(WORK_IDS, &purpose.work_id), (TOOLS, &purpose.tool), (NAMESPACES, &purpose.namespace)];
        named.into_iter().all(|(kind, name)| name.as_ref().is_none_or(|name| self.allows(kind, name)))
    }

    fn is_within(&self, parent: &Self) -> bool {
        match (&self.0, &parent.0) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(names), Some(_)) => {
                (0..names.len()).all(|kind| names[kind].iter().all(|name| parent.allows(kind, name)))
            }
        }
    }
}

/// A value and when it changed.
#[derive(Debug)]
struct History<T>(Vec<(Tick, T)>);

impl<T> History<T> {
    fn new(at: Tick, value: T) -> Self {
        Self(vec![(at, value)])
    }

    fn set(&mut self, at: Tick, value: T) {
        self.0.push((at, value));
    }

    fn last(&self) -> &T {
        &self.0.last().expect("a history has a first value").1
    }

    /// What it was at any moment of a tick.
    fn during(&self, tick: Tick) -> impl Iterator<Item = &T> {
        let first = self.0.partition_point(|(at, _)| *at < tick).saturating_sub(1);
        self.0[first..].iter().take_while(move |(at, _)| *at <= tick).map(|(_, value)| value)
    }
}

fn plus(one: Amounts, other: Amounts) -> Amounts {
    std::array::from_fn(|index| one[index].saturating_add(other[index]))
}

/// Nothing if any amount is not enough.
fn minus(has: Amounts, amount: Amounts) -> Option<Amounts> {
    let is_enough = has.iter().zip(&amount).all(|(has, amount)| has >= amount);
    is_enough.then(|| std::array::from_fn(|index| has[index] - amount[index]))
}
