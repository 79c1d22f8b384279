//! The client's half of RFC 6455, as far as `/v1/stream` needs it: whole text messages, pings and the end.

use std::io::Write as _;

use crate::error::BenchError;
use crate::http::{HttpConnection, ResponseHead};
use crate::wire::{Endpoint, WireConnection};

pub struct WebSocket {
    wire: WireConnection,
}

/// One frame of the server.
struct Frame<'a> {
    opcode: u8,
    payload: &'a [u8],
}

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;

impl WebSocket {
    pub async fn connect(
        endpoint: &Endpoint,
        path: &str,
        authorization: Option<&str>,
    ) -> Result<Self, BenchError> {
        let (mut wire, headers) = HttpConnection::connect(endpoint, authorization).await?.into_wire();
        // The key only has to be 16 bytes in base64. The server's proof of it is not checked: it is the server that this
        // program started.
        write!(
            wire.outgoing,
            "GET {path} HTTP/1.1\r\n{headers}connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        .expect("memory can be written");
        wire.flush().await?;
        wire.receive(|bytes| match ResponseHead::parse(bytes)? {
            None => Ok(None),
            Some(head) if head.status == 101 => Ok(Some((head.length, ()))),
            Some(_) => Err(BenchError::unexpected("the WebSocket handshake", bytes)),
        })
        .await?;
        Ok(Self { wire })
    }

    /// Sends a text message in one write.
    pub async fn send(&mut self, text: &[u8]) -> Result<(), BenchError> {
        write_frame(&mut self.wire.outgoing, TEXT, text);
        self.wire.flush().await
    }

    /// Waits for a text message and hands it to `read`. Answers pings meanwhile.
    pub async fn receive<T>(
        &mut self,
        mut read: impl FnMut(&[u8]) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        loop {
            let mut pong = None;
            let message = self.wire.receive(|bytes| {
                let Some((length, frame)) = Frame::parse(bytes)? else { return Ok(None) };
                let message = match frame.opcode {
                    TEXT => Some(read(frame.payload)?),
                    PING => {
                        pong = Some(frame.payload.to_vec());
                        None
                    }
                    PONG => None,
                    CLOSE => {
                        return Err(BenchError::unexpected("a WebSocket message (closed)", frame.payload));
                    }
                    _ => return Err(BenchError::unexpected("a WebSocket message", bytes)),
                };
                Ok(Some((length, message)))
            });
            if let Some(message) = message.await? {
                return Ok(message);
            }
            if let Some(payload) = pong {
                write_frame(&mut self.wire.outgoing, PONG, &payload);
                self.wire.flush().await?;
            }
        }
    }
}

/// Appends a client's frame. Its mask is zero: the server does the whole work of removing a mask, and the load generator,
/// which shares its cores, none of adding one.
fn write_frame(outgoing: &mut Vec<u8>, opcode: u8, payload: &[u8]) {
    outgoing.push(FINAL | opcode);
    match payload.len() {
        length @ 0..126 => outgoing.push(MASKED | u8::try_from(length).unwrap_or_default()),
        length => match u16::try_from(length) {
            Ok(length) => {
                outgoing.push(MASKED | 126);
                outgoing.extend_from_slice(&length.to_be_bytes());
            }
            Err(_) => {
                outgoing.push(MASKED | 127);
                outgoing.extend_from_slice(&(length as u64).to_be_bytes());
            }
        },
    }
    outgoing.extend_from_slice(&[0; 4]);
    outgoing.extend_from_slice(payload);
}

impl<'a> Frame<'a> {
    /// A whole frame at the start of `bytes`, with its length.
    fn parse(bytes: &'a [u8]) -> Result<Option<(usize, Self)>, BenchError> {
        let [first, second, rest @ ..] = bytes else { return Ok(None) };
        if *first & FINAL == 0 || *second & MASKED != 0 {
            return Err(BenchError::unexpected("a WebSocket message in one unmasked frame", bytes));
        }
        let (length, header) = match second {
            126 => match rest.first_chunk() {
                None => return Ok(None),
                Some(length) => (u64::from(u16::from_be_bytes(*length)), 4),
            },
            127 => match rest.first_chunk() {
                None => return Ok(None),
                Some(length) => (u64::from_be_bytes(*length), 10),
            },
            length => (u64::from(*length), 2),
        };
        let end = usize::try_from(length).ok().and_then(|length| length.checked_add(header));
        let end = end.ok_or_else(|| BenchError::unexpected("a WebSocket message", bytes))?;
        let payload = bytes.get(header..end);
        Ok(payload.map(|payload| (end, Self { opcode: *first & 0xf, payload })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_every_length_are_parsed_whole() {
        for length in [0, 1, 125, 126, 65_535, 65_536, 70_000] {
            let payload = vec![b'x'; length];
            let mut frame = Vec::new();
            write_frame(&mut frame, TEXT, &payload);
            assert!(Frame::parse(&frame).is_err(), "a client's frame is masked");
            // What the server would send: without the mask.
            let header = frame.len() - length;
            frame.drain(header - 4..header);
            frame[1] &= !MASKED;
            let (end, parsed) = Frame::parse(&frame).unwrap().expect("whole");
            assert_eq!((end, parsed.opcode, parsed.payload.len()), (frame.len(), TEXT, length));
            assert!(Frame::parse(&frame[..frame.len() - 1]).unwrap().is_none(), "one byte is missing");
        }
    }

    #[test]
    fn a_fragment_is_an_error_because_the_server_sends_none() {
        assert!(Frame::parse(&[TEXT, 1, b'x']).is_err());
        assert!(Frame::parse(&[FINAL | TEXT]).unwrap().is_none());
    }
}
