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

use super::{Inside, Mood, Seen, lock, socket};

type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// The size of what `/big` says.
pub const BIG: usize = 64 << 20;
const PIECE: usize = 64 << 10;

pub(super) async fn answer(inside: Arc<Inside>, mut request: Request<Incoming>) -> Result<Answer, io::Error> {
    note(&inside, &request);
    let target = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
    let is_post = request.method() == Method::POST;
    Ok(match request.uri().path() {
        "/ws" => socket::upgrade(&inside, &mut request),
        "/json/state" | "/json" if is_post => return set(inside, request).await,
        "/upload" | "/update" if is_post => return take(inside, request).await,
        "/json/state" => of_json(&json!(*lock(&inside.state))),
        "/json/si" => of_json(&inside.state_and_info()),
        "/version" => plain(StatusCode::OK, "1903252"),
        "/big" => streamed((0..BIG / PIECE).map(|_| Ok(Bytes::from_static(&[7; PIECE])))),
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
            let mut answer = plain(StatusCode::OK, "<script>steal()</script>");
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
            inside.obey("GET /reset", &Map::new());
            plain(StatusCode::OK, "rebooting")
        }
        path if path.starts_with("/win&") || (path == "/win" && request.uri().query().is_some()) => {
            let values = target.split('&').filter_map(|pair| pair.strip_prefix("A="));
            let fields = values
                .filter_map(|value| value.parse::<u8>().ok())
                .map(|value| ("bri".to_owned(), value.into()));
            let fields: Map<_, _> = fields.collect();
            inside.not(Mood::StallsBeforeReading).await;
            inside.obey(&format!("GET {target}"), &fields);
            plain(StatusCode::OK, "<vs></vs>")
        }
        "/win" => plain(StatusCode::OK, "<vs></vs>"),
        _ => plain(StatusCode::NOT_FOUND, "Not Found"),
    })
}

fn note(inside: &Inside, request: &Request<Incoming>) {
    let value = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = request.headers().iter().map(|(name, of)| (name.to_string(), value(of))).collect();
    lock(&inside.seen).push(Seen { line: format!("{} {}", request.method(), request.uri()), headers });
}

/// `POST /json/state`: takes effect once all of it was read.
async fn set(inside: Arc<Inside>, request: Request<Incoming>) -> Result<Answer, io::Error> {
    let _moving = Moving::new(&inside);
    inside.not(Mood::StallsBeforeReading).await;
    let mut bytes = Vec::new();
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(io::Error::other)?.into_data() else { continue };
        inside.received.fetch_add(data.len() as u64, Ordering::Release);
        bytes.extend_from_slice(&data);
    }
    let Ok(fields) = serde_json::from_slice::<Map<String, Value>>(&bytes) else {
        return Ok(of_json(&json!({"error": 9})));
    };
    let command = format!("POST {}", String::from_utf8_lossy(&bytes));
    let wants_state = fields.get("v") == Some(&Value::Bool(true));
    // A command that was received takes effect, even if its client is gone.
    let doing = {
        let inside = inside.clone();
        tokio::spawn(async move {
            inside.not(Mood::StallsBeforeObeying).await;
            inside.obey(&command, &fields);
        })
    };
    let _ = doing.await;
    let state = json!(*lock(&inside.state));
    Ok(of_json(&if wants_state { state } else { json!({"success": true}) }))
}

/// A file: counted and forgotten.
async fn take(inside: Arc<Inside>, request: Request<Incoming>) -> Result<Answer, io::Error> {
    let _moving = Moving::new(&inside);
    inside.not(Mood::StallsBeforeReading).await;
    let (line, mut body) = (format!("POST {}", request.uri()), request.into_body());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(io::Error::other)?.into_data() else { continue };
        inside.received.fetch_add(data.len() as u64, Ordering::Release);
    }
    inside.obey(&line, &Map::new());
    Ok(plain(StatusCode::OK, "stored"))
}

/// A command that is about to take effect.
struct Moving<'a>(&'a Inside);

impl<'a> Moving<'a> {
    fn new(inside: &'a Inside) -> Self {
        let now = inside.moving.fetch_add(1, Ordering::AcqRel) + 1;
        inside.most_moving.fetch_max(now, Ordering::AcqRel);
        Self(inside)
    }
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.0.moving.fetch_sub(1, Ordering::AcqRel);
    }
}

fn of_json(value: &Value) -> Answer {
    let mut answer = plain(StatusCode::OK, &value.to_string());
    answer.headers_mut().insert("content-type", "application/json".parse().unwrap());
    answer
}

pub(super) fn plain(status: StatusCode, text: &str) -> Answer {
    let body = Full::new(Bytes::copy_from_slice(text.as_bytes())).map_err(|never: Infallible| match never {});
    let mut answer = Response::new(body.boxed_unsync());
    *answer.status_mut() = status;
    answer
}

fn streamed<I: IntoIterator<Item = io::Result<Bytes>>>(pieces: I) -> Answer
where
    I::IntoIter: Send + 'static,
{
    let frames = pieces.into_iter().map(|piece| piece.map(Frame::data));
    Response::new(BodyExt::boxed_unsync(StreamBody::new(stream::iter(frames))))
}
