//! Refusals that no route gives, and the last word of a connection.

use std::time::Duration;

use tenure_api::{Code, Problem};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::stream::Stream;

/// How long a caller is given to take the last word.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The most bytes that are read and dropped meanwhile.
const MAX_DISCARDED_BYTES: usize = 16 << 20;

/// Tells a caller that there is no room, and closes.
pub(super) async fn reject_connection(mut stream: Stream, permit: OwnedSemaphorePermit) {
    let detail = "as many connections are open as may be; nothing was looked at, ask again a little later";
    let answer = answer(&Problem::new(Code::TooManyConnections, detail));
    if let Ok(Ok(())) = timeout(CLOSE_TIMEOUT, stream.write_all(&answer)).await {
        lingering_close(stream).await;
    }
    drop(permit);
}

/// The answer to a header that was not complete in time.
pub(super) fn header_timeout_response() -> Vec<u8> {
    let detail = "the header was not complete within 5 s of its first byte; send it again";
    answer(&Problem::new(Code::TooSlow, detail))
}

/// The answer in place of one of hyper's own, which have no body.
pub(super) fn parse_error_response(status: &[u8]) -> Vec<u8> {
    let problem = match status {
        b"414" | b"431" => {
            let detail = "the request's line and headers have at most 32 KiB and 100 headers";
            Problem::new(Code::HeaderTooLarge, detail)
        }
        _ => Problem::new(Code::Invalid, "this is not HTTP/1.1 as we read it; nothing was looked at"),
    };
    answer(&problem)
}

/// Says that nothing more comes, and takes in what is still under way: an answer that was sent gets lost if bytes that
/// nobody read are still there when the connection is closed.
pub(super) async fn lingering_close(mut stream: Stream) {
    let take_in = async {
        stream.shutdown().await?;
        let (mut rest, mut dropped) = (vec![0; 16 << 10], 0);
        while dropped < MAX_DISCARDED_BYTES {
            match stream.read(&mut rest).await? {
                0 => break,
                read => dropped += read,
            }
        }
        std::io::Result::Ok(())
    };
    let _ = timeout(CLOSE_TIMEOUT, Box::pin(take_in)).await;
}

fn answer(problem: &Problem) -> Vec<u8> {
    let body = serde_json::to_vec(problem).expect("text and numbers can be written as JSON");
    let (status, media_type) = (problem.status, Problem::MEDIA_TYPE);
    let reason = http_reason(status);
    let retry = problem.code.retry_after_seconds().map(|seconds| format!("retry-after: {seconds}\r\n"));
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: {media_type}\r\ncache-control: no-store\r\n{}connection: close\r\n\
         content-length: {}\r\n\r\n",
        retry.unwrap_or_default(),
        body.len()
    );
    [head.into_bytes(), body].concat()
}

fn http_reason(status: u16) -> &'static str {
    axum::http::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or("Problem")
}
