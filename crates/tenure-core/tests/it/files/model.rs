//! A second opinion on files: who has what and who wants what, as plain lists, and the rules as they are told to people.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::kernel::FileSessionEnd;

/// A file by all its names; the first is the one that it is known by.
pub type FileNames = Vec<String>;

/// What somebody is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelOutcome {
    Acknowledged,
    /// How many new leases, and which files somebody else left.
    Granted(usize, Vec<(String, String)>),
    Check(Vec<String>),
    /// What is held by whom under which ticket, and until when, in seconds.
    Wait(Vec<(String, String, u64)>, u64),
    Blocked(Vec<(String, String, u64)>, u64),
    /// What was let go of, in any order, and what was committed by somebody else.
    Released(BTreeSet<String>, Vec<(String, String)>),
    Rejected(&'static str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelTicket {
    pub number: u64,
    pub session: String,
    pub file: String,
    pub due: u64,
    pub blocked: bool,
}

/// Everything, in seconds.
#[derive(Debug, Default)]
pub struct FileModel {
    /// Who lives, of whom it is a subagent, and when its turn ended.
    pub sessions: BTreeMap<String, (Option<String>, Option<u64>)>,
    pub owner: BTreeMap<String, String>,
    pub tickets: Vec<ModelTicket>,
    pub uncommitted: BTreeMap<String, String>,
    drawn: u64,
}

impl FileModel {
    /// Something was heard of a session. What it is refused with, if it is.
    pub fn record_activity(&mut self, id: &str, turn_ended: bool, now: u64) -> Result<(), ModelOutcome> {
        let parent = parent_of(id);
        if !self.sessions.contains_key(id) {
            if parent.as_ref().is_some_and(|parent| !self.sessions.contains_key(parent)) {
                return Err(ModelOutcome::Rejected("no such session"));
            }
            self.sessions.insert(id.into(), (parent, None));
        }
        let (_, turn) = self.sessions.get_mut(id).expect("it was put there");
        *turn = if turn_ended { turn.or(Some(now)) } else { None };
        Ok(())
    }

    pub fn acquire(&mut self, id: &str, files: &[FileNames], checked: &[String], now: u64) -> ModelOutcome {
        if let Err(refused) = self.record_activity(id, false, now) {
            return refused;
        }
        let held: Vec<(String, String)> = files
            .iter()
            .filter_map(|file| Some((file[0].clone(), self.first_blocking_session(id, file)?)))
            .collect();
        if held.is_empty() {
            let names = files.iter().map(|file| file[0].clone()).collect::<BTreeSet<_>>();
            let order = first_of_each(files.iter().map(|file| file[0].clone()));
            let uncommitted = order.into_iter().filter(|name| names.contains(name)).filter_map(|name| {
                let by = self.uncommitted.get(&name)?;
                (root_session(by) != root_session(id)).then(|| (name.clone(), by.clone()))
            });
            let uncommitted = uncommitted.collect();
            return ModelOutcome::Granted(self.acquire_free_names(id, files), uncommitted);
        }
        let all: BTreeSet<String> = files.iter().flat_map(|file| self.blocking_sessions(id, file)).collect();
        let unchecked = self.unchecked(all, checked);
        if !unchecked.is_empty() {
            return ModelOutcome::Check(unchecked);
        }
        self.contend(id, held, now)
    }

    fn contend(&mut self, id: &str, held: Vec<(String, String)>, now: u64) -> ModelOutcome {
        let (mut report, mut until, mut contended) = (None, u64::MAX, Vec::new());
        for (file, owner) in held {
            if contended.iter().any(|(known, _, _)| *known == file) {
                continue;
            }
            let known = self.tickets.iter_mut().find(|ticket| ticket.session == id && ticket.file == file);
            let number = match known {
                Some(ticket) => {
                    ticket.blocked |= now >= ticket.due;
                    if ticket.blocked {
                        report = report.or(Some(ticket.number));
                    } else {
                        until = until.min(ticket.due);
                    }
                    ticket.number
                }
                None => {
                    self.drawn += 1;
                    let (number, due, session) = (self.drawn, now + 180, id.into());
                    self.tickets.push(ModelTicket {
                        number,
                        session,
                        file: file.clone(),
                        due,
                        blocked: false,
                    });
                    until = until.min(due);
                    number
                }
            };
            contended.push((file, owner, number));
        }
        report.map_or_else(
            || ModelOutcome::Wait(contended.clone(), until),
            |report| ModelOutcome::Blocked(contended.clone(), report),
        )
    }

    pub fn commit(&mut self, sessions: &[String], names: &[String]) -> ModelOutcome {
        let (mut gone, mut foreign) = (BTreeSet::new(), Vec::new());
        for name in names {
            let Some(owner) = self.owner.get(name).cloned() else { continue };
            let is_theirs =
                sessions.iter().any(|session| self.session_and_ancestors(&owner).contains(session));
            if !self.sessions.contains_key(&owner) {
                continue;
            }
            if is_theirs {
                self.owner.remove(name);
                self.uncommitted.remove(name);
                gone.insert(name.clone());
            } else {
                foreign.push((name.clone(), owner));
            }
        }
        ModelOutcome::Released(gone, foreign)
    }

    pub fn release_idle(&mut self, id: &str, since: u64, keep: &[String], now: u64) -> ModelOutcome {
        match self.sessions.get(id) {
            None => ModelOutcome::Rejected("no such session"),
            Some((_, turn)) if *turn != Some(since) || now < since + 30 => ModelOutcome::Rejected("not idle"),
            Some(_) => {
                let own = self.owned_by(id);
                let gone: BTreeSet<String> = own.into_iter().filter(|name| !keep.contains(name)).collect();
                gone.iter().for_each(|name| self.release_uncommitted(name));
                ModelOutcome::Released(gone, Vec::new())
            }
        }
    }

    pub fn end(&mut self, sessions: &[String], how: FileSessionEnd) -> ModelOutcome {
        let ended: BTreeSet<String> = self
            .sessions
            .keys()
            .filter(|id| self.session_and_ancestors(id).iter().any(|above| sessions.contains(above)))
            .cloned()
            .collect();
        let mut gone = BTreeSet::new();
        for id in &ended {
            let heir = self.session_and_ancestors(id).into_iter().find(|above| !ended.contains(above));
            for name in self.owned_by(id) {
                match heir.as_ref().filter(|_| how == FileSessionEnd::TransferredToParent) {
                    Some(heir) => {
                        self.owner.insert(name.clone(), heir.clone());
                        self.tickets.retain(|ticket| ticket.session != *heir || ticket.file != name);
                    }
                    None => self.release_uncommitted(&name),
                }
                gone.insert(name);
            }
            self.tickets.retain(|ticket| ticket.session != *id);
        }
        self.sessions.retain(|id, _| !ended.contains(id));
        ModelOutcome::Released(gone, Vec::new())
    }

    pub fn transfer(&mut self, file: &FileNames, to: &str) -> ModelOutcome {
        if !self.sessions.contains_key(to) {
            return ModelOutcome::Rejected("no such session");
        }
        let is_session = |owner: &String| self.sessions.contains_key(owner);
        if file.iter().any(|name| self.owner.get(name).is_some_and(|owner| !is_session(owner))) {
            return ModelOutcome::Rejected("held");
        }
        let mut new = 0;
        for name in first_of_each(file.iter().cloned()) {
            let before = self.owner.insert(name.clone(), to.into());
            if before.as_deref() == Some(to) {
                continue;
            }
            new += 1;
            if let Some(before) = before
                && !self.session_and_ancestors(&before).contains(&to.to_owned())
            {
                self.uncommitted.insert(name.clone(), before);
            }
        }
        self.tickets.retain(|ticket| ticket.session != to || !file.contains(&ticket.file));
        ModelOutcome::Granted(new, Vec::new())
    }

    pub fn force_release(&mut self, names: &[String]) -> ModelOutcome {
        let mut gone = BTreeSet::new();
        for name in names {
            if self.owner.get(name).is_some_and(|owner| self.sessions.contains_key(owner)) {
                self.release_uncommitted(name);
                gone.insert(name.clone());
            }
        }
        ModelOutcome::Released(gone, Vec::new())
    }

    pub fn resume(&mut self, number: u64, file: &FileNames, checked: &[String]) -> ModelOutcome {
        let Some(ticket) = self.tickets.iter().find(|ticket| ticket.number == number).cloned() else {
            return ModelOutcome::Rejected("no such ticket");
        };
        if ticket.file != file[0] {
            return ModelOutcome::Rejected("invalid");
        }
        let all: BTreeSet<String> = self.blocking_sessions(&ticket.session, file).into_iter().collect();
        let is_held = !all.is_empty();
        let unchecked = self.unchecked(all, checked);
        if !unchecked.is_empty() {
            return ModelOutcome::Check(unchecked);
        }
        if is_held {
            return ModelOutcome::Rejected("held");
        }
        ModelOutcome::Granted(
            self.acquire_free_names(&ticket.session, std::slice::from_ref(file)),
            Vec::new(),
        )
    }

    /// A session and everybody above it.
    pub fn session_and_ancestors(&self, id: &str) -> Vec<String> {
        let parent = |id: &String| self.sessions.get(id).and_then(|(parent, _)| parent.clone());
        std::iter::successors(Some(id.to_owned()), parent).collect()
    }

    pub fn owned_by(&self, id: &str) -> Vec<String> {
        self.owner.iter().filter(|(_, owner)| *owner == id).map(|(name, _)| name.clone()).collect()
    }

    fn blocking_sessions(&self, id: &str, file: &FileNames) -> Vec<String> {
        let ancestry = self.session_and_ancestors(id);
        let holders = file.iter().filter_map(|name| self.owner.get(name));
        holders.filter(|owner| !ancestry.contains(owner)).cloned().collect()
    }

    fn first_blocking_session(&self, id: &str, file: &FileNames) -> Option<String> {
        self.blocking_sessions(id, file).into_iter().next()
    }

    fn unchecked(&self, all: BTreeSet<String>, checked: &[String]) -> Vec<String> {
        all.into_iter().filter(|id| self.sessions.contains_key(id) && !checked.contains(id)).collect()
    }

    fn acquire_free_names(&mut self, id: &str, files: &[FileNames]) -> usize {
        let names: BTreeSet<String> = files.iter().flatten().cloned().collect();
        self.tickets.retain(|ticket| ticket.session != id || !names.contains(&ticket.file));
        let free: Vec<_> = names.into_iter().filter(|name| !self.owner.contains_key(name)).collect();
        for name in &free {
            self.owner.insert(name.clone(), id.into());
        }
        free.len()
    }

    fn release_uncommitted(&mut self, name: &str) {
        if let Some(owner) = self.owner.remove(name) {
            self.uncommitted.insert(name.into(), owner);
        }
    }
}

/// `s0.a` is a subagent of `s0`.
pub fn parent_of(id: &str) -> Option<String> {
    id.rsplit_once('.').map(|(parent, _)| parent.into())
}

fn root_session(id: &str) -> &str {
    id.split('.').next().unwrap_or(id)
}

fn first_of_each(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut known = BTreeSet::new();
    names.into_iter().filter(|name| known.insert(name.clone())).collect()
}
