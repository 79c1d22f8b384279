//! Fifteen thousand callers that have nothing to say.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use rustix::process::{Resource, getrlimit, setrlimit};
use tenure_testkit::{ServerProcess, serve_command, wait_until};

const MANY: usize = 15_000;
/// The most memory of the server that one of them may take.
const MAX_BYTES_PER_CONNECTION: usize = 8 << 10;

/// A connection that has made one request, and stays.
fn used(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    again(&mut stream, address);
    stream
}

fn again(stream: &mut TcpStream, address: &str) {
    write!(stream, "GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let (mut answer, mut part) = (Vec::new(), [0; 512]);
    while !answer.ends_with(br#"{"status":"alive"}"#) {
        let length = stream.read(&mut part).unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&part[..length]);
    }
}

/// How much memory a process has now.
fn memory_of(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

#[test]
fn fifteen_thousand_idle_connections_use_little_memory_and_stay_usable() {
    // This process is the callers': each has one file for each of its connections, and the server as many.
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    setrlimit(Resource::Nofile, files).unwrap();
    if files.current.is_some_and(|limit| limit < 16_000) {
        eprintln!("this system permits no more than {:?} open files; nothing was tested", files.current);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let served = ServerProcess::start(&mut serve_command(folder.path()));
    // What the first ones take is not theirs alone.
    let mut open: Vec<_> = (0..100).map(|_| used(&served.address)).collect();
    let before = memory_of(served.process_id());
    open.extend((0..MANY).map(|_| used(&served.address)));
    let each = || memory_of(served.process_id()).saturating_sub(before) / MANY;
    wait_until("idle connections take little memory", || {
        eprintln!("{} bytes for each", each());
        each() <= MAX_BYTES_PER_CONNECTION
    });
    for stream in open.iter_mut().step_by(500) {
        again(stream, &served.address);
    }
    served.stop();
}
