//! A coding agent: its process, its session, a subagent and its shell, what they edit, and what they do about it.

use tenure_core::kernel::{
    CommandOutcome, FileAcquire, FileCommand, FileOutcome, FileRequest, FileSessionActivity, FileSessionEnd,
    FileSessionInfo, Holder, Nonce, Principal, RecordedProcess, Resource, Tick, Ticket,
};

use super::{FilesScenario, SECOND, ScenarioEvent};
use crate::simulation_log::SimulationLog;

/// A process with a session, a subagent of that, and a guard that speaks for the process before its session has a name.
#[derive(Debug)]
pub(super) struct SimulatedCodingAgent {
    number: usize,
    /// Counts processes: another one has another session.
    pub(super) incarnation: u64,
    pub(super) is_alive: bool,
    /// The session, its subagent, and the guard.
    actors: [Actor; 3],
}

/// Which of them is the guard.
const GUARD_ACTOR: usize = 2;

#[derive(Debug, Default, Clone)]
struct Actor {
    /// What it has asked for, or edits.
    files: Vec<FileRequest>,
    state: ActorState,
    report: Option<Ticket>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ActorState {
    #[default]
    Nothing,
    Requesting,
    Waiting,
    Editing,
    Blocked,
}

impl SimulatedCodingAgent {
    pub(super) fn new(number: usize) -> Self {
        Self { number, incarnation: 0, is_alive: true, actors: Default::default() }
    }

    pub(super) fn restart(&mut self) {
        self.incarnation += 1;
        self.is_alive = true;
        self.actors = Default::default();
    }

    fn id(&self, actor: usize) -> Holder {
        let below = ["", ".sub", ".guard"][actor];
        Holder::parse(&format!("agent-{}-{}{below}", self.number, self.incarnation)).expect("a plain name")
    }

    pub(super) fn has_session(&self, session: &Holder) -> bool {
        self.actor_of(session).is_some()
    }

    fn actor_of(&self, session: &Holder) -> Option<usize> {
        (0..self.actors.len()).find(|actor| self.id(*actor) == *session)
    }

    fn introduction(&self, actor: usize) -> FileSessionInfo {
        let process = RecordedProcess::parse(&format!("boot/{}/{}", self.number, self.incarnation));
        FileSessionInfo {
            parent: (actor == 1).then(|| self.id(0)),
            agent: if actor == GUARD_ACTOR { "guard" } else { "claude" }.into(),
            session: format!("{}", self.number).into(),
            ..FileSessionInfo::new(self.id(actor), process.expect("a text"))
        }
    }

    fn acquire(&self, actor: usize, checked: Vec<Holder>, background: bool) -> FileCommand {
        let files = self.actors[actor].files.clone();
        FileCommand::Acquire(FileAcquire { session: self.introduction(actor), files, checked, background })
    }
}

impl FilesScenario {
    /// A session does the next thing, and plans when it does another.
    pub(super) fn step_agent(&mut self, number: usize, log: &mut SimulationLog) {
        let agent = &self.agents[number];
        if !agent.is_alive || self.winding_down {
            return;
        }
        let (life, which) = (agent.incarnation, *self.rng.pick(&[0, 0, 0, 1, 1, GUARD_ACTOR]));
        let doing = agent.actors[which].state;
        let pause = match doing {
            ActorState::Nothing => self.start_edit(number, which),
            // Its answer did not come: it asks the same again.
            ActorState::Requesting => self.request_files(number, which, Vec::new()),
            // Now and then one asks before its time, or gives up and never comes back.
            ActorState::Waiting if self.rng.percent(8) => self.request_files(number, which, Vec::new()),
            ActorState::Waiting if self.rng.percent(4) => self.finish(number, which),
            ActorState::Waiting => 20 * SECOND,
            ActorState::Editing => self.finish_edit(number, which, log),
            ActorState::Blocked => self.intervene_as_person(number, which, log),
        };
        let at = self.now + self.rng.delay(100_000, pause.max(SECOND));
        self.queue.schedule(at, ScenarioEvent::AgentActs { agent: number, incarnation: life });
    }

    fn start_edit(&mut self, number: usize, which: usize) -> u64 {
        let count = self.rng.between(1, 4);
        let files: Vec<FileRequest> = (0..count).map(|_| self.any_file()).collect();
        let actor = &mut self.agents[number].actors[which];
        (actor.files, actor.state) = (files, ActorState::Requesting);
        self.request_files(number, which, Vec::new())
    }

    fn any_file(&mut self) -> FileRequest {
        let name = self.rng.below(8);
        let aliases = if name < 2 { vec![resource(8)] } else { Vec::new() };
        FileRequest { resource: resource(name), aliases, nonces: vec![Nonce([7; 16]); 2] }
    }

    fn request_files(&mut self, number: usize, which: usize, checked: Vec<Holder>) -> u64 {
        // Something that goes on after the end of a turn asks too.
        let background = self.rng.percent(20);
        let agent = &self.agents[number];
        let (id, command) = (agent.id(which), agent.acquire(which, checked.clone(), background));
        self.send(Some(id.clone()), command, Some((id, checked)));
        10 * SECOND
    }

    /// Whoever asks for it looked whether those in the way live, and asks again.
    pub(super) fn retry_request(&mut self, by: &Holder, checked: Vec<Holder>) {
        let found = self.find(by).filter(|_| !self.winding_down);
        if let Some((number, which)) = found.filter(|(number, _)| self.agents[*number].is_alive) {
            self.request_files(number, which, checked);
        }
    }

    fn find(&self, id: &Holder) -> Option<(usize, usize)> {
        let mut agents = self.agents.iter().enumerate();
        agents.find_map(|(number, agent)| Some((number, agent.actor_of(id)?)))
    }

    pub(super) fn handle_answer(
        &mut self,
        by: &Holder,
        answer: &CommandOutcome,
        stamp: Tick,
        log: &mut SimulationLog,
    ) {
        let Some((number, which)) = self.find(by) else { return };
        let CommandOutcome::File(answer) = answer else { return };
        let actor = &mut self.agents[number].actors[which];
        match &**answer {
            FileOutcome::Granted { uncommitted, .. } => {
                log.record_coverage(if uncommitted.is_empty() {
                    "file had"
                } else {
                    "file had that another left"
                });
                (actor.state, actor.report) = (ActorState::Editing, None);
            }
            FileOutcome::CheckRequired { sessions } => {
                let (living, dead): (Vec<_>, Vec<_>) =
                    sessions.iter().cloned().partition(|session| self.is_process_alive(session));
                if !dead.is_empty() {
                    log.record_coverage("dead owner found by who wanted its file");
                    self.end(dead, FileSessionEnd::Died);
                }
                let at = self.now + self.rng.delay(100, 30_000);
                self.queue.schedule(at, ScenarioEvent::Retry { by: by.clone(), checked: living });
            }
            FileOutcome::Wait { until, .. } => {
                if actor.state != ActorState::Waiting && !self.rng.percent(10) {
                    let at = self.now + until.since(stamp).0 + self.rng.delay(100, SECOND);
                    self.queue.schedule(at, ScenarioEvent::Retry { by: by.clone(), checked: Vec::new() });
                }
                self.agents[number].actors[which].state = ActorState::Waiting;
            }
            FileOutcome::Blocked { report, .. } => {
                (actor.state, actor.report) = (ActorState::Blocked, Some(*report));
            }
            FileOutcome::Acknowledged | FileOutcome::Released { .. } => {}
        }
    }

    fn finish(&mut self, number: usize, which: usize) -> u64 {
        self.agents[number].actors[which].state = ActorState::Nothing;
        20 * SECOND
    }

    /// What it edited is as it should be: it commits, or not.
    fn finish_edit(&mut self, number: usize, which: usize, log: &mut SimulationLog) -> u64 {
        let agent = &self.agents[number];
        let id = agent.id(which);
        let files = &agent.actors[which].files;
        let names: Vec<Resource> = files
            .iter()
            .flat_map(|file| std::iter::once(&file.resource).chain(&file.aliases))
            .cloned()
            .collect();
        match self.rng.below(10) {
            0..=4 => {
                log.record_coverage("committed");
                let sessions = vec![agent.id(0), agent.id(GUARD_ACTOR)];
                self.send(None, FileCommand::Commit { sessions, resources: names }, None);
                self.finish(number, which)
            }
            5 | 6 => {
                let session = agent.introduction(which);
                self.send(
                    None,
                    FileCommand::RecordActivity { session, activity: FileSessionActivity::TurnEnded },
                    None,
                );
                let at = self.now + 30 * SECOND + self.rng.delay(100_000, 5 * SECOND);
                self.queue.schedule(at, ScenarioEvent::IdleReleaseDue { session: id });
                self.agents[number].actors[which].state = ActorState::Nothing;
                90 * SECOND
            }
            7 => {
                let session = agent.introduction(which);
                self.send(
                    None,
                    FileCommand::RecordActivity { session, activity: FileSessionActivity::Active },
                    None,
                );
                30 * SECOND
            }
            8 if which == 1 => {
                self.end(vec![id], FileSessionEnd::TransferredToParent);
                self.finish(number, which)
            }
            8 if which == GUARD_ACTOR => self.adopt_guard_session(number, log),
            8 => {
                log.record_coverage("session ended");
                self.end(vec![id], FileSessionEnd::Ended);
                // Its subagent is gone with it.
                self.agents[number].actors[..GUARD_ACTOR].fill(Actor::default());
                60 * SECOND
            }
            _ => self.start_edit(number, which),
        }
    }

    /// The session of the guard's process is known by its name: it gets what the guard has. Now and then somebody else asks for
    /// that, and must not get it.
    fn adopt_guard_session(&mut self, number: usize, log: &mut SimulationLog) -> u64 {
        let other = usize::try_from(self.rng.below(self.agents.len() as u64)).unwrap_or(number);
        let by = if self.rng.percent(80) { number } else { other };
        log.record_coverage(if by == number { "guard adopted" } else { "guard claimed by another process" });
        // A subagent of the session may be the first that is heard of.
        let to = self.agents[by].introduction(usize::from(self.rng.percent(20)));
        let from = self.agents[number].id(GUARD_ACTOR);
        self.send(None, FileCommand::Adopt { from, to }, None);
        self.finish(number, GUARD_ACTOR)
    }

    /// The session waits for an instruction.
    fn intervene_as_person(&mut self, number: usize, which: usize, log: &mut SimulationLog) -> u64 {
        let agent = &self.agents[number];
        let (id, actor) = (agent.id(which), &agent.actors[which]);
        let Some(file) = actor.files.first().cloned() else { return self.finish(number, which) };
        let by = Principal::parse("token:person").expect("a plain name");
        match (self.rng.below(6), actor.report) {
            (0, _) => {
                log.record_coverage("person gave a file");
                self.send(None, FileCommand::Give { file, to: id, by }, None);
            }
            (1, _) => {
                log.record_coverage("person took a file");
                let (resources, detail) = (vec![file.resource], "person".into());
                self.send(None, FileCommand::ForceRelease { resources, by, detail }, None);
            }
            (2 | 3, Some(report)) => {
                log.record_coverage("person let go on");
                let file = actor.files.iter().find(|file| file.aliases.is_empty()).cloned().unwrap_or(file);
                self.send(None, FileCommand::Resume { report, file, checked: Vec::new() }, None);
            }
            (4, _) => return self.finish(number, which),
            _ => return self.request_files(number, which, Vec::new()) * 4,
        }
        40 * SECOND
    }

    /// Half a minute after its turn, nothing was heard of a session, as far as its server knows.
    pub(super) fn release_idle(&mut self, session: &Holder) {
        let state = self.host.registrar().map(|registrar| registrar.state());
        let known = state.and_then(|state| state.file_session(session));
        let Some(turn_ended_at) = known.and_then(|known| known.turn_ended_at) else { return };
        let keep = if self.rng.percent(30) { vec![resource(self.rng.below(8))] } else { Vec::new() };
        let session = session.clone();
        self.send(None, FileCommand::ReleaseIdle { session, turn_ended_at, keep }, None);
    }

    /// The process is gone. Mostly somebody sees it soon; else whoever wants a file of its will.
    pub(super) fn kill_agent_process(&mut self, number: usize, log: &mut SimulationLog) {
        let agent = &mut self.agents[number];
        if !agent.is_alive {
            return;
        }
        log.record_coverage("agent's process died");
        agent.is_alive = false;
        let ids = [agent.id(0), agent.id(1), agent.id(GUARD_ACTOR)];
        ids.iter().for_each(|id| self.host.ledger_model_mut().files_mut().record_process_exit(id.clone()));
        if self.rng.percent(60) {
            self.end(vec![ids[0].clone(), ids[GUARD_ACTOR].clone()], FileSessionEnd::Died);
        }
        let at = self.now + self.rng.delay(SECOND, 200 * SECOND);
        self.queue.schedule(at, ScenarioEvent::ProcessRestarts { agent: number });
    }
}

/// One of the names of the tree.
pub(super) fn resource(number: u64) -> Resource {
    Resource::parse(&format!("FILE:tree/{number}")).expect("a plain name")
}
