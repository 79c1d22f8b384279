//! NATS JetStream as a key-value store, over its text protocol: what the clients of NATS KV send.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::launcher::{RunningServer, write_file};
use super::{LeaseSlot, Step, TTL};
use crate::error::BenchError;
use crate::wire::{WireConnection, decimal, line};

/// The stream behind the bucket `leases`, with the settings that clients give it.
const STREAM: &str = "KV_leases";
const CREATE_STREAM: &str = r#"{"name":"KV_leases","subjects":["$KV.leases.>"],"max_msgs_per_subject":1,"discard":"new","storage":"file","num_replicas":1,"allow_rollup_hdrs":true,"deny_delete":true,"allow_direct":true,"allow_msg_ttl":true}"#;
/// The error of a put that expected another sequence.
const WRONG_LAST_SEQUENCE: u32 = 10_071;

pub fn command(program: &Path, folder: &Path, port: u16) -> Result<Command, BenchError> {
    let configuration = folder.join("nats.conf");
    let store = folder.join("data");
    let text = format!(
        "listen: 127.0.0.1:{port}\njetstream {{\n  store_dir: \"{}\"\n  sync_interval: always\n}}\n",
        store.display()
    );
    write_file(&configuration, &text)?;
    let mut command = Command::new(program);
    command.arg("--config").arg(configuration);
    Ok(command)
}

pub async fn prepare(server: &RunningServer) -> Result<(), BenchError> {
    let mut nats = Nats::connect(server, 0).await?;
    nats.publish(format_args!("$JS.API.STREAM.CREATE.{STREAM}"), 0, "", CREATE_STREAM);
    nats.wire.flush().await?;
    nats.receive(Step::Acquire, |_, _, payload| {
        let text = String::from_utf8_lossy(payload);
        // The stream may be there from an attempt whose response was lost.
        if text.contains("\"created\"") {
            Ok(())
        } else {
            Err(BenchError::unexpected("creating a stream", payload))
        }
    })
    .await
}

#[derive(Deserialize)]
struct PublishAck {
    seq: Option<u64>,
    error: Option<PublishError>,
}

#[derive(Deserialize)]
struct PublishError {
    err_code: u32,
}

pub struct Nats {
    wire: WireConnection,
    /// Responses come to `_INBOX.NUMBER.SLOT`.
    number: usize,
    headers: String,
}

impl Nats {
    pub async fn connect(server: &RunningServer, number: usize) -> Result<Self, BenchError> {
        let mut wire = WireConnection::connect(&server.endpoint()).await?;
        let hello = format!(
            "CONNECT {{\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true,\"protocol\":1,\
             \"lang\":\"rust\",\"version\":\"0\"}}\r\nSUB _INBOX.{number}.* 1\r\nPING\r\n"
        );
        wire.outgoing.extend_from_slice(hello.as_bytes());
        wire.flush().await?;
        while !wire
            .receive(|bytes| {
                ServerMessage::parse(bytes).map(|parsed| {
                    parsed.map(|(length, message)| (length, matches!(message, ServerMessage::Pong)))
                })
            })
            .await?
        {}
        Ok(Self { wire, number, headers: String::new() })
    }

    pub async fn perform(
        &mut self,
        step: Step,
        slots: &mut [LeaseSlot],
        completed: &mut (impl FnMut() + Send),
    ) -> Result<(), BenchError> {
        if step == Step::Acquire {
            self.read_revisions(slots).await?;
        }
        let ttl = TTL.as_secs();
        for (index, slot) in slots.iter().enumerate() {
            let mut headers = std::mem::take(&mut self.headers);
            headers.clear();
            write!(headers, "Nats-Expected-Last-Subject-Sequence: {}\r\n", slot.revision)
                .and_then(|()| match step {
                    Step::Acquire | Step::Renew => write!(headers, "Nats-TTL: {ttl}s\r\n"),
                    Step::Release => headers.write_str("KV-Operation: DEL\r\n"),
                })
                .expect("memory can be written");
            let value = if step == Step::Release { "" } else { "holder" };
            self.publish(format_args!("$KV.leases.{}", slot.resource), index, &headers, value);
            self.headers = headers;
        }
        self.wire.flush().await?;
        for _ in 0..slots.len() {
            self.receive(step, |index, _, payload| {
                let slot =
                    slots.get_mut(index).ok_or_else(|| BenchError::unexpected(step.name(), payload))?;
                match serde_json::from_slice::<PublishAck>(payload) {
                    Ok(PublishAck { seq: Some(sequence), error: None }) if sequence > slot.revision => {
                        slot.revision = sequence;
                        Ok(())
                    }
                    Ok(PublishAck {
                        error: Some(PublishError { err_code: WRONG_LAST_SEQUENCE }), ..
                    }) if step == Step::Acquire => {
                        Err(BenchError::Denied("another put came first".to_owned()))
                    }
                    _ => Err(BenchError::unexpected(step.name(), payload)),
                }
            })
            .await?;
            completed();
        }
        Ok(())
    }

    /// Finds out which sequence a put must expect: 0 for a key without a message, otherwise that of its deletion.
    async fn read_revisions(&mut self, slots: &mut [LeaseSlot]) -> Result<(), BenchError> {
        for (index, slot) in slots.iter().enumerate() {
            let subject = format_args!("$JS.API.DIRECT.GET.{STREAM}.$KV.leases.{}", slot.resource);
            self.publish(subject, index, "", "");
        }
        self.wire.flush().await?;
        for _ in 0..slots.len() {
            self.receive(Step::Acquire, |index, headers, payload| {
                let unexpected = || BenchError::unexpected("a read of the last message", headers);
                let slot = slots.get_mut(index).ok_or_else(unexpected)?;
                if headers.starts_with(b"NATS/1.0 404") {
                    slot.revision = 0;
                    return Ok(());
                }
                let sequence = header(headers, b"Nats-Sequence").and_then(decimal).ok_or_else(unexpected)?;
                if header(headers, b"KV-Operation") != Some(b"DEL") {
                    return Err(BenchError::Denied(String::from_utf8_lossy(payload).into_owned()));
                }
                slot.revision = sequence;
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// Appends a message whose response is for the slot `index`.
    fn publish(&mut self, subject: std::fmt::Arguments<'_>, index: usize, headers: &str, payload: &str) {
        use std::io::Write as _;
        const VERSION: &str = "NATS/1.0\r\n";
        let (outgoing, number) = (&mut self.wire.outgoing, self.number);
        let written = if headers.is_empty() {
            write!(outgoing, "PUB {subject} _INBOX.{number}.{index} {}\r\n{payload}\r\n", payload.len())
        } else {
            let header_bytes = VERSION.len() + headers.len() + 2;
            let total = header_bytes + payload.len();
            write!(
                outgoing,
                "HPUB {subject} _INBOX.{number}.{index} {header_bytes} {total}\r\n{VERSION}{headers}\r\n{payload}\r\n"
            )
        };
        written.expect("memory can be written");
    }

    /// Waits for a message and hands the slot, the headers and the payload to `read`. Answers pings meanwhile.
    async fn receive<T>(
        &mut self,
        step: Step,
        mut read: impl FnMut(usize, &[u8], &[u8]) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        loop {
            let mut is_ping = false;
            let received = self.wire.receive(|bytes| {
                let Some((length, message)) = ServerMessage::parse(bytes)? else { return Ok(None) };
                let value = match message {
                    ServerMessage::Message { subject, headers, payload } => {
                        let index = subject.rsplit(|byte| *byte == b'.').next().and_then(decimal);
                        let index = index.ok_or_else(|| BenchError::unexpected(step.name(), bytes))?;
                        Some(read(index, headers, payload)?)
                    }
                    ServerMessage::Ping => {
                        is_ping = true;
                        None
                    }
                    ServerMessage::Pong | ServerMessage::Info => None,
                };
                Ok(Some((length, value)))
            });
            if let Some(value) = received.await? {
                return Ok(value);
            }
            if is_ping {
                self.wire.outgoing.extend_from_slice(b"PONG\r\n");
                self.wire.flush().await?;
            }
        }
    }
}

/// What the server sends.
enum ServerMessage<'a> {
    Message { subject: &'a [u8], headers: &'a [u8], payload: &'a [u8] },
    Ping,
    Pong,
    Info,
}

impl<'a> ServerMessage<'a> {
    /// A whole message at the start of `bytes`, with its length.
    fn parse(bytes: &'a [u8]) -> Result<Option<(usize, Self)>, BenchError> {
        let Some((first, length)) = line(bytes) else { return Ok(None) };
        let unexpected = || BenchError::unexpected("a command of NATS", first);
        let mut words = first.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let (header_bytes, subject, total) = match words.next().unwrap_or_default() {
            b"PING" => return Ok(Some((length, Self::Ping))),
            b"PONG" => return Ok(Some((length, Self::Pong))),
            b"INFO" => return Ok(Some((length, Self::Info))),
            verb @ (b"MSG" | b"HMSG") => {
                let subject = words.next().ok_or_else(unexpected)?;
                let mut sizes = words.rev().map(decimal::<usize>);
                let total = sizes.next().flatten().ok_or_else(unexpected)?;
                let header_bytes =
                    if verb == b"HMSG" { sizes.next().flatten().ok_or_else(unexpected)? } else { 0 };
                (header_bytes, subject, total)
            }
            _ => return Err(unexpected()),
        };
        let Some(content) = bytes[length..].get(..total.saturating_add(2)) else { return Ok(None) };
        let (headers, payload) = content[..total].split_at_checked(header_bytes).ok_or_else(unexpected)?;
        Ok(Some((length + content.len(), Self::Message { subject, headers, payload })))
    }
}

/// The value of a header.
fn header<'a>(headers: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut lines = headers.split(|byte| *byte == b'\n');
    lines
        .find_map(|line| line.trim_ascii_end().strip_prefix(name)?.strip_prefix(b":"))
        .map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_parsed_with_its_headers_and_its_length() {
        let headers = "NATS/1.0\r\nNats-Sequence: 12\r\nKV-Operation: DEL\r\n\r\n";
        let text = format!("HMSG _INBOX.3.5 1 {} {}\r\n{headers}hello\r\n", headers.len(), headers.len() + 5);
        let followed = format!("{text}PING\r\n");
        let Some((length, ServerMessage::Message { subject, headers, payload })) =
            ServerMessage::parse(followed.as_bytes()).unwrap()
        else {
            panic!("a whole message")
        };
        assert_eq!((length, subject, payload), (text.len(), b"_INBOX.3.5".as_slice(), b"hello".as_slice()));
        assert_eq!(header(headers, b"Nats-Sequence"), Some(b"12".as_slice()));
        assert_eq!(header(headers, b"KV-Operation"), Some(b"DEL".as_slice()));
        assert_eq!(header(headers, b"Nats-Time"), None);
        for end in 0..text.len() {
            assert!(ServerMessage::parse(&text.as_bytes()[..end]).unwrap().is_none(), "{end}");
        }
    }

    #[test]
    fn a_message_without_headers_has_one_size() {
        let Some((length, ServerMessage::Message { headers, payload, .. })) =
            ServerMessage::parse(b"MSG _INBOX.3.5 1 2\r\n{}\r\n").unwrap()
        else {
            panic!("a whole message")
        };
        assert_eq!((length, headers, payload), (24, b"".as_slice(), b"{}".as_slice()));
        assert!(ServerMessage::parse(b"-ERR 'Unknown Protocol Operation'\r\n").is_err());
    }
}
