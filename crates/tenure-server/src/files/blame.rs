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
use tenure_gate::blame::{Attribution, Author, Who};
use tenure_gate::git;
use tenure_gate::paths::FileKey;

use super::list::{Which, shown};
use super::local::Local;
use super::{FileFace, apart, contents, view};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;

/// Larger files are nobody's line by line.
const MOST_BYTES: u64 = 4 << 20;

/// Say which session wrote the lines of a file that are not committed.
#[utoipa::path(
    get,
    path = "/v1/files/blame",
    tag = "files",
    operation_id = "blame",
    params(("path" = String, Query, description = "The file, by any absolute path that leads to it")),
    responses((status = 200, description = "Line by line", body = Blame)),
    extensions(("x-codes" = json!(["LOCAL_ONLY"])))
)]
pub(super) async fn blame(
    State(app): State<Arc<App>>,
    caller: Caller,
    // What a file says is for who is on the machine that it is on, and its owner.
    _: Local,
    uri: Uri,
) -> Result<Response, Failure> {
    let file = Which::read(&app, &uri).await?;
    caller.require_resource(&file.resource)?;
    let owner = shown(&app, file.clone()).await?.file.map(|held| held.owner);
    let own = app.clone();
    let lines = apart(move || {
        let content = content_of(&file.absolute).ok_or_else(|| {
            Failure::invalid("path", "leads to no file that can be read, or to one of over 4 MiB")
        })?;
        let head = git::head_content(&file.tree.root, &file.relative)
            .map_err(|error| Failure::invalid("path", &error.to_string()))?;
        let stored = own.files.blame().and_then(|store| store.load(&file.resource));
        let known = stored.unwrap_or_else(|| Attribution::unchanged(&content));
        let lines = known.report(&content, head.as_deref()).into_iter().map(line).collect();
        Ok(Blame { path: view::relative(&file), owner, lines })
    });
    Ok(json(StatusCode::OK, &lines.await?))
}

/// A session changed these files: what is new in them is its own.
pub(super) async fn note(app: &Arc<App>, session: &Holder, files: Vec<FileKey>) {
    let names = files.into_iter().map(|file| (file.resource, file.absolute)).collect();
    write_down(app, author_of(app, session), names).await;
}

/// A session is about to change these files: what is new in them until now is nobody's who is known.
pub(super) async fn note_before(app: &Arc<App>, files: Vec<FileKey>) {
    let names = files.into_iter().map(|file| (file.resource, file.absolute)).collect();
    write_down(app, Some(nobody()), names).await;
}

/// A session lets go of everything: whatever changed while it had it is its own.
pub(super) async fn note_all_of(app: &Arc<App>, session: &Holder) {
    let held: Vec<Resource> = app
        .registrar
        .read(|state| state.leases_of_holder(session).map(|lease| lease.resource.clone()).collect());
    let path = |resource: &Resource| FileFace::path_of(app, resource);
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
async fn write_down(app: &Arc<App>, author: Option<Author>, files: Vec<(String, PathBuf)>) {
    let (Some(author), false) = (author, files.is_empty()) else { return };
    let app = app.clone();
    let written = tokio::task::spawn_blocking(move || {
        let Some(store) = app.files.blame() else { return };
        for (resource, path) in files {
            let Some(content) = content_of(&path) else { continue };
            let before = store.load(&resource);
            let after = match before {
                Some(before) => before.after(&content, &author),
                // The first that is seen of it is what there was before anybody changed it.
                None if author == nobody() => Attribution::unchanged(&content),
                None => Attribution::unchanged(&[]).after(&content, &author),
            };
            let _ = store.save(&resource, &after);
        }
    });
    let _ = written.await;
}

fn author_of(app: &App, session: &Holder) -> Option<Author> {
    app.registrar.read(|state| {
        let session = state.file_session(session)?;
        let task = Some(session.task.to_string()).filter(|task| !task.is_empty());
        let wall = state.clock().map_or(0, |clock| clock.anchor.wall_of(session.seen_at));
        let (name, agent) = (session.session.to_string(), session.agent.to_string());
        Some(Author { session: name, agent, at: wall / 1_000_000, task })
    })
}

/// Whoever changed a file when nobody had it.
fn nobody() -> Author {
    Author { session: String::new(), agent: String::new(), at: 0, task: None }
}

fn content_of(path: &std::path::Path) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    contents::open(path, MOST_BYTES)?.read_to_end(&mut content).ok()?;
    Some(content)
}

fn line(line: tenure_gate::blame::BlamedLine) -> BlamedLine {
    let (by, author) = match line.author {
        Who::Committed => ("committed", None),
        Who::Session(author) if author == nobody() => ("unknown", None),
        Who::Session(author) => ("session", Some(author)),
        Who::Unknown => ("unknown", None),
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
