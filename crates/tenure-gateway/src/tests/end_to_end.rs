//! All the way: a client's bytes in, the device's bytes out.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// Serves the stage's gateway on a port; `X-Control-Lease` is the name of who has it.
async fn serve(stage: &GatewayFixture) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (gateway, ownership_source) = (stage.gateway.clone(), stage.ownership_source.clone());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (gateway, ownership_source) = (gateway.clone(), ownership_source.clone());
            let service = service_fn(move |mut request: hyper::Request<Incoming>| {
                let owner = request.headers().get("x-control-lease");
                let owner = owner.map(|owner| owner.to_str().unwrap().to_owned());
                let client = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));
                request.extensions_mut().insert(client);
                let (gateway, ownership_source) = (gateway.clone(), ownership_source.clone());
                let request = request.map(Body::new);
                async move { Ok::<_, Infallible>(ask(gateway, ownership_source, owner.as_deref(), request).await) }
            });
            let http = hyper::server::conn::http1::Builder::new();
            tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

/// Sends this, and reads until the end.
async fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // A connection that is cut is an end, too.
    let _ = soon(stream.read_to_end(&mut bytes)).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

fn head(line: &str, more: &[&str]) -> String {
    let lines = [&[line, "Host: x", "Connection: close"], more].concat();
    lines.join("\r\n") + "\r\n\r\n"
}

// "API key, lease, body."
#[tokio::test]
async fn continue_is_sent_only_after_the_lease_check() {
    let stage = stage().await;
    let address = serve(&stage).await;
    stage.ownership_source.grant_to("alice");
    let (line, length, expect) = ("POST /json/state HTTP/1.1", "Content-Length: 11", "Expect: 100-continue");
    let refused = exchange(address, &head(line, &[length, expect])).await;
    assert!(refused.starts_with("HTTP/1.1 428 "), "{refused}");
    let shown = head(line, &[length, expect, "X-Control-Lease: alice"]);
    let taken = exchange(address, &(shown + r#"{"bri":101}"#)).await;
    assert!(taken.starts_with("HTTP/1.1 100 Continue\r\n") && taken.contains("HTTP/1.1 200 OK"), "{taken}");
    assert_eq!(stage.wled.state("bri"), 101);
}

#[tokio::test]
async fn requests_of_a_real_connection_are_classified_and_forwarded_unchanged() {
    let stage = stage().await;
    let address = serve(&stage).await;
    stage.ownership_source.grant_to("alice");
    let status = async |line: &str, more: &[&str], body: &str| {
        let answer = exchange(address, &(head(&format!("{line} HTTP/1.1"), more) + body)).await;
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(status("GET /json/state", &[], "").await, "200");
    assert_eq!(status("HEAD /json/state", &[], "").await, "200");
    let elsewhere = "GET http://elsewhere/json/state";
    assert_eq!(status(elsewhere, &[], "").await, "200", "one device, whatever it is called");
    for line in
        ["GET /win&A=1", "GET /json/%73tate", "GET //json/state", "GET /json/state?", "DELETE /json/state"]
    {
        assert_eq!(status(line, &[], "").await, "428", "{line}");
    }
    let chunked = ["Transfer-Encoding: chunked"];
    assert_eq!(status("GET /json/state", &chunked, "0\r\n\r\n").await, "428", "who looks sends no body");
    let seen = stage.wled.received_requests();
    let lines: Vec<_> = seen.iter().map(|seen| seen.line.as_str()).collect();
    assert_eq!(lines, ["GET /json/state", "HEAD /json/state", "GET /json/state"]);
    assert!(
        seen[0].headers.contains(&("x-forwarded-for".into(), "10.0.0.7".into())),
        "{:?}",
        seen[0].headers
    );
}

#[tokio::test]
async fn a_truncated_device_response_is_visible_to_the_client() {
    let stage = stage().await;
    let address = serve(&stage).await;
    let answer = exchange(address, &head("GET /broken HTTP/1.1", &[])).await;
    assert!(answer.contains("half") && !answer.ends_with("0\r\n\r\n"), "{answer}");
}
