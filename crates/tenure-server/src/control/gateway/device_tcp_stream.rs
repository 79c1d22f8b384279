//! A connection to the device.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time;

use super::settings::DeviceAddress;

#[derive(Clone, Default)]
pub(super) struct ResetHandle(Arc<AtomicBool>);

impl ResetHandle {
    /// From now on nothing is written, and what the system has not sent yet is thrown away when the wire is dropped.
    pub(super) fn reset(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(super) fn is_reset(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

pub(super) struct DeviceTcpStream {
    stream: TcpStream,
    reset_handle: ResetHandle,
}

impl DeviceTcpStream {
    pub(super) async fn connect(device: &DeviceAddress, timeout: Duration) -> io::Result<Self> {
        let connecting = time::timeout(timeout, TcpStream::connect(device.host_and_port())).await;
        let stream = connecting.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        // A command is one small write: waiting for more to send would only delay it.
        stream.set_nodelay(true)?;
        Ok(Self { stream, reset_handle: ResetHandle::default() })
    }

    pub(super) fn reset_handle(&self) -> ResetHandle {
        self.reset_handle.clone()
    }
}

impl Drop for DeviceTcpStream {
    fn drop(&mut self) {
        if self.reset_handle.is_reset() {
            // A reset in place of a farewell: what is still in the system's buffers does not go out.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for DeviceTcpStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for DeviceTcpStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.reset_handle.is_reset() {
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
