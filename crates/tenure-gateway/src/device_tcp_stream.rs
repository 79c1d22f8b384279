//! A connection to the device.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt as _;
use tenure_control::problem::{Problem, ProblemCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::GatewayContext;
use super::forward::{device_problem_detail, unreachable};
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

const PATH: &str = "/ws";
/// The most bytes of a message from the device.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

pub(super) struct DeviceWebSocket {
    pub(super) socket: WebSocketStream<DeviceTcpStream>,
    pub(super) reset_handle: ResetHandle,
}

impl DeviceWebSocket {
    pub(super) async fn open(shared: &GatewayContext) -> Result<Self, Problem> {
        let wire = DeviceTcpStream::connect(&shared.device, shared.timeouts.connect).await;
        let wire = wire.map_err(|error| unreachable(shared, &error))?;
        let scissors = wire.reset_handle();
        let mut config = WebSocketConfig::default();
        config.read_buffer_size = 4 << 10;
        // Each message goes out by itself, at once.
        config.write_buffer_size = 0;
        config.max_write_buffer_size = 4 * MAX_MESSAGE_BYTES;
        config.max_message_size = Some(MAX_MESSAGE_BYTES);
        config.max_frame_size = Some(MAX_MESSAGE_BYTES);
        let address = format!("ws://{}{PATH}", shared.device.authority());
        let request = address.into_client_request().map_err(|error| unreachable(shared, &error))?;
        let handshake = client_async_with_config(request, wire, Some(config));
        match timeout(shared.timeouts.first_byte, handshake).await {
            Ok(Ok((socket, _))) => Ok(Self { socket, reset_handle: scissors }),
            Ok(Err(error)) => {
                let what =
                    format!("opens no WebSocket at {PATH} ({error}); nothing was sent. See what it runs");
                Err(Problem::new(ProblemCode::Unavailable, device_problem_detail(shared, &what)))
            }
            Err(_) => {
                let what =
                    format!("does not answer at {PATH}; nothing was sent. Try again, or start it again");
                Err(Problem::new(ProblemCode::Unavailable, device_problem_detail(shared, &what)))
            }
        }
    }
}

/// What the device says next. Without a line it says nothing.
pub(super) async fn next(socket: &mut Option<DeviceWebSocket>) -> Option<Result<Message, Error>> {
    match socket {
        Some(line) => line.socket.next().await,
        None => std::future::pending().await,
    }
}

/// There was one, and then there was none.
pub(super) fn closed_problem(shared: &GatewayContext) -> Problem {
    Problem::new(
        ProblemCode::Unavailable,
        device_problem_detail(shared, "closed its WebSocket; nothing was sent. Send it again"),
    )
}

/// Something went wrong in the middle of a message.
pub(super) fn outcome_unknown_problem(shared: &GatewayContext) -> Problem {
    let what = "took the message only in part; nobody knows whether it obeyed. Read its state before you send it again";
    Problem::new(ProblemCode::OutcomeUnknown, device_problem_detail(shared, what))
}
