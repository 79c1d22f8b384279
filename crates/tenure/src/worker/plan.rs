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

use std::collections::BTreeMap;

use tenure_api::{SessionNow, SessionView};

use super::steps::{Act, Input, Kept};
use crate::watched::Ended;

/// How many sessions are kept with one request.
const MOST_KEPT: usize = 1_024;

/// Why a pipeline is ended, and what is said about that.
type Why = (&'static str, &'static str);

const STOPPED: Why = ("R_STOPPED", "somebody asked for its end");
const LOST: Why = ("R_LEASE_EXPIRED", "a lease of it was lost");
const LATE: Why = ("R_LEASE_EXPIRED", "its leases were not renewed in time");
const TOLD: Why = ("R_WORKER_STOPPED", "its worker was told to stop");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Taking,
    Starting,
    /// The server is being told that it runs; it may be gone meanwhile.
    Reporting(Option<Ended>),
    Running,
    Finishing,
}

#[derive(Debug)]
struct Seat {
    view: SessionView,
    stage: Stage,
    /// Why it has to end, if it has to.
    why: Option<Why>,
}

#[derive(Debug)]
pub struct Plan {
    seats: BTreeMap<String, Seat>,
    /// Until when the guard is surely ours.
    guard_until: u64,
    renew_every: u64,
    keep_at: u64,
    /// How many requests to keep are under way.
    keeping: usize,
    is_stopping: bool,
    is_over: bool,
}

impl Plan {
    /// A worker whose guard is its own until then.
    pub fn new(guard_until: u64, renew_every: u64, now: u64) -> Self {
        Self {
            seats: BTreeMap::new(),
            guard_until,
            renew_every,
            keep_at: now.saturating_add(renew_every),
            keeping: 0,
            is_stopping: false,
            is_over: false,
        }
    }

    /// Whether the worker was told to end, and nothing is left to be done.
    pub fn is_done(&self) -> bool {
        self.is_stopping && self.seats.is_empty()
    }

    /// When to look at the clock again.
    pub fn wake_at(&self) -> u64 {
        if self.keeping > 0 { self.guard_until } else { self.guard_until.min(self.keep_at) }
    }

    /// What is due at `now`.
    pub fn wake(&mut self, now: u64) -> Vec<Act> {
        if now >= self.guard_until {
            return self.give_up("the guard was not renewed in time".to_owned());
        }
        if self.is_over || self.keeping > 0 || now < self.keep_at {
            return Vec::new();
        }
        self.keep_at = now.saturating_add(self.renew_every);
        let holds = |seat: &Seat| !matches!(seat.stage, Stage::Taking | Stage::Finishing);
        let held = self.seats.iter().filter(|(_, seat)| holds(seat));
        let held: Vec<String> = held.map(|(session, _)| session.clone()).collect();
        // The guard is renewed even if there is nothing else.
        let mut keeps: Vec<Act> = held.chunks(MOST_KEPT).map(|part| Act::Keep(part.to_vec())).collect();
        if keeps.is_empty() {
            keeps.push(Act::Keep(Vec::new()));
        }
        self.keeping = keeps.len();
        keeps
    }

    pub fn tell(&mut self, input: Input) -> Vec<Act> {
        if self.is_over {
            return Vec::new();
        }
        match input {
            Input::Changed(sessions) => sessions.into_iter().flat_map(|view| self.changed(view)).collect(),
            Input::Taken(session, now, until) => self.taken(&session, now, until),
            Input::NotTaken(session) | Input::Finished(session) => {
                self.seats.remove(&session);
                Vec::new()
            }
            Input::Started(session, process) => self.started(&session, process),
            Input::NotStarted(session, why) => self.over(&session, "R_PIPELINE_FAILED", why),
            Input::TooLate(session) => self.over(&session, LATE.0, LATE.1.to_owned()),
            Input::Reported(session, now) => self.reported(&session, &now),
            Input::Ending(session) => self.want_end(&session, LATE),
            Input::Gone(session, ended) => self.gone(&session, ended),
            Input::Kept(until, sessions) => self.kept(until, sessions),
            Input::GuardLost(why) => self.give_up(why),
            Input::Stop => self.stop(),
        }
    }

    fn changed(&mut self, view: SessionView) -> Vec<Act> {
        let session = view.session_id.clone();
        match (view.state.as_str(), self.seats.contains_key(&session)) {
            ("NEW", false) if !self.is_stopping => {
                self.seats.insert(session.clone(), Seat { view, stage: Stage::Taking, why: None });
                vec![Act::Take(session)]
            }
            ("STOPPING", true) => self.want_end(&session, STOPPED),
            ("ENDED", true) => self.want_end(&session, LOST),
            _ => Vec::new(),
        }
    }

    fn taken(&mut self, session: &str, now: SessionNow, until: u64) -> Vec<Act> {
        let Some(seat) = self.seats.get_mut(session) else { return Vec::new() };
        match (now.taken, now.state.as_str()) {
            (_, "ENDED") => {
                self.seats.remove(session);
                Vec::new()
            }
            // Nothing was started, so nothing has to be ended.
            (Some(_), _) if seat.why.is_some() => self.gone(session, Ended::Code(0)),
            (Some(taken), _) => {
                seat.stage = Stage::Starting;
                vec![Act::Start(Box::new(seat.view.clone()), taken, until)]
            }
            (None, _) => self.over(session, STOPPED.0, STOPPED.1.to_owned()),
        }
    }

    fn started(&mut self, session: &str, process: String) -> Vec<Act> {
        let Some(seat) = self.seats.get_mut(session) else { return Vec::new() };
        seat.stage = Stage::Reporting(None);
        let mut acts = vec![Act::Report(session.to_owned(), process)];
        if seat.why.is_some() {
            acts.push(Act::End(session.to_owned()));
        }
        acts
    }

    fn reported(&mut self, session: &str, now: &SessionNow) -> Vec<Act> {
        let Some(seat) = self.seats.get_mut(session) else { return Vec::new() };
        let Stage::Reporting(gone) = seat.stage else { return Vec::new() };
        seat.stage = Stage::Running;
        let why = match now.state.as_str() {
            "STOPPING" => Some(STOPPED),
            "ENDED" => Some(LOST),
            _ => None,
        };
        match (gone, why) {
            (Some(ended), _) => self.gone(session, ended),
            (None, Some(why)) => self.want_end(session, why),
            (None, None) => Vec::new(),
        }
    }

    /// Its pipeline has to end, for the first reason that was found.
    fn want_end(&mut self, session: &str, why: Why) -> Vec<Act> {
        let Some(seat) = self.seats.get_mut(session) else { return Vec::new() };
        if seat.why.is_some() || seat.stage == Stage::Finishing {
            return Vec::new();
        }
        seat.why = Some(why);
        match seat.stage {
            Stage::Reporting(None) | Stage::Running => vec![Act::End(session.to_owned())],
            // When it has started, or was taken.
            _ => Vec::new(),
        }
    }

    fn gone(&mut self, session: &str, ended: Ended) -> Vec<Act> {
        let Some(seat) = self.seats.get_mut(session) else { return Vec::new() };
        if let Stage::Reporting(gone) = &mut seat.stage {
            *gone = Some(ended);
            return Vec::new();
        }
        let (reason, detail) = match (seat.why, ended) {
            (Some((reason, detail)), _) => (reason, detail.to_owned()),
            (None, Ended::Code(0)) => ("R_PIPELINE_EXITED", String::new()),
            (None, Ended::Code(code)) => ("R_PIPELINE_FAILED", format!("it ended with exit code {code}")),
            (None, Ended::Signal(signal)) => ("R_PIPELINE_FAILED", format!("signal {signal} ended it")),
        };
        self.over(session, reason, detail)
    }

    fn over(&mut self, session: &str, reason: &'static str, detail: String) -> Vec<Act> {
        let Some(seat) = self.seats.get_mut(session) else { return Vec::new() };
        seat.stage = Stage::Finishing;
        vec![Act::Finish(session.to_owned(), reason, detail)]
    }

    fn kept(&mut self, guard_until: u64, sessions: Vec<Kept>) -> Vec<Act> {
        self.keeping = self.keeping.saturating_sub(1);
        self.guard_until = self.guard_until.max(guard_until);
        let act = |kept: Kept| match (kept.until, kept.state.as_deref()) {
            (None, _) => self.want_end(&kept.session, LOST),
            (Some(until), state) => {
                let stopping = if state == Some("STOPPING") { Some(STOPPED) } else { None };
                let ends = stopping.map(|why| self.want_end(&kept.session, why));
                let mut acts = vec![Act::Extend(kept.session, until)];
                acts.extend(ends.unwrap_or_default());
                acts
            }
        };
        sessions.into_iter().flat_map(act).collect()
    }

    fn stop(&mut self) -> Vec<Act> {
        self.is_stopping = true;
        let sessions: Vec<String> = self.seats.keys().cloned().collect();
        sessions.iter().flat_map(|session| self.want_end(session, TOLD)).collect()
    }

    fn give_up(&mut self, why: String) -> Vec<Act> {
        if std::mem::replace(&mut self.is_over, true) {
            return Vec::new();
        }
        vec![Act::GiveUp(why)]
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
