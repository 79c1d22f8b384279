//! A WebSocket to the device.

use futures_util::StreamExt as _;
use tenure_control::problem::{Problem, ProblemCode};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::Shared;
use super::forward::{of_device, unreachable};
use super::wire::{Scissors, Wire};

const PATH: &str = "/ws";
/// The most bytes of a message from the device.
const MOST_BYTES: usize = 1 << 20;

pub(super) struct Line {
    pub(super) socket: WebSocketStream<Wire>,
    pub(super) scissors: Scissors,
}

impl Line {
    pub(super) async fn open(shared: &Shared) -> Result<Self, Problem> {
        let wire = Wire::connect(&shared.device, shared.patience.connect).await;
        let wire = wire.map_err(|error| unreachable(shared, &error))?;
        let scissors = wire.scissors();
        let mut config = WebSocketConfig::default();
        config.read_buffer_size = 4 << 10;
        // Each message goes out by itself, at once.
        config.write_buffer_size = 0;
        config.max_write_buffer_size = 4 * MOST_BYTES;
        config.max_message_size = Some(MOST_BYTES);
        config.max_frame_size = Some(MOST_BYTES);
        let address = format!("ws://{}{PATH}", shared.device.authority());
        let request = address.into_client_request().map_err(|error| unreachable(shared, &error))?;
        let handshake = client_async_with_config(request, wire, Some(config));
        match timeout(shared.patience.first_byte, handshake).await {
            Ok(Ok((socket, _))) => Ok(Self { socket, scissors }),
            Ok(Err(error)) => {
                let what =
                    format!("opens no WebSocket at {PATH} ({error}); nothing was sent. See what it runs");
                Err(Problem::new(ProblemCode::Unavailable, of_device(shared, &what)))
            }
            Err(_) => {
                let what =
                    format!("does not answer at {PATH}; nothing was sent. Try again, or start it again");
                Err(Problem::new(ProblemCode::Unavailable, of_device(shared, &what)))
            }
        }
    }
}

/// What the device says next. Without a line it says nothing.
pub(super) async fn next(line: &mut Option<Line>) -> Option<Result<Message, Error>> {
    match line {
        Some(line) => line.socket.next().await,
        None => std::future::pending().await,
    }
}

/// There was one, and then there was none.
pub(super) fn lost(shared: &Shared) -> Problem {
    Problem::new(
        ProblemCode::Unavailable,
        of_device(shared, "closed its WebSocket; nothing was sent. Send it again"),
    )
}

/// Something went wrong in the middle of a message.
pub(super) fn unknown(shared: &Shared) -> Problem {
    let what = "took the message only in part; nobody knows whether it obeyed. Read its state before you send it again";
    Problem::new(ProblemCode::OutcomeUnknown, of_device(shared, what))
}
