//! A request goes to the device, and its answer comes back.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{StatusCode, Version};
use axum::response::Response;
use hyper::client::conn::http1::{self, Connection};
use hyper_util::rt::TokioIo;
use tenure_control::ownership::Permit;
use tenure_control::problem::{Problem, ProblemCode};
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};
use tokio::time::timeout;

use super::body::{BodyProgress, CommandSlot, DeviceResponseBody, ForwardedBody, ResetOnDrop};
use super::device_tcp_stream::{DeviceTcpStream, ResetHandle};
use super::in_flight::InFlightGuard;
use super::{CommandError, GatewayContext, headers};
use crate::http::accept::Peer;

/// About how many bytes of a body are in memory at once.
const BUFFER: usize = 64 << 10;

/// Sends a request on. Nothing of its body is read before its pass was looked at for the last time.
pub(super) async fn forward(
    shared: &Arc<GatewayContext>,
    pass: Permit,
    mut request: Request<Body>,
) -> Result<Response, CommandError> {
    let target = target(request.uri())?;
    *request.uri_mut() = target;
    *request.version_mut() = Version::HTTP_11;
    let peer = request.extensions().get::<Peer>().copied();
    request.extensions_mut().clear();
    headers::to_device(request.headers_mut(), &shared.device, peer);

    let slot = ForwardSlot::take(shared, pass).await?;
    let wire = DeviceTcpStream::connect(&shared.device, shared.timeouts.connect).await;
    let wire = wire.map_err(|error| unreachable(shared, &error))?;
    let reset_handle = wire.reset_handle();
    let mut http = http1::Builder::new();
    http.max_buf_size(BUFFER);
    let (mut sender, connection) =
        http.handshake(TokioIo::new(wire)).await.map_err(|error| unreachable(shared, &error))?;

    let (command_slot, read) = match slot {
        ForwardSlot::Command(turn) => (Some(turn), None),
        ForwardSlot::Read(permit) => (None, Some(permit)),
    };
    // First the ticket, then the look: whoever changes hands in between waits for the ticket.
    let ticket = command_slot.is_some().then(|| shared.in_flight.begin(pass.epoch()));
    shared.ownership.check_permit(pass)?;
    let (cut_on_drop, response_taken) = ResetOnDrop::new();
    let device_connection = DeviceConnection {
        response_taken,
        reset_handle,
        changes: shared.ownership.subscribe(),
        in_flight: ticket,
        read_slot: read,
    };
    tokio::spawn(device_connection.drive(connection));

    let progress = BodyProgress::new();
    let request = request.map(|body| ForwardedBody::new(body, progress.clone(), command_slot.clone()));
    let response = tokio::select! {
        biased;
        answered = sender.try_send_request(request) => answered,
        is_clients_fault = progress.wait_for_stall(shared.timeouts.first_byte) => {
            shared.ownership.check_permit(pass)?;
            return Err(stalled(shared, pass, is_clients_fault).into());
        }
    };
    // The answer has begun: with the end of the request's body it is the next one's turn.
    drop(command_slot);
    let response = response.map_err(|mut error| {
        // A change of hands cuts the connection: then that is the reason.
        if let Err(rejection) = shared.ownership.check_permit(pass) {
            return CommandError::Rejected(rejection);
        }
        let was_sent = error.take_message().is_none();
        no_answer(shared, pass, was_sent, &error.into_error()).into()
    })?;
    answer(shared, response, cut_on_drop)
}

fn answer(
    shared: &GatewayContext,
    mut response: hyper::Response<hyper::body::Incoming>,
    interest: ResetOnDrop,
) -> Result<Response, CommandError> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let what = "wants to speak something else than HTTP, which nobody asked for";
        return Err(Problem::new(ProblemCode::Unavailable, device_problem_detail(shared, what)).into());
    }
    headers::to_client(response.headers_mut());
    *response.version_mut() = Version::HTTP_11;
    let patience = shared.timeouts.next_byte;
    Ok(response.map(|body| Body::new(DeviceResponseBody::new(body, interest, patience))))
}

/// What allows a request to be on its way.
enum ForwardSlot {
    /// To move the device: nobody else does.
    Command(CommandSlot),
    Read(OwnedSemaphorePermit),
}

impl ForwardSlot {
    async fn take(shared: &GatewayContext, pass: Permit) -> Result<Self, CommandError> {
        if pass.is_unconditional() {
            let permit = timeout(shared.timeouts.first_byte, shared.read_slots.clone().acquire_owned()).await;
            let busy = |_| {
                let detail = "answers others, who were first and are slow; try again in a moment";
                Problem::new(ProblemCode::Busy, device_problem_detail(shared, detail))
            };
            return Ok(Self::Read(permit.map_err(busy)?.expect("it is never closed")));
        }
        let mut changes = shared.ownership.subscribe();
        tokio::select! {
            biased;
            permit = shared.command_slot.clone().acquire_owned() => {
                Ok(Self::Command(Arc::new(permit.expect("it is never closed"))))
            }
            // It could only be refused when its turn comes: it hears so now.
            () = wait_for_owner_change(&mut changes, pass.epoch()) => {
                shared.ownership.check_permit(pass)?;
                Err(Problem::new(ProblemCode::Conflict, "hands changed while the command waited; send it again").into())
            }
        }
    }
}

/// What a connection to the device depends on.
struct DeviceConnection {
    response_taken: oneshot::Receiver<()>,
    reset_handle: ResetHandle,
    changes: watch::Receiver<u64>,
    in_flight: Option<InFlightGuard>,
    read_slot: Option<OwnedSemaphorePermit>,
}

impl DeviceConnection {
    /// Carries the bytes, until all are carried, nobody wants them any more, or hands change.
    async fn drive(mut self, connection: Connection<TokioIo<DeviceTcpStream>, ForwardedBody>) {
        {
            let mut connection = pin!(connection);
            let changed = async {
                match &self.in_flight {
                    Some(ticket) => wait_for_owner_change(&mut self.changes, ticket.epoch()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = changed => self.reset_handle.reset(),
                taken = &mut self.response_taken => if taken.is_err() { self.reset_handle.reset() },
                _ = connection.as_mut() => {}
            }
        }
        // The connection is gone, and only now the ticket: who waits for quiet waits for that.
        drop((self.in_flight, self.read_slot));
    }
}

/// Waits for the end of a generation.
pub(super) async fn wait_for_owner_change(changes: &mut watch::Receiver<u64>, generation: u64) {
    // An error means that nobody knows the lease any more: nothing may go on.
    let _ = changes.wait_for(|now| *now != generation).await;
}

/// Path and query, exactly as they came: what was judged is what is sent.
fn target(uri: &Uri) -> Result<Uri, Problem> {
    let path = uri.path_and_query().map(PathAndQuery::as_str).filter(|path| path.starts_with('/'));
    let parsed = path.and_then(|path| path.parse().ok());
    parsed.ok_or_else(|| {
        Problem::new(ProblemCode::InvalidValue, "the request names no path; write one that begins with /")
    })
}

pub(super) fn device_problem_detail(shared: &GatewayContext, what: &str) -> String {
    format!("The device at {} {what}", shared.device)
}

pub(super) fn unreachable(shared: &GatewayContext, error: &(dyn std::error::Error + 'static)) -> Problem {
    let why = match error.downcast_ref::<io::Error>().map(io::Error::kind) {
        Some(io::ErrorKind::TimedOut) => "nothing answers there".to_owned(),
        _ => error.to_string(),
    };
    let what = format!(
        "cannot be reached ({why}); nothing was sent. See that it has power and network and that --device is its \
         address, then try again"
    );
    Problem::new(ProblemCode::Unavailable, device_problem_detail(shared, &what))
}

fn stalled(shared: &GatewayContext, pass: Permit, is_clients_fault: bool) -> Problem {
    let seconds = shared.timeouts.first_byte.as_secs();
    if is_clients_fault {
        let detail = format!(
            "the body stopped for {seconds} s before it was complete, and the device was not kept waiting any \
             longer; send the request again"
        );
        return Problem::new(ProblemCode::InvalidValue, detail);
    }
    let silent = format!("has taken or said nothing for {seconds} s");
    no_answer(shared, pass, true, &io::Error::other(silent))
}

fn no_answer(
    shared: &GatewayContext,
    pass: Permit,
    was_sent: bool,
    error: &(dyn std::error::Error + 'static),
) -> Problem {
    if !was_sent {
        return unreachable(shared, error);
    }
    if pass.is_unconditional() {
        let what = format!("gave no answer ({error}); try again");
        return Problem::new(ProblemCode::Unavailable, device_problem_detail(shared, &what));
    }
    let what = format!(
        "gave no answer ({error}); nobody knows whether it obeyed. Read its state before you send the command again"
    );
    Problem::new(ProblemCode::OutcomeUnknown, device_problem_detail(shared, &what))
}
