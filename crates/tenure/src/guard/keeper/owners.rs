//! Whose call it is: the agent's that is nearest to whoever calls.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tenure_gate::calls::Program;
use tenure_gate::process::{Ancestor, Process, known, known_agent_at, process_of, started};

const MOST: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The agent's above us; ours, if there is none.
    First,
    /// An agent's that was started below us.
    Agent { pid: u32, started: u64 },
}

/// Who is who among those that we watch.
#[derive(Debug, Default)]
pub struct Owners {
    above: Option<Process>,
    /// An agent was started below us. Until then all calls are of one owner, and nobody has to be looked at.
    any_below: AtomicBool,
    known: Mutex<HashMap<u32, (u64, Owner)>>,
}

impl Owners {
    /// Looks who is above this process.
    pub fn new() -> Self {
        let above = known_agent_at(std::process::id()).map(|(process, _)| process);
        Self { above, ..Self::default() }
    }

    pub fn above(&self) -> Option<&Process> {
        self.above.as_ref()
    }

    /// A program is about to run.
    pub fn executes(&self, program: &Program) {
        let text = |text: &std::ffi::OsString| text.to_string_lossy().into_owned();
        let file = text(&program.file.text);
        let name = Path::new(&file).file_name().map(|name| name.to_string_lossy().into_owned());
        let described = Ancestor {
            pid: 0,
            name: name.unwrap_or_default(),
            program: Some(file),
            arguments: program.arguments.iter().map(text).collect(),
        };
        if known(&described).is_some() {
            self.any_below.store(true, Ordering::Release);
        }
    }

    /// Whose call of this thread it is.
    pub fn of(&self, thread: u32) -> Owner {
        if !self.any_below.load(Ordering::Acquire) {
            return Owner::First;
        }
        // A number alone is used again.
        let Some(since) = started(thread) else { return Owner::First };
        let mut all = self.known.lock();
        if let Some((_, owner)) = all.get(&thread).filter(|(started, _)| *started == since) {
            return *owner;
        }
        if all.len() >= MOST {
            all.clear();
        }
        let owner = self.look(thread);
        all.insert(thread, (since, owner));
        owner
    }

    /// Whether the server takes the same one for the owner as we do, by the name of its session. If not, an agent is below us that
    /// nobody knew by its name, and from now on everybody is looked at.
    pub fn agrees(&self, owner: Owner, holder: &str) -> bool {
        let process =
            holder.rsplit_once('@').and_then(|(_, rest)| rest.split(['.', '/']).next()?.parse::<u32>().ok());
        let ours = match owner {
            Owner::Agent { pid, .. } => pid,
            Owner::First => self.above.as_ref().map_or_else(std::process::id, |above| above.pid),
        };
        let agrees = process == Some(ours);
        if !agrees {
            self.any_below.store(true, Ordering::Release);
        }
        agrees
    }

    /// A thread runs another program from now on.
    pub fn forget(&self, thread: u32) {
        if self.any_below.load(Ordering::Acquire) {
            self.known.lock().remove(&thread);
        }
    }

    /// Those that made calls for an agent below us, by pid.
    pub fn threads_of(&self, owner: Owner) -> Vec<u32> {
        let all = self.known.lock();
        let is_alive = |thread: u32, since: u64| started(thread) == Some(since);
        let its = all.iter().filter(|(thread, (since, other))| *other == owner && is_alive(**thread, *since));
        its.map(|(thread, _)| *thread).collect()
    }

    /// This agent is gone, and nothing of it is left.
    pub fn is_over(&self, owner: Owner) {
        self.known.lock().retain(|_, (_, other)| *other != owner);
    }

    /// The agents below us that made calls.
    pub fn below(&self) -> Vec<Owner> {
        let all = self.known.lock();
        let mut below: Vec<Owner> = Vec::new();
        for (_, owner) in all.values() {
            if *owner != Owner::First && !below.contains(owner) {
                below.push(*owner);
            }
        }
        below
    }

    fn look(&self, thread: u32) -> Owner {
        match process_of(thread).and_then(known_agent_at) {
            Some((process, _)) if !self.above.as_ref().is_some_and(|above| above.is_same(&process)) => {
                Owner::Agent { pid: process.pid, started: process.started }
            }
            _ => Owner::First,
        }
    }
}
