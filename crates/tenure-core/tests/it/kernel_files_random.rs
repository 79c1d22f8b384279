//! Random worlds of files: everything that is answered is what a second opinion says, and beside everything else no event is
//! ever refused.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tenure_core::kernel::{
    Acquire, Answer, Claim, Command, Contention, FileAcquire, FileAnswer, FileCommand, FileEnd, FileWant,
    HeldFile, Holder, Limits, Mode, Nonce, Refusal, Resource, Sign, Span, State, Tick, Ticket, Want,
};
use tenure_core::lease::ReleaseReason;

use crate::kernel_agents_steps::{self as agents};
use crate::kernel_bytes::restore;
use crate::kernel_files_model::{Model, ModelTicket, Names, Said, parent_of};
use crate::story::{World, holder, principal};
use crate::story_files::introduce;

const SESSIONS: [&str; 7] = ["s0", "s1", "s2", "s0.a", "s0.b", "s0.a.c", "s1.a"];
const FILES: [&str; 6] = ["f0", "f1", "f2", "f3", "g0", "FILE:b"];

#[derive(Debug, Clone)]
enum Step {
    Hear {
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
    Rest {
        session: usize,
        guess: bool,
        keep: Vec<usize>,
    },
    End {
        sessions: Vec<usize>,
        end: FileEnd,
    },
    Give {
        file: Vec<usize>,
        to: usize,
    },
    Force {
        files: Vec<usize>,
    },
    Resume {
        back: u64,
        file: Vec<usize>,
        guess: bool,
        checked: Checked,
    },
    Violate {
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

fn step() -> impl Strategy<Value = Step> {
    let session = || 0..SESSIONS.len();
    let some = || prop::collection::vec(0..FILES.len(), 1..4);
    let file = || prop_oneof![2 => (0..FILES.len()).prop_map(|name| vec![name]), 1 => some()];
    let checked = || prop_oneof![5 => Just(Checked::All), 1 => Just(Checked::None), 1 => session().prop_map(Checked::One)];
    let files =
        || prop_oneof![3 => file().prop_map(|file| vec![file]), 1 => prop::collection::vec(file(), 1..4)];
    let sessions = || prop::collection::vec(session(), 1..3);
    prop_oneof![
        2 => (session(), any::<bool>()).prop_map(|(session, turn_ended)| Step::Hear { session, turn_ended }),
        12 => (session(), files(), checked())
            .prop_map(|(session, files, checked)| Step::Acquire { session, files, checked }),
        3 => (sessions(), some()).prop_map(|(sessions, files)| Step::Commit { sessions, files }),
        2 => (session(), prop::bool::weighted(0.9), prop::collection::vec(0..FILES.len(), 0..2))
            .prop_map(|(session, guess, keep)| Step::Rest { session, guess, keep }),
        2 => (sessions(), prop::sample::select(&FileEnd::ALL[..]))
            .prop_map(|(sessions, end)| Step::End { sessions, end }),
        1 => (file(), session()).prop_map(|(file, to)| Step::Give { file, to }),
        1 => some().prop_map(|files| Step::Force { files }),
        2 => (0..4_u64, file(), prop::bool::weighted(0.8), checked())
            .prop_map(|(back, file, guess, checked)| Step::Resume { back, file, guess, checked }),
        1 => (0..FILES.len()).prop_map(|file| Step::Violate { file }),
        2 => (0..FILES.len(), any::<bool>()).prop_map(|(file, takes)| Step::Alice { file, takes }),
        1 => Just(Step::Save),
    ]
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let pause = prop_oneof![4 => Just(0_u64), 3 => 1..40_u64, 2 => Just(180), 1 => 100..400_u64];
    prop::collection::vec((pause, step()), 1..60)
}

fn name(file: usize) -> String {
    FILES[file].into()
}

fn resource(name: &str) -> Resource {
    Resource::parse(name).expect("a resource")
}

fn want(names: &[String]) -> FileWant {
    let mut names = names.iter().map(|name| resource(name));
    let resource = names.next().expect("a file has a name");
    FileWant { resource, aliases: names.collect(), nonces: vec![Nonce([9; 16])] }
}

fn introduction(session: usize) -> tenure_core::kernel::Introduction {
    let id = SESSIONS[session];
    introduce(id, parent_of(id).map(|parent| holder(&parent)), None, None)
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
fn ask(step: &Step, model: &mut Model, state: &State, now: u64) -> Option<(Command, Said)> {
    let (command, said) = match step {
        Step::Hear { session, turn_ended } => {
            let sign = if *turn_ended { Sign::TurnEnded } else { Sign::Active };
            let heard = model.hear(SESSIONS[*session], *turn_ended, now);
            let said = heard.err().unwrap_or(Said::Noted);
            (FileCommand::Hear { session: introduction(*session), sign }, said)
        }
        Step::Acquire { session, files, checked } => {
            let (files, checked): (Vec<Names>, _) =
                (files.iter().map(|file| names(file)).collect(), checked.names());
            let said = model.acquire(SESSIONS[*session], &files, &checked, now);
            let files = files.iter().map(|file| want(file)).collect();
            let acquire = FileAcquire {
                session: introduction(*session),
                files,
                checked: holders(&checked),
                background: false,
            };
            (FileCommand::Acquire(acquire), said)
        }
        Step::Commit { sessions, files } => {
            let (ids, names) = (ids(sessions), names(files));
            let resources = names.iter().map(|name| resource(name)).collect();
            (FileCommand::Commit { sessions: holders(&ids), resources }, model.commit(&ids, &names))
        }
        Step::Rest { session, guess, keep } => {
            let id = SESSIONS[*session];
            let turn = model.sessions.get(id).and_then(|(_, turn)| *turn);
            let since = turn.filter(|_| *guess).unwrap_or(now);
            let keep = names(keep);
            let said = model.rest(id, since, &keep, now);
            let keep = keep.iter().map(|name| resource(name)).collect();
            (FileCommand::Rest { session: holder(id), turn_ended_at: tick(since), keep }, said)
        }
        Step::End { sessions, end } => {
            let ids = ids(sessions);
            let said = model.end(&ids, *end);
            (FileCommand::End { sessions: holders(&ids), end: *end, detail: "told".into() }, said)
        }
        Step::Give { file, to } => {
            let (file, to) = (names(file), SESSIONS[*to]);
            let said = model.give(&file, to);
            (FileCommand::Give { file: want(&file), to: holder(to), by: principal("token:person") }, said)
        }
        Step::Force { files } => {
            let names = names(files);
            let resources = names.iter().map(|name| resource(name)).collect();
            let (by, detail) = (principal("token:person"), "in the way".into());
            (FileCommand::ForceRelease { resources, by, detail }, model.force(&names))
        }
        Step::Resume { back, file, guess, checked } => {
            let tickets = state.file_tickets().chain(state.file_reports());
            let last = tickets.map(|ticket| ticket.ticket.0).max().unwrap_or(0);
            let number = last.saturating_sub(*back);
            let mut file = names(file);
            if let Some(ticket) = model.tickets.iter().find(|ticket| ticket.number == number && *guess) {
                file.insert(0, ticket.file.clone());
            }
            let checked = checked.names();
            let said = model.resume(number, &file, &checked);
            let report = Ticket(number);
            (FileCommand::Resume { report, file: want(&file), checked: holders(&checked) }, said)
        }
        Step::Violate { file } => {
            let (resource, detail) = (resource(FILES[*file]), "changed".into());
            (FileCommand::Violate { resource, session: None, detail }, Said::Noted)
        }
        Step::Alice { file, takes } => return alice(FILES[*file], *takes, model, state),
        Step::Save => return None,
    };
    Some((Command::File(Box::new(command)), said))
}

fn alice(file: &str, takes: bool, model: &mut Model, state: &State) -> Option<(Command, Said)> {
    let owner = model.owner.get(file);
    if takes {
        let said = if owner.is_some() { Said::Refused("held") } else { Said::Granted(1, Vec::new()) };
        model.owner.entry(file.into()).or_insert_with(|| "alice".into());
        let want = Want::new(resource(file), Mode::Exclusive, Span::from_secs(86_400), Nonce([2; 16]));
        let (holder, principal) = (holder("alice"), principal("alice's"));
        let (wants, contention, key) = (vec![want], Contention::Refuse, None);
        return Some((Command::Acquire(Acquire { principal, holder, wants, contention, key }), said));
    }
    owner.filter(|owner| *owner == "alice")?;
    model.owner.remove(file);
    let (lease, _, _) = state.file_lease(&resource(file))?;
    Some((Command::Release { lease, claim: Claim::Token, reason: ReleaseReason::Completed }, Said::Noted))
}

fn tick(seconds: u64) -> Tick {
    Tick(seconds * 1_000_000)
}

/// What was answered, in the words of the second opinion.
fn said(answer: &Answer) -> Said {
    let held = |held: &[HeldFile]| {
        let each = held.iter();
        each.map(|held| (held.resource.to_string(), held.holder.to_string(), held.ticket.0)).collect()
    };
    match answer {
        Answer::Granted { leases } => Said::Granted(leases.len(), Vec::new()),
        Answer::Released { .. } => Said::Noted,
        Answer::Refused(Refusal::NoSuchSession) => Said::Refused("no such session"),
        Answer::Refused(Refusal::NotIdle) => Said::Refused("not idle"),
        Answer::Refused(Refusal::Held { .. }) => Said::Refused("held"),
        Answer::Refused(Refusal::NoSuchTicket) => Said::Refused("no such ticket"),
        Answer::Refused(Refusal::Invalid(_)) => Said::Refused("invalid"),
        Answer::File(answer) => match &**answer {
            FileAnswer::Noted => Said::Noted,
            FileAnswer::Granted { leases, left } => {
                let left = left.iter();
                let left = left.map(|(name, left)| (name.to_string(), left.owner.holder.to_string()));
                Said::Granted(leases.len(), left.collect())
            }
            FileAnswer::MustCheck { sessions } => {
                Said::Check(sessions.iter().map(ToString::to_string).collect())
            }
            FileAnswer::Wait { held: files, until } => Said::Wait(held(files), until.0 / 1_000_000),
            FileAnswer::Blocked { held: files, report } => Said::Blocked(held(files), report.0),
            FileAnswer::Released { resources, foreign } => {
                let foreign = foreign.iter().map(|(name, owner)| (name.to_string(), owner.to_string()));
                Said::Released(resources.iter().map(ToString::to_string).collect(), foreign.collect())
            }
        },
        other => panic!("nobody expects {other:?}"),
    }
}

/// That the state holds what the second opinion holds.
fn compare(state: &State, model: &Model) {
    let owners: BTreeMap<String, String> = FILES
        .iter()
        .filter_map(|name| Some((name.to_string(), state.file_lease(&resource(name))?.2.to_string())))
        .collect();
    assert_eq!(owners, model.owner);
    let sessions = state.file_sessions().map(|session| {
        let turn = session.turn_ended_at.map(|at| at.0 / 1_000_000);
        (session.id.to_string(), (session.parent.as_ref().map(ToString::to_string), turn))
    });
    assert_eq!(sessions.collect::<BTreeMap<_, _>>(), model.sessions);
    let tickets = state.file_tickets().map(|ticket| ModelTicket {
        number: ticket.ticket.0,
        session: ticket.session.to_string(),
        file: ticket.want.resource.to_string(),
        due: ticket.retry_at.0 / 1_000_000,
        blocked: ticket.blocked.is_some(),
    });
    assert_eq!(tickets.collect::<Vec<_>>(), model.tickets);
    let left = FILES
        .iter()
        .filter_map(|name| {
            let left = state.left_file(&resource(name))?;
            Some((name.to_string(), left.owner.holder.to_string()))
        })
        .collect::<BTreeMap<_, _>>();
    assert_eq!(left, model.left);
}

proptest! {
    #[test]
    fn file_outcomes_match_the_model(steps in steps()) {
        // S4-18 S4-55 O-20
        let (mut world, mut model, mut now) = (World::new(Limits::default()), Model::default(), 0);
        for (pause, step) in steps {
            now += pause;
            let Some((command, expected)) = ask(&step, &mut model, &world.state, now) else {
                restore(&world.state);
                continue;
            };
            let decision = world.take(&command, tick(now));
            prop_assert_eq!(said(&decision.answer), expected, "{:?} at {}", step, now);
            compare(&world.state, &model);
        }
    }

    /// Waits, agents, transfers and revocations among the same names: nobody decides what the state refuses, and what was
    /// saved decides alike.
    #[test]
    fn file_events_among_other_commands_can_be_applied(
        steps in prop::collection::vec((0..90_u64, mixed()), 1..60),
    ) {
        let (mut world, mut now) = (World::new(Limits::default()), 0);
        for (pause, step) in steps {
            now += pause;
            let command = match &step {
                Mixed::Files(step) => ask(step, &mut Model::default(), &world.state, now).map(|(command, _)| command),
                Mixed::Plain(plain) => plain.command(&world.state),
                Mixed::Person { file, name, waits } => Some(person(FILES[*file], *name, *waits)),
                Mixed::Expire => Some(Command::Expire { most: 3 }),
            };
            let Some(command) = command else {
                let restored = restore(&world.state);
                let hear = Command::Expire { most: 100 };
                prop_assert_eq!(
                    tenure_core::kernel::decide(&restored, &hear, tick(now)),
                    tenure_core::kernel::decide(&world.state, &hear, tick(now))
                );
                continue;
            };
            world.take(&command, tick(now));
        }
    }
}

#[derive(Debug, Clone)]
enum Mixed {
    Files(Step),
    Plain(agents::Plain),
    /// Somebody who may have the name of a session.
    Person {
        file: usize,
        name: usize,
        waits: bool,
    },
    Expire,
}

fn mixed() -> impl Strategy<Value = Mixed> {
    prop_oneof![
        8 => step().prop_map(Mixed::Files),
        2 => agents::plain().prop_map(Mixed::Plain),
        3 => (0..FILES.len(), 0..SESSIONS.len() + 3, any::<bool>())
            .prop_map(|(file, name, waits)| Mixed::Person { file, name, waits }),
        1 => Just(Mixed::Expire),
    ]
}

fn person(file: &str, name: usize, waits: bool) -> Command {
    let name = SESSIONS.get(name).copied().unwrap_or(["alice", "bob", "carol"][name % 3]);
    let want = Want::new(resource(file), Mode::Exclusive, Span::from_secs(100), Nonce([2; 16]));
    let contention =
        if waits { Contention::Queue { patience: Span::from_secs(200) } } else { Contention::Refuse };
    let (holder, principal) = (holder(name), principal(&format!("{name}'s")));
    Command::Acquire(Acquire { principal, holder, wants: vec![want], contention, key: None })
}
