//! Arbitrary requests of callers, workers and plain holders: whatever is asked, sessions and leases never disagree.

use proptest::prelude::*;
use tenure_core::kernel::{
    Accept, Acquire, Answer, Cause, ChangeMode, Claim, Command, Contention, Decision, Fence, Granting,
    Holder, IntentAnswer, IntentCommand, Kept, Mode, Nonce, Refusal, SessionEnd, SessionState, Span, State,
    Take, Tick, Want, decide, decode, encode, guard, orchestrator,
};
use tenure_core::lease::ReleaseReason;

use crate::kernel_bytes::restore;
use crate::kernel_codec::{STAMP, TAG};
use crate::kernel_strategies::config;
use crate::session_desk::{channel, holder, plain, principal, recording};
use crate::session_model::Model;

const SECOND: u64 = 1_000_000;

/// Time passes, then something is asked. Sessions, guards and leases are counted back from the newest.
#[derive(Debug, Clone)]
struct Step {
    pause: Pause,
    ask: Ask,
}

#[derive(Debug, Clone, Copy)]
enum Pause {
    Ticks(u64),
    /// To the next deadline, and by this much past it or short of it.
    Deadline(i64),
}

#[derive(Debug, Clone)]
enum Ask {
    Accept {
        target: u8,
        key: u8,
        previous: Option<u8>,
        lease: Option<u64>,
        patience: u64,
    },
    Stop(usize),
    Guard {
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
    Keep {
        guard: usize,
        ttl: u64,
        sessions: Vec<usize>,
    },
    Finish(usize, usize, SessionEnd),
    Wipe(usize, Vec<usize>),
    Plain {
        who: u8,
        what: u8,
        waits: bool,
    },
    /// Somebody acts on a lease: renews, releases, revokes, hands over, changes its mode.
    Lease(u8, u64),
    Reclaim(usize),
    Room(Granting),
    Sweep(usize),
    /// The state becomes bytes and comes back.
    Checkpoint,
}

fn step() -> impl Strategy<Value = Step> {
    let pause = prop_oneof![
        4 => Just(Pause::Ticks(0)),
        3 => (0..4 * SECOND).prop_map(Pause::Ticks),
        2 => (-1..3_i64).prop_map(Pause::Deadline),
        1 => (0..40 * SECOND).prop_map(Pause::Ticks),
    ];
    let (session, guard) = (|| 0..5_usize, || prop_oneof![6 => Just(0_usize), 1 => 1..3_usize]);
    let ttl = || (5..12_u64).prop_map(|seconds| seconds * SECOND);
    let several = || prop::collection::vec(0..5_usize, 0..6);
    let end = prop::sample::select(vec![SessionEnd::Completed, SessionEnd::Failed, SessionEnd::Stopped]);
    let accept = (0..4_u8, 0..4_u8, prop::option::of(0..4_u8), prop::option::weighted(0.3, ttl()), 1..30_u64)
        .prop_map(|(target, key, previous, lease, patience)| Ask::Accept {
            target,
            key,
            previous,
            lease,
            patience: patience * SECOND,
        });
    let room = prop::sample::select(vec![
        Granting::Everything,
        Granting::Everything,
        Granting::Renewals,
        Granting::Nothing,
    ]);
    let ask = prop_oneof![
        8 => accept,
        3 => session().prop_map(Ask::Stop),
        4 => (0..2_u8, ttl()).prop_map(|(worker, ttl)| Ask::Guard { worker, ttl }),
        10 => (session(), guard(), 0..4_u32, ttl())
            .prop_map(|(session, guard, slots, ttl)| Ask::Take { session, guard, slots, ttl }),
        5 => (session(), guard()).prop_map(|(session, guard)| Ask::Run(session, guard)),
        8 => (guard(), ttl(), several()).prop_map(|(guard, ttl, sessions)| Ask::Keep { guard, ttl, sessions }),
        3 => (session(), guard(), end).prop_map(|(session, guard, end)| Ask::Finish(session, guard, end)),
        2 => (guard(), several()).prop_map(|(guard, sessions)| Ask::Wipe(guard, sessions)),
        5 => (0..4_u8, 0..6_u8, any::<bool>()).prop_map(|(who, what, waits)| Ask::Plain { who, what, waits }),
        3 => (0..6_u8, 0..6_u64).prop_map(|(what, back)| Ask::Lease(what, back)),
        1 => session().prop_map(Ask::Reclaim),
        1 => room.prop_map(Ask::Room),
        3 => (1..5_usize).prop_map(Ask::Sweep),
        1 => Just(Ask::Checkpoint),
    ];
    (pause, ask).prop_map(|(pause, ask)| Step { pause, ask })
}

#[derive(Default)]
struct World {
    state: State,
    replayed: State,
    model: Model,
    now: u64,
    /// Every session's name, and every guard's fence, in the order of their beginnings.
    sessions: Vec<Holder>,
    guards: Vec<Fence>,
    accepts: u64,
}

impl World {
    fn play(&mut self, step: &Step) {
        self.now = match step.pause {
            Pause::Ticks(ticks) => self.now + ticks,
            Pause::Deadline(by) => {
                let deadline = self.state.next_deadline().map_or(self.now, |tick| tick.0);
                self.now.max(deadline.saturating_add_signed(by))
            }
        };
        match &step.ask {
            Ask::Room(granting) => self.state.set_granting(*granting),
            Ask::Checkpoint => {
                let restored = restore(&self.state);
                let granting = self.state.granting();
                self.state = restored;
                self.state.set_granting(granting);
            }
            ask => {
                let command = self.command(ask);
                self.take(&command);
            }
        }
    }

    fn take(&mut self, command: &Command) {
        let now = Tick(self.now).max(self.state.now());
        let decision = decide(&self.state, command, now);
        assert!(decision.events.len() < 100, "a decision grows: {command:?}");
        self.judge(command, &decision, now);
        for event in &decision.events {
            self.state.apply(event).unwrap_or_else(|misfit| panic!("{misfit}: {event:?} of {command:?}"));
            let read = decode(&encode(event, STAMP), TAG).expect("it is read").expect("it is the kernel's");
            self.replayed.apply(&read).expect("what was stored follows");
            self.model.record(event);
        }
        self.state.check_invariants().unwrap_or_else(|wrong| panic!("{wrong} after {command:?}"));
        self.model.check();
        self.judge_after(command, &decision);
        match &decision.answer {
            Answer::Granted { leases } if matches!(command, Command::Acquire(acquire) if acquire.wants[0].resource == guard()) =>
            {
                self.guards.extend(
                    leases.iter().filter(|fence| !self.guards.contains(fence)).copied().collect::<Vec<_>>(),
                );
            }
            Answer::Intent(answer) => {
                if let IntentAnswer::Accepted { session, is_new: true } = &**answer {
                    self.sessions.push(session.clone());
                }
            }
            _ => {}
        }
    }

    /// What an answer says of the moment in which it was given.
    fn judge(&self, command: &Command, decision: &Decision, now: Tick) {
        let Command::Intent(command) = command else { return };
        let by = match &**command {
            IntentCommand::Take(take) => Some(take.guard),
            IntentCommand::Run { guard, .. }
            | IntentCommand::Keep { guard, .. }
            | IntentCommand::Finish { guard, .. }
            | IntentCommand::Wipe { guard, .. } => Some(*guard),
            IntentCommand::Accept(_) | IntentCommand::Stop { .. } => None,
        };
        if let Some(fence) = by.filter(|fence| !self.model.guards(*fence, now)) {
            let lost = decision.answer == Answer::Refused(Refusal::GuardLost);
            assert!(lost && decision.events.is_empty(), "{fence:?} guards nothing: {decision:?}");
        }
        let Answer::Intent(answer) = &decision.answer else { return };
        if let IntentAnswer::Accepted { session, is_new } = &**answer {
            let goes_on = |id: &str| self.model.goes_on(id, now);
            assert!(*is_new || goes_on(session.as_str()), "{session} was over: {command:?}");
        }
    }

    /// What an answer says of what was done.
    fn judge_after(&self, command: &Command, decision: &Decision) {
        let (Command::Intent(command), Answer::Intent(answer)) = (command, &decision.answer) else { return };
        match (&**command, &**answer) {
            (IntentCommand::Take(take), IntentAnswer::Taken { until, leases, .. }) => {
                let session = take.session.as_str();
                assert_eq!(self.model.until(session), Some(*until));
                assert!(leases.iter().all(|fence| self.model.leases[fence].holder == session));
                assert_eq!(self.model.sessions[session].guard, Some(take.guard));
            }
            (IntentCommand::Keep { guard, sessions, .. }, IntentAnswer::Kept { until, sessions: kept }) => {
                assert_eq!(self.model.leases[guard].expires_at, *until);
                assert_eq!(sessions.len(), kept.len());
                for (session, kept) in sessions.iter().zip(kept) {
                    let own = self
                        .model
                        .sessions
                        .get(session.as_str())
                        .filter(|one| one.state != SessionState::Ended && one.guard == Some(*guard));
                    match kept {
                        Kept::Until { until, state } => {
                            assert_eq!(own.map(|own| own.state), Some(*state));
                            assert_eq!(self.model.until(session.as_str()), Some(*until));
                        }
                        Kept::Lost => assert!(own.is_none(), "{session} is said to be lost"),
                    }
                }
            }
            (
                IntentCommand::Run { session, .. }
                | IntentCommand::Finish { session, .. }
                | IntentCommand::Stop { session, .. }
                | IntentCommand::Take(Take { session, .. }),
                IntentAnswer::Now { state, end },
            ) => {
                let kernel = self.state.session(session).expect("known");
                assert_eq!((kernel.state, kernel.end), (*state, *end));
            }
            _ => {}
        }
    }

    fn session(&self, back: usize) -> Holder {
        let at = self.sessions.len().checked_sub(1 + back);
        at.map_or_else(|| holder("nobody"), |at| self.sessions[at].clone())
    }

    fn guard(&self, back: usize) -> Fence {
        self.guards.len().checked_sub(1 + back).map_or(Fence(0), |at| self.guards[at])
    }

    fn command(&mut self, ask: &Ask) -> Command {
        let several =
            |world: &World, backs: &[usize]| backs.iter().map(|back| world.session(*back)).collect();
        let intent = match ask {
            Ask::Accept { target, key, previous, lease, patience } => {
                self.accepts += 1;
                IntentCommand::Accept(self.accept(*target, *key, *previous, *lease, *patience))
            }
            Ask::Stop(session) => {
                IntentCommand::Stop { session: self.session(*session), by: principal("token:a") }
            }
            Ask::Take { session, guard, slots, ttl } => IntentCommand::Take(Take {
                session: self.session(*session),
                guard: self.guard(*guard),
                slots: *slots,
                ttl: Span(*ttl),
                nonces: [Nonce([1; 16]), Nonce([2; 16])],
            }),
            Ask::Run(session, guard) => IntentCommand::Run {
                session: self.session(*session),
                guard: self.guard(*guard),
                process: "pid 1".into(),
            },
            Ask::Keep { guard, ttl, sessions } => IntentCommand::Keep {
                guard: self.guard(*guard),
                ttl: Span(*ttl),
                sessions: several(self, sessions),
            },
            Ask::Finish(session, guard, end) => IntentCommand::Finish {
                session: self.session(*session),
                guard: self.guard(*guard),
                end: *end,
                detail: "".into(),
            },
            Ask::Wipe(guard, sessions) => {
                IntentCommand::Wipe { guard: self.guard(*guard), sessions: several(self, sessions) }
            }
            other => return self.plain_command(other),
        };
        Command::Intent(Box::new(intent))
    }

    fn accept(&self, target: u8, key: u8, previous: Option<u8>, lease: Option<u64>, patience: u64) -> Accept {
        let name = format!("s{}", self.accepts);
        let accept = match target {
            0 => recording(&name, "film", 1_500, key),
            other => channel(&name, ["a", "b", "c"][usize::from(other) - 1], key),
        };
        Accept {
            previous_key: previous.map(|byte| tenure_core::kernel::IntentKey([byte; 32])),
            lease: lease.map(|ttl| (Span(ttl), Nonce([3; 16]))),
            patience: Span(patience),
            ..accept
        }
    }

    fn plain_command(&self, ask: &Ask) -> Command {
        let by = || principal("admin");
        match ask {
            Ask::Guard { worker, ttl } => {
                let wants = vec![Want::new(guard(), Mode::Exclusive, Span(*ttl), Nonce([7; 16]))];
                let (principal, holder) = (orchestrator(), holder(&format!("worker:{worker}")));
                let contention = Contention::RefreshOwn;
                Command::Acquire(Acquire { principal, holder, wants, contention, key: None })
            }
            Ask::Plain { who, what, waits } => {
                // One of them calls itself like a session.
                let who = if *who == 3 { self.session(0).to_string() } else { format!("bob-{who}") };
                let names = ["service:a", "service:b", "recording:film:1", "tuner:0", "tuner:1", "tuner:2"];
                let patience = Span(20 * SECOND);
                let contention = if *waits { Contention::Queue { patience } } else { Contention::Refuse };
                plain(&who, names[usize::from(*what)], contention)
            }
            Ask::Lease(what, back) => {
                let lease = Fence((self.state.last_fence().0 + 1).saturating_sub(*back));
                let (claim, nonce) = (Claim::Token, Nonce::default());
                let change = ChangeMode { lease, claim: claim.clone(), mode: Mode::Shared, nonce };
                match what {
                    0 => Command::Renew { lease, claim, ttl: None },
                    1 => Command::Release { lease, claim, reason: ReleaseReason::Voluntary },
                    2 => Command::Revoke { lease, cause: Cause::Revoked, by: by(), detail: "".into() },
                    3 => Command::Transfer { lease, claim, to: holder("kim"), principal: by(), nonce },
                    4 => {
                        let (to, principal) = (self.session(0), orchestrator());
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
            Ask::Reclaim(session) => {
                Command::Reclaim { holder: self.session(*session), by: by(), detail: "".into() }
            }
            Ask::Sweep(most) => Command::Expire { most: *most },
            other => unreachable!("{other:?} is no plain command"),
        }
    }

    /// Time passes and nobody asks anything: everything that is left ends by itself, in parts.
    fn run_out(&mut self) {
        self.state.set_granting(Granting::Nothing);
        let mut rounds = 0;
        while let Some(deadline) = self.state.next_deadline() {
            self.now = self.now.max(deadline.0);
            self.take(&Command::Expire { most: 2 });
            rounds += 1;
            assert!(rounds < 10_000, "the sweep does not come to an end");
        }
        assert!(self.model.leases.is_empty(), "{:?}", self.model.leases);
        let stuck = self.model.sessions.values().find(|session| session.state != SessionState::Ended);
        assert!(stuck.is_none(), "{stuck:?}");
        assert_eq!(self.replayed.snapshot(), self.state.snapshot());
    }
}

proptest! {
    #![proptest_config(config(1_000))]

    // S1-5, S1-15, S1-17, S1-20, S1-21, O-9, O-11, O-12
    #[test]
    fn sessions_and_leases_stay_consistent(steps in prop::collection::vec(step(), 1..80)) {
        let mut world = World::default();
        world.take(&world.plain_command(&Ask::Guard { worker: 0, ttl: 10 * SECOND }));
        for step in &steps {
            world.play(step);
        }
        world.run_out();
    }
}
