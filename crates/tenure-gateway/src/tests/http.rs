//! Requests, both ways.

use axum::body::{Body, Bytes};
use axum::http::Request;
use futures_util::{StreamExt as _, stream};
use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::sync::mpsc;

use super::*;

// S0-74 S0-77
#[tokio::test]
async fn only_the_owner_may_change_the_device_and_everyone_may_read() {
    let stage = stage().await;
    let (status, body) = read(stage.ask(None, post("/json/state", r#"{"bri":9,"v":true}"#)).await).await;
    assert_eq!((status, &body["bri"]), (200, &9.into()), "with no lease anybody does");
    stage.ownership_source.grant_to("alice");
    assert_eq!(
        code(stage.ask(None, post("/json/state", r#"{"v":true}"#)).await).await,
        (428, "LEASE_REQUIRED".into())
    );
    assert_eq!(code(stage.ask(Some("bob"), get("/win&A=1")).await).await, (409, "CONTROL_LOCKED".into()));
    assert_eq!(code(stage.ask(None, get("/win?A=1")).await).await.0, 428);
    assert_eq!(code(stage.ask(None, get("/json?A=1")).await).await.0, 428);
    assert_eq!(code(stage.ask(None, get("/%77in&A=1")).await).await.0, 428);
    assert_eq!(code(stage.ask(None, get("/json/..//win&A=1")).await).await.0, 428);
    let (status, body) = read(stage.ask(None, get("/json/state")).await).await;
    assert_eq!((status, &body["bri"]), (200, &9.into()), "looking is free");
    assert_eq!(read(stage.ask(Some("alice"), get("/win&A=128")).await).await.0, 200);
    assert_eq!(read(stage.ask(None, post("/update", "firmware")).await).await.0, 200, "S0-84");
    assert_eq!(stage.wled.state("bri"), 128);
    assert_eq!(
        stage.wled.applied_commands(),
        [r#"POST {"bri":9,"v":true}"#, "GET /win&A=128", "POST /update"]
    );
}

// S0-13
#[tokio::test]
async fn credentials_are_not_forwarded_to_the_device() {
    let stage = stage().await;
    let request = Request::post("/json/state?x=1")
        .header("authorization", "Bearer secret")
        .header("x-api-key", "secret")
        .header("x-control-lease", "secret")
        .header("x-control-lease-id", "secret")
        .header("cookie", "tenure=secret")
        .header("host", "tenure.example")
        .header("connection", "x-hop")
        .header("x-hop", "secret")
        .header("content-type", "application/json")
        .body(Body::from(r#"{"on":false}"#))
        .unwrap();
    assert_eq!(stage.ask(None, request).await.status(), 200);
    let seen = stage.wled.received_requests();
    assert_eq!(seen[0].line, "POST /json/state?x=1");
    assert!(seen[0].headers.iter().all(|(_, value)| !value.contains("secret")), "{:?}", seen[0].headers);
    let header =
        |name: &str| seen[0].headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    assert_eq!(header("host"), Some(stage.wled.address.to_string()));
    assert_eq!(header("x-forwarded-for").as_deref(), Some("127.0.0.1"));
    assert_eq!(header("content-type").as_deref(), Some("application/json"));
    let answer = stage.ask(None, get("/cookie")).await;
    assert!(!answer.headers().contains_key("set-cookie"));
    assert_eq!(answer.headers()["content-security-policy"], "sandbox");
}

#[tokio::test]
async fn a_body_is_forwarded_in_chunks() {
    let stage = stage().await;
    let (pieces, taken) = mpsc::channel::<Result<Bytes, std::io::Error>>(1);
    let body = stream::unfold(taken, |mut taken| async { taken.recv().await.map(|piece| (piece, taken)) });
    let asking = stage.asking(None, post("/upload", Body::from_stream(body)));
    pieces.send(Ok(Bytes::from_static(b"first"))).await.unwrap();
    stage.wled.wait_until("the first piece arrives", |wled| wled.received_bytes() == 5).await;
    assert!(stage.wled.applied_commands().is_empty(), "before there is a second one");
    pieces.send(Ok(Bytes::from_static(b"second"))).await.unwrap();
    drop(pieces);
    assert_eq!(soon(asking).await.unwrap().status(), 200);
    assert_eq!(stage.wled.received_bytes(), 11);
}

/// How much memory this process had at most, in bytes.
fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

#[tokio::test]
async fn large_bodies_take_no_memory() {
    let stage = stage().await;
    stage.ask(None, post("/upload", "small")).await;
    let before = peak_memory();
    let piece = Bytes::from(vec![7; 64 << 10]);
    let pieces = stream::iter((0..1024).map(move |_| Ok::<_, std::io::Error>(piece.clone())));
    assert_eq!(soon(stage.ask(None, post("/upload", Body::from_stream(pieces)))).await.status(), 200);
    assert_eq!(stage.wled.received_bytes(), (64 << 20) + 5);
    let mut answer = stage.ask(None, get("/big")).await.into_body().into_data_stream();
    let mut length = 0;
    while let Some(piece) = answer.next().await {
        length += piece.unwrap().len();
    }
    assert_eq!(length, 64 << 20);
    let more = peak_memory() - before;
    assert!(more < 12 << 20, "{more} bytes more, for 64 MiB each way");
}

#[tokio::test]
async fn reads_are_served_during_a_command() {
    let stage = stage().await;
    stage.wled.set_stall_mode(StallMode::BeforeReading);
    let moving = stage.asking(None, post("/json/state", r#"{"on":false}"#));
    stage.wled.wait_until("the device has the request", |wled| wled.received_requests().len() == 1).await;
    for _ in 0..10 {
        assert_eq!(soon(stage.ask(None, get("/json/state"))).await.status(), 200);
    }
    assert!(!moving.is_finished());
    stage.wled.set_stall_mode(StallMode::None);
    assert_eq!(soon(moving).await.unwrap().status(), 200);
}

#[tokio::test]
async fn commands_reach_the_device_one_at_a_time_in_arrival_order() {
    let stage = stage().await;
    stage.wled.set_stall_mode(StallMode::BeforeReading);
    let mut asking = Vec::new();
    for number in 0..5 {
        asking.push(stage.asking(None, post("/json/state", json!({"bri": number}).to_string())));
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert_eq!(stage.wled.received_requests().len(), 1, "the others wait here, not in the device");
    stage.wled.set_stall_mode(StallMode::None);
    for pending in asking {
        assert_eq!(soon(pending).await.unwrap().status(), 200);
    }
    assert_eq!(stage.wled.max_pending_commands(), 1);
    let expected: Vec<_> = (0..5).map(|number| format!("POST {{\"bri\":{number}}}")).collect();
    assert_eq!(stage.wled.applied_commands(), expected);
}

#[tokio::test]
async fn an_unreachable_device_is_reported_as_unavailable() {
    let stage = stage().await;
    stage.wled.wait_until("it runs", |_| true).await;
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gateway =
        Arc::new(Gateway::new(settings(&format!("http://{unused}")), stage.ownership_source.clone()));
    for request in [get("/json/state"), post("/json/state", "{}")] {
        let (status, body) =
            read(ask(gateway.clone(), stage.ownership_source.clone(), None, request).await).await;
        assert_eq!((status, &body["error"]["code"]), (503, &"UNAVAILABLE".into()), "{body}");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains(&unused.to_string()) && message.contains("nothing was sent"), "{message}");
    }
}

#[tokio::test]
async fn a_device_that_does_not_respond_times_out() {
    let stage = stage_with(|settings| settings.timeouts.first_byte = Duration::from_millis(200)).await;
    assert_eq!(code(soon(stage.ask(None, get("/silent"))).await).await, (503, "OUTCOME_UNKNOWN".into()));
    stage.wled.set_stall_mode(StallMode::BeforeReading);
    let answer = soon(stage.ask(None, post("/json/state", r#"{"on":false}"#))).await;
    assert_eq!(code(answer).await, (503, "OUTCOME_UNKNOWN".into()));
    stage.wled.set_stall_mode(StallMode::None);
    let body = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    assert_eq!(
        code(soon(stage.ask(None, post("/json/state", body))).await).await,
        (400, "INVALID_VALUE".into())
    );
    assert_eq!(
        soon(stage.ask(None, post("/json/state", "{}"))).await.status(),
        200,
        "the turn was given back"
    );
}

#[tokio::test]
async fn a_truncated_response_is_reported_as_an_error() {
    let stage = stage().await;
    let answer = stage.ask(None, get("/broken")).await;
    assert_eq!(answer.status(), 200);
    assert!(soon(answer.into_body().collect()).await.is_err());
}

#[tokio::test]
async fn a_device_that_disconnects_during_a_request_leads_to_outcome_unknown() {
    let stage = stage().await;
    let pieces =
        stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"first"))]).chain(stream::pending());
    let answer = soon(stage.ask(None, post("/hangup", Body::from_stream(pieces)))).await;
    let (status, body) = read(answer).await;
    assert_eq!((status, &body["error"]["code"]), (503, &"OUTCOME_UNKNOWN".into()), "{body}");
    assert!(body["error"]["message"].as_str().unwrap().contains("Read its state"), "{body}");
}

#[tokio::test]
async fn reads_do_not_block_commands() {
    let stage = stage().await;
    let looking: Vec<_> = (0..20).map(|_| stage.asking(None, get("/json/net"))).collect();
    stage.wled.wait_until("some are there", |wled| wled.received_requests().len() == 4).await;
    assert_eq!(soon(stage.ask(None, post("/json/state", r#"{"bri":1}"#))).await.status(), 200);
    assert_eq!(stage.wled.received_requests().len(), 5, "and the device has no more to do than it can");
    looking.iter().for_each(tokio::task::JoinHandle::abort);
}

// "The gate answers before the body is parsed: API key, lease, body."
#[tokio::test]
async fn the_body_of_a_blocked_request_is_not_read() {
    let stage = stage().await;
    stage.ownership_source.grant_to("alice");
    let untouched = || {
        Body::from_stream(stream::poll_fn(|_| -> std::task::Poll<Option<Result<Bytes, std::io::Error>>> {
            panic!("somebody read the body")
        }))
    };
    assert_eq!(code(stage.ask(Some("bob"), post("/json/state", untouched())).await).await.0, 409);
    let request = post("/json/state", untouched());
    let pass =
        stage.ownership_source.pass_rest(Some("alice"), stage.gateway.classify_request(&request)).unwrap();
    stage.ownership_source.take_back();
    assert_eq!(
        code(response(stage.gateway.forward(pass, request, None).await)).await,
        (409, "LEASE_EXPIRED".into())
    );
}

#[tokio::test]
async fn a_client_that_disconnects_frees_the_command_slot() {
    let stage = stage().await;
    stage.wled.set_stall_mode(StallMode::BeforeReading);
    let moving = stage.asking(None, post("/json/state", r#"{"bri":1}"#));
    stage.wled.wait_until("the device has the request", |wled| wled.received_requests().len() == 1).await;
    moving.abort();
    stage.wled.set_stall_mode(StallMode::None);
    assert_eq!(soon(stage.ask(None, post("/json/state", r#"{"bri":2}"#))).await.status(), 200);
    assert_eq!(stage.wled.state("bri"), 2);
}
