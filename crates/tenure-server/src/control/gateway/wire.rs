//! A connection to the device.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::settings::DeviceAddress;

#[derive(Clone, Default)]
pub(super) struct Scissors(Arc<AtomicBool>);

impl Scissors {
    /// From now on nothing is written, and what the system has not sent yet is thrown away when the wire is dropped.
    pub(super) fn cut(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(super) fn did_cut(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

pub(super) struct Wire {
    stream: TcpStream,
    scissors: Scissors,
}

impl Wire {
    pub(super) async fn connect(device: &DeviceAddress, patience: Duration) -> io::Result<Self> {
        let connecting = timeout(patience, TcpStream::connect(device.place())).await;
        let stream = connecting.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        // A command is one small write: waiting for more to send would only delay it.
        stream.set_nodelay(true)?;
        Ok(Self { stream, scissors: Scissors::default() })
    }

    pub(super) fn scissors(&self) -> Scissors {
        self.scissors.clone()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.scissors.did_cut() {
            // A reset in place of a farewell: what is still in the system's buffers does not go out.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.scissors.did_cut() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
