//! `GET /v1/files/blame`: which session wrote the lines that are not committed.

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use jiff::Timestamp;
use tenure_api::{Blame, BlamedLine};
use tenure_core::kernel::{Holder, Resource};
use tenure_host::blame::{AgentAuthor, LineAttribution, LineAuthor};
use tenure_host::git;
use tenure_host::paths::FileKey;

use super::caller::LocalProcess;
use super::list::{FileQuery, file_view};
use super::{FilesApi, spawn_blocking, verdict, view};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::response::{HttpError, json};

/// Larger files are nobody's line by line.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Attribute uncommitted lines of a file to sessions.
#[utoipa::path(
    get,
    path = "/v1/files/blame",
    tag = "files",
    operation_id = "blame",
    params(("path" = String, Query, description = "Any absolute path of the file")),
    responses((status = 200, description = "Author of each line", body = Blame)),
    extensions(("x-codes" = json!(["LOCAL_ONLY"])))
)]
pub(super) async fn blame(
    State(app): State<Arc<App>>,
    caller: Caller,
    // What a file says is for who is on the machine that it is on, and its owner.
    _: LocalProcess,
    uri: Uri,
) -> Result<Response, HttpError> {
    let file = FileQuery::read(&app, &uri).await?;
    caller.require_resource(&file.resource)?;
    let owner = file_view(&app, file.clone()).await?.file.map(|held| held.owner);
    let own = app.clone();
    let lines = spawn_blocking(move || {
        let content = content_of(&file.absolute).ok_or_else(|| {
            HttpError::invalid("path", "leads to no file that can be read, or to one of over 4 MiB")
        })?;
        let head = git::head_content(&file.tree.root, &file.relative)
            .map_err(|error| HttpError::invalid("path", &error.to_string()))?;
        let stored = own.files.blame().and_then(|store| store.load(&file.resource));
        let known = stored.unwrap_or_else(|| LineAttribution::unchanged(&content));
        let lines = known.blame_lines(&content, head.as_deref()).into_iter().map(line).collect();
        Ok(Blame { path: view::relative(&file), owner, lines })
    });
    Ok(json(StatusCode::OK, &lines.await?))
}

/// A session changed these files: what is new in them is its own.
pub(super) async fn attribute_to_session(app: &Arc<App>, session: &Holder, files: Vec<FileKey>) {
    let names = files.into_iter().map(|file| (file.resource, file.absolute)).collect();
    write_down(app, author_of(app, session), names).await;
}

/// A session is about to change these files: what is new in them until now is nobody's who is known.
pub(super) async fn attribute_to_unknown(app: &Arc<App>, files: Vec<FileKey>) {
    let names = files.into_iter().map(|file| (file.resource, file.absolute)).collect();
    write_down(app, Some(unknown_author()), names).await;
}

/// A session lets go of everything: whatever changed while it had it is its own.
pub(super) async fn attribute_held_files(app: &Arc<App>, session: &Holder) {
    let held: Vec<Resource> = app
        .registrar
        .read(|state| state.leases_of_holder(session).map(|lease| lease.resource.clone()).collect());
    let path = |resource: &Resource| FilesApi::path_of(app, resource);
    let names = held.iter().filter_map(|name| Some((name.as_str().to_owned(), path(name)?))).collect();
    write_down(app, author_of(app, session), names).await;
}

/// What was committed is in git.
pub(super) async fn forget(app: &Arc<App>, resources: Vec<Resource>) {
    let app = app.clone();
    let forgotten = tokio::task::spawn_blocking(move || {
        let Some(store) = app.files.blame() else { return };
        for resource in resources {
            let _ = store.forget(resource.as_str());
        }
    });
    let _ = forgotten.await;
}

/// Nothing depends on it: what cannot be written down is not known later.
async fn write_down(app: &Arc<App>, author: Option<AgentAuthor>, files: Vec<(String, PathBuf)>) {
    let (Some(author), false) = (author, files.is_empty()) else { return };
    let app = app.clone();
    let written = tokio::task::spawn_blocking(move || {
        let Some(store) = app.files.blame() else { return };
        for (resource, path) in files {
            let Some(content) = content_of(&path) else { continue };
            let before = store.load(&resource);
            let after = match before {
                Some(before) => before.after_edit(&content, &author),
                // The first that is seen of it is what there was before anybody changed it.
                None if author == unknown_author() => LineAttribution::unchanged(&content),
                None => LineAttribution::unchanged(&[]).after_edit(&content, &author),
            };
            let _ = store.save(&resource, &after);
        }
    });
    let _ = written.await;
}

fn author_of(app: &App, session: &Holder) -> Option<AgentAuthor> {
    app.registrar.read(|state| {
        let session = state.file_session(session)?;
        let task = Some(session.task.to_string()).filter(|task| !task.is_empty());
        let wall = state.clock().map_or(0, |clock| clock.anchor.wall_time_of(session.seen_at));
        let (name, agent) = (session.session.to_string(), session.agent.to_string());
        Some(AgentAuthor { session: name, agent, at: wall / 1_000_000, task })
    })
}

/// Whoever changed a file when nobody had it.
fn unknown_author() -> AgentAuthor {
    AgentAuthor { session: String::new(), agent: String::new(), at: 0, task: None }
}

fn content_of(path: &std::path::Path) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    verdict::open(path, MAX_FILE_BYTES)?.read_to_end(&mut content).ok()?;
    Some(content)
}

fn line(line: tenure_host::blame::BlamedLine) -> BlamedLine {
    let (by, author) = match line.author {
        LineAuthor::Committed => ("committed", None),
        LineAuthor::Session(author) if author == unknown_author() => ("unknown", None),
        LineAuthor::Session(author) => ("session", Some(author)),
        LineAuthor::Unknown => ("unknown", None),
    };
    let at = |milliseconds: u64| {
        let time = Timestamp::from_millisecond(i64::try_from(milliseconds).ok()?).ok()?;
        Some(format!("{time:.3}"))
    };
    BlamedLine {
        number: line.number,
        text: line.text,
        by: by.to_owned(),
        at: author.as_ref().and_then(|author| at(author.at)),
        agent: author.as_ref().map(|author| author.agent.clone()),
        session: author.map(|author| author.session),
    }
}
