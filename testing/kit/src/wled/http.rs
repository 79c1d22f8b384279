//! Its HTTP: the JSON API, the HTTP API, and a few pages that tests need.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Map, Value, json};

use super::{DeviceState, ReceivedRequest, StallMode, lock, websocket};

type BodyResponse = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// The size of what `/big` says.
pub const BIG_RESPONSE_BYTES: usize = 64 << 20;
const CHUNK_BYTES: usize = 64 << 10;

pub(super) async fn handle(
    device: Arc<DeviceState>,
    mut request: Request<Incoming>,
) -> Result<BodyResponse, io::Error> {
    record_request(&device, &request);
    let target = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
    let is_post = request.method() == Method::POST;
    Ok(match request.uri().path() {
        "/ws" => websocket::upgrade(&device, &mut request),
        "/json/state" | "/json" if is_post => return set_state(device, request).await,
        "/upload" | "/update" if is_post => return upload(device, request).await,
        "/json/state" => json_response(&json!(*lock(&device.state))),
        "/json/si" => json_response(&device.state_and_info()),
        "/version" => text_response(StatusCode::OK, "1903252"),
        "/big" => stream_response(
            (0..BIG_RESPONSE_BYTES / CHUNK_BYTES).map(|_| Ok(Bytes::from_static(&[7; CHUNK_BYTES]))),
        ),
        "/broken" => {
            let half = stream::iter([Ok(Frame::data(Bytes::from_static(b"half")))]);
            let end = stream::once(async {
                // Late enough for the first half to be under way.
                tokio::time::sleep(Duration::from_millis(50)).await;
                Err(io::Error::other("the power went out"))
            });
            Response::new(BodyExt::boxed_unsync(StreamBody::new(half.chain(end))))
        }
        "/cookie" => {
            let mut answer = text_response(StatusCode::OK, "<script>steal()</script>");
            answer.headers_mut().insert("set-cookie", "tenure=mine".parse().unwrap());
            answer
        }
        // The second of them is one that only looks.
        "/silent" | "/json/net" => std::future::pending().await,
        "/hangup" => {
            let _ = request.body_mut().frame().await;
            return Err(io::Error::other("the power went out"));
        }
        "/reset" => {
            device.apply("GET /reset", &Map::new());
            text_response(StatusCode::OK, "rebooting")
        }
        path if path.starts_with("/win&") || (path == "/win" && request.uri().query().is_some()) => {
            let values = target.split('&').filter_map(|pair| pair.strip_prefix("A="));
            let fields = values
                .filter_map(|value| value.parse::<u8>().ok())
                .map(|value| ("bri".to_owned(), value.into()));
            let fields: Map<_, _> = fields.collect();
            device.wait_while(StallMode::BeforeReading).await;
            device.apply(&format!("GET {target}"), &fields);
            text_response(StatusCode::OK, "<vs></vs>")
        }
        "/win" => text_response(StatusCode::OK, "<vs></vs>"),
        _ => text_response(StatusCode::NOT_FOUND, "Not Found"),
    })
}

fn record_request(inside: &DeviceState, request: &Request<Incoming>) {
    let value = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = request.headers().iter().map(|(name, of)| (name.to_string(), value(of))).collect();
    lock(&inside.received_requests)
        .push(ReceivedRequest { line: format!("{} {}", request.method(), request.uri()), headers });
}

/// `POST /json/state`: takes effect once all of it was read.
async fn set_state(inside: Arc<DeviceState>, request: Request<Incoming>) -> Result<BodyResponse, io::Error> {
    let _moving = PendingCommandGuard::new(&inside);
    inside.wait_while(StallMode::BeforeReading).await;
    let mut bytes = Vec::new();
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(io::Error::other)?.into_data() else { continue };
        inside.received_bytes.fetch_add(data.len() as u64, Ordering::Release);
        bytes.extend_from_slice(&data);
    }
    let Ok(fields) = serde_json::from_slice::<Map<String, Value>>(&bytes) else {
        return Ok(json_response(&json!({"error": 9})));
    };
    let command = format!("POST {}", String::from_utf8_lossy(&bytes));
    let returns_state = fields.get("v") == Some(&Value::Bool(true));
    // A command that was received takes effect, even if its client is gone.
    let doing = {
        let inside = inside.clone();
        tokio::spawn(async move {
            inside.wait_while(StallMode::BeforeApplying).await;
            inside.apply(&command, &fields);
        })
    };
    let _ = doing.await;
    let state = json!(*lock(&inside.state));
    Ok(json_response(&if returns_state { state } else { json!({"success": true}) }))
}

/// A file: counted and forgotten.
async fn upload(inside: Arc<DeviceState>, request: Request<Incoming>) -> Result<BodyResponse, io::Error> {
    let _moving = PendingCommandGuard::new(&inside);
    inside.wait_while(StallMode::BeforeReading).await;
    let (line, mut body) = (format!("POST {}", request.uri()), request.into_body());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(io::Error::other)?.into_data() else { continue };
        inside.received_bytes.fetch_add(data.len() as u64, Ordering::Release);
    }
    inside.apply(&line, &Map::new());
    Ok(text_response(StatusCode::OK, "stored"))
}

/// A command that is about to take effect.
struct PendingCommandGuard<'a>(&'a DeviceState);

impl<'a> PendingCommandGuard<'a> {
    fn new(inside: &'a DeviceState) -> Self {
        let now = inside.pending_commands.fetch_add(1, Ordering::AcqRel) + 1;
        inside.max_pending_commands.fetch_max(now, Ordering::AcqRel);
        Self(inside)
    }
}

impl Drop for PendingCommandGuard<'_> {
    fn drop(&mut self) {
        self.0.pending_commands.fetch_sub(1, Ordering::AcqRel);
    }
}

fn json_response(value: &Value) -> BodyResponse {
    let mut answer = text_response(StatusCode::OK, &value.to_string());
    answer.headers_mut().insert("content-type", "application/json".parse().unwrap());
    answer
}

pub(super) fn text_response(status: StatusCode, text: &str) -> BodyResponse {
    let body = Full::new(Bytes::copy_from_slice(text.as_bytes())).map_err(|never: Infallible| match never {});
    let mut answer = Response::new(body.boxed_unsync());
    *answer.status_mut() = status;
    answer
}

fn stream_response<I: IntoIterator<Item = io::Result<Bytes>>>(pieces: I) -> BodyResponse
where
    I::IntoIter: Send + 'static,
{
    let frames = pieces.into_iter().map(|piece| piece.map(Frame::data));
    Response::new(BodyExt::boxed_unsync(StreamBody::new(stream::iter(frames))))
}
