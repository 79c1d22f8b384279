//! Redis: the single-instance lock of its documentation, over RESP.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use super::launcher::RunningServer;
use super::{LeaseSlot, Step, TTL};
use crate::error::{BenchError, IoContext as _};
use crate::wire::{WireConnection, decimal, line};

pub const PROGRAM: &str = "redis-server";

/// Renews and releases only the holder's own lock, as the documentation of `SET` shows.
const RENEW: &str = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end";
const RELEASE: &str =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

pub fn command(folder: &Path, port: u16) -> Result<Command, BenchError> {
    let data = folder.join("data");
    std::fs::create_dir(&data).while_trying("creating a data directory")?;
    let mut command = Command::new(PROGRAM);
    command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--daemonize", "no", "--save", ""]);
    command.args(["--appendonly", "yes", "--appendfsync", "always", "--dir"]).arg(data);
    Ok(command)
}

pub async fn prepare(server: &RunningServer) -> Result<(), BenchError> {
    let mut wire = WireConnection::connect(&server.endpoint()).await?;
    write_command(&mut wire.outgoing, &[b"PING"]);
    wire.flush().await?;
    wire.receive(|bytes| match Reply::parse(bytes)? {
        Some((length, Reply::Status(b"PONG"))) => Ok(Some((length, ()))),
        Some(_) => Err(BenchError::unexpected("PING", bytes)),
        None => Ok(None),
    })
    .await
}

pub struct Redis {
    wire: WireConnection,
    number: usize,
    /// Makes the token of every acquire unique.
    acquires: u64,
    renew_script: Vec<u8>,
    release_script: Vec<u8>,
    ttl_ms: String,
}

impl Redis {
    pub async fn connect(server: &RunningServer, number: usize) -> Result<Self, BenchError> {
        let mut wire = WireConnection::connect(&server.endpoint()).await?;
        let renew_script = load_script(&mut wire, RENEW).await?;
        let release_script = load_script(&mut wire, RELEASE).await?;
        let ttl_ms = TTL.as_millis().to_string();
        Ok(Self { wire, number, acquires: 0, renew_script, release_script, ttl_ms })
    }

    pub async fn perform(
        &mut self,
        step: Step,
        slots: &mut [LeaseSlot],
        completed: &mut (impl FnMut() + Send),
    ) -> Result<(), BenchError> {
        for slot in slots.iter_mut() {
            self.push(step, slot);
        }
        self.wire.flush().await?;
        for _ in 0..slots.len() {
            self.wire
                .receive(|bytes| {
                    let Some((length, reply)) = Reply::parse(bytes)? else { return Ok(None) };
                    match (step, reply) {
                        (Step::Acquire, Reply::Status(b"OK")) => {}
                        (Step::Acquire, Reply::Null) => {
                            return Err(BenchError::Denied("the key exists".to_owned()));
                        }
                        (Step::Renew | Step::Release, Reply::Integer(1)) => {}
                        _ => return Err(BenchError::unexpected(step.name(), bytes)),
                    }
                    Ok(Some((length, ())))
                })
                .await?;
            completed();
        }
        Ok(())
    }

    /// Tries once to acquire, and returns whether it succeeded. The connection stays usable.
    pub async fn try_acquire(&mut self, slot: &mut LeaseSlot) -> Result<bool, BenchError> {
        self.push(Step::Acquire, slot);
        self.wire.flush().await?;
        let read = |bytes: &[u8]| match Reply::parse(bytes)? {
            None => Ok(None),
            Some((length, Reply::Status(b"OK"))) => Ok(Some((length, true))),
            Some((length, Reply::Null)) => Ok(Some((length, false))),
            Some(_) => Err(BenchError::unexpected("acquire", bytes)),
        };
        self.wire.receive(read).await
    }

    fn push(&mut self, step: Step, slot: &mut LeaseSlot) {
        let outgoing = &mut self.wire.outgoing;
        let (resource, ttl_ms) = (slot.resource.as_bytes(), self.ttl_ms.as_bytes());
        match step {
            Step::Acquire => {
                self.acquires += 1;
                slot.proof.clear();
                use std::fmt::Write as _;
                write!(slot.proof, "{}-{}", self.number, self.acquires).expect("memory can be written");
                write_command(outgoing, &[b"SET", resource, slot.proof.as_bytes(), b"NX", b"PX", ttl_ms]);
            }
            Step::Renew => {
                let proof = slot.proof.as_bytes();
                write_command(outgoing, &[b"EVALSHA", &self.renew_script, b"1", resource, proof, ttl_ms]);
            }
            Step::Release => {
                let proof = slot.proof.as_bytes();
                write_command(outgoing, &[b"EVALSHA", &self.release_script, b"1", resource, proof]);
            }
        }
    }
}

async fn load_script(wire: &mut WireConnection, script: &str) -> Result<Vec<u8>, BenchError> {
    write_command(&mut wire.outgoing, &[b"SCRIPT", b"LOAD", script.as_bytes()]);
    wire.flush().await?;
    wire.receive(|bytes| match Reply::parse(bytes)? {
        None => Ok(None),
        Some((length, Reply::Bulk(digest))) => Ok(Some((length, digest.to_vec()))),
        Some(_) => Err(BenchError::unexpected("SCRIPT LOAD", bytes)),
    })
    .await
}

/// Appends a command: an array of bulk strings.
fn write_command(outgoing: &mut Vec<u8>, arguments: &[&[u8]]) {
    let expect = "memory can be written";
    write!(outgoing, "*{}\r\n", arguments.len()).expect(expect);
    for argument in arguments {
        write!(outgoing, "${}\r\n", argument.len()).expect(expect);
        outgoing.extend_from_slice(argument);
        outgoing.extend_from_slice(b"\r\n");
    }
}

/// A reply of RESP, as far as these commands have them.
#[derive(Debug, PartialEq, Eq)]
enum Reply<'a> {
    Status(&'a [u8]),
    Failure(&'a [u8]),
    Integer(i64),
    Bulk(&'a [u8]),
    Null,
}

impl<'a> Reply<'a> {
    /// A whole reply at the start of `bytes`, with its length.
    fn parse(bytes: &'a [u8]) -> Result<Option<(usize, Self)>, BenchError> {
        let Some((first, length)) = line(bytes) else { return Ok(None) };
        let malformed = || BenchError::unexpected("a command of Redis", bytes);
        let (kind, value) = first.split_first().ok_or_else(malformed)?;
        let reply = match kind {
            b'+' => Reply::Status(value),
            b'-' => Reply::Failure(value),
            b':' => Reply::Integer(decimal(value).ok_or_else(malformed)?),
            b'$' if value == b"-1" => Reply::Null,
            b'$' => {
                let size: usize = decimal(value).ok_or_else(malformed)?;
                let Some(bulk) = bytes[length..].get(..size.saturating_add(2)) else { return Ok(None) };
                return Ok(Some((length + bulk.len(), Reply::Bulk(&bulk[..size]))));
            }
            _ => return Err(malformed()),
        };
        Ok(Some((length, reply)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_reply_is_parsed_with_its_length() {
        for (text, expected) in [
            ("+OK\r\n", Reply::Status(b"OK")),
            ("-NOSCRIPT no script\r\n", Reply::Failure(b"NOSCRIPT no script")),
            (":1\r\n", Reply::Integer(1)),
            (":-2\r\n", Reply::Integer(-2)),
            ("$5\r\nhe\r\no\r\n", Reply::Bulk(b"he\r\no")),
            ("$0\r\n\r\n", Reply::Bulk(b"")),
            ("$-1\r\n", Reply::Null),
        ] {
            let followed = format!("{text}+NEXT\r\n");
            let parsed = Reply::parse(followed.as_bytes()).unwrap();
            assert_eq!(parsed, Some((text.len(), expected)));
            for end in 0..text.len() {
                assert_eq!(Reply::parse(&text.as_bytes()[..end]).unwrap(), None, "{end} bytes of {text:?}");
            }
        }
    }

    #[test]
    fn what_is_not_a_reply_is_an_error() {
        for text in ["HTTP/1.1 200 OK\r\n", ":one\r\n", "$x\r\n", "\r\n"] {
            assert!(Reply::parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_command_is_an_array_of_bulk_strings() {
        let mut outgoing = Vec::new();
        write_command(&mut outgoing, &[b"GET", b"a\r\nb"]);
        assert_eq!(outgoing, b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n");
    }
}
