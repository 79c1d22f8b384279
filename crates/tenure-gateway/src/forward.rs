//! A request goes to the device, and its answer comes back.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    CONNECTION, CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{StatusCode, Version, header};
use axum::response::Response;
use hyper::client::conn::http1;
use hyper::client::conn::http1::Connection;
use hyper_util::rt::TokioIo;
use tenure_control::CommandError;
use tenure_control::ownership::Permit;
use tenure_control::problem::{Problem, ProblemCode};
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};
use tokio::time::timeout;

use super::body::{BodyProgress, CommandSlot, DeviceResponseBody, ForwardedBody, ResetOnDrop};
use super::device_tcp_stream::{DeviceTcpStream, ResetHandle};
use super::settings::DeviceAddress;
use super::{GatewayContext, InFlightGuard};

/// About how many bytes of a body are in memory at once.
const BUFFER: usize = 64 << 10;

/// Sends a request on. Nothing of its body is read before its pass was looked at for the last time.
pub(super) async fn forward(
    shared: &Arc<GatewayContext>,
    pass: Permit,
    mut request: Request<Body>,
    client: Option<IpAddr>,
) -> Result<Response, CommandError> {
    let target = target(request.uri())?;
    *request.uri_mut() = target;
    *request.version_mut() = Version::HTTP_11;
    request.extensions_mut().clear();
    to_device(request.headers_mut(), &shared.device, client);

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
    to_client(response.headers_mut());
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

/// About one connection, not about what is carried over it. `Expect` too: Tenure answers that.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "http2-settings",
];

/// What proves to Tenure who speaks: nothing that a device needs to know, and nothing that it could keep for itself.
const SECRETS: &[&str] = &["authorization", "x-api-key", "cookie"];
/// What all headers about the lease begin with.
const LEASE: &str = "x-control-lease";

/// Where a client says something about the way it came, or that it meant another method than the one that was judged.
const CLIENT_ASSERTIONS: &[&str] = &[
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-port",
    "x-real-ip",
    "x-original-url",
    "x-rewrite-url",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
];

/// What would speak in Tenure's name to a browser.
const ORIGIN_SCOPED: &[&str] = &[
    "set-cookie",
    "clear-site-data",
    "strict-transport-security",
    "service-worker-allowed",
    "access-control-allow-credentials",
    "alt-svc",
];

/// The headers of a request as the device gets them.
pub(super) fn to_device(headers: &mut HeaderMap, device: &DeviceAddress, client: Option<IpAddr>) {
    remove_hop_by_hop(headers);
    remove(headers, |name| {
        let is_named = |names: &[&str]| names.contains(&name);
        let is_handshake = name.starts_with("sec-websocket-");
        is_named(SECRETS) || is_named(CLIENT_ASSERTIONS) || name.starts_with(LEASE) || is_handshake
    });
    let host = HeaderValue::from_str(&device.authority()).expect("a host that was parsed");
    headers.insert(HOST, host);
    // One connection for each request: so it can be cut without anything else on it.
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    // On the local socket, or unknown.
    let address = client.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let address = HeaderValue::from_str(&address.to_string()).expect("an address is visible ASCII");
    headers.insert(HeaderName::from_static("x-forwarded-for"), address);
}

/// The headers of an answer as the client gets them.
pub(super) fn to_client(headers: &mut HeaderMap) {
    remove_hop_by_hop(headers);
    remove(headers, |name| ORIGIN_SCOPED.contains(&name));
    // A page of the device has our address, and must not be able to speak with our page's rights.
    headers.append(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// What `Connection` names is about one connection, too. A length stays: without it the body would be another one.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<_> =
        values.flat_map(|value| value.split(',')).map(|name| name.trim().to_owned()).collect();
    for name in named {
        if !name.eq_ignore_ascii_case(header::CONTENT_LENGTH.as_str()) {
            headers.remove(name);
        }
    }
    remove(headers, |name| HOP_BY_HOP.contains(&name));
}

fn remove(headers: &mut HeaderMap, is_unwanted: impl Fn(&str) -> bool) {
    let unwanted: Vec<_> = headers.keys().filter(|name| is_unwanted(name.as_str())).cloned().collect();
    for name in unwanted {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        lines.iter().map(line).collect()
    }

    // S0-13: the token reaches nobody but its owner and Tenure.
    #[test]
    fn credentials_and_hop_by_hop_headers_are_not_sent_to_the_device() {
        let mut headers = map(&[
            ("authorization", "Bearer x"),
            ("x-api-key", "x"),
            ("cookie", "session=x"),
            ("x-control-lease", "x"),
            ("x-control-lease-id", "x"),
            ("x-control-lease-anything", "x"),
            ("proxy-authorization", "x"),
            ("connection", "keep-alive, x-private, content-length"),
            ("x-private", "x"),
            ("upgrade", "websocket"),
            ("sec-websocket-key", "x"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("expect", "100-continue"),
            ("x-http-method-override", "POST"),
            ("x-forwarded-for", "1.2.3.4"),
            ("forwarded", "for=1.2.3.4"),
            ("host", "tenure.example"),
            ("content-type", "application/json"),
            ("content-length", "5"),
            ("accept", "*/*"),
        ]);
        let device = "http://wled.local".parse().unwrap();
        to_device(&mut headers, &device, Some([10, 0, 0, 7].into()));
        let mut remaining: Vec<_> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        remaining.sort();
        let expected = [
            "accept: */*",
            "connection: close",
            "content-length: 5",
            "content-type: application/json",
            "host: wled.local",
            "x-forwarded-for: 10.0.0.7",
        ];
        assert_eq!(remaining, expected);
    }

    #[test]
    fn a_device_sets_no_cookie_and_its_pages_have_no_rights_of_ours() {
        let mut headers = map(&[
            ("set-cookie", "a=b"),
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("content-security-policy", "default-src *"),
            ("content-type", "text/html"),
        ]);
        to_client(&mut headers);
        assert!(!headers.contains_key("set-cookie") && !headers.contains_key("transfer-encoding"));
        let policies: Vec<_> = headers.get_all(CONTENT_SECURITY_POLICY).iter().collect();
        assert_eq!(policies, ["default-src *", "sandbox"], "of several policies each counts");
    }
}
