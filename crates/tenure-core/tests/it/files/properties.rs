//! Random worlds of files: everything that is answered is what a second opinion says, and beside everything else no event is
//! ever refused.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tenure_core::kernel::{
    Acquire, Command, CommandOutcome, ContentionPolicy, FileAcquire, FileCommand, FileOutcome, FileRequest,
    FileSessionActivity, FileSessionEnd, HeldFile, Holder, KernelState, LeaseCredential, LeaseMode,
    LeaseRequest, Limits, Nonce, Rejection, Resource, Tick, TickDuration, Ticket,
};
use tenure_core::lease::ReleaseReason;

use crate::agents::steps::{self as agents};
use crate::checkpoint::round_trip::restore;
use crate::files::model::{FileModel, FileNames, ModelOutcome, ModelTicket, parent_of};
use crate::scenario::{ScenarioWorld, holder, principal};
use crate::scenario_files::session_info;

const SESSIONS: [&str; 7] = ["s0", "s1", "s2", "s0.a", "s0.b", "s0.a.c", "s1.a"];
const FILES: [&str; 6] = ["f0", "f1", "f2", "f3", "g0", "FILE:b"];

#[derive(Debug, Clone)]
enum FileStep {
    RecordActivity {
        session: usize,
        turn_ended: bool,
    },
    Acquire {
        session: usize,
        files: Vec<Vec<usize>>,
        checked: Checked,
    },
    Commit {
        sessions: Vec<usize>,
        files: Vec<usize>,
    },
    ReleaseIdle {
        session: usize,
        guess: bool,
        keep: Vec<usize>,
    },
    End {
        sessions: Vec<usize>,
        end: FileSessionEnd,
    },
    Transfer {
        file: Vec<usize>,
        to: usize,
    },
    ForceRelease {
        files: Vec<usize>,
    },
    Resume {
        back: u64,
        file: Vec<usize>,
        guess: bool,
        checked: Checked,
    },
    RecordViolation {
        file: usize,
    },
    /// alice takes or gives back, and never waits.
    Alice {
        file: usize,
        takes: bool,
    },
    Save,
}

#[derive(Debug, Clone, Copy)]
enum Checked {
    All,
    None,
    One(usize),
}

impl Checked {
    fn names(self) -> Vec<String> {
        match self {
            Checked::All => SESSIONS.iter().map(ToString::to_string).collect(),
            Checked::None => Vec::new(),
            Checked::One(session) => vec![SESSIONS[session].into()],
        }
    }
}

fn step() -> impl Strategy<Value = FileStep> {
    let session = || 0..SESSIONS.len();
    let some = || prop::collection::vec(0..FILES.len(), 1..4);
    let file = || prop_oneof![2 => (0..FILES.len()).prop_map(|name| vec![name]), 1 => some()];
    let checked = || prop_oneof![5 => Just(Checked::All), 1 => Just(Checked::None), 1 => session().prop_map(Checked::One)];
    let files =
        || prop_oneof![3 => file().prop_map(|file| vec![file]), 1 => prop::collection::vec(file(), 1..4)];
    let sessions = || prop::collection::vec(session(), 1..3);
    prop_oneof![
        2 => (session(), any::<bool>()).prop_map(|(session, turn_ended)| FileStep::RecordActivity { session, turn_ended }),
        12 => (session(), files(), checked())
            .prop_map(|(session, files, checked)| FileStep::Acquire { session, files, checked }),
        3 => (sessions(), some()).prop_map(|(sessions, files)| FileStep::Commit { sessions, files }),
        2 => (session(), prop::bool::weighted(0.9), prop::collection::vec(0..FILES.len(), 0..2))
            .prop_map(|(session, guess, keep)| FileStep::ReleaseIdle { session, guess, keep }),
        2 => (sessions(), prop::sample::select(&FileSessionEnd::ALL[..]))
            .prop_map(|(sessions, end)| FileStep::End { sessions, end }),
        1 => (file(), session()).prop_map(|(file, to)| FileStep::Transfer { file, to }),
        1 => some().prop_map(|files| FileStep::ForceRelease { files }),
        2 => (0..4_u64, file(), prop::bool::weighted(0.8), checked())
            .prop_map(|(back, file, guess, checked)| FileStep::Resume { back, file, guess, checked }),
        1 => (0..FILES.len()).prop_map(|file| FileStep::RecordViolation { file }),
        2 => (0..FILES.len(), any::<bool>()).prop_map(|(file, takes)| FileStep::Alice { file, takes }),
        1 => Just(FileStep::Save),
    ]
}

fn steps() -> impl Strategy<Value = Vec<(u64, FileStep)>> {
    let pause = prop_oneof![4 => Just(0_u64), 3 => 1..40_u64, 2 => Just(180), 1 => 100..400_u64];
    prop::collection::vec((pause, step()), 1..60)
}

fn name(file: usize) -> String {
    FILES[file].into()
}

fn resource(name: &str) -> Resource {
    Resource::parse(name).expect("a resource")
}

fn file_request(names: &[String]) -> FileRequest {
    let mut names = names.iter().map(|name| resource(name));
    let resource = names.next().expect("a file has a name");
    FileRequest { resource, aliases: names.collect(), nonces: vec![Nonce([9; 16])] }
}

fn introduction(session: usize) -> tenure_core::kernel::FileSessionInfo {
    let id = SESSIONS[session];
    session_info(id, parent_of(id).map(|parent| holder(&parent)), None, None)
}

fn holders(names: &[String]) -> Vec<Holder> {
    names.iter().map(|name| holder(name)).collect()
}

fn ids(sessions: &[usize]) -> Vec<String> {
    sessions.iter().map(|session| SESSIONS[*session].into()).collect()
}

fn names(files: &[usize]) -> Vec<String> {
    files.iter().map(|file| name(*file)).collect()
}

/// What is asked, and what the second opinion says to it.
fn command_and_expected_outcome(
    step: &FileStep,
    model: &mut FileModel,
    state: &KernelState,
    now: u64,
) -> Option<(Command, ModelOutcome)> {
    let (command, expected) = match step {
        FileStep::RecordActivity { session, turn_ended } => {
            let sign = if *turn_ended { FileSessionActivity::TurnEnded } else { FileSessionActivity::Active };
            let result = model.record_activity(SESSIONS[*session], *turn_ended, now);
            let expected = result.err().unwrap_or(ModelOutcome::Acknowledged);
            (FileCommand::RecordActivity { session: introduction(*session), activity: sign }, expected)
        }
        FileStep::Acquire { session, files, checked } => {
            let (files, checked): (Vec<FileNames>, _) =
                (files.iter().map(|file| names(file)).collect(), checked.names());
            let expected = model.acquire(SESSIONS[*session], &files, &checked, now);
            let files = files.iter().map(|file| file_request(file)).collect();
            let acquire = FileAcquire {
                session: introduction(*session),
                files,
                checked: holders(&checked),
                background: false,
            };
            (FileCommand::Acquire(acquire), expected)
        }
        FileStep::Commit { sessions, files } => {
            let (ids, names) = (ids(sessions), names(files));
            let resources = names.iter().map(|name| resource(name)).collect();
            (FileCommand::Commit { sessions: holders(&ids), resources }, model.commit(&ids, &names))
        }
        FileStep::ReleaseIdle { session, guess, keep } => {
            let id = SESSIONS[*session];
            let turn = model.sessions.get(id).and_then(|(_, turn)| *turn);
            let since = turn.filter(|_| *guess).unwrap_or(now);
            let keep = names(keep);
            let expected = model.release_idle(id, since, &keep, now);
            let keep = keep.iter().map(|name| resource(name)).collect();
            (FileCommand::ReleaseIdle { session: holder(id), turn_ended_at: tick(since), keep }, expected)
        }
        FileStep::End { sessions, end } => {
            let ids = ids(sessions);
            let expected = model.end(&ids, *end);
            (FileCommand::End { sessions: holders(&ids), end: *end, detail: "told".into() }, expected)
        }
        FileStep::Transfer { file, to } => {
            let (file, to) = (names(file), SESSIONS[*to]);
            let expected = model.transfer(&file, to);
            (
                FileCommand::Give {
                    file: file_request(&file),
                    to: holder(to),
                    by: principal("token:person"),
                },
                expected,
            )
        }
        FileStep::ForceRelease { files } => {
            let names = names(files);
            let resources = names.iter().map(|name| resource(name)).collect();
            let (by, detail) = (principal("token:person"), "in the way".into());
            (FileCommand::ForceRelease { resources, by, detail }, model.force_release(&names))
        }
        FileStep::Resume { back, file, guess, checked } => {
            let tickets = state.retry_tickets().chain(state.blocked_reports());
            let last = tickets.map(|ticket| ticket.ticket.0).max().unwrap_or(0);
            let number = last.saturating_sub(*back);
            let mut file = names(file);
            if let Some(ticket) = model.tickets.iter().find(|ticket| ticket.number == number && *guess) {
                file.insert(0, ticket.file.clone());
            }
            let checked = checked.names();
            let expected = model.resume(number, &file, &checked);
            let report = Ticket(number);
            (FileCommand::Resume { report, file: file_request(&file), checked: holders(&checked) }, expected)
        }
        FileStep::RecordViolation { file } => {
            let (resource, detail) = (resource(FILES[*file]), "changed".into());
            (FileCommand::RecordViolation { resource, session: None, detail }, ModelOutcome::Acknowledged)
        }
        FileStep::Alice { file, takes } => return alice(FILES[*file], *takes, model, state),
        FileStep::Save => return None,
    };
    Some((Command::File(Box::new(command)), expected))
}

fn alice(
    file: &str,
    takes: bool,
    model: &mut FileModel,
    state: &KernelState,
) -> Option<(Command, ModelOutcome)> {
    let owner = model.owner.get(file);
    if takes {
        let expected = if owner.is_some() {
            ModelOutcome::Rejected("held")
        } else {
            ModelOutcome::Granted(1, Vec::new())
        };
        model.owner.entry(file.into()).or_insert_with(|| "alice".into());
        let request = LeaseRequest::new(
            resource(file),
            LeaseMode::Exclusive,
            TickDuration::from_secs(86_400),
            Nonce([2; 16]),
        );
        let (holder, principal) = (holder("alice"), principal("alice's"));
        let (requests, contention, key) = (vec![request], ContentionPolicy::Deny, None);
        return Some((
            Command::Acquire(Acquire { principal, holder, requests, contention_policy: contention, key }),
            expected,
        ));
    }
    owner.filter(|owner| *owner == "alice")?;
    model.owner.remove(file);
    let (lease, _, _) = state.file_lease(&resource(file))?;
    Some((
        Command::Release { lease, claim: LeaseCredential::Token, reason: ReleaseReason::Completed },
        ModelOutcome::Acknowledged,
    ))
}

fn tick(seconds: u64) -> Tick {
    Tick(seconds * 1_000_000)
}

/// What was answered, in the words of the second opinion.
fn to_model_outcome(answer: &CommandOutcome) -> ModelOutcome {
    let held = |held: &[HeldFile]| {
        let each = held.iter();
        each.map(|held| (held.resource.to_string(), held.holder.to_string(), held.ticket.0)).collect()
    };
    match answer {
        CommandOutcome::Granted { leases } => ModelOutcome::Granted(leases.len(), Vec::new()),
        CommandOutcome::Released { .. } => ModelOutcome::Acknowledged,
        CommandOutcome::Rejected(Rejection::NoSuchSession) => ModelOutcome::Rejected("no such session"),
        CommandOutcome::Rejected(Rejection::NotIdle) => ModelOutcome::Rejected("not idle"),
        CommandOutcome::Rejected(Rejection::Held { .. }) => ModelOutcome::Rejected("held"),
        CommandOutcome::Rejected(Rejection::NoSuchTicket) => ModelOutcome::Rejected("no such ticket"),
        CommandOutcome::Rejected(Rejection::Invalid(_)) => ModelOutcome::Rejected("invalid"),
        CommandOutcome::File(answer) => match &**answer {
            FileOutcome::Acknowledged => ModelOutcome::Acknowledged,
            FileOutcome::Granted { leases, uncommitted } => {
                let uncommitted = uncommitted.iter();
                let uncommitted =
                    uncommitted.map(|(name, file)| (name.to_string(), file.owner.holder.to_string()));
                ModelOutcome::Granted(leases.len(), uncommitted.collect())
            }
            FileOutcome::CheckRequired { sessions } => {
                ModelOutcome::Check(sessions.iter().map(ToString::to_string).collect())
            }
            FileOutcome::Wait { held: files, until } => ModelOutcome::Wait(held(files), until.0 / 1_000_000),
            FileOutcome::Blocked { held: files, report } => ModelOutcome::Blocked(held(files), report.0),
            FileOutcome::Released { resources, foreign } => {
                let foreign = foreign.iter().map(|(name, owner)| (name.to_string(), owner.to_string()));
                ModelOutcome::Released(resources.iter().map(ToString::to_string).collect(), foreign.collect())
            }
        },
        other => panic!("nobody expects {other:?}"),
    }
}

/// That the state holds what the second opinion holds.
fn check_same_state(state: &KernelState, model: &FileModel) {
    let holders: BTreeMap<String, String> = FILES
        .iter()
        .filter_map(|name| Some((name.to_string(), state.file_lease(&resource(name))?.2.to_string())))
        .collect();
    assert_eq!(holders, model.owner);
    let sessions = state.file_sessions().map(|session| {
        let turn = session.turn_ended_at.map(|at| at.0 / 1_000_000);
        (session.id.to_string(), (session.parent.as_ref().map(ToString::to_string), turn))
    });
    assert_eq!(sessions.collect::<BTreeMap<_, _>>(), model.sessions);
    let tickets = state.retry_tickets().map(|ticket| ModelTicket {
        number: ticket.ticket.0,
        session: ticket.session.to_string(),
        file: ticket.request.resource.to_string(),
        due: ticket.retry_at.0 / 1_000_000,
        blocked: ticket.blocked.is_some(),
    });
    assert_eq!(tickets.collect::<Vec<_>>(), model.tickets);
    let uncommitted = FILES
        .iter()
        .filter_map(|name| {
            let file = state.uncommitted_file(&resource(name))?;
            Some((name.to_string(), file.owner.holder.to_string()))
        })
        .collect::<BTreeMap<_, _>>();
    assert_eq!(uncommitted, model.uncommitted);
}

proptest! {
    #[test]
    fn file_outcomes_match_the_model(steps in steps()) {
        // S4-18 S4-55 O-20
        let (mut world, mut model, mut now) = (ScenarioWorld::new(Limits::default()), FileModel::default(), 0);
        for (pause, step) in steps {
            now += pause;
            let Some((command, expected)) = command_and_expected_outcome(&step, &mut model, &world.state, now) else {
                restore(&world.state);
                continue;
            };
            let decision = world.decide_and_apply(&command, tick(now));
            prop_assert_eq!(to_model_outcome(&decision.outcome), expected, "{:?} at {}", step, now);
            check_same_state(&world.state, &model);
        }
    }

    /// Waits, agents, transfers and revocations among the same names: nobody decides what the state refuses, and what was
    /// saved decides alike.
    #[test]
    fn file_events_among_other_commands_can_be_applied(
        steps in prop::collection::vec((0..90_u64, mixed()), 1..60),
    ) {
        let (mut world, mut now) = (ScenarioWorld::new(Limits::default()), 0);
        for (pause, step) in steps {
            now += pause;
            let command = match &step {
                Mixed::Files(step) => command_and_expected_outcome(step, &mut FileModel::default(), &world.state, now).map(|(command, _)| command),
                Mixed::Plain(plain) => plain.command(&world.state),
                Mixed::Person { file, name, can_wait } => Some(person(FILES[*file], *name, *can_wait)),
                Mixed::Expire => Some(Command::Expire { max_ended: 3 }),
            };
            let Some(command) = command else {
                let restored = restore(&world.state);
                let sweep = Command::Expire { max_ended: 100 };
                prop_assert_eq!(
                    tenure_core::kernel::decide(&restored, &sweep, tick(now)),
                    tenure_core::kernel::decide(&world.state, &sweep, tick(now))
                );
                continue;
            };
            world.decide_and_apply(&command, tick(now));
        }
    }
}

#[derive(Debug, Clone)]
enum Mixed {
    Files(FileStep),
    Plain(agents::PlainStep),
    /// Somebody who may have the name of a session.
    Person {
        file: usize,
        name: usize,
        can_wait: bool,
    },
    Expire,
}

fn mixed() -> impl Strategy<Value = Mixed> {
    prop_oneof![
        8 => step().prop_map(Mixed::Files),
        2 => agents::plain_step().prop_map(Mixed::Plain),
        3 => (0..FILES.len(), 0..SESSIONS.len() + 3, any::<bool>())
            .prop_map(|(file, name, can_wait)| Mixed::Person { file, name, can_wait }),
        1 => Just(Mixed::Expire),
    ]
}

fn person(file: &str, name: usize, can_wait: bool) -> Command {
    let name = SESSIONS.get(name).copied().unwrap_or(["alice", "bob", "carol"][name % 3]);
    let request =
        LeaseRequest::new(resource(file), LeaseMode::Exclusive, TickDuration::from_secs(100), Nonce([2; 16]));
    let contention = if can_wait {
        ContentionPolicy::Queue { wait_timeout: TickDuration::from_secs(200) }
    } else {
        ContentionPolicy::Deny
    };
    let (holder, principal) = (holder(name), principal(&format!("{name}'s")));
    Command::Acquire(Acquire {
        principal,
        holder,
        requests: vec![request],
        contention_policy: contention,
        key: None,
    })
}
