//! Sends a request and reads its answer, and knows whether it can have been carried out.

use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tenure_api::{Code, Problem};
use tokio::time::timeout;

use super::endpoint::Endpoint;
use super::response::HttpResponse;
use super::{ApiRequest, Idempotency};
use crate::client::Secret;
use crate::clock::boot_microseconds;
use crate::error::Error;

/// Everything that requests go through.
pub(crate) struct HttpTransport {
    endpoint: Endpoint,
    token: Option<Secret>,
    pool: ConnectionPool,
}

/// Why there is no answer.
enum SendError {
    /// The server has not seen the request.
    NotSent(io::Error),
    /// The server may have carried it out.
    OutcomeUnknown(Box<dyn StdError + Send + Sync>),
    /// There is an answer, but it is not one of Tenure's.
    InvalidResponse(String),
    /// It cannot be asked at all: a name in its address is longer than any.
    UriTooLong,
}

impl HttpTransport {
    pub(crate) fn new(endpoint: Endpoint, token: Option<Secret>) -> Self {
        let token = token.filter(|_| endpoint.uses_token());
        Self { endpoint, token, pool: ConnectionPool::default() }
    }

    /// The same way to the server, for somebody else: no connection is shared.
    pub(crate) fn with_token(&self, token: Secret) -> Self {
        Self::new(self.endpoint.clone(), Some(token))
    }

    /// Whether a token says who speaks.
    pub(crate) fn uses_token(&self) -> bool {
        self.endpoint.uses_token()
    }

    /// For messages.
    pub(crate) fn address(&self) -> String {
        self.endpoint.to_string()
    }

    /// Asks, and reads the whole answer.
    pub(crate) async fn send(&self, call: &ApiRequest) -> Result<HttpResponse, Error> {
        self.send_with_callback(call, || {}).await
    }

    /// The same; `under_way` is called when there is a connection and the request goes out.
    pub(crate) async fn send_with_callback(
        &self,
        call: &ApiRequest,
        on_sent: impl FnOnce(),
    ) -> Result<HttpResponse, Error> {
        let response = async {
            let pooled = self.pool.take().await;
            let was_pooled = pooled.is_some();
            let sender = match pooled {
                Some(sender) => sender,
                None => connect(&self.endpoint).await.map_err(SendError::NotSent)?,
            };
            on_sent();
            match self.round_trip(sender, call).await {
                // A kept connection that ended meanwhile says nothing about the server: a new one does.
                Err(SendError::NotSent(_)) if was_pooled => {}
                Err(SendError::OutcomeUnknown(_))
                    if was_pooled && call.idempotency != Idempotency::NonIdempotent => {}
                other => return other,
            }
            let sender = connect(&self.endpoint).await.map_err(SendError::NotSent)?;
            self.round_trip(sender, call).await
        };
        let result = with_timeout(call, response).await;
        result.map_err(|failure| self.to_error(failure, call.idempotency))
    }

    /// Asks on a connection of its own for an answer that goes on and on. A refusal is read whole.
    pub(crate) async fn open_stream(
        &self,
        call: &ApiRequest,
        last_event: Option<&str>,
    ) -> Result<Result<Incoming, HttpResponse>, Error> {
        let response = async {
            let mut sender = connect(&self.endpoint).await.map_err(SendError::NotSent)?;
            let mut request = self.request(call)?;
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
            if let Some(value) = last_event.and_then(|id| HeaderValue::from_str(id).ok()) {
                request.headers_mut().insert("last-event-id", value);
            }
            let response = send(&mut sender, request).await?;
            if response.status().is_success() {
                return Ok(Ok(response.into_body()));
            }
            read_response(response, call.max_bytes).await.map(Err)
        };
        let answered = with_timeout(call, response).await;
        answered.map_err(|failure| self.to_error(failure, call.idempotency))
    }

    async fn round_trip(
        &self,
        mut sender: RequestSender,
        call: &ApiRequest,
    ) -> Result<HttpResponse, SendError> {
        let response = send(&mut sender, self.request(call)?).await?;
        let answer = read_response(response, call.max_bytes).await?;
        self.pool.keep_idle(sender);
        Ok(answer)
    }

    fn request(&self, call: &ApiRequest) -> Result<Request<Full<Bytes>>, SendError> {
        let mut request = Request::new(Full::new(call.body.clone().unwrap_or_default()));
        *request.method_mut() = call.method.clone();
        // What is in it is encoded, but may be of any length.
        *request.uri_mut() = call.path.parse().map_err(|_| SendError::UriTooLong)?;
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_str(&self.endpoint.host()).expect("a host that was parsed"));
        if call.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(key) = &call.key {
            let value = HeaderValue::from_str(key.as_str()).expect("keys are visible ASCII");
            headers.insert("idempotency-key", sensitive(value));
        }
        if let Some(token) = &self.token {
            let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
            headers
                .insert(AUTHORIZATION, sensitive(value.expect("the builder let only visible ASCII through")));
        }
        Ok(request)
    }

    fn to_error(&self, failure: SendError, repeat: Idempotency) -> Error {
        let address = self.address();
        match failure {
            SendError::NotSent(source) => Error::Unreachable { address, source },
            SendError::OutcomeUnknown(source) if repeat == Idempotency::Safe => {
                Error::Unreachable { address, source: io::Error::other(source) }
            }
            SendError::OutcomeUnknown(source) => Error::OutcomeUnknown { address, source },
            SendError::InvalidResponse(detail) => Error::Protocol { address, detail },
            SendError::UriTooLong => {
                let detail = "a name is longer than any that the server takes; nothing was asked";
                Error::Problem(Box::new(Problem::new(Code::Invalid, detail)))
            }
        }
    }
}

fn sensitive(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}

/// Whatever takes longer may have happened all the same. Connecting has a limit of its own, which is shorter.
async fn with_timeout<T>(
    call: &ApiRequest,
    response: impl Future<Output = Result<T, SendError>>,
) -> Result<T, SendError> {
    let timeout_error =
        || SendError::OutcomeUnknown(format!("no answer within {} s", call.timeout.as_secs()).into());
    timeout(call.timeout, response).await.unwrap_or_else(|_| Err(timeout_error()))
}

async fn send(
    sender: &mut RequestSender,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, SendError> {
    match sender.try_send_request(request).await {
        Ok(response) => Ok(response),
        Err(mut error) => {
            // hyper gives the request back if not a byte of it was written.
            let was_sent = error.take_message().is_none();
            let error = error.into_error();
            if error.is_parse() || error.is_parse_status() {
                return Err(SendError::InvalidResponse(format!("its answer is not HTTP ({error})")));
            }
            Err(if was_sent {
                SendError::OutcomeUnknown(error.into())
            } else {
                SendError::NotSent(io::Error::other(error))
            })
        }
    }
}

async fn read_response(response: Response<Incoming>, max_bytes: usize) -> Result<HttpResponse, SendError> {
    let (head, body) = response.into_parts();
    let media = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned();
    match Limited::new(body, max_bytes).collect().await {
        Ok(body) => Ok(HttpResponse { status: head.status, content_type: media, body: body.to_bytes() }),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(SendError::InvalidResponse(format!("its answer has more than {max_bytes} bytes")))
        }
        Err(error) => Err(SendError::OutcomeUnknown(error)),
    }
}

pub(crate) type RequestSender = SendRequest<Full<Bytes>>;

/// A server closes a connection that is not used for 75 s, unless it is configured otherwise. One that is nearly there is
/// not used any more, so that no request meets the closing on its way.
const MAX_IDLE: u64 = 60_000_000;
/// The most connections that are kept. More are opened while they are needed.
const MAX_IDLE_CONNECTIONS: usize = 4;
/// How long a connection may take to come about, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections that nobody uses just now.
#[derive(Default)]
pub(crate) struct ConnectionPool {
    idle: Mutex<Vec<(RequestSender, u64)>>,
}

impl ConnectionPool {
    /// One that was used before, if there is any.
    pub(crate) async fn take(&self) -> Option<RequestSender> {
        loop {
            let (mut sender, since) = self.idle.lock().pop()?;
            let is_recent = boot_microseconds().saturating_sub(since) < MAX_IDLE;
            if is_recent && !sender.is_closed() && sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    /// Keeps it for the next request.
    pub(crate) fn keep_idle(&self, sender: RequestSender) {
        let mut idle = self.idle.lock();
        if sender.is_closed() || idle.len() >= MAX_IDLE_CONNECTIONS {
            return;
        }
        idle.push((sender, boot_microseconds()));
    }
}

/// A new connection.
pub(crate) async fn connect(endpoint: &Endpoint) -> io::Result<RequestSender> {
    let connecting = async {
        let stream = endpoint.connect().await?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(io::Error::other)?;
        // It ends by itself: when the server closes it, or when nobody has its sender any more.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(sender)
    };
    let timeout_error = || {
        io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()),
        )
    };
    tokio::time::timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or_else(|_| Err(timeout_error()))
}
