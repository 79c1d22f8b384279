//! Arbitrary requests of callers, workers and plain holders: whatever is asked, sessions and leases never disagree.

use proptest::prelude::*;
use tenure_core::kernel::{
    AcceptIntent, Acquire, AdmissionLevel, ChangeMode, Command, CommandOutcome, ContentionPolicy, Decision,
    Fence, Holder, IntentCommand, IntentOutcome, IntentSessionEnd, IntentSessionState, KeepAliveOutcome,
    KernelState, LeaseCredential, LeaseMode, LeaseRequest, Nonce, Rejection, RevocationCause,
    TakeIntentSession, Tick, TickDuration, decide, decode, encode, leader_lock_resource,
    orchestrator_principal,
};
use tenure_core::lease::ReleaseReason;

use crate::checkpoint::round_trip::restore;
use crate::intents::fixture::{accept_channel, accept_recording, holder, plain_acquire, principal};
use crate::intents::model::IntentSessionModel;
use crate::kernel::codec::{STAMP, TAG};
use crate::kernel::strategies::config;

const SECOND: u64 = 1_000_000;

/// Time passes, then something is asked. Sessions, guards and leases are counted back from the newest.
#[derive(Debug, Clone)]
struct IntentStep {
    pause: Pause,
    ask: IntentRequest,
}

#[derive(Debug, Clone, Copy)]
enum Pause {
    Ticks(u64),
    /// To the next deadline, and by this much past it or short of it.
    Deadline(i64),
}

#[derive(Debug, Clone)]
enum IntentRequest {
    Accept {
        target: u8,
        key: u8,
        previous: Option<u8>,
        lease: Option<u64>,
        wait_timeout: u64,
    },
    Stop(usize),
    LeaderLock {
        worker: u8,
        ttl: u64,
    },
    Take {
        session: usize,
        guard: usize,
        slots: u32,
        ttl: u64,
    },
    Run(usize, usize),
    KeepAlive {
        guard: usize,
        ttl: u64,
        sessions: Vec<usize>,
    },
    Finish(usize, usize, IntentSessionEnd),
    Wipe(usize, Vec<usize>),
    Plain {
        client: u8,
        what: u8,
        can_wait: bool,
    },
    /// Somebody acts on a lease: renews, releases, revokes, hands over, changes its mode.
    Lease(u8, u64),
    Reclaim(usize),
    Admission(AdmissionLevel),
    Sweep(usize),
    /// The state becomes bytes and comes back.
    Checkpoint,
}

fn step() -> impl Strategy<Value = IntentStep> {
    let pause = prop_oneof![
        4 => Just(Pause::Ticks(0)),
        3 => (0..4 * SECOND).prop_map(Pause::Ticks),
        2 => (-1..3_i64).prop_map(Pause::Deadline),
        1 => (0..40 * SECOND).prop_map(Pause::Ticks),
    ];
    let (session, guard) = (|| 0..5_usize, || prop_oneof![6 => Just(0_usize), 1 => 1..3_usize]);
    let ttl = || (5..12_u64).prop_map(|seconds| seconds * SECOND);
    let several = || prop::collection::vec(0..5_usize, 0..6);
    let end = prop::sample::select(vec![
        IntentSessionEnd::Completed,
        IntentSessionEnd::Failed,
        IntentSessionEnd::Stopped,
    ]);
    let accept = (0..4_u8, 0..4_u8, prop::option::of(0..4_u8), prop::option::weighted(0.3, ttl()), 1..30_u64)
        .prop_map(|(target, key, previous, lease, patience)| IntentRequest::Accept {
            target,
            key,
            previous,
            lease,
            wait_timeout: patience * SECOND,
        });
    let level = prop::sample::select(vec![
        AdmissionLevel::Everything,
        AdmissionLevel::Everything,
        AdmissionLevel::Renewals,
        AdmissionLevel::Nothing,
    ]);
    let ask = prop_oneof![
        8 => accept,
        3 => session().prop_map(IntentRequest::Stop),
        4 => (0..2_u8, ttl()).prop_map(|(worker, ttl)| IntentRequest::LeaderLock { worker, ttl }),
        10 => (session(), guard(), 0..4_u32, ttl())
            .prop_map(|(session, guard, slots, ttl)| IntentRequest::Take { session, guard, slots, ttl }),
        5 => (session(), guard()).prop_map(|(session, guard)| IntentRequest::Run(session, guard)),
        8 => (guard(), ttl(), several()).prop_map(|(guard, ttl, sessions)| IntentRequest::KeepAlive { guard, ttl, sessions }),
        3 => (session(), guard(), end).prop_map(|(session, guard, end)| IntentRequest::Finish(session, guard, end)),
        2 => (guard(), several()).prop_map(|(guard, sessions)| IntentRequest::Wipe(guard, sessions)),
        5 => (0..4_u8, 0..6_u8, any::<bool>())
            .prop_map(|(client, what, can_wait)| IntentRequest::Plain { client, what, can_wait }),
        3 => (0..6_u8, 0..6_u64).prop_map(|(what, back)| IntentRequest::Lease(what, back)),
        1 => session().prop_map(IntentRequest::Reclaim),
        1 => level.prop_map(IntentRequest::Admission),
        3 => (1..5_usize).prop_map(IntentRequest::Sweep),
        1 => Just(IntentRequest::Checkpoint),
    ];
    (pause, ask).prop_map(|(pause, ask)| IntentStep { pause, ask })
}

#[derive(Default)]
struct IntentSessionWorld {
    state: KernelState,
    replayed: KernelState,
    model: IntentSessionModel,
    now: u64,
    /// Every session's name, and every guard's fence, in the order of their beginnings.
    sessions: Vec<Holder>,
    guards: Vec<Fence>,
    accepts: u64,
}

impl IntentSessionWorld {
    fn play(&mut self, step: &IntentStep) {
        self.now = match step.pause {
            Pause::Ticks(ticks) => self.now + ticks,
            Pause::Deadline(by) => {
                let deadline = self.state.next_deadline().map_or(self.now, |tick| tick.0);
                self.now.max(deadline.saturating_add_signed(by))
            }
        };
        match &step.ask {
            IntentRequest::Admission(level) => self.state.set_admission_level(*level),
            IntentRequest::Checkpoint => {
                let restored = restore(&self.state);
                let level = self.state.admission_level();
                self.state = restored;
                self.state.set_admission_level(level);
            }
            ask => {
                let command = self.command(ask);
                self.decide_and_apply(&command);
            }
        }
    }

    fn decide_and_apply(&mut self, command: &Command) {
        let now = Tick(self.now).max(self.state.now());
        let decision = decide(&self.state, command, now);
        assert!(decision.events.len() < 100, "a decision grows: {command:?}");
        self.check_at_decision(command, &decision, now);
        for event in &decision.events {
            self.state.apply(event).unwrap_or_else(|error| panic!("{error}: {event:?} of {command:?}"));
            let read = decode(&encode(event, STAMP), TAG).expect("it is read").expect("it is the kernel's");
            self.replayed.apply(&read).expect("what was stored follows");
            self.model.record(event);
        }
        self.state.check_invariants().unwrap_or_else(|wrong| panic!("{wrong} after {command:?}"));
        self.model.check();
        self.check_after_decision(command, &decision);
        match &decision.outcome {
            CommandOutcome::Granted { leases } if matches!(command, Command::Acquire(acquire) if acquire.requests[0].resource == leader_lock_resource()) =>
            {
                self.guards.extend(
                    leases.iter().filter(|fence| !self.guards.contains(fence)).copied().collect::<Vec<_>>(),
                );
            }
            CommandOutcome::Intent(answer) => {
                if let IntentOutcome::Accepted { session, is_new: true } = &**answer {
                    self.sessions.push(session.clone());
                }
            }
            _ => {}
        }
    }

    /// What an answer says of the moment in which it was given.
    fn check_at_decision(&self, command: &Command, decision: &Decision, now: Tick) {
        let Command::Intent(command) = command else { return };
        let by = match &**command {
            IntentCommand::Take(take) => Some(take.leader),
            IntentCommand::Run { leader: guard, .. }
            | IntentCommand::KeepAlive { guard, .. }
            | IntentCommand::Finish { guard, .. }
            | IntentCommand::Wipe { guard, .. } => Some(*guard),
            IntentCommand::Accept(_) | IntentCommand::Stop { .. } => None,
        };
        if let Some(fence) = by.filter(|fence| !self.model.is_leader_fence(*fence, now)) {
            let lost = decision.outcome == CommandOutcome::Rejected(Rejection::LeaderLost);
            assert!(lost && decision.events.is_empty(), "{fence:?} guards nothing: {decision:?}");
        }
        let CommandOutcome::Intent(answer) = &decision.outcome else { return };
        if let IntentOutcome::Accepted { session, is_new } = &**answer {
            let is_active = |id: &str| self.model.is_active(id, now);
            assert!(*is_new || is_active(session.as_str()), "{session} was over: {command:?}");
        }
    }

    /// What an answer says of what was done.
    fn check_after_decision(&self, command: &Command, decision: &Decision) {
        let (Command::Intent(command), CommandOutcome::Intent(answer)) = (command, &decision.outcome) else {
            return;
        };
        match (&**command, &**answer) {
            (IntentCommand::Take(take), IntentOutcome::Taken { until, leases, .. }) => {
                let session = take.session.as_str();
                assert_eq!(self.model.earliest_expiry(session), Some(*until));
                assert!(leases.iter().all(|fence| self.model.leases[fence].holder == session));
                assert_eq!(self.model.sessions[session].leader, Some(take.leader));
            }
            (
                IntentCommand::KeepAlive { guard, sessions, .. },
                IntentOutcome::KeptAlive { until, sessions: kept },
            ) => {
                assert_eq!(self.model.leases[guard].expires_at, *until);
                assert_eq!(sessions.len(), kept.len());
                for (session, kept) in sessions.iter().zip(kept) {
                    let own =
                        self.model.sessions.get(session.as_str()).filter(|one| {
                            one.state != IntentSessionState::Ended && one.leader == Some(*guard)
                        });
                    match kept {
                        KeepAliveOutcome::Active { until, state } => {
                            assert_eq!(own.map(|own| own.state), Some(*state));
                            assert_eq!(self.model.earliest_expiry(session.as_str()), Some(*until));
                        }
                        KeepAliveOutcome::Lost => assert!(own.is_none(), "{session} is said to be lost"),
                    }
                }
            }
            (
                IntentCommand::Run { session, .. }
                | IntentCommand::Finish { session, .. }
                | IntentCommand::Stop { session, .. }
                | IntentCommand::Take(TakeIntentSession { session, .. }),
                IntentOutcome::Current { state, end },
            ) => {
                let kernel = self.state.intent_session(session).expect("known");
                assert_eq!((kernel.state, kernel.end), (*state, *end));
            }
            _ => {}
        }
    }

    fn session(&self, back: usize) -> Holder {
        let at = self.sessions.len().checked_sub(1 + back);
        at.map_or_else(|| holder("nobody"), |at| self.sessions[at].clone())
    }

    fn leader_fence(&self, back: usize) -> Fence {
        self.guards.len().checked_sub(1 + back).map_or(Fence(0), |at| self.guards[at])
    }

    fn command(&mut self, ask: &IntentRequest) -> Command {
        let several = |world: &IntentSessionWorld, backs: &[usize]| {
            backs.iter().map(|back| world.session(*back)).collect()
        };
        let intent = match ask {
            IntentRequest::Accept { target, key, previous, lease, wait_timeout: patience } => {
                self.accepts += 1;
                IntentCommand::Accept(self.accept(*target, *key, *previous, *lease, *patience))
            }
            IntentRequest::Stop(session) => {
                IntentCommand::Stop { session: self.session(*session), by: principal("token:a") }
            }
            IntentRequest::Take { session, guard, slots, ttl } => IntentCommand::Take(TakeIntentSession {
                session: self.session(*session),
                leader: self.leader_fence(*guard),
                slots: *slots,
                ttl: TickDuration(*ttl),
                nonces: [Nonce([1; 16]), Nonce([2; 16])],
            }),
            IntentRequest::Run(session, guard) => IntentCommand::Run {
                session: self.session(*session),
                leader: self.leader_fence(*guard),
                process: "pid 1".into(),
            },
            IntentRequest::KeepAlive { guard, ttl, sessions } => IntentCommand::KeepAlive {
                guard: self.leader_fence(*guard),
                ttl: TickDuration(*ttl),
                sessions: several(self, sessions),
            },
            IntentRequest::Finish(session, guard, end) => IntentCommand::Finish {
                session: self.session(*session),
                guard: self.leader_fence(*guard),
                end: *end,
                detail: "".into(),
            },
            IntentRequest::Wipe(guard, sessions) => {
                IntentCommand::Wipe { guard: self.leader_fence(*guard), sessions: several(self, sessions) }
            }
            other => return self.plain_command(other),
        };
        Command::Intent(Box::new(intent))
    }

    fn accept(
        &self,
        target: u8,
        key: u8,
        previous: Option<u8>,
        lease: Option<u64>,
        patience: u64,
    ) -> AcceptIntent {
        let name = format!("s{}", self.accepts);
        let accept = match target {
            0 => accept_recording(&name, "film", 1_500, key),
            other => accept_channel(&name, ["a", "b", "c"][usize::from(other) - 1], key),
        };
        AcceptIntent {
            previous_key: previous.map(|byte| tenure_core::kernel::IntentKey([byte; 32])),
            lease: lease.map(|ttl| (TickDuration(ttl), Nonce([3; 16]))),
            wait_timeout: TickDuration(patience),
            ..accept
        }
    }

    fn plain_command(&self, ask: &IntentRequest) -> Command {
        let by = || principal("admin");
        match ask {
            IntentRequest::LeaderLock { worker, ttl } => {
                let requests = vec![LeaseRequest::new(
                    leader_lock_resource(),
                    LeaseMode::Exclusive,
                    TickDuration(*ttl),
                    Nonce([7; 16]),
                )];
                let (principal, holder) = (orchestrator_principal(), holder(&format!("worker:{worker}")));
                let contention = ContentionPolicy::RefreshOwn;
                Command::Acquire(Acquire {
                    principal,
                    holder,
                    requests,
                    contention_policy: contention,
                    key: None,
                })
            }
            IntentRequest::Plain { client, what, can_wait } => {
                // One of them calls itself like a session.
                let name = if *client == 3 { self.session(0).to_string() } else { format!("bob-{client}") };
                let names = ["service:a", "service:b", "recording:film:1", "tuner:0", "tuner:1", "tuner:2"];
                let patience = TickDuration(20 * SECOND);
                let contention = if *can_wait {
                    ContentionPolicy::Queue { wait_timeout: patience }
                } else {
                    ContentionPolicy::Deny
                };
                plain_acquire(&name, names[usize::from(*what)], contention)
            }
            IntentRequest::Lease(what, back) => {
                let lease = Fence((self.state.last_fence().0 + 1).saturating_sub(*back));
                let (claim, nonce) = (LeaseCredential::Token, Nonce::default());
                let change = ChangeMode { lease, credential: claim.clone(), mode: LeaseMode::Shared, nonce };
                match what {
                    0 => Command::Renew { lease, credential: claim, ttl: None },
                    1 => Command::Release { lease, claim, reason: ReleaseReason::Voluntary },
                    2 => Command::Revoke {
                        lease,
                        cause: RevocationCause::Revoked,
                        by: by(),
                        detail: "".into(),
                    },
                    3 => Command::Transfer { lease, claim, to: holder("kim"), principal: by(), nonce },
                    4 => {
                        let (to, principal) = (self.session(0), orchestrator_principal());
                        Command::Transfer { lease, claim, to, principal, nonce }
                    }
                    // Of a guard that would make it no guard: the model knows exclusive leases alone.
                    _ if self
                        .state
                        .lease(lease)
                        .is_none_or(|lease| self.model.sessions.contains_key(lease.holder.as_str())) =>
                    {
                        Command::Downgrade(change)
                    }
                    _ => Command::Upgrade(change),
                }
            }
            IntentRequest::Reclaim(session) => {
                Command::Reclaim { holder: self.session(*session), by: by(), detail: "".into() }
            }
            IntentRequest::Sweep(max_ended) => Command::Expire { max_ended: *max_ended },
            other => unreachable!("{other:?} is no plain command"),
        }
    }

    /// Time passes and nobody asks anything: everything that is left ends by itself, in parts.
    fn expire_everything(&mut self) {
        self.state.set_admission_level(AdmissionLevel::Nothing);
        let mut rounds = 0;
        while let Some(deadline) = self.state.next_deadline() {
            self.now = self.now.max(deadline.0);
            self.decide_and_apply(&Command::Expire { max_ended: 2 });
            rounds += 1;
            assert!(rounds < 10_000, "the sweep does not come to an end");
        }
        assert!(self.model.leases.is_empty(), "{:?}", self.model.leases);
        let stuck = self.model.sessions.values().find(|session| session.state != IntentSessionState::Ended);
        assert!(stuck.is_none(), "{stuck:?}");
        assert_eq!(self.replayed.to_comparable(), self.state.to_comparable());
    }
}

proptest! {
    #![proptest_config(config(1_000))]

    // S1-5, S1-15, S1-17, S1-20, S1-21, O-9, O-11, O-12
    #[test]
    fn sessions_and_leases_stay_consistent(steps in prop::collection::vec(step(), 1..80)) {
        let mut world = IntentSessionWorld::default();
        world.decide_and_apply(&world.plain_command(&IntentRequest::LeaderLock { worker: 0, ttl: 10 * SECOND }));
        for step in &steps {
            world.play(step);
        }
        world.expire_everything();
    }
}
