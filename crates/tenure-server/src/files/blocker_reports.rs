//! `GET /v1/files/reports`: sessions that stopped because a file was held.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{BlockerReport, BlockerReportList, Code};
use tenure_core::kernel::{
    FileCommand, FileOutcome, FileOwner, KernelState as Kernel, RetryTicket, RetryTicketEnd, Ticket,
};

use super::caller::LocalProcess;
use super::{caller, liveness, resolve, spawn_blocking, view};
use crate::app::{App, tick_to_rfc3339};
use crate::http::auth::Caller;
use crate::http::response::{HttpError, json, unexpected};

/// List blocker reports, oldest first.
#[utoipa::path(
    get,
    path = "/v1/files/reports",
    tag = "files",
    operation_id = "blockerReports",
    responses((status = 200, description = "List of reports", body = BlockerReportList))
)]
pub(super) async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, HttpError> {
    let found: Vec<ReportSnapshot> = app.registrar.read(|state| {
        let seen = state.blocked_reports().filter(|report| caller.can_see(report.request.resource.as_str()));
        seen.filter_map(|report| ReportSnapshot::of(state, report)).collect()
    });
    let reports =
        spawn_blocking(move || Ok(found.into_iter().map(|found| found.into_view(&app)).collect())).await?;
    Ok(json(StatusCode::OK, &BlockerReportList { reports }))
}

/// Get a blocker report.
#[utoipa::path(
    get,
    path = "/v1/files/reports/{id}",
    tag = "files",
    operation_id = "blockerReport",
    params(("id" = String, Path, description = "Report id, such as `R-17`")),
    responses((status = 200, description = "The blocker report", body = BlockerReport)),
    extensions(("x-codes" = json!(["NOT_FOUND"])))
)]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, HttpError> {
    let ticket = named(path)?;
    Ok(json(StatusCode::OK, &one(app, &caller, ticket).await?))
}

/// Resume a blocked session by granting its file, if free.
#[utoipa::path(
    post,
    path = "/v1/files/reports/{id}/resume",
    tag = "files",
    operation_id = "resumeReport",
    params(("id" = String, Path, description = "Report id, such as `R-17`")),
    responses((status = 200, description = "File was granted", body = BlockerReport)),
    extensions(("x-codes" = json!(["NOT_FOUND", "HELD", "LOCAL_ONLY", "AGENT_FORBIDDEN", "NO_SPACE", "HELD_BACK"])))
)]
pub(super) async fn resume(
    State(app): State<Arc<App>>,
    caller: Caller,
    local: LocalProcess,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, HttpError> {
    let report = named(path)?;
    local.require_human(&app)?;
    let resource = app.registrar.read(|state| {
        let open = state.retry_ticket(report).filter(|report| report.end.is_none());
        open.map(|report| (report.request.resource.clone(), report.session.clone()))
    });
    let (resource, session) = resource.ok_or_else(no_such_report)?;
    if liveness::end_dead_sessions(&app, std::slice::from_ref(&session)).await.is_empty() {
        return Err(no_such_report());
    }
    caller.require_resource(resource.as_str())?;
    let own = app.clone();
    let file = spawn_blocking(move || {
        // As it is reached now; a file that cannot be looked at has the one name that the report knows.
        let place = super::FilesApi::path_of(&own, &resource);
        let found = place.and_then(|path| resolve::resolve_path(&own, &path).ok().flatten());
        match found {
            Some(file) if file.resource == resource.as_str() => resolve::file_request(&file),
            _ => Ok(tenure_core::kernel::FileRequest { resource, aliases: Vec::new(), nonces: Vec::new() }),
        }
    })
    .await?;
    let command = |checked| Ok(FileCommand::Resume { report, file: file.clone(), checked });
    match liveness::execute_with_liveness_checks(&app, &caller, command).await?.0 {
        FileOutcome::Granted { .. } => Ok(json(StatusCode::OK, &one(app, &caller, report).await?)),
        _ => Err(unexpected()),
    }
}

async fn one(app: Arc<App>, caller: &Caller, ticket: Ticket) -> Result<BlockerReport, HttpError> {
    let found = app.registrar.read(|state| {
        let report = state.retry_ticket(ticket).filter(|report| report.blocked.is_some())?;
        if caller.can_see(report.request.resource.as_str()) {
            ReportSnapshot::of(state, report)
        } else {
            None
        }
    });
    let found = found.ok_or_else(no_such_report)?;
    spawn_blocking(move || Ok(found.into_view(&app))).await
}

fn named(path: Result<Path<String>, PathRejection>) -> Result<Ticket, HttpError> {
    let Path(id) = path.map_err(|_| no_such_report())?;
    let number = id.strip_prefix("R-").or(id.strip_prefix("r-")).unwrap_or(&id);
    number.parse().map(Ticket).map_err(|_| no_such_report())
}

fn no_such_report() -> HttpError {
    let detail = "there is no such report, or nobody is left to let go on; `tenure report list` shows those that are known";
    HttpError::new(Code::NotFound, detail)
}

/// A report as the state says it. Processes are looked at later.
struct ReportSnapshot {
    report: RetryTicket,
    blocked: FileOwner,
    held_now_by: Option<FileOwner>,
    times: [String; 3],
    closed_at: Option<String>,
}

impl ReportSnapshot {
    fn of(state: &Kernel, report: &RetryTicket) -> Option<Self> {
        let found = report.blocked.as_ref()?;
        let now = state
            .file_lease(&report.request.resource)
            .map(|(_, _, holder)| caller::known_owner(state, holder));
        Some(Self {
            report: report.clone(),
            blocked: caller::known_owner(state, &report.session),
            held_now_by: now,
            times: [found.seen_at, report.at, found.at].map(|tick| tick_to_rfc3339(state, tick)),
            closed_at: report.end.map(|(at, _)| tick_to_rfc3339(state, at)),
        })
    }

    fn into_view(self, app: &App) -> BlockerReport {
        let ReportSnapshot {
            report,
            blocked,
            held_now_by,
            times: [last_heartbeat_at, asked_at, blocked_at],
            closed_at,
        } = self;
        let found = report.blocked.expect("only those who were blocked have reports");
        BlockerReport {
            id: view::report_id(report.ticket),
            blocked_file: view::path(app, &report.request.resource),
            root: view::root(app, &report.request.resource),
            resource: report.request.resource.as_str().to_owned(),
            owner: caller::owner_view(&found.owner),
            lock_age_ms: found.at.since(found.held_since).as_millis(),
            last_heartbeat_at,
            retry_interval_seconds: report.retry_at.since(report.at).as_millis().div_ceil(1_000),
            state: state_of(report.end.map(|(_, end)| end)).to_owned(),
            blocked: caller::owner_view(&blocked),
            asked_at,
            blocked_at,
            circle: found.cycle.iter().map(|holder| holder.as_str().to_owned()).collect(),
            held_now_by: held_now_by.map(|owner| caller::owner_view(&owner)),
            closed_at,
        }
    }
}

fn state_of(end: Option<RetryTicketEnd>) -> &'static str {
    match end {
        None => "waiting_for_instruction",
        Some(RetryTicketEnd::Served) => "served",
        Some(RetryTicketEnd::Gone) => "gone",
        Some(RetryTicketEnd::Resumed) => "resumed",
    }
}
