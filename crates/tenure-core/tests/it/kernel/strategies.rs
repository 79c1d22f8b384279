//! Steps for the kernel in which much meets: few names, few modes, and times at the edges of leases.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tenure_core::kernel::{
    Acquire, ChangeMode, Command, ContentionPolicy, Fence, Holder, IdempotencyKey, KernelState,
    LeaseCredential, LeaseMode, LeaseRequest, Limits, Nonce, Principal, RequestDigest, Resource,
    RevocationCause, Tick, TickDuration, Ticket, WaitEnd,
};
use tenure_core::lease::ReleaseReason;

/// What was found is tried again on the next run; the file is not part of the repository.
pub fn config(cases: u32) -> ProptestConfig {
    let file = FileFailurePersistence::Direct("proptest-regressions/kernel.txt");
    let usual = ProptestConfig::default();
    // PROPTEST_CASES asks for more.
    let cases = usual.cases.max(cases);
    ProptestConfig { cases, failure_persistence: Some(Box::new(file)), ..usual }
}

/// Time passes, then something is asked.
#[derive(Debug, Clone)]
pub struct KernelStep {
    pause: Pause,
    request: KernelRequest,
}

#[derive(Debug, Clone, Copy)]
enum Pause {
    Ticks(u64),
    /// To the next end of a lease or wait, and by this much past it or short of it.
    Deadline(i64),
    /// A stamp from before the newest event.
    Back(u64),
}

/// A command whose leases and tickets are counted back from the newest, so that most of them are there.
#[derive(Debug, Clone)]
enum KernelRequest {
    Acquire(Acquire),
    /// An acquire from before, word for word.
    Again(usize),
    Renew(u64, Option<LeaseCredential>, Option<TickDuration>),
    Release(u64, Option<LeaseCredential>),
    Transfer(u64, Holder, Principal),
    Change(u64, LeaseMode, bool),
    Revoke(u64, RevocationCause),
    Reclaim(Holder),
    Withdraw(u64, Principal, WaitEnd),
    Expire(usize),
}

/// Turns steps into commands, as the state and what was asked before have it.
#[derive(Debug, Default)]
pub struct CommandGenerator {
    acquires: Vec<Acquire>,
    now: u64,
}

impl CommandGenerator {
    pub fn next_command(&mut self, step: &KernelStep, state: &KernelState) -> (Command, Tick) {
        let newest = self.now.max(state.now().0);
        let now = match step.pause {
            Pause::Ticks(ticks) => newest.saturating_add(ticks),
            Pause::Back(ticks) => newest.saturating_sub(ticks),
            Pause::Deadline(by) => {
                let deadline = state.next_deadline().map_or(newest, |tick| tick.0);
                newest.max(deadline.saturating_add_signed(by))
            }
        };
        self.now = newest.max(now);
        (self.command(&step.request, state), Tick(now))
    }

    fn command(&mut self, ask: &KernelRequest, state: &KernelState) -> Command {
        let lease = |back: &u64| Fence((state.last_fence().0 + 1).saturating_sub(*back));
        let nonce = Nonce([3; 16]);
        let or_token = |claim: &Option<LeaseCredential>| claim.clone().unwrap_or(LeaseCredential::Token);
        match ask {
            KernelRequest::Acquire(acquire) => {
                self.acquires.push(acquire.clone());
                Command::Acquire(acquire.clone())
            }
            KernelRequest::Again(back) => {
                let at = self.acquires.len().saturating_sub(1 + back % 4);
                self.acquires
                    .get(at)
                    .map_or(Command::Expire { max_ended: 1 }, |acquire| Command::Acquire(acquire.clone()))
            }
            KernelRequest::Renew(back, claim, ttl) => {
                Command::Renew { lease: lease(back), credential: or_token(claim), ttl: *ttl }
            }
            KernelRequest::Release(back, claim) => {
                let reason = ReleaseReason::Voluntary;
                Command::Release { lease: lease(back), claim: or_token(claim), reason }
            }
            KernelRequest::Transfer(back, to, principal) => {
                let (to, principal) = (to.clone(), principal.clone());
                Command::Transfer { lease: lease(back), claim: LeaseCredential::Token, to, principal, nonce }
            }
            KernelRequest::Change(back, mode, up) => {
                let change =
                    ChangeMode { lease: lease(back), credential: LeaseCredential::Token, mode: *mode, nonce };
                if *up { Command::Upgrade(change) } else { Command::Downgrade(change) }
            }
            KernelRequest::Revoke(back, cause) => {
                let (by, detail) = (principal(9), "because".into());
                Command::Revoke { lease: lease(back), cause: *cause, by, detail }
            }
            KernelRequest::Reclaim(holder) => {
                Command::Reclaim { holder: holder.clone(), by: principal(9), detail: "gone".into() }
            }
            KernelRequest::Withdraw(back, principal, end) => {
                let newest = newest_ticket(state).0;
                let ticket = Ticket(newest.saturating_add(1).saturating_sub(*back));
                Command::Withdraw { ticket, principal: principal.clone(), end: *end }
            }
            KernelRequest::Expire(max_ended) => Command::Expire { max_ended: *max_ended },
        }
    }
}

fn newest_ticket(state: &KernelState) -> Ticket {
    let queues = (0..RESOURCES).flat_map(|number| state.queue_of(&resource(number)).last());
    queues.map(|view| view.ticket).max().unwrap_or_default()
}

const RESOURCES: u8 = 4;

pub fn resource(number: u8) -> Resource {
    Resource::parse(["a", "FILE:x/", "FILE:x/y", "b"][usize::from(number % RESOURCES)]).expect("a resource")
}

pub fn holder(number: u8) -> Holder {
    Holder::parse(&format!("holder-{number}")).expect("a holder")
}

pub fn principal(number: u8) -> Principal {
    Principal::parse(&format!("principal-{number}")).expect("a principal")
}

/// A session of sixty steps on average: what is permitted, and what is asked. A failing one shrinks to few.
pub fn limits_and_steps() -> impl Strategy<Value = (Limits, Vec<KernelStep>)> {
    (limits(), prop::collection::vec(step(), 1..=120))
}

/// A few steps, to go on from any state.
pub fn steps(max: usize) -> impl Strategy<Value = Vec<KernelStep>> {
    prop::collection::vec(step(), 1..=max)
}

fn limits() -> impl Strategy<Value = Limits> {
    let tight = Limits {
        max_waiters_per_resource: 2,
        max_waiters_per_principal: 2,
        max_leases_per_principal: Some(4),
        ..Limits::default()
    };
    prop_oneof![3 => Just(Limits::default()), 1 => Just(tight)]
}

fn step() -> impl Strategy<Value = KernelStep> {
    (pause(), request()).prop_map(|(pause, ask)| KernelStep { pause, request: ask })
}

fn pause() -> impl Strategy<Value = Pause> {
    const DAY: u64 = 86_400_000_000;
    prop_oneof![
        16 => Just(Pause::Ticks(0)),
        2 => Just(Pause::Ticks(1)),
        3 => (-1..=1_i64).prop_map(Pause::Deadline),
        3 => (0..TTLS.len(), 0..3_u64).prop_map(|(ttl, by)| Pause::Ticks(TTLS[ttl].0 - 1 + by)),
        1 => prop::sample::select(vec![60_000_000, 600_000_000, DAY]).prop_map(Pause::Ticks),
        1 => prop::sample::select(vec![1, 1_000_000, DAY]).prop_map(Pause::Back),
    ]
}

const TTLS: [TickDuration; 3] =
    [TickDuration::from_secs(2), TickDuration::from_secs(5), TickDuration::from_secs(60)];

fn request() -> impl Strategy<Value = KernelRequest> {
    prop_oneof![
        20 => acquire().prop_map(KernelRequest::Acquire),
        4 => (0..4_usize).prop_map(KernelRequest::Again),
        5 => (back(), credential(), prop::option::of(ttl())).prop_map(|(lease, claim, ttl)| KernelRequest::Renew(lease, claim, ttl)),
        6 => (back(), credential()).prop_map(|(lease, claim)| KernelRequest::Release(lease, claim)),
        3 => (back(), holder_and_principal()).prop_map(|(lease, (to, principal))| KernelRequest::Transfer(lease, to, principal)),
        4 => (back(), mode(), any::<bool>()).prop_map(|(lease, mode, up)| KernelRequest::Change(lease, mode, up)),
        1 => (back(), cause()).prop_map(|(lease, cause)| KernelRequest::Revoke(lease, cause)),
        1 => holder_and_principal().prop_map(|(holder, _)| KernelRequest::Reclaim(holder)),
        2 => (0..4_u64, holder_and_principal(), wait_end()).prop_map(|(back, (_, principal), end)| KernelRequest::Withdraw(back, principal, end)),
        2 => prop::sample::select(vec![0, 1, 1_000]).prop_map(KernelRequest::Expire),
    ]
}

/// 0 is one that was never given out.
fn back() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0), 20 => 1..6_u64, 2 => 6..30_u64]
}

fn acquire() -> impl Strategy<Value = Acquire> {
    let key = prop_oneof![2 => Just(None), 1 => (0..2_u8).prop_map(Some)];
    (
        holder_and_principal(),
        prop_oneof![3 => requests_without_alternatives(), 2 => requests_with_alternatives()],
        contention_policy(),
        key,
    )
        .prop_map(|((holder, principal), wants, contention, key)| {
            let body = RequestDigest::of(format!("{holder} {wants:?} {contention:?}").as_bytes());
            let key = key.map(|number| IdempotencyKey { key: RequestDigest([number; 16]), body });
            Acquire { principal, holder, requests: wants, contention_policy: contention, key }
        })
}

/// Each on a resource of its own.
fn requests_without_alternatives() -> BoxedStrategy<Vec<LeaseRequest>> {
    let count = prop_oneof![3 => Just(1_usize), 2 => Just(2), 1 => Just(3)];
    let wants = |(count, first, modes, ttl): (usize, u8, [LeaseMode; 3], TickDuration)| {
        let wants = (first..).map(resource).zip(modes);
        let wants = wants.map(|(resource, mode)| LeaseRequest::new(resource, mode, ttl, Nonce([1; 16])));
        wants.take(count).collect()
    };
    (count, 0..RESOURCES, [mode(), mode(), mode()], ttl()).prop_map(wants).boxed()
}

/// Any one of several. Some requests ask for more than there can ever be.
fn requests_with_alternatives() -> BoxedStrategy<Vec<LeaseRequest>> {
    let names = Just((0..RESOURCES).collect::<Vec<_>>()).prop_shuffle();
    let request = (names, 1..=usize::from(RESOURCES), mode(), ttl()).prop_map(|(names, count, mode, ttl)| {
        let mut names = names.into_iter().take(count).map(resource);
        let first = names.next().expect("at least one");
        LeaseRequest::new(first, mode, ttl, Nonce([2; 16])).with_alternatives(names)
    });
    let request = request.boxed();
    let count = prop_oneof![6 => Just(1..=1_usize), 3 => Just(2..=2), 1 => Just(3..=3)];
    count.prop_flat_map(move |count| prop::collection::vec(request.clone(), count)).boxed()
}

/// Mostly a holder with the principal that it always has.
fn holder_and_principal() -> impl Strategy<Value = (Holder, Principal)> {
    let own = (0..5_u8).prop_map(|number| (number, number % 2));
    prop_oneof![12 => own, 1 => (0..5_u8, 0..3_u8)].prop_map(|(name, owner)| (holder(name), principal(owner)))
}

fn credential() -> impl Strategy<Value = Option<LeaseCredential>> {
    let named = holder_and_principal()
        .prop_map(|(holder, principal)| Some(LeaseCredential::Holder { holder, principal }));
    prop_oneof![2 => Just(None), 1 => named]
}

fn ttl() -> impl Strategy<Value = TickDuration> {
    prop::sample::select(&TTLS[..])
}

pub fn mode() -> impl Strategy<Value = LeaseMode> {
    prop_oneof![6 => Just(LeaseMode::Exclusive), 8 => Just(LeaseMode::Shared), 3 => prop::sample::select(&LeaseMode::ALL[..])]
}

pub fn cause() -> impl Strategy<Value = RevocationCause> {
    prop::sample::select(vec![
        RevocationCause::Revoked,
        RevocationCause::Reclaimed,
        RevocationCause::Wiped,
        RevocationCause::Disconnected,
        RevocationCause::Transferred,
        RevocationCause::Died,
    ])
}

pub fn wait_end() -> impl Strategy<Value = WaitEnd> {
    prop::sample::select(vec![WaitEnd::TimedOut, WaitEnd::Withdrawn, WaitEnd::Gone])
}

fn contention_policy() -> impl Strategy<Value = ContentionPolicy> {
    let patience = prop::sample::select(vec![0, 1, 1_000_000, 4_999_999, 5_000_000, 100_000_000]);
    prop_oneof![
        3 => Just(ContentionPolicy::Deny),
        2 => Just(ContentionPolicy::RefreshOwn),
        6 => patience.prop_map(|ticks| ContentionPolicy::Queue { wait_timeout: TickDuration(ticks) }),
    ]
}
