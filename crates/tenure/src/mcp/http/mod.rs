//! MCP over HTTP, for any number of clients: each request has its own caller and gets its own response.
//!
//! ```text
//! connection ──> a header within 5 s
//!                Host and Origin                       421, 403
//!                the caller's own token, passed on     401
//!                the tools
//! ```

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tenure_api::{Code, Problem};
use tenure_client::{Client, Secret};
use tenure_server::HostCheck;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::Tools;

/// The one address under which there is something.
pub const PATH: &str = "/mcp";
/// A header must be complete within this time.
const HEADER_TIME: Duration = Duration::from_secs(5);
/// A request must have come and be answered within this time. Nothing here waits for a lease.
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// What was asked must be answered within this time when it is told to stop.
const DRAIN_TIME: Duration = Duration::from_secs(8);
/// How many connections there may be. The rest waits until one ends.
const MAX_CONNECTIONS: usize = 512;
/// A manifest has at most 256 entries of at most 4 KiB.
const MAX_BODY_BYTES: usize = 2 * 1024 * 1024;

#[derive(Debug)]
pub struct HttpSettings {
    pub listen: SocketAddr,
    /// What else this server is called.
    pub hosts: Vec<String>,
    /// Whether callers without a token are let in, with the rights of this process.
    pub allows_anonymous: bool,
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

struct HttpHandler {
    hosts: HostCheck,
    callers: Authenticator,
    service: StreamableHttpService<Tools, NeverSessionManager>,
}

/// Serves until `stop`, then lets what was asked be answered. `ready` hears where.
pub async fn serve(
    tools: Tools,
    client: Client,
    door: &HttpSettings,
    ready: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let listener = TcpListener::bind(door.listen).await?;
    let address = listener.local_addr()?;
    let handler = Arc::new(HttpHandler {
        hosts: HostCheck::new(address, &door.hosts),
        callers: Authenticator::new(client, door.allows_anonymous),
        service: service(tools),
    });
    ready(address);
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    tokio::pin!(stop);
    loop {
        let (stream, permit) = tokio::select! {
            () = &mut stop => break,
            next = next(&listener, &permits) => next,
        };
        let handler = handler.clone();
        let answer = service_fn(move |request| {
            let handler = handler.clone();
            async move { Ok::<_, Infallible>(handler.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME)
            .serve_connection(TokioIo::new(stream), answer);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // A caller that hung up is no news.
            let _ = connection.await;
            drop(permit);
        });
    }
    drop(listener);
    let _ = timeout(DRAIN_TIME, graceful.shutdown()).await;
    Ok(())
}

fn service(tools: Tools) -> StreamableHttpService<Tools, NeverSessionManager> {
    // No sessions for anybody: what a session would remember stands in the arguments. Host and origin are looked at here,
    // before anything is read.
    let configuration = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        .disable_allowed_hosts()
        .disable_allowed_origins();
    StreamableHttpService::new(move || Ok(tools.clone()), Arc::default(), configuration)
}

async fn next(listener: &TcpListener, permits: &Arc<Semaphore>) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // It is never closed.
    let permit = permits.clone().acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // An answer is one small write: waiting for more to send would only delay it.
                let _ = stream.set_nodelay(true);
                return (stream, permit);
            }
            // Too many open files, or a caller that hung up: neither is a reason to spin or to end.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

impl HttpHandler {
    async fn answer(&self, mut request: Request<Incoming>) -> Answer {
        if let Err(problem) = self.hosts.check(request.headers(), request.uri()) {
            return problem_response(&problem);
        }
        if request.uri().path() != PATH {
            return problem_response(&Problem::new(Code::NotFound, format!("everything is under {PATH}")));
        }
        match self.callers.client_for(request.headers()) {
            // Always there, so that nobody speaks with rights that are not meant for them.
            Ok(client) => request.extensions_mut().insert(client),
            Err(problem) => return problem_response(&problem),
        };
        let slow =
            || problem_response(&Problem::new(Code::TooSlow, "the request took too long; send it again"));
        timeout(ANSWER_TIME, self.service.handle(request)).await.unwrap_or_else(|_| slow())
    }
}

fn problem_response(problem: &Problem) -> Answer {
    let body = serde_json::to_vec(problem).unwrap_or_default();
    let mut answer = Response::new(Full::new(Bytes::from(body)).boxed());
    *answer.status_mut() = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(Problem::MEDIA_TYPE));
    if problem.code == Code::Unauthorized {
        answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"tenure\""));
    }
    answer
}

/// Turns a request's token into somebody who speaks to the Tenure server.
struct Authenticator {
    client: Client,
    is_open: bool,
}

impl Authenticator {
    /// `client` speaks with the rights of this process: for callers without a token, if `is_open`.
    fn new(client: Client, is_open: bool) -> Self {
        Self { client, is_open }
    }

    /// Who speaks to the Tenure server for this caller. Whether the token is any good is for that server to say.
    fn client_for(&self, headers: &HeaderMap) -> Result<Client, Box<Problem>> {
        let refused = |detail: &str| Box::new(Problem::new(Code::Unauthorized, detail));
        let mut all = headers.get_all(AUTHORIZATION).iter();
        let value = match (all.next(), all.next()) {
            (None, _) if self.is_open => return Ok(self.client.clone()),
            (None, _) => {
                return Err(refused(
                    "send the header `Authorization: Bearer` with a token for the Tenure server; `tenure token create` \
                     makes one",
                ));
            }
            (Some(value), None) => value,
            _ => return Err(refused("the header Authorization must stand once")),
        };
        let token = value.to_str().ok().and_then(|value| value.split_once(' '));
        let token =
            token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
        let token = token.filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| refused("the header Authorization must be `Bearer` and a token"))?;
        self.client.with_token(Secret::new(token)).map_err(|_| refused("this cannot be a token"))
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn code(is_open: bool, values: &[&'static str]) -> Option<Code> {
        let client = Client::builder().url("http://127.0.0.1:1").unwrap().build().unwrap();
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_static(value));
        }
        Authenticator::new(client, is_open).client_for(&headers).err().map(|problem| problem.code)
    }

    #[test]
    fn request_without_a_token_is_rejected_unless_anonymous_access_is_allowed() {
        assert_eq!(code(false, &[]), Some(Code::Unauthorized));
        assert_eq!(code(true, &[]), None);
        for wrong in ["Basic abc", "Bearer", "Bearer ", "abc", "Bearer a b"] {
            assert_eq!(code(true, &[wrong]), Some(Code::Unauthorized), "{wrong}");
        }
        assert_eq!(code(true, &["Bearer a", "Bearer b"]), Some(Code::Unauthorized));
        assert_eq!(code(false, &["bearer tnr_abc"]), None);
    }
}
