//! For whom a guard speaks: the agent nearest to the process that is about to change a file, or the guard itself.

use std::sync::Arc;

use tenure_api::{Code, GrantGeneration};
use tenure_core::kernel::{FileSessionInfo, ProcessId};
use tenure_gate::coding_agent::CodingAgent;
use tenure_gate::process::{self, nearest_known_agent, process_of_thread};

use super::caller::{HookIdentity, ResolvedFileCaller};
use super::local_process::LocalProcess;
use super::{last_activity, spawn_blocking};
use crate::app::App;
use crate::http::fields::Fields;
use crate::http::response::HttpError;

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
    pub(super) fn read(fields: &mut Fields) -> Result<Option<Self>, HttpError> {
        let process = fields.optional_number("process")?;
        let orphan = fields.optional_flag("orphan")?.unwrap_or(false);
        let named = fields.optional_flag("named")?.unwrap_or(false);
        let Some(process) = process else { return Ok(None) };
        let process = u32::try_from(process).ok().filter(|process| *process > 0);
        let process =
            process.ok_or_else(|| HttpError::invalid("process", "must be the number of a process"))?;
        Ok(Some(Self { process, orphan, named }))
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
    let last = last_activity::last_session(app, &owner);
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
                id: session.id,
                parent: session.parent,
                agent: session.agent,
                session: session.session,
                process: owner.into(),
                task: None,
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
