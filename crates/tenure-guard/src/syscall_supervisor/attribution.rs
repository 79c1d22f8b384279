//! Attribution: a call belongs to the nearest agent above its process.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tenure_core::kernel::ProcessId;
use tenure_host::process::{Ancestor, detect_agent, nearest_known_agent, process_of_thread, start_time};

use crate::syscall_effects::ExecutedProgram;

const MAX_THREADS: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallOwner {
    /// The agent's above us; ours, if there is none.
    Root,
    /// An agent's that was started below us.
    Agent { pid: u32, started: u64 },
}

/// Who is who among those that we watch.
#[derive(Debug, Default)]
pub struct CallAttribution {
    above: Option<ProcessId>,
    /// An agent was started below us. Until then all calls are of one owner, and nobody has to be looked at.
    any_below: AtomicBool,
    known: Mutex<HashMap<u32, (u64, CallOwner)>>,
}

impl CallAttribution {
    /// Looks who is above this process.
    pub fn detect() -> Self {
        let above = nearest_known_agent(std::process::id()).map(|(process, _)| process);
        Self { above, ..Self::default() }
    }

    pub fn ancestor_agent(&self) -> Option<&ProcessId> {
        self.above.as_ref()
    }

    /// A program is about to run.
    pub fn record_exec(&self, program: &ExecutedProgram) {
        let text = |text: &std::ffi::OsString| text.to_string_lossy().into_owned();
        let file = text(&program.file.text);
        let name = Path::new(&file).file_name().map(|name| name.to_string_lossy().into_owned());
        let described = Ancestor {
            pid: 0,
            name: name.unwrap_or_default(),
            program: Some(file),
            arguments: program.arguments.iter().map(text).collect(),
        };
        if detect_agent(&described).is_some() {
            self.any_below.store(true, Ordering::Release);
        }
    }

    /// Whose call of this thread it is.
    pub fn owner_of(&self, thread: u32) -> CallOwner {
        if !self.any_below.load(Ordering::Acquire) {
            return CallOwner::Root;
        }
        // A number alone is used again.
        let Some(since) = start_time(thread) else { return CallOwner::Root };
        let mut all = self.known.lock();
        if let Some((_, owner)) = all.get(&thread).filter(|(started, _)| *started == since) {
            return *owner;
        }
        if all.len() >= MAX_THREADS {
            all.clear();
        }
        let owner = self.look(thread);
        all.insert(thread, (since, owner));
        owner
    }

    /// Whether the server takes the same one for the owner as we do, by the name of its session. If not, an agent is below us that
    /// nobody knew by its name, and from now on everybody is looked at.
    pub fn matches_holder(&self, owner: CallOwner, holder: &str) -> bool {
        let process =
            holder.rsplit_once('@').and_then(|(_, rest)| rest.split(['.', '/']).next()?.parse::<u32>().ok());
        let ours = match owner {
            CallOwner::Agent { pid, .. } => pid,
            CallOwner::Root => self.above.as_ref().map_or_else(std::process::id, |above| above.pid),
        };
        let agrees = process == Some(ours);
        if !agrees {
            self.any_below.store(true, Ordering::Release);
        }
        agrees
    }

    /// A thread runs another program from now on.
    pub fn forget_thread(&self, thread: u32) {
        if self.any_below.load(Ordering::Acquire) {
            self.known.lock().remove(&thread);
        }
    }

    /// Those that made calls for an agent below us, by pid.
    pub fn threads_of(&self, owner: CallOwner) -> Vec<u32> {
        let all = self.known.lock();
        let is_alive = |thread: u32, since: u64| start_time(thread) == Some(since);
        let its = all.iter().filter(|(thread, (since, other))| *other == owner && is_alive(**thread, *since));
        its.map(|(thread, _)| *thread).collect()
    }

    /// This agent is gone, and nothing of it is left.
    pub fn remove_owner(&self, owner: CallOwner) {
        self.known.lock().retain(|_, (_, other)| *other != owner);
    }

    /// The agents below us that made calls.
    pub fn descendant_agents(&self) -> Vec<CallOwner> {
        let all = self.known.lock();
        let mut below: Vec<CallOwner> = Vec::new();
        for (_, owner) in all.values() {
            if *owner != CallOwner::Root && !below.contains(owner) {
                below.push(*owner);
            }
        }
        below
    }

    fn look(&self, thread: u32) -> CallOwner {
        match process_of_thread(thread).and_then(nearest_known_agent) {
            Some((process, _)) if !self.above.as_ref().is_some_and(|above| above.is_same(&process)) => {
                CallOwner::Agent { pid: process.pid, started: process.started }
            }
            _ => CallOwner::Root,
        }
    }
}
