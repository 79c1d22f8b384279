//! Communication between Tenure's own processes: descriptors, messages, and signals.

pub mod fd_transfer;
mod signals;

use std::io;
use std::os::unix::net::UnixStream as Blocking;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

pub use self::signals::{STEERING, Signals, without_ignored};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandExit {
    Code(i32),
    Signal(i32),
}

impl CommandExit {
    /// The code that tells others how the command ended. For a signal, the one that shells give.
    pub fn exit_code(self) -> u8 {
        match self {
            CommandExit::Code(code) => u8::try_from(code).unwrap_or(u8::MAX),
            CommandExit::Signal(signal) => u8::try_from(128_i32.saturating_add(signal)).unwrap_or(u8::MAX),
        }
    }

    /// Whether the command says that all went well.
    pub fn is_success(self) -> bool {
        self == CommandExit::Code(0)
    }
}

#[derive(Debug)]
pub struct MessageStream {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

impl MessageStream {
    /// Takes over a connection on which descriptors were sent or received already.
    pub fn new(stream: Blocking) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (reader, writer) = UnixStream::from_std(stream)?.into_split();
        Ok(Self { lines: BufReader::new(reader).lines(), writer })
    }

    pub async fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.writer.write_all(&line).await
    }

    /// What the other one says next; nothing, if it is gone. May be given up and asked again.
    pub async fn receive<T: DeserializeOwned>(&mut self) -> Option<T> {
        let line = self.lines.next_line().await.ok().flatten()?;
        serde_json::from_str(&line).ok()
    }
}
