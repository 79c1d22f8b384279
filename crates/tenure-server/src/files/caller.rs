//! The session for which a hook speaks, and the owner as responses show it.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tenure_api::{Code, FileAcquireRequest, FileCaller, FileOwner, GrantGeneration};
use tenure_core::kernel::{self, FileSessionInfo, Holder, KernelState, ProcessId};
use tenure_host::coding_agent::CodingAgent;
use tenure_host::process::{self, Liveness, ancestor_agent, nearest_known_agent, process_of_thread};

use super::{idle_release, spawn_blocking};
use crate::app::App;
use crate::http::response::HttpError;
use crate::net::Peer;

/// The longest name of a session.
const MAX_NAME_BYTES: usize = 128;
const GUARD: &str = "guard";
/// What a person is told of a task.
const MAX_TASK_BYTES: usize = 400;

/// What a hook said about itself.
#[derive(Clone)]
pub(super) struct HookIdentity {
    pub(super) agent: String,
    pub(super) session: String,
    pub(super) subagent: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) task: Option<String>,
}

/// A session, and the sessions above it that have to be known first.
pub(super) struct ResolvedFileCaller {
    pub(super) own: FileSessionInfo,
    pub(super) above: Vec<FileSessionInfo>,
}

impl HookIdentity {
    pub(super) fn parse(caller: FileCaller) -> Result<Self, HttpError> {
        check_name("session", Some(&caller.session))?;
        check_name("subagent", caller.subagent.as_ref())?;
        check_name("parent", caller.parent.as_ref())?;
        let spoken = Self {
            agent: caller.agent,
            session: caller.session,
            subagent: caller.subagent,
            parent: caller.parent,
            task: caller.task.map(|task| task_of(&task)),
        };
        if !spoken.is_guard() {
            spoken.agent.parse::<CodingAgent>().map_err(|reason| HttpError::invalid("agent", &reason))?;
        }
        Ok(spoken)
    }

    /// Whether a guard speaks, for whomever it is.
    pub(super) fn is_guard(&self) -> bool {
        self.agent == GUARD
    }

    /// Who that is. It looks at processes, so not on a thread that others wait for.
    pub(super) fn resolve(self, local: LocalProcess) -> Result<ResolvedFileCaller, HttpError> {
        let unknown = |error: std::io::Error| HttpError::invalid("speaker", &error.to_string());
        let found = ancestor_agent(local.pid, self.agent.parse().ok()).map_err(unknown)?;
        self.for_process(&found.process)
    }

    pub(super) fn for_process(self, owner: &ProcessId) -> Result<ResolvedFileCaller, HttpError> {
        let root = session_id(&self.agent, &self.session, owner);
        let text = |text: &str| -> Arc<str> { text.into() };
        let introduction = |id: String, parent: Option<&str>, session: &str, task: Option<Arc<str>>| {
            Ok::<_, HttpError>(FileSessionInfo {
                parent: parent.map(Holder::parse).transpose()?,
                agent: text(&self.agent),
                session: text(session),
                task,
                ..FileSessionInfo::new(Holder::parse(&id)?, (*owner).into())
            })
        };
        let task = self.task.as_deref().map(text);
        let Some(subagent) = &self.subagent else {
            return Ok(ResolvedFileCaller {
                own: introduction(root, None, &self.session, task)?,
                above: Vec::new(),
            });
        };
        let mut above = vec![introduction(root.clone(), None, &self.session, None)?];
        let mut parent = root.clone();
        if let Some(middle) =
            self.parent.as_ref().filter(|middle| **middle != self.session && *middle != subagent)
        {
            let id = format!("{root}/{middle}");
            above.push(introduction(id.clone(), Some(&root), &self.session, None)?);
            parent = id;
        }
        let id = format!("{root}/{subagent}");
        Ok(ResolvedFileCaller { own: introduction(id, Some(&parent), &self.session, task)?, above })
    }
}

/// The name of a session in the ledger.
pub(super) fn session_id(agent: &str, session: &str, owner: &ProcessId) -> String {
    format!("{agent}/{session}@{}.{}", owner.pid, owner.started)
}

fn check_name(field: &'static str, name: Option<&String>) -> Result<(), HttpError> {
    let is_plain =
        |name: &&String| !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains(char::is_control);
    if name.is_none_or(|name| is_plain(&name)) {
        return Ok(());
    }
    Err(HttpError::invalid(field, "must have 1 to 128 bytes, and no control characters"))
}

/// For people: on one line, and not too long.
fn task_of(text: &str) -> String {
    let plain: String =
        text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
    let mut end = plain.len().min(MAX_TASK_BYTES);
    while !plain.is_char_boundary(end) {
        end -= 1;
    }
    plain[..end].trim().to_owned()
}

/// A path that does not depend on who asks from where.
pub(super) fn parse_absolute_path(text: &str, field: &str) -> Result<PathBuf, HttpError> {
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err(HttpError::invalid(field, "must be an absolute path")) }
}

/// A process of this machine that asks over the local socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalProcess {
    pub(super) pid: u32,
}

impl<S: Send + Sync> FromRequestParts<S> for LocalProcess {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpError> {
        match parts.extensions.get::<Peer>() {
            Some(Peer::Local { pid: Some(pid), .. }) => Ok(Self { pid: *pid }),
            _ => Err(HttpError::new(
                Code::LocalOnly,
                "files are for processes of the machine that they are on; ask over the local socket, without TENURE_URL",
            )),
        }
    }
}

impl LocalProcess {
    /// Refuses what only a person may do to whoever is, or was started by, a coding agent that is known here. Else an agent
    /// that was denied would open the gate by itself.
    pub(crate) fn require_human(self, app: &App) -> Result<(), HttpError> {
        let agents: Vec<ProcessId> = app
            .registrar
            .read(|state| state.file_sessions().filter_map(|session| session.process.id()).collect());
        if agents.is_empty() {
            return Ok(());
        }
        // Who cannot be looked at is not taken for a person: an agent could send its question and be gone.
        let own = process::of(self.pid).map_err(|_| unseen())?;
        let line: Vec<ProcessId> = std::iter::once(own).chain(process::ancestors(self.pid)).collect();
        let is_agent = line.iter().any(|process| agents.iter().any(|agent| agent.is_same(process)));
        if !is_agent {
            return Ok(());
        }
        Err(HttpError::new(
            Code::AgentForbidden,
            "this was asked by a process of a coding agent; only a person may give files away, release them by force, let a \
             blocked session go on, or stop the server: run the command in a terminal of your own",
        ))
    }
}

fn unseen() -> HttpError {
    HttpError::new(
        Code::AgentForbidden,
        "the process that asked has ended, or is in a pid namespace that cannot be seen from here, so nobody knows whether a \
         coding agent started it; only a person may do this: run the command in a terminal of your own, on this machine",
    )
}

/// What a session is called while nobody has said its name: an agent that is known, and has said nothing yet.
pub(super) const UNNAMED: &str = "guard";

/// How often is looked whose call it is before it is given up.
const TRIES: usize = 8;

/// What a guard says beside the files.
#[derive(Debug, Clone, Copy)]
pub(super) struct GuardRequest {
    process: u32,
    /// Whether whoever started that is gone.
    orphan: bool,
    named: bool,
}

impl GuardRequest {
    pub(super) fn parse(request: &FileAcquireRequest) -> Result<Option<Self>, HttpError> {
        let FileAcquireRequest { process, orphan, named, .. } = *request;
        if process == Some(0) {
            return Err(HttpError::invalid("process", "must be the number of a process"));
        }
        Ok(process.map(|process| Self { process, orphan, named }))
    }

    /// Who that is, and the mark under which it may be relied on.
    pub(super) async fn resolve_caller(
        &self,
        app: &Arc<App>,
        local: LocalProcess,
        spoken: &HookIdentity,
    ) -> Result<(ResolvedFileCaller, Option<GrantGeneration>), HttpError> {
        let (own, guarded, spoken) = (app.clone(), *self, spoken.clone());
        spawn_blocking(move || {
            let guard = process::of(local.pid).map_err(|_| gone("the guard that asks"))?;
            for _ in 0..TRIES {
                let file_caller = find(&own, &guard, guarded, &spoken)?;
                if let Some(owner) = file_caller.own.process.id() {
                    own.files.guards.record(&owner, &guard);
                }
                let standing = own.files.grant_generations.generation_of(&file_caller.own.process);
                // Another session may have been heard of before the mark was read: then the mark would stand for that one.
                if find(&own, &guard, guarded, &spoken)?.own.id == file_caller.own.id {
                    return Ok((file_caller, standing));
                }
            }
            Err(HttpError::new(Code::Busy, "sessions of this agent speak in turns, too quickly; ask again"))
        })
        .await
    }
}

/// A guard begins: whom it speaks for is known before its front ends.
pub(super) async fn register_guard(app: &Arc<App>, local: LocalProcess) -> Result<(), HttpError> {
    let own = app.clone();
    spawn_blocking(move || {
        let guard = process::of(local.pid).map_err(|_| gone("the guard that asks"))?;
        if let Some((owner, _)) = nearest_known_agent(local.pid) {
            own.files.guards.record(&owner, &guard);
        }
        Ok(())
    })
    .await
}

fn find(
    app: &App,
    guard: &ProcessId,
    guarded: GuardRequest,
    spoken: &HookIdentity,
) -> Result<ResolvedFileCaller, HttpError> {
    // A thread is of its process.
    let leader = process_of_thread(guarded.process).ok_or_else(|| gone("the process that is meant"))?;
    let process = process::of(leader).map_err(|_| gone("the process that is meant"))?;
    if !process::is_descendant(&process, guard) {
        return Err(HttpError::invalid("process", "is not below the guard that asks"));
    }
    let Some((owner, agent)) = owner_of(app, guard, leader, guarded.orphan)? else {
        return spoken.clone().for_process(guard);
    };
    let spoken = HookIdentity { agent: agent.as_str().to_owned(), ..spoken.clone() };
    let last = idle_release::last_session(app, &owner);
    if guarded.named {
        let named_caller = spoken.clone().for_process(&owner)?;
        // A name that this process does not have is somebody else's, and was inherited.
        let is_its = app.registrar.read(|state| state.file_session(&named_caller.own.id).is_some());
        if is_its || last.is_none() {
            return Ok(named_caller);
        }
    }
    match last {
        Some(session) => {
            let own = FileSessionInfo {
                parent: session.parent,
                agent: session.agent,
                session: session.session,
                ..FileSessionInfo::new(session.id, owner.into())
            };
            Ok(ResolvedFileCaller { own, above: Vec::new() })
        }
        None => HookIdentity { session: UNNAMED.to_owned(), subagent: None, parent: None, ..spoken }
            .for_process(&owner),
    }
}

/// The agent whose change it is; nothing if it is the guard's own.
fn owner_of(
    app: &App,
    guard: &ProcessId,
    process: u32,
    orphan: bool,
) -> Result<Option<(ProcessId, CodingAgent)>, HttpError> {
    if let Some(found) = nearest_known_agent(process) {
        return Ok(Some(found));
    }
    let Some(owner) = app.files.guards.owner_of(guard, orphan) else { return Ok(None) };
    match nearest_known_agent(owner.pid) {
        Some((known, agent)) if known.is_same(&owner) => Ok(Some((owner, agent))),
        _ => Err(HttpError::invalid(
            "process",
            "was started for an agent that is gone; nothing can be changed for it any more",
        )),
    }
}

fn gone(process: &str) -> HttpError {
    HttpError::invalid(
        "process",
        &format!("cannot be found: {process} is gone, or in a namespace that is not seen from here"),
    )
}

/// Whoever it is, as it is now. It looks at the process.
pub(super) fn owner_view(owner: &kernel::FileOwner) -> FileOwner {
    let process = owner.process.id();
    let liveness = process.as_ref().map_or(Liveness::Dead, process::liveness);
    FileOwner {
        agent: owner.agent.to_string(),
        session: if owner.session.is_empty() {
            owner.holder.as_str().to_owned()
        } else {
            owner.session.to_string()
        },
        holder: owner.holder.as_str().to_owned(),
        pid: process.map_or(0, |process| process.pid),
        alive: liveness != Liveness::Dead,
        suspended: liveness == Liveness::Suspended,
        task: owner.task.to_string(),
    }
}

/// Who has this name, as far as that is known.
pub(super) fn known_owner(state: &KernelState, holder: &Holder) -> kernel::FileOwner {
    state
        .file_session(holder)
        .map_or_else(|| kernel::FileOwner::from_holder(holder.clone()), |session| session.owner())
}

/// The same, without a look at its process.
pub(super) fn unchecked_owner_view(found: &kernel::FileOwner) -> FileOwner {
    FileOwner {
        agent: found.agent.to_string(),
        session: found.session.to_string(),
        holder: found.holder.as_str().to_owned(),
        pid: 0,
        alive: false,
        suspended: false,
        task: found.task.to_string(),
    }
}
