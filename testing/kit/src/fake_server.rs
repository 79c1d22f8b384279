//! A server that plays its part: it gives the responses it was told to give.

use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;

use serde_json::Value;

use crate::process::CommandOutput;
use crate::program::{run_command, tenure_command};

/// A request as it arrived.
#[derive(Debug)]
pub struct ReceivedRequest {
    /// Such as `GET /v1/leases`.
    pub line: String,
    pub headers: Vec<String>,
    pub body: String,
}

/// A server that runs until it has given its responses.
pub struct FakeServer {
    pub url: String,
    serving: JoinHandle<Vec<ReceivedRequest>>,
}

impl FakeServer {
    /// Answers the requests of one connection with a status line and JSON each.
    pub fn start(responses: Vec<(&'static str, Value)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut input = BufReader::new(stream.try_clone().unwrap());
            let mut received = Vec::new();
            for (status, body) in responses {
                received.push(ReceivedRequest::read(&mut input));
                let media =
                    if status.starts_with('2') { "application/json" } else { "application/problem+json" };
                let body = body.to_string();
                let head = format!("Content-Type: {media}\r\nContent-Length: {}", body.len());
                stream.write_all(format!("HTTP/1.1 {status}\r\n{head}\r\n\r\n{body}").as_bytes()).unwrap();
            }
            received
        });
        Self { url, serving }
    }

    /// What it received.
    pub fn finish(self) -> Vec<ReceivedRequest> {
        self.serving.join().unwrap()
    }

    /// Runs `tenure` with these arguments against such a server: its output, and what the server received.
    pub fn run(
        arguments: &[&str],
        responses: Vec<(&'static str, Value)>,
    ) -> (CommandOutput, Vec<ReceivedRequest>) {
        let server = Self::start(responses);
        (run_against(&server.url, arguments), server.finish())
    }
}

/// Runs `tenure` with these arguments against a server at this address.
pub fn run_against(url: &str, arguments: &[&str]) -> CommandOutput {
    let folder = tempfile::tempdir().unwrap();
    let mut command = tenure_command(folder.path());
    run_command(command.args(arguments).env("TENURE_URL", url).env("TENURE_TOKEN", "tnr_played"))
}

impl ReceivedRequest {
    fn read(input: &mut impl BufRead) -> Self {
        let mut lines = input.lines().map(Result::unwrap).take_while(|line| !line.is_empty());
        let line = lines.next().unwrap().strip_suffix(" HTTP/1.1").unwrap().to_owned();
        let headers: Vec<String> = lines.collect();
        let length = headers.iter().find_map(|header| {
            let (name, value) = header.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.parse().unwrap())
        });
        let mut body = vec![0; length.unwrap_or(0)];
        input.read_exact(&mut body).unwrap();
        Self { line, headers, body: String::from_utf8(body).unwrap() }
    }
}
