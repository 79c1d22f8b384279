//! One connection to a server: what goes out in one write, and what came in and is not parsed yet.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::PathBuf;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

use crate::error::{BenchError, IoContext as _};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    Tcp(SocketAddr),
    Local(PathBuf),
}

enum Transport {
    Tcp(TcpStream),
    Local(UnixStream),
}

pub struct WireConnection {
    transport: Transport,
    /// Commands that the next [`flush`](Self::flush) sends.
    pub outgoing: Vec<u8>,
    incoming: Vec<u8>,
    /// How much of `incoming` is parsed.
    parsed: usize,
}

/// At least this much is read at once.
const READ_BYTES: usize = 16 << 10;

impl WireConnection {
    pub async fn connect(endpoint: &Endpoint) -> Result<Self, BenchError> {
        let transport = match endpoint {
            Endpoint::Tcp(address) => {
                let connected = TcpStream::connect(address).await;
                let stream = connected.while_trying(format!("connecting to {address}"))?;
                stream.set_nodelay(true).while_trying("setting TCP_NODELAY")?;
                Transport::Tcp(stream)
            }
            Endpoint::Local(path) => {
                let connected = UnixStream::connect(path).await;
                Transport::Local(connected.while_trying(format!("connecting to {}", path.display()))?)
            }
        };
        Ok(Self { transport, outgoing: Vec::new(), incoming: Vec::with_capacity(READ_BYTES), parsed: 0 })
    }

    /// Sends everything in `outgoing`, in one write if the socket takes it.
    pub async fn flush(&mut self) -> Result<(), BenchError> {
        let written = match &mut self.transport {
            Transport::Tcp(stream) => stream.write_all(&self.outgoing).await,
            Transport::Local(stream) => stream.write_all(&self.outgoing).await,
        };
        self.outgoing.clear();
        written.while_trying("sending a request")
    }

    /// Waits until `parse` finds a whole response at the start of what came in. `parse` returns the length of the
    /// response with its result, and nothing while the response is incomplete.
    pub async fn receive<T>(
        &mut self,
        mut parse: impl FnMut(&[u8]) -> Result<Option<(usize, T)>, BenchError>,
    ) -> Result<T, BenchError> {
        loop {
            if let Some((length, response)) = parse(&self.incoming[self.parsed..])? {
                self.parsed += length;
                return Ok(response);
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> Result<(), BenchError> {
        // Usually everything is parsed here, and nothing is moved.
        self.incoming.drain(..self.parsed);
        self.parsed = 0;
        self.incoming.reserve(READ_BYTES);
        let read = match &mut self.transport {
            Transport::Tcp(stream) => stream.read_buf(&mut self.incoming).await,
            Transport::Local(stream) => stream.read_buf(&mut self.incoming).await,
        };
        match read.while_trying("reading a response")? {
            0 => Err(io::Error::from(ErrorKind::UnexpectedEof)).while_trying("reading a response"),
            _ => Ok(()),
        }
    }
}

/// The line at the start of `bytes`, without its CR LF, and its length with them.
pub fn line(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&bytes[..end], end + 2))
}

/// A decimal number, as servers send them.
pub fn decimal<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::UnixListener;

    use super::*;

    #[test]
    fn responses_are_parsed_one_by_one_however_they_are_split() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = UnixListener::bind(&path).unwrap();
            let mut connection = WireConnection::connect(&Endpoint::Local(path.clone())).await.unwrap();
            let (mut server, _) = listener.accept().await.unwrap();
            let parse = |bytes: &[u8]| Ok(line(bytes).map(|(text, length)| (length, text.to_vec())));
            server.write_all(b"one\r\ntwo\r\nthr").await.unwrap();
            assert_eq!(connection.receive(parse).await.unwrap(), b"one");
            assert_eq!(connection.receive(parse).await.unwrap(), b"two");
            server.write_all(b"ee\r\n").await.unwrap();
            assert_eq!(connection.receive(parse).await.unwrap(), b"three");
            drop(server);
            assert!(connection.receive(parse).await.is_err(), "the server closed the connection");
        });
    }

    #[test]
    fn decimal_accepts_numbers_only() {
        assert_eq!(decimal::<u64>(b"42"), Some(42));
        assert_eq!(decimal::<i64>(b"-1"), Some(-1));
        assert_eq!(decimal::<u64>(b"4x"), None);
        assert_eq!(decimal::<u64>(b""), None);
    }
}
