//! What a worker does next: told what changed, what was answered and what the clock says, it says what to do. It touches
//! neither clock nor process nor server. Times are microseconds of the local clock.
//!
//! A session goes through its stages one by one, with at most one request or process under way:
//!
//! ```text
//! Taking ──> Starting ──> Reporting ──> Running ──> Finishing ──> forgotten
//! ```
//!
//! Nothing is finished before its pipeline was seen gone: what a session holds is never free while it is used.

#[cfg(test)]
#[path = "state_machine_tests.rs"]
mod tests;

use std::collections::BTreeMap;

use tenure_api::{IntentSessionLeases, IntentSessionStatus, IntentSessionView};
use tenure_host::interprocess::CommandExit;

/// How many sessions are kept with one request.
const MAX_KEPT_PER_REQUEST: usize = 1_024;

/// Why a pipeline is ended, and what is said about that.
type EndReason = (&'static str, &'static str);

const STOPPED: EndReason = ("R_STOPPED", "somebody asked for its end");
const LOST: EndReason = ("R_LEASE_EXPIRED", "a lease of it was lost");
const LATE: EndReason = ("R_LEASE_EXPIRED", "its leases were not renewed in time");
const WORKER_STOPPED: EndReason = ("R_WORKER_STOPPED", "its worker was told to stop");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotStage {
    Taking,
    Starting,
    /// The server is being told that it runs; it may be gone meanwhile.
    Reporting(Option<CommandExit>),
    Running,
    Finishing,
}

#[derive(Debug)]
struct TunerSlot {
    view: IntentSessionView,
    stage: SlotStage,
    /// Why it has to end, if it has to.
    why: Option<EndReason>,
}

#[derive(Debug)]
pub struct WorkerStateMachine {
    slots: BTreeMap<String, TunerSlot>,
    /// Until when the guard is surely ours.
    leadership_until: u64,
    renew_every: u64,
    keep_at: u64,
    /// How many requests to keep are under way.
    keeping: usize,
    is_shutting_down: bool,
    is_abandoned: bool,
}

impl WorkerStateMachine {
    /// A worker whose guard is its own until then.
    pub fn new(leadership_until: u64, renew_every: u64, now: u64) -> Self {
        Self {
            slots: BTreeMap::new(),
            leadership_until,
            renew_every,
            keep_at: now.saturating_add(renew_every),
            keeping: 0,
            is_shutting_down: false,
            is_abandoned: false,
        }
    }

    /// Whether the worker was told to end, and nothing is left to be done.
    pub fn is_done(&self) -> bool {
        self.is_shutting_down && self.slots.is_empty()
    }

    /// When to look at the clock again.
    pub fn wake_at(&self) -> u64 {
        if self.keeping > 0 { self.leadership_until } else { self.leadership_until.min(self.keep_at) }
    }

    /// What is due at `now`.
    pub fn wake(&mut self, now: u64) -> Vec<WorkerAction> {
        if now >= self.leadership_until {
            return self.abandon("the guard was not renewed in time".to_owned());
        }
        if self.is_abandoned || self.keeping > 0 || now < self.keep_at {
            return Vec::new();
        }
        self.keep_at = now.saturating_add(self.renew_every);
        let holds = |slot: &TunerSlot| !matches!(slot.stage, SlotStage::Taking | SlotStage::Finishing);
        let held = self.slots.iter().filter(|(_, slot)| holds(slot));
        let held: Vec<String> = held.map(|(session, _)| session.clone()).collect();
        // The guard is renewed even if there is nothing else.
        let mut keeps: Vec<WorkerAction> =
            held.chunks(MAX_KEPT_PER_REQUEST).map(|part| WorkerAction::Keep(part.to_vec())).collect();
        if keeps.is_empty() {
            keeps.push(WorkerAction::Keep(Vec::new()));
        }
        self.keeping = keeps.len();
        keeps
    }

    pub fn handle(&mut self, input: WorkerInput) -> Vec<WorkerAction> {
        if self.is_abandoned {
            return Vec::new();
        }
        match input {
            WorkerInput::Changed(sessions) => {
                sessions.into_iter().flat_map(|view| self.changed(view)).collect()
            }
            WorkerInput::Taken(session, now, until) => self.taken(&session, now, until),
            WorkerInput::NotTaken(session) | WorkerInput::Finished(session) => {
                self.slots.remove(&session);
                Vec::new()
            }
            WorkerInput::Started(session, process) => self.started(&session, process),
            WorkerInput::NotStarted(session, why) => self.finish_session(&session, "R_PIPELINE_FAILED", why),
            WorkerInput::TooLate(session) => self.finish_session(&session, LATE.0, LATE.1.to_owned()),
            WorkerInput::Reported(session, now) => self.reported(&session, &now),
            WorkerInput::Ending(session) => self.request_end(&session, LATE),
            WorkerInput::Gone(session, ended) => self.gone(&session, ended),
            WorkerInput::Kept(until, sessions) => self.kept(until, sessions),
            WorkerInput::LeadershipLost(why) => self.abandon(why),
            WorkerInput::Stop => self.stop(),
        }
    }

    fn changed(&mut self, view: IntentSessionView) -> Vec<WorkerAction> {
        let session = view.session_id.clone();
        match (view.state.as_str(), self.slots.contains_key(&session)) {
            ("NEW", false) if !self.is_shutting_down => {
                self.slots.insert(session.clone(), TunerSlot { view, stage: SlotStage::Taking, why: None });
                vec![WorkerAction::Take(session)]
            }
            ("STOPPING", true) => self.request_end(&session, STOPPED),
            ("ENDED", true) => self.request_end(&session, LOST),
            _ => Vec::new(),
        }
    }

    fn taken(&mut self, session: &str, now: IntentSessionStatus, until: u64) -> Vec<WorkerAction> {
        let Some(slot) = self.slots.get_mut(session) else { return Vec::new() };
        match (now.taken, now.state.as_str()) {
            (_, "ENDED") => {
                self.slots.remove(session);
                Vec::new()
            }
            // Nothing was started, so nothing has to be ended.
            (Some(_), _) if slot.why.is_some() => self.gone(session, CommandExit::Code(0)),
            (Some(taken), _) => {
                slot.stage = SlotStage::Starting;
                vec![WorkerAction::Start(Box::new(slot.view.clone()), taken, until)]
            }
            (None, _) => self.finish_session(session, STOPPED.0, STOPPED.1.to_owned()),
        }
    }

    fn started(&mut self, session: &str, process: String) -> Vec<WorkerAction> {
        let Some(slot) = self.slots.get_mut(session) else { return Vec::new() };
        slot.stage = SlotStage::Reporting(None);
        let mut acts = vec![WorkerAction::Report(session.to_owned(), process)];
        if slot.why.is_some() {
            acts.push(WorkerAction::End(session.to_owned()));
        }
        acts
    }

    fn reported(&mut self, session: &str, now: &IntentSessionStatus) -> Vec<WorkerAction> {
        let Some(slot) = self.slots.get_mut(session) else { return Vec::new() };
        let SlotStage::Reporting(gone) = slot.stage else { return Vec::new() };
        slot.stage = SlotStage::Running;
        let why = match now.state.as_str() {
            "STOPPING" => Some(STOPPED),
            "ENDED" => Some(LOST),
            _ => None,
        };
        match (gone, why) {
            (Some(ended), _) => self.gone(session, ended),
            (None, Some(why)) => self.request_end(session, why),
            (None, None) => Vec::new(),
        }
    }

    /// Its pipeline has to end, for the first reason that was found.
    fn request_end(&mut self, session: &str, why: EndReason) -> Vec<WorkerAction> {
        let Some(slot) = self.slots.get_mut(session) else { return Vec::new() };
        if slot.why.is_some() || slot.stage == SlotStage::Finishing {
            return Vec::new();
        }
        slot.why = Some(why);
        match slot.stage {
            SlotStage::Reporting(None) | SlotStage::Running => vec![WorkerAction::End(session.to_owned())],
            // When it has started, or was taken.
            _ => Vec::new(),
        }
    }

    fn gone(&mut self, session: &str, ended: CommandExit) -> Vec<WorkerAction> {
        let Some(slot) = self.slots.get_mut(session) else { return Vec::new() };
        if let SlotStage::Reporting(gone) = &mut slot.stage {
            *gone = Some(ended);
            return Vec::new();
        }
        let (reason, detail) = match (slot.why, ended) {
            (Some((reason, detail)), _) => (reason, detail.to_owned()),
            (None, CommandExit::Code(0)) => ("R_PIPELINE_EXITED", String::new()),
            (None, CommandExit::Code(code)) => {
                ("R_PIPELINE_FAILED", format!("it ended with exit code {code}"))
            }
            (None, CommandExit::Signal(signal)) => ("R_PIPELINE_FAILED", format!("signal {signal} ended it")),
        };
        self.finish_session(session, reason, detail)
    }

    fn finish_session(&mut self, session: &str, reason: &'static str, detail: String) -> Vec<WorkerAction> {
        let Some(slot) = self.slots.get_mut(session) else { return Vec::new() };
        slot.stage = SlotStage::Finishing;
        vec![WorkerAction::Finish(session.to_owned(), reason, detail)]
    }

    fn kept(&mut self, guard_until: u64, sessions: Vec<RenewalResult>) -> Vec<WorkerAction> {
        self.keeping = self.keeping.saturating_sub(1);
        self.leadership_until = self.leadership_until.max(guard_until);
        let act = |kept: RenewalResult| match (kept.until, kept.state.as_deref()) {
            (None, _) => self.request_end(&kept.session, LOST),
            (Some(until), state) => {
                let stop_reason = if state == Some("STOPPING") { Some(STOPPED) } else { None };
                let ends = stop_reason.map(|why| self.request_end(&kept.session, why));
                let mut acts = vec![WorkerAction::Extend(kept.session, until)];
                acts.extend(ends.unwrap_or_default());
                acts
            }
        };
        sessions.into_iter().flat_map(act).collect()
    }

    fn stop(&mut self) -> Vec<WorkerAction> {
        self.is_shutting_down = true;
        let sessions: Vec<String> = self.slots.keys().cloned().collect();
        sessions.iter().flat_map(|session| self.request_end(session, WORKER_STOPPED)).collect()
    }

    fn abandon(&mut self, why: String) -> Vec<WorkerAction> {
        if std::mem::replace(&mut self.is_abandoned, true) {
            return Vec::new();
        }
        vec![WorkerAction::Abandon(why)]
    }
}

#[derive(Debug)]
pub enum WorkerInput {
    Changed(Vec<IntentSessionView>),
    /// A session is ours until then, or it is not.
    Taken(String, IntentSessionStatus, u64),
    /// A session cannot be taken, and asking again does not help.
    NotTaken(String),
    /// Its pipeline runs, as these processes.
    Started(String, String),
    /// Its pipeline could not be started.
    NotStarted(String, String),
    /// There was no time left to start it.
    TooLate(String),
    /// The server knows that it runs, or says where it is instead.
    Reported(String, IntentSessionStatus),
    /// Its pipeline is being ended, because its lease is almost over.
    Ending(String),
    /// Its pipeline and everybody whom that started are gone.
    Gone(String, CommandExit),
    /// The guard is ours until then, and each session as it says.
    Kept(u64, Vec<RenewalResult>),
    /// The server knows that it is over.
    Finished(String),
    LeadershipLost(String),
    /// The worker is told to end.
    Stop,
}

/// What became of the leases of one session.
#[derive(Debug, Clone)]
pub struct RenewalResult {
    pub session: String,
    /// Until when they are believed in; nothing: they are lost.
    pub until: Option<u64>,
    pub state: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerAction {
    /// Ask for a session with its leases.
    Take(String),
    /// Start a pipeline that may run until then.
    Start(Box<IntentSessionView>, IntentSessionLeases, u64),
    /// Tell the server which processes carry it out.
    Report(String, String),
    /// Its pipeline may run until then.
    Extend(String, u64),
    End(String),
    /// Tell the server that it is over: the reason, and more for people.
    Finish(String, &'static str, String),
    /// Renew the guard and these sessions.
    Keep(Vec<String>),
    /// End every pipeline, and do nothing else any more.
    Abandon(String),
}
