//! `POST /v1/files/events`: what hooks say beside asking.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json as value;
use tenure_api::Code;
use tenure_core::kernel::{FileCommand, FileEnd, Holder, Resource, Sign};
use tenure_gate::paths::FileKey;

use super::acquire::introduce;
use super::local::Local;
use super::speaker::{Speaker, Spoken, absolute, strings};
use super::targets::Wished;
use super::{apart, ask, audit, blame, contents, guarded, guards, liveness, targets, turns, watching};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::ManifestBody;

/// The most files in one request.
const MOST: usize = 1_000;

enum News {
    Active,
    Read,
    Wrote,
    Unguarded,
    TurnEnded,
    SubagentEnded,
    Ended,
    Guarding,
}

/// Say what was heard from a coding agent.
///
/// Each is a sign of life. The end of a turn starts the timer after which its files are let go of, and any other cancels it.
#[utoipa::path(
    post,
    path = "/v1/files/events",
    tag = "files",
    operation_id = "tellFiles",
    request_body = tenure_api::FileNews,
    responses((status = 200, description = "It is known now")),
    extensions(("x-codes" = json!(["LOCAL_ONLY", "UNGUARDED", "HOLDER_TAKEN", "TOO_MANY_SESSIONS", "NO_SPACE"])))
)]
pub(super) async fn news(
    State(app): State<Arc<App>>,
    caller: Caller,
    local: Local,
    ManifestBody(mut fields): ManifestBody,
) -> Result<Response, Failure> {
    let spoken = fields.within("speaker", Spoken::read)?;
    let event = read_event(&fields.text("event")?)?;
    let cwd = fields.optional_text("cwd")?.map(|cwd| absolute(&cwd, "cwd")).transpose()?;
    let paths = strings(&mut fields, "paths", MOST)?;
    let detail = fields.optional_text("detail")?.unwrap_or_default();
    fields.finish()?;
    let detail: String = detail.chars().filter(|character| !character.is_control()).take(200).collect();
    if spoken.is_guard() {
        // A guard says nothing of sessions, but whom it speaks for.
        if !matches!(event, News::Guarding) {
            return Err(Failure::invalid("event", "is not a guard's to tell"));
        }
        guarded::introduced(&app, local).await?;
        return Ok(json(StatusCode::OK, &value!({})));
    }
    let speaker = apart(move || spoken.find(local)).await?;
    turns::note(&app, &speaker.own.process, &speaker.own.id);
    match event {
        News::Guarding => return Err(Failure::invalid("event", "is a guard's to tell, and nobody else's")),
        News::Active => hear(&app, &caller, &speaker, Sign::Active).await?,
        News::Unguarded => {
            hear(&app, &caller, &speaker, Sign::Active).await?;
            if app.files.settings.guarded_shells {
                let what = "the command was not run: nobody would ask about the files that it changes";
                return Err(Failure::new(Code::Unguarded, what));
            }
        }
        News::Read | News::Wrote => {
            hear(&app, &caller, &speaker, Sign::Active).await?;
            let (session, own) = (speaker.own.id.clone(), app.clone());
            let files = apart(move || know(&own, &session, cwd, &paths)).await?;
            if matches!(event, News::Wrote) {
                audit::note(&app, &speaker.own.id, &files);
                blame::note(&app, &speaker.own.id, files).await;
            }
        }
        News::TurnEnded => {
            hand_up(&app, &speaker.own.id).await;
            hear(&app, &caller, &speaker, Sign::TurnEnded).await?;
            app.files.resting.wake();
        }
        // Where it is not said which one, nobody is over: else the session itself would lose all that it has.
        News::SubagentEnded if speaker.own.parent.is_none() => {
            hear(&app, &caller, &speaker, Sign::Active).await?;
        }
        News::SubagentEnded => {
            let detail = if detail.is_empty() { "the subagent is done" } else { &detail };
            liveness::end(&app, vec![speaker.own.id], FileEnd::HandedUp, detail).await;
        }
        News::Ended => {
            let detail = if detail.is_empty() { "the session is over" } else { &detail };
            blame::note_all_of(&app, &speaker.own.id).await;
            end(&app, &speaker, detail).await;
        }
    }
    Ok(json(StatusCode::OK, &value!({})))
}

/// A session is over. What its guards still have open is waited for, while nobody waits for us; its process may end meanwhile,
/// which is waited for in the same way.
async fn end(app: &Arc<App>, speaker: &Speaker, detail: &str) {
    let (session, process) = (speaker.own.id.clone(), speaker.own.process.clone());
    if app.files.guards.of(&process).is_empty() {
        liveness::end(app, vec![session], FileEnd::Ended, detail).await;
        return;
    }
    let (app, detail) = (app.clone(), detail.to_owned());
    tokio::spawn(async move {
        guards::settled(&app, &process, std::slice::from_ref(&session)).await;
        liveness::end(&app, vec![session], FileEnd::Ended, &detail).await;
    });
}

async fn hear(app: &Arc<App>, caller: &Caller, speaker: &Speaker, sign: Sign) -> Result<(), Failure> {
    introduce(app, caller, speaker).await?;
    ask(app, caller, FileCommand::Hear { session: speaker.own.clone(), sign }).await?;
    watching::watch(app, &speaker.own.process);
    Ok(())
}

/// A turn that is over with nothing in the background has no subagents any more, whether they said so or not.
async fn hand_up(app: &App, session: &Holder) {
    let children: Vec<Holder> = app.registrar.read(|state| {
        let children = state.file_sessions().filter(|other| other.parent.as_ref() == Some(session));
        children.map(|child| child.id.clone()).collect()
    });
    if !children.is_empty() {
        liveness::end(app, children, FileEnd::HandedUp, "the turn of its session is over").await;
    }
}

/// What these files hold is what the session knows of them. It reads the disk.
fn know(
    app: &App,
    session: &Holder,
    cwd: Option<PathBuf>,
    paths: &[String],
) -> Result<Vec<FileKey>, Failure> {
    let cwd = cwd.unwrap_or_else(|| PathBuf::from("/"));
    let files = targets::find(app, &Wished { cwd, paths: paths.to_vec(), entries: Vec::new() })?;
    for file in &files {
        if let (Some(content), Ok(resource)) =
            (contents::content_of(&file.absolute), Resource::parse(&file.resource))
        {
            app.files.contents.know(session, &resource, content);
        }
    }
    Ok(files)
}

fn read_event(text: &str) -> Result<News, Failure> {
    Ok(match text {
        "active" => News::Active,
        "read" => News::Read,
        "wrote" => News::Wrote,
        "unguarded" => News::Unguarded,
        "turn_ended" => News::TurnEnded,
        "subagent_ended" => News::SubagentEnded,
        "ended" => News::Ended,
        "guarding" => News::Guarding,
        _ => {
            let reason = "must be one of active, read, wrote, unguarded, turn_ended, subagent_ended, ended";
            return Err(Failure::invalid("event", reason));
        }
    })
}
