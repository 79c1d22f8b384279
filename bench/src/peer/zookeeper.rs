//! ZooKeeper: an ephemeral node per lease, over its binary protocol.

use std::path::Path;
use std::process::Command;

use super::launcher::{RunningServer, write_file};
use super::{LeaseSlot, Step, TTL};
use crate::error::BenchError;
use crate::wire::WireConnection;

/// Debian's library, whose manifest names all others. Without a logger, which its users would configure themselves.
const LIBRARY: &str = "/usr/share/java/zookeeper.jar";
const MAIN_CLASS: &str = "org.apache.zookeeper.server.ZooKeeperServerMain";

const CREATE: i32 = 1;
const DELETE: i32 = 2;
const PING: i32 = 11;
/// Requests and responses of pings have this in place of a number of their own.
const PING_XID: i32 = -2;
const EPHEMERAL: i32 = 1;
const ALL_PERMISSIONS: i32 = 31;
const ANY_VERSION: i32 = -1;
const NODE_EXISTS: i32 = -110;

pub fn command(folder: &Path, port: u16) -> Result<Command, BenchError> {
    check_library()?;
    let configuration = folder.join("zoo.cfg");
    let data = folder.join("data");
    let text = format!(
        "tickTime=2000\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\n\
         admin.enableServer=false\n",
        data.display()
    );
    write_file(&configuration, &text)?;
    let mut command = Command::new("java");
    command.args(["-cp", LIBRARY, MAIN_CLASS]).arg(configuration).current_dir(folder);
    Ok(command)
}

/// The library does not print its version; its package knows it.
pub fn version_command() -> Command {
    let mut command = Command::new("dpkg-query");
    command.args(["--show", "--showformat", "${Version}", "libzookeeper-java"]);
    command
}

fn check_library() -> Result<(), BenchError> {
    if Path::new(LIBRARY).is_file() {
        return Ok(());
    }
    Err(BenchError::environment(
        format!("{LIBRARY} is not there"),
        "run `cargo xtask bench peers`, which installs the peers, or leave the system out with --systems",
    ))
}

pub async fn prepare(server: &RunningServer) -> Result<(), BenchError> {
    Zookeeper::connect(server).await.map(drop)
}

pub struct Zookeeper {
    wire: WireConnection,
    last_xid: i32,
}

impl Zookeeper {
    pub async fn connect(server: &RunningServer) -> Result<Self, BenchError> {
        let mut wire = WireConnection::connect(&server.endpoint()).await?;
        let timeout_ms = i32::try_from(TTL.as_millis()).unwrap_or(i32::MAX);
        write_packet(&mut wire.outgoing, |outgoing| {
            // Protocol version 0, no transaction seen before.
            outgoing.extend_from_slice(&[0; 12]);
            outgoing.extend_from_slice(&timeout_ms.to_be_bytes());
            // A new session: no id, and an empty password of the usual length.
            outgoing.extend_from_slice(&[0; 8]);
            write_buffer(outgoing, &[0; 16]);
            // Not only for reading.
            outgoing.push(0);
        });
        wire.flush().await?;
        wire.receive(|bytes| {
            let Some((body, length)) = packet(bytes) else { return Ok(None) };
            match integer(body, 4) {
                Some(granted_ms) if granted_ms > 0 => Ok(Some((length, ()))),
                _ => Err(BenchError::unexpected("a session", body)),
            }
        })
        .await?;
        Ok(Self { wire, last_xid: 0 })
    }

    pub async fn perform(
        &mut self,
        step: Step,
        slots: &mut [LeaseSlot],
        completed: &mut (impl FnMut() + Send),
    ) -> Result<(), BenchError> {
        let first_xid = self.last_xid.wrapping_add(1);
        for slot in slots.iter() {
            self.push(step, slot);
        }
        self.wire.flush().await?;
        // Responses come in the order of the requests.
        for (index, _) in slots.iter().enumerate() {
            let expected = match step {
                Step::Renew => PING_XID,
                Step::Acquire | Step::Release => {
                    first_xid.wrapping_add(i32::try_from(index).unwrap_or_default())
                }
            };
            self.wire
                .receive(|bytes| {
                    let Some((body, length)) = packet(bytes) else { return Ok(None) };
                    match (integer(body, 0), integer(body, 12)) {
                        (Some(xid), Some(0)) if xid == expected => Ok(Some((length, ()))),
                        (Some(xid), Some(NODE_EXISTS)) if xid == expected && step == Step::Acquire => {
                            Err(BenchError::Denied("the node exists".to_owned()))
                        }
                        (xid, error) => {
                            let text = format!("xid {xid:?}, error {error:?}");
                            Err(BenchError::unexpected(step.name(), text))
                        }
                    }
                })
                .await?;
            completed();
        }
        Ok(())
    }

    fn push(&mut self, step: Step, slot: &LeaseSlot) {
        let xid = match step {
            Step::Renew => PING_XID,
            Step::Acquire | Step::Release => {
                self.last_xid = self.last_xid.wrapping_add(1);
                self.last_xid
            }
        };
        write_packet(&mut self.wire.outgoing, |outgoing| {
            let mut number = |number: i32| outgoing.extend_from_slice(&number.to_be_bytes());
            number(xid);
            match step {
                Step::Renew => number(PING),
                Step::Acquire => {
                    number(CREATE);
                    write_path(outgoing, &slot.resource);
                    write_buffer(outgoing, b"holder");
                    // One entry: everything, for everyone.
                    outgoing.extend_from_slice(&1_i32.to_be_bytes());
                    outgoing.extend_from_slice(&ALL_PERMISSIONS.to_be_bytes());
                    write_buffer(outgoing, b"world");
                    write_buffer(outgoing, b"anyone");
                    outgoing.extend_from_slice(&EPHEMERAL.to_be_bytes());
                }
                Step::Release => {
                    number(DELETE);
                    write_path(outgoing, &slot.resource);
                    outgoing.extend_from_slice(&ANY_VERSION.to_be_bytes());
                }
            }
        });
    }
}

/// Appends a packet: its length, then what `write` appends.
fn write_packet(outgoing: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = outgoing.len();
    outgoing.extend_from_slice(&[0; 4]);
    write(outgoing);
    let length = u32::try_from(outgoing.len() - start - 4).unwrap_or_default();
    outgoing[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends bytes behind their length, as buffers and texts are written.
fn write_buffer(outgoing: &mut Vec<u8>, bytes: &[u8]) {
    outgoing.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or_default().to_be_bytes());
    outgoing.extend_from_slice(bytes);
}

fn write_path(outgoing: &mut Vec<u8>, resource: &str) {
    outgoing.extend_from_slice(&u32::try_from(resource.len() + 1).unwrap_or_default().to_be_bytes());
    outgoing.push(b'/');
    outgoing.extend_from_slice(resource.as_bytes());
}

/// A whole packet at the start of `bytes`: its body, and its length with the prefix.
fn packet(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let (prefix, rest) = bytes.split_first_chunk()?;
    let length = usize::try_from(u32::from_be_bytes(*prefix)).ok()?;
    Some((rest.get(..length)?, length + 4))
}

fn integer(body: &[u8], position: usize) -> Option<i32> {
    Some(i32::from_be_bytes(*body.get(position..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_its_body_behind_the_length_of_the_body() {
        let mut bytes = Vec::new();
        write_packet(&mut bytes, |outgoing| write_path(outgoing, "a"));
        assert_eq!(bytes, b"\0\0\0\x06\0\0\0\x02/a");
        assert_eq!(packet(&bytes), Some((b"\0\0\0\x02/a".as_slice(), 10)));
        assert_eq!(packet(&bytes[..9]), None);
        assert_eq!(packet(&bytes[..3]), None);
    }

    #[test]
    fn integers_are_big_endian_and_may_be_missing() {
        assert_eq!(integer(&[0, 0, 0, 0, 255, 255, 255, 146], 4), Some(NODE_EXISTS));
        assert_eq!(integer(&[0, 0, 0], 0), None);
    }
}
