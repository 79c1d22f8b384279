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
use tenure_control::hand::Pass;
use tenure_control::problem::{Problem, ProblemCode};
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};
use tokio::time::timeout;

use super::body::{Answered, Interest, Progress, Sent, Turn};
use super::flight::Ticket;
use super::wire::{Scissors, Wire};
use super::{Blocked, Shared, headers};
use crate::http::accept::Peer;

/// About how many bytes of a body are in memory at once.
const BUFFER: usize = 64 << 10;

/// Sends a request on. Nothing of its body is read before its pass was looked at for the last time.
pub(super) async fn forward(
    shared: &Arc<Shared>,
    pass: Pass,
    mut request: Request<Body>,
) -> Result<Response, Blocked> {
    let target = target(request.uri())?;
    *request.uri_mut() = target;
    *request.version_mut() = Version::HTTP_11;
    let peer = request.extensions().get::<Peer>().copied();
    request.extensions_mut().clear();
    headers::to_device(request.headers_mut(), &shared.device, peer);

    let room = Room::take(shared, pass).await?;
    let wire = Wire::connect(&shared.device, shared.patience.connect).await;
    let wire = wire.map_err(|error| unreachable(shared, &error))?;
    let scissors = wire.scissors();
    let mut http = http1::Builder::new();
    http.max_buf_size(BUFFER);
    let (mut sender, connection) =
        http.handshake(TokioIo::new(wire)).await.map_err(|error| unreachable(shared, &error))?;

    let (turn, read) = match room {
        Room::Turn(turn) => (Some(turn), None),
        Room::Read(permit) => (None, Some(permit)),
    };
    // First the ticket, then the look: whoever changes hands in between waits for the ticket.
    let ticket = turn.is_some().then(|| shared.flight.begin(pass.generation()));
    shared.hands.still_counts(pass)?;
    let (interest, is_over) = Interest::new();
    let course = Course { is_over, scissors, changes: shared.hands.changes(), ticket, read };
    tokio::spawn(course.drive(connection));

    let progress = Progress::new();
    let request = request.map(|body| Sent::new(body, progress.clone(), turn.clone()));
    let answered = tokio::select! {
        biased;
        answered = sender.try_send_request(request) => answered,
        is_clients_fault = progress.stalled(shared.patience.first_byte) => {
            shared.hands.still_counts(pass)?;
            return Err(stalled(shared, pass, is_clients_fault).into());
        }
    };
    // The answer has begun: with the end of the request's body it is the next one's turn.
    drop(turn);
    let response = answered.map_err(|mut error| {
        // A change of hands cuts the connection: then that is the reason.
        if let Err(refusal) = shared.hands.still_counts(pass) {
            return Blocked::Refused(refusal);
        }
        let was_sent = error.take_message().is_none();
        no_answer(shared, pass, was_sent, &error.into_error()).into()
    })?;
    answer(shared, response, interest)
}

fn answer(
    shared: &Shared,
    mut response: hyper::Response<hyper::body::Incoming>,
    interest: Interest,
) -> Result<Response, Blocked> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let what = "wants to speak something else than HTTP, which nobody asked for";
        return Err(Problem::new(ProblemCode::Unavailable, of_device(shared, what)).into());
    }
    headers::to_client(response.headers_mut());
    *response.version_mut() = Version::HTTP_11;
    let patience = shared.patience.next_byte;
    Ok(response.map(|body| Body::new(Answered::new(body, interest, patience))))
}

/// What allows a request to be on its way.
enum Room {
    /// To move the device: nobody else does.
    Turn(Turn),
    Read(OwnedSemaphorePermit),
}

impl Room {
    async fn take(shared: &Shared, pass: Pass) -> Result<Self, Blocked> {
        if pass.is_free() {
            let permit = timeout(shared.patience.first_byte, shared.reads.clone().acquire_owned()).await;
            let busy = |_| {
                let detail = "answers others, who were first and are slow; try again in a moment";
                Problem::new(ProblemCode::Busy, of_device(shared, detail))
            };
            return Ok(Self::Read(permit.map_err(busy)?.expect("it is never closed")));
        }
        let mut changes = shared.hands.changes();
        tokio::select! {
            biased;
            permit = shared.turns.clone().acquire_owned() => {
                Ok(Self::Turn(Arc::new(permit.expect("it is never closed"))))
            }
            // It could only be refused when its turn comes: it hears so now.
            () = changed(&mut changes, pass.generation()) => {
                shared.hands.still_counts(pass)?;
                Err(Problem::new(ProblemCode::Conflict, "hands changed while the command waited; send it again").into())
            }
        }
    }
}

/// What a connection to the device depends on.
struct Course {
    is_over: oneshot::Receiver<()>,
    scissors: Scissors,
    changes: watch::Receiver<u64>,
    ticket: Option<Ticket>,
    read: Option<OwnedSemaphorePermit>,
}

impl Course {
    /// Carries the bytes, until all are carried, nobody wants them any more, or hands change.
    async fn drive(mut self, connection: Connection<TokioIo<Wire>, Sent>) {
        {
            let mut connection = pin!(connection);
            let changed = async {
                match &self.ticket {
                    Some(ticket) => changed(&mut self.changes, ticket.generation()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = changed => self.scissors.cut(),
                over = &mut self.is_over => if over.is_err() { self.scissors.cut() },
                _ = connection.as_mut() => {}
            }
        }
        // The connection is gone, and only now the ticket: who waits for quiet waits for that.
        drop((self.ticket, self.read));
    }
}

/// Waits for the end of a generation.
pub(super) async fn changed(changes: &mut watch::Receiver<u64>, generation: u64) {
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

pub(super) fn of_device(shared: &Shared, what: &str) -> String {
    format!("The device at {} {what}", shared.device)
}

pub(super) fn unreachable(shared: &Shared, error: &(dyn std::error::Error + 'static)) -> Problem {
    let why = match error.downcast_ref::<io::Error>().map(io::Error::kind) {
        Some(io::ErrorKind::TimedOut) => "nothing answers there".to_owned(),
        _ => error.to_string(),
    };
    let what = format!(
        "cannot be reached ({why}); nothing was sent. See that it has power and network and that --device is its \
         address, then try again"
    );
    Problem::new(ProblemCode::Unavailable, of_device(shared, &what))
}

fn stalled(shared: &Shared, pass: Pass, is_clients_fault: bool) -> Problem {
    let seconds = shared.patience.first_byte.as_secs();
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
    shared: &Shared,
    pass: Pass,
    was_sent: bool,
    error: &(dyn std::error::Error + 'static),
) -> Problem {
    if !was_sent {
        return unreachable(shared, error);
    }
    if pass.is_free() {
        let what = format!("gave no answer ({error}); try again");
        return Problem::new(ProblemCode::Unavailable, of_device(shared, &what));
    }
    let what = format!(
        "gave no answer ({error}); nobody knows whether it obeyed. Read its state before you send the command again"
    );
    Problem::new(ProblemCode::OutcomeUnknown, of_device(shared, &what))
}
