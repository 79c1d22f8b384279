//! Steps for the kernel in which much meets: few names, few modes, and times at the edges of leases.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tenure_core::kernel::{
    Acquire, Cause, ChangeMode, Claim, Command, Contention, Digest, Fence, Holder, Limits, Mode, Nonce,
    Principal, RequestKey, Resource, Span, State, Tick, Ticket, WaitEnd, Want,
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
pub struct Step {
    pause: Pause,
    ask: Ask,
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
enum Ask {
    Acquire(Acquire),
    /// An acquire from before, word for word.
    Again(usize),
    Renew(u64, Option<Claim>, Option<Span>),
    Release(u64, Option<Claim>),
    Transfer(u64, Holder, Principal),
    Change(u64, Mode, bool),
    Revoke(u64, Cause),
    Reclaim(Holder),
    Withdraw(u64, Principal, WaitEnd),
    Expire(usize),
}

/// Turns steps into commands, as the state and what was asked before have it.
#[derive(Debug, Default)]
pub struct Script {
    acquires: Vec<Acquire>,
    now: u64,
}

impl Script {
    pub fn next(&mut self, step: &Step, state: &State) -> (Command, Tick) {
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
        (self.command(&step.ask, state), Tick(now))
    }

    fn command(&mut self, ask: &Ask, state: &State) -> Command {
        let lease = |back: &u64| Fence((state.last_fence().0 + 1).saturating_sub(*back));
        let nonce = Nonce([3; 16]);
        let or_token = |claim: &Option<Claim>| claim.clone().unwrap_or(Claim::Token);
        match ask {
            Ask::Acquire(acquire) => {
                self.acquires.push(acquire.clone());
                Command::Acquire(acquire.clone())
            }
            Ask::Again(back) => {
                let at = self.acquires.len().saturating_sub(1 + back % 4);
                self.acquires
                    .get(at)
                    .map_or(Command::Expire { most: 1 }, |acquire| Command::Acquire(acquire.clone()))
            }
            Ask::Renew(back, claim, ttl) => {
                Command::Renew { lease: lease(back), claim: or_token(claim), ttl: *ttl }
            }
            Ask::Release(back, claim) => {
                let reason = ReleaseReason::Voluntary;
                Command::Release { lease: lease(back), claim: or_token(claim), reason }
            }
            Ask::Transfer(back, to, principal) => {
                let (to, principal) = (to.clone(), principal.clone());
                Command::Transfer { lease: lease(back), claim: Claim::Token, to, principal, nonce }
            }
            Ask::Change(back, mode, up) => {
                let change = ChangeMode { lease: lease(back), claim: Claim::Token, mode: *mode, nonce };
                if *up { Command::Upgrade(change) } else { Command::Downgrade(change) }
            }
            Ask::Revoke(back, cause) => {
                let (by, detail) = (principal(9), "because".into());
                Command::Revoke { lease: lease(back), cause: *cause, by, detail }
            }
            Ask::Reclaim(holder) => {
                Command::Reclaim { holder: holder.clone(), by: principal(9), detail: "gone".into() }
            }
            Ask::Withdraw(back, principal, end) => {
                let newest = newest_ticket(state).0;
                let ticket = Ticket(newest.saturating_add(1).saturating_sub(*back));
                Command::Withdraw { ticket, principal: principal.clone(), end: *end }
            }
            Ask::Expire(most) => Command::Expire { most: *most },
        }
    }
}

fn newest_ticket(state: &State) -> Ticket {
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
pub fn session() -> impl Strategy<Value = (Limits, Vec<Step>)> {
    (limits(), prop::collection::vec(step(), 1..=120))
}

/// A few steps, to go on from any state.
pub fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..=most)
}

fn limits() -> impl Strategy<Value = Limits> {
    let tight = Limits {
        waiters_per_resource: 2,
        waits_per_principal: 2,
        leases_per_principal: Some(4),
        ..Limits::default()
    };
    prop_oneof![3 => Just(Limits::default()), 1 => Just(tight)]
}

fn step() -> impl Strategy<Value = Step> {
    (pause(), ask()).prop_map(|(pause, ask)| Step { pause, ask })
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

const TTLS: [Span; 3] = [Span::from_secs(2), Span::from_secs(5), Span::from_secs(60)];

fn ask() -> impl Strategy<Value = Ask> {
    prop_oneof![
        20 => acquire().prop_map(Ask::Acquire),
        4 => (0..4_usize).prop_map(Ask::Again),
        5 => (back(), claim(), prop::option::of(ttl())).prop_map(|(lease, claim, ttl)| Ask::Renew(lease, claim, ttl)),
        6 => (back(), claim()).prop_map(|(lease, claim)| Ask::Release(lease, claim)),
        3 => (back(), who()).prop_map(|(lease, (to, principal))| Ask::Transfer(lease, to, principal)),
        4 => (back(), mode(), any::<bool>()).prop_map(|(lease, mode, up)| Ask::Change(lease, mode, up)),
        1 => (back(), cause()).prop_map(|(lease, cause)| Ask::Revoke(lease, cause)),
        1 => who().prop_map(|(holder, _)| Ask::Reclaim(holder)),
        2 => (0..4_u64, who(), wait_end()).prop_map(|(back, (_, principal), end)| Ask::Withdraw(back, principal, end)),
        2 => prop::sample::select(vec![0, 1, 1_000]).prop_map(Ask::Expire),
    ]
}

/// 0 is one that was never given out.
fn back() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0), 20 => 1..6_u64, 2 => 6..30_u64]
}

fn acquire() -> impl Strategy<Value = Acquire> {
    let key = prop_oneof![2 => Just(None), 1 => (0..2_u8).prop_map(Some)];
    (who(), prop_oneof![3 => wants_of_one(), 2 => wants_of_any()], contention(), key).prop_map(
        |((holder, principal), wants, contention, key)| {
            let body = Digest::of(format!("{holder} {wants:?} {contention:?}").as_bytes());
            let key = key.map(|number| RequestKey { key: Digest([number; 16]), body });
            Acquire { principal, holder, wants, contention, key }
        },
    )
}

/// Each on a resource of its own.
fn wants_of_one() -> BoxedStrategy<Vec<Want>> {
    let count = prop_oneof![3 => Just(1_usize), 2 => Just(2), 1 => Just(3)];
    let wants = |(count, first, modes, ttl): (usize, u8, [Mode; 3], Span)| {
        let wants = (first..).map(resource).zip(modes);
        let wants = wants.map(|(resource, mode)| Want::new(resource, mode, ttl, Nonce([1; 16])));
        wants.take(count).collect()
    };
    (count, 0..RESOURCES, [mode(), mode(), mode()], ttl()).prop_map(wants).boxed()
}

/// Any one of several. Some requests ask for more than there can ever be.
fn wants_of_any() -> BoxedStrategy<Vec<Want>> {
    let names = Just((0..RESOURCES).collect::<Vec<_>>()).prop_shuffle();
    let want = (names, 1..=usize::from(RESOURCES), mode(), ttl()).prop_map(|(names, count, mode, ttl)| {
        let mut names = names.into_iter().take(count).map(resource);
        let first = names.next().expect("at least one");
        Want::new(first, mode, ttl, Nonce([2; 16])).or(names)
    });
    let want = want.boxed();
    let count = prop_oneof![6 => Just(1..=1_usize), 3 => Just(2..=2), 1 => Just(3..=3)];
    count.prop_flat_map(move |count| prop::collection::vec(want.clone(), count)).boxed()
}

/// Mostly a holder with the principal that it always has.
fn who() -> impl Strategy<Value = (Holder, Principal)> {
    let own = (0..5_u8).prop_map(|number| (number, number % 2));
    prop_oneof![12 => own, 1 => (0..5_u8, 0..3_u8)].prop_map(|(name, owner)| (holder(name), principal(owner)))
}

fn claim() -> impl Strategy<Value = Option<Claim>> {
    let named = who().prop_map(|(holder, principal)| Some(Claim::Holder { holder, principal }));
    prop_oneof![2 => Just(None), 1 => named]
}

fn ttl() -> impl Strategy<Value = Span> {
    prop::sample::select(&TTLS[..])
}

pub fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![6 => Just(Mode::Exclusive), 8 => Just(Mode::Shared), 3 => prop::sample::select(&Mode::ALL[..])]
}

pub fn cause() -> impl Strategy<Value = Cause> {
    prop::sample::select(vec![
        Cause::Revoked,
        Cause::Reclaimed,
        Cause::Wiped,
        Cause::Disconnected,
        Cause::Transferred,
        Cause::Died,
    ])
}

pub fn wait_end() -> impl Strategy<Value = WaitEnd> {
    prop::sample::select(vec![WaitEnd::TimedOut, WaitEnd::Withdrawn, WaitEnd::Gone])
}

fn contention() -> impl Strategy<Value = Contention> {
    let patience = prop::sample::select(vec![0, 1, 1_000_000, 4_999_999, 5_000_000, 100_000_000]);
    prop_oneof![
        3 => Just(Contention::Refuse),
        2 => Just(Contention::RefreshOwn),
        6 => patience.prop_map(|ticks| Contention::Queue { patience: Span(ticks) }),
    ]
}
