//! For whom a guard speaks: the agent nearest to the process that is about to change a file, or the guard itself.

use std::sync::Arc;

use tenure_api::{Code, Standing};
use tenure_core::kernel::Introduction;
use tenure_gate::agent::Agent;
use tenure_gate::process::{Process, known_agent_at, process_of};

use super::local::Local;
use super::speaker::{Speaker, Spoken};
use super::{apart, identity, turns};
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::fields::Fields;

/// What a session is called while nobody has said its name: an agent that is known, and has said nothing yet.
pub(super) const UNNAMED: &str = "guard";

/// How often is looked whose call it is before it is given up.
const TRIES: usize = 8;

/// What a guard says beside the files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guarded {
    process: u32,
    /// Whether whoever started that is gone.
    orphan: bool,
    named: bool,
}

impl Guarded {
    pub(super) fn read(fields: &mut Fields) -> Result<Option<Self>, Failure> {
        let process = fields.optional_number("process")?;
        let orphan = fields.optional_flag("orphan")?.unwrap_or(false);
        let named = fields.optional_flag("named")?.unwrap_or(false);
        let Some(process) = process else { return Ok(None) };
        let process = u32::try_from(process).ok().filter(|process| *process > 0);
        let process =
            process.ok_or_else(|| Failure::invalid("process", "must be the number of a process"))?;
        Ok(Some(Self { process, orphan, named }))
    }

    /// Who that is, and the mark under which it may be relied on.
    pub(super) async fn speaker(
        &self,
        app: &Arc<App>,
        local: Local,
        spoken: &Spoken,
    ) -> Result<(Speaker, Option<Standing>), Failure> {
        let (own, guarded, spoken) = (app.clone(), *self, spoken.clone());
        apart(move || {
            let guard = Process::of(local.pid).map_err(|_| gone("the guard that asks"))?;
            for _ in 0..TRIES {
                let speaker = find(&own, &guard, guarded, &spoken)?;
                own.files.guards.note(&speaker.own.process, &guard);
                let standing = own.files.standings.of(&speaker.own.process);
                // Another session may have been heard of before the mark was read: then the mark would stand for that one.
                if find(&own, &guard, guarded, &spoken)?.own.id == speaker.own.id {
                    return Ok((speaker, standing));
                }
            }
            Err(Failure::new(Code::Busy, "sessions of this agent speak in turns, too quickly; ask again"))
        })
        .await
    }
}

/// A guard begins: whom it speaks for is known before its front ends.
pub(super) async fn introduced(app: &Arc<App>, local: Local) -> Result<(), Failure> {
    let own = app.clone();
    apart(move || {
        let guard = Process::of(local.pid).map_err(|_| gone("the guard that asks"))?;
        if let Some((owner, _)) = known_agent_at(local.pid) {
            own.files.guards.note(&identity::text_of(&owner), &guard);
        }
        Ok(())
    })
    .await
}

fn find(app: &App, guard: &Process, guarded: Guarded, spoken: &Spoken) -> Result<Speaker, Failure> {
    // A thread is of its process.
    let leader = process_of(guarded.process).ok_or_else(|| gone("the process that is meant"))?;
    let process = Process::of(leader).map_err(|_| gone("the process that is meant"))?;
    if !process.is_descendant(guard) {
        return Err(Failure::invalid("process", "is not below the guard that asks"));
    }
    let Some((owner, agent)) = owner_of(app, guard, leader, guarded.orphan)? else {
        return spoken.clone().of(guard);
    };
    let spoken = Spoken { agent: agent.as_str().to_owned(), ..spoken.clone() };
    let last = turns::last(app, &owner);
    if guarded.named {
        let wanted = spoken.clone().of(&owner)?;
        // A name that this process does not have is somebody else's, and was inherited.
        let is_its = app.registrar.read(|state| state.file_session(&wanted.own.id).is_some());
        if is_its || last.is_none() {
            return Ok(wanted);
        }
    }
    match last {
        Some(session) => {
            let own = Introduction {
                id: session.id,
                parent: session.parent,
                agent: session.agent,
                session: session.session,
                process: identity::text_of(&owner).into(),
                task: None,
            };
            Ok(Speaker { own, above: Vec::new() })
        }
        None => Spoken { session: UNNAMED.to_owned(), subagent: None, parent: None, ..spoken }.of(&owner),
    }
}

/// The agent whose change it is; nothing if it is the guard's own.
fn owner_of(
    app: &App,
    guard: &Process,
    process: u32,
    orphan: bool,
) -> Result<Option<(Process, Agent)>, Failure> {
    if let Some(found) = known_agent_at(process) {
        return Ok(Some(found));
    }
    let Some(owner) = app.files.guards.owner_of(guard, orphan) else { return Ok(None) };
    match known_agent_at(owner.pid) {
        Some((known, agent)) if known.is_same(&owner) => Ok(Some((owner, agent))),
        _ => Err(Failure::invalid(
            "process",
            "was started for an agent that is gone; nothing can be changed for it any more",
        )),
    }
}

fn gone(who: &str) -> Failure {
    Failure::invalid(
        "process",
        &format!("cannot be found: {who} is gone, or in a namespace that is not seen from here"),
    )
}
