//! `POST /v1/files/acquire`: an agent is about to change files.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{FileVerdict, VerdictKind};
use tenure_core::kernel::{FileAcquire, FileAnswer, FileCommand, Holder, Introduction, Sign, Tick};
use tenure_gate::paths::FileKey;

use super::guarded::{Guarded, UNNAMED};
use super::local::Local;
use super::speaker::{Speaker, Spoken, absolute, strings};
use super::targets::Wished;
use super::{apart, ask, audit, blame, identity, liveness, speaker, targets, turns, verdict, watching};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::ManifestBody;
use crate::http::fields::Fields;

/// The most files in one request.
const MOST: usize = 1_000;
/// How often the names of files may change under the question before it is given up.
const MOST_ROUNDS: usize = 8;

struct Asked {
    spoken: Spoken,
    guarded: Option<Guarded>,
    wished: Wished,
    whole: bool,
}

/// Ask whether an agent may change files.
///
/// All of them or none. Where somebody who lives has one, the answer says who, and when the one retry is due: the same asked
/// again then is that retry.
#[utoipa::path(
    post,
    path = "/v1/files/acquire",
    tag = "files",
    operation_id = "acquireFiles",
    request_body = tenure_api::FileAsk,
    responses((status = 200, description = "Whether it may", body = FileVerdict)),
    extensions(("x-codes" = json!(["LOCAL_ONLY", "HOLDER_TAKEN", "TOO_MANY_SESSIONS", "QUEUE_FULL", "NO_SPACE", "HELD_BACK"])))
)]
pub(super) async fn acquire(
    State(app): State<Arc<App>>,
    caller: Caller,
    local: Local,
    ManifestBody(fields): ManifestBody,
) -> Result<Response, Failure> {
    let Asked { spoken, guarded, wished, whole } = read(fields)?;
    let background = guarded.is_some();
    let (speaker, standing) = match guarded {
        // The mark comes before the lease: once that is there, its end changes the mark.
        Some(guarded) => guarded.speaker(&app, local, &spoken).await?,
        None => {
            let speaker = apart(move || spoken.find(local)).await?;
            turns::note(&app, &speaker.own.process, &speaker.own.id);
            (speaker, None)
        }
    };
    // Nothing is let go of between the question and the answer: whoever looks what is open looks before or after.
    let turn = app.files.turns.of(&speaker.own.process);
    let _turn = turn.read().await;
    // Before anything is got in its name: whoever asks may hang up at any moment.
    watching::watch(&app, &speaker.own.process);
    introduce(&app, &caller, &speaker).await?;
    let session = speaker.own.id.clone();
    let (files, answered) = settle(&app, &caller, (&speaker, background), &wished).await?;
    // Once more: it may have ended before its session was known.
    watching::watch(&app, &speaker.own.process);
    audit::note(&app, &session, &files);
    if let FileAnswer::Granted { leases, .. } = &answered.0
        && !leases.is_empty()
    {
        blame::note_before(&app, files.clone()).await;
    }
    if background {
        app.files.resting.wake();
    }
    let mut verdict = verdict::said(&app, (&session, &speaker.own.process), files, whole, answered).await?;
    if verdict.verdict == VerdictKind::Granted && verdict.held.is_empty() {
        verdict.standing = standing;
    }
    Ok(json(StatusCode::OK, &verdict))
}

/// Asks the kernel, until what was asked for is what the names lead to.
async fn settle(
    app: &Arc<App>,
    caller: &Caller,
    (speaker, background): (&Speaker, bool),
    wished: &Wished,
) -> Result<(Vec<FileKey>, (FileAnswer, Tick)), Failure> {
    let mut got = Vec::new();
    for _ in 0..MOST_ROUNDS {
        let files = look(app, wished).await?;
        files.iter().try_for_each(|file| caller.require_resource(&file.resource))?;
        let question = |checked| {
            let (session, files) = (speaker.own.clone(), targets::wants(&files)?);
            Ok(FileCommand::Acquire(FileAcquire { session, files, checked, background }))
        };
        let (mut answer, now) = liveness::settle(app, caller, question).await?;
        let FileAnswer::Granted { leases, .. } = &mut answer else { return Ok((files, (answer, now))) };
        // What an earlier round got is got only now as well: until then, others could change it.
        got.append(leases);
        if look(app, wished).await? == files {
            leases.clone_from(&got);
            return Ok((files, (answer, now)));
        }
        // A link was laid or a folder moved while the question was under way: what was got may not be all that leads there.
    }
    Err(Failure::invalid("paths", "change under the question; ask again when nothing moves them"))
}

/// Sessions above the one that speaks are known before it; and what a guard got for its process before anybody said its name is
/// its own.
pub(super) async fn introduce(app: &Arc<App>, caller: &Caller, speaker: &Speaker) -> Result<(), Failure> {
    let root = speaker.above.first().unwrap_or(&speaker.own);
    if let Some(from) = unnamed(app, root)? {
        ask(app, caller, FileCommand::Adopt { from, to: root.clone() }).await?;
    }
    for session in &speaker.above {
        if app.registrar.read(|state| state.file_session(&session.id).is_none()) {
            let hear = FileCommand::Hear { session: session.clone(), sign: Sign::Active };
            ask(app, caller, hear).await?;
            watching::watch(app, &session.process);
        }
    }
    Ok(())
}

/// The session without a name of the same process, if there is one.
fn unnamed(app: &App, root: &Introduction) -> Result<Option<Holder>, Failure> {
    let Some(process) = identity::process_in(&root.process) else { return Ok(None) };
    let id = Holder::parse(&speaker::id(&root.agent, UNNAMED, &process))?;
    let is_there = id != root.id && app.registrar.read(|state| state.file_session(&id).is_some());
    Ok(is_there.then_some(id))
}

async fn look(app: &Arc<App>, wished: &Wished) -> Result<Vec<FileKey>, Failure> {
    let (app, wished) = (app.clone(), wished.clone());
    apart(move || targets::find(&app, &wished)).await
}

fn read(mut fields: Fields) -> Result<Asked, Failure> {
    let spoken = fields.within("speaker", Spoken::read)?;
    let cwd: PathBuf = absolute(&fields.text("cwd")?, "cwd")?;
    let paths = strings(&mut fields, "paths", MOST)?;
    let entries = strings(&mut fields, "entries", MOST)?;
    let whole = fields.optional_flag("whole")?.unwrap_or(false);
    let guarded = Guarded::read(&mut fields)?;
    fields.finish()?;
    if guarded.is_some() != spoken.is_guard() {
        return Err(Failure::invalid("process", "is what a guard says, and nobody else"));
    }
    if paths.is_empty() && entries.is_empty() {
        return Err(Failure::invalid("paths", "is empty; name at least one file"));
    }
    Ok(Asked { spoken, guarded, wished: Wished { cwd, paths, entries }, whole })
}
