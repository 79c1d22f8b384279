//! Sends a request and reads its answer, and knows whether it can have been carried out.

use std::error::Error as StdError;
use std::future::Future;
use std::io;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Response};
use tenure_api::{Code, Problem};
use tokio::time::timeout;

use super::answer::Answer;
use super::call::{Call, Repeat};
use super::endpoint::Endpoint;
use super::pool::{Pool, Sender, connect};
use crate::error::Error;
use crate::key::Secret;

/// Everything that requests go through.
pub(crate) struct Exchange {
    endpoint: Endpoint,
    token: Option<Secret>,
    pool: Pool,
}

/// Why there is no answer.
enum Failure {
    /// The server has not seen the request.
    NotSent(io::Error),
    /// The server may have carried it out.
    Sent(Box<dyn StdError + Send + Sync>),
    /// There is an answer, but it is not one of Tenure's.
    Strange(String),
    /// It cannot be asked at all: a name in its address is longer than any.
    TooLong,
}

impl Exchange {
    pub(crate) fn new(endpoint: Endpoint, token: Option<Secret>) -> Self {
        let token = token.filter(|_| endpoint.takes_tokens());
        Self { endpoint, token, pool: Pool::default() }
    }

    /// The same way to the server, for somebody else: no connection is shared.
    pub(crate) fn speaking_as(&self, token: Secret) -> Self {
        Self::new(self.endpoint.clone(), Some(token))
    }

    /// Whether a token says who speaks.
    pub(crate) fn takes_tokens(&self) -> bool {
        self.endpoint.takes_tokens()
    }

    /// For messages.
    pub(crate) fn address(&self) -> String {
        self.endpoint.to_string()
    }

    /// Asks, and reads the whole answer.
    pub(crate) async fn ask(&self, call: &Call) -> Result<Answer, Error> {
        self.ask_telling(call, || {}).await
    }

    /// The same; `under_way` is called when there is a connection and the request goes out.
    pub(crate) async fn ask_telling(&self, call: &Call, under_way: impl FnOnce()) -> Result<Answer, Error> {
        let asked = async {
            let kept = self.pool.take().await;
            let was_kept = kept.is_some();
            let sender = match kept {
                Some(sender) => sender,
                None => connect(&self.endpoint).await.map_err(Failure::NotSent)?,
            };
            under_way();
            match self.exchange(sender, call).await {
                // A kept connection that ended meanwhile says nothing about the server: a new one does.
                Err(Failure::NotSent(_)) if was_kept => {}
                Err(Failure::Sent(_)) if was_kept && call.repeat != Repeat::Never => {}
                other => return other,
            }
            let sender = connect(&self.endpoint).await.map_err(Failure::NotSent)?;
            self.exchange(sender, call).await
        };
        let answered = within(call, asked).await;
        answered.map_err(|failure| self.error(failure, call.repeat))
    }

    /// Asks on a connection of its own for an answer that goes on and on. A refusal is read whole.
    pub(crate) async fn open(
        &self,
        call: &Call,
        last_event: Option<&str>,
    ) -> Result<Result<Incoming, Answer>, Error> {
        let asked = async {
            let mut sender = connect(&self.endpoint).await.map_err(Failure::NotSent)?;
            let mut request = self.request(call)?;
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
            if let Some(value) = last_event.and_then(|id| HeaderValue::from_str(id).ok()) {
                request.headers_mut().insert("last-event-id", value);
            }
            let response = send(&mut sender, request).await?;
            if response.status().is_success() {
                return Ok(Ok(response.into_body()));
            }
            read(response, call.most_bytes).await.map(Err)
        };
        let answered = within(call, asked).await;
        answered.map_err(|failure| self.error(failure, call.repeat))
    }

    async fn exchange(&self, mut sender: Sender, call: &Call) -> Result<Answer, Failure> {
        let response = send(&mut sender, self.request(call)?).await?;
        let answer = read(response, call.most_bytes).await?;
        self.pool.give_back(sender);
        Ok(answer)
    }

    fn request(&self, call: &Call) -> Result<Request<Full<Bytes>>, Failure> {
        let mut request = Request::new(Full::new(call.body.clone().unwrap_or_default()));
        *request.method_mut() = call.method.clone();
        // What is in it is encoded, but may be of any length.
        *request.uri_mut() = call.path.parse().map_err(|_| Failure::TooLong)?;
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_str(&self.endpoint.host()).expect("a host that was parsed"));
        if call.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(key) = &call.key {
            let value = HeaderValue::from_str(key.as_str()).expect("keys are visible ASCII");
            headers.insert("idempotency-key", secret(value));
        }
        if let Some(token) = &self.token {
            let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
            headers.insert(AUTHORIZATION, secret(value.expect("the builder let only visible ASCII through")));
        }
        Ok(request)
    }

    fn error(&self, failure: Failure, repeat: Repeat) -> Error {
        let address = self.address();
        match failure {
            Failure::NotSent(source) => Error::Unreachable { address, source },
            Failure::Sent(source) if repeat == Repeat::Reads => {
                Error::Unreachable { address, source: io::Error::other(source) }
            }
            Failure::Sent(source) => Error::Unknown { address, source },
            Failure::Strange(detail) => Error::Protocol { address, detail },
            Failure::TooLong => {
                let detail = "a name is longer than any that the server takes; nothing was asked";
                Error::Problem(Box::new(Problem::new(Code::Invalid, detail)))
            }
        }
    }
}

fn secret(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}

/// Whatever takes longer may have happened all the same. Connecting has a limit of its own, which is shorter.
async fn within<T>(call: &Call, asked: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let late = || Failure::Sent(format!("no answer within {} s", call.patience.as_secs()).into());
    timeout(call.patience, asked).await.unwrap_or_else(|_| Err(late()))
}

async fn send(sender: &mut Sender, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failure> {
    match sender.try_send_request(request).await {
        Ok(response) => Ok(response),
        Err(mut error) => {
            // hyper gives the request back if not a byte of it was written.
            let was_sent = error.take_message().is_none();
            let error = error.into_error();
            if error.is_parse() || error.is_parse_status() {
                return Err(Failure::Strange(format!("its answer is not HTTP ({error})")));
            }
            Err(if was_sent {
                Failure::Sent(error.into())
            } else {
                Failure::NotSent(io::Error::other(error))
            })
        }
    }
}

async fn read(response: Response<Incoming>, most_bytes: usize) -> Result<Answer, Failure> {
    let (head, body) = response.into_parts();
    let media = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned();
    match Limited::new(body, most_bytes).collect().await {
        Ok(body) => Ok(Answer { status: head.status, media, body: body.to_bytes() }),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(Failure::Strange(format!("its answer has more than {most_bytes} bytes")))
        }
        Err(error) => Err(Failure::Sent(error)),
    }
}
