//! A thousand who want the same at the same time.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;
use tenure_testkit::http::parse;
use tenure_testkit::intents::{CHANNEL, channel_intent};
use tenure_testkit::{TestServer, json_string, open_event_stream};

const MANY: usize = 1_000;

// S1-5, S1-38, O-9
#[test]
fn a_thousand_concurrent_equal_intents_become_one_session() {
    let server = TestServer::start();
    let from = server.ledger_head() + 1;
    let body = channel_intent(CHANNEL).to_string();
    let request = format!(
        "POST /api/v3/intents HTTP/1.1\r\nHost: {}\r\n{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        server.address,
        server.bearer(),
        body.len()
    );
    let mut streams: Vec<TcpStream> = (0..MANY).map(|_| server.connect()).collect();
    let (almost, last) = request.as_bytes().split_at(request.len() - 1);
    // All but the last byte of each first, so that they come in as close to each other as can be.
    streams.iter_mut().for_each(|stream| stream.write_all(almost).unwrap());
    std::thread::scope(|scope| {
        for part in streams.chunks_mut(MANY / 8) {
            scope.spawn(|| part.iter_mut().for_each(|stream| stream.write_all(last).unwrap()));
        }
    });
    let mut sessions = Vec::new();
    for mut stream in streams {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let answer = parse(&answer).expect_status(202);
        sessions.push(json_string(&answer["session_id"]));
    }
    assert_eq!(sessions.len(), MANY);
    sessions.dedup();
    assert_eq!(sessions.len(), 1, "one session for all");
    let mut events = open_event_stream(&server, &format!("/v1/events?type=intent.*&from={from}"), None);
    assert_eq!(events.expect("intent.accepted").data["session"]["session_id"], json!(sessions[0]));
    let ended = server.request(&format!("DELETE /api/v3/sessions/{}", sessions[0]), &[server.bearer()], "");
    assert_eq!(ended.status, 202);
    events.expect("intent.ended");
    assert_eq!(crate::subscribers::metric(&server, "tenure_intents_accepted_total"), 1);
}
