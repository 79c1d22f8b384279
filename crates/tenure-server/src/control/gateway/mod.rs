//! The lease in front of a device that knows nothing of leases.
//!
//! ```text
//! forward    a request: whose turn it is, one connection to the device, its answer back
//! link       a client's WebSocket, as its session sees it; relay is the task behind it, line the device's end
//! flight     what is under way to the device, by the change of hands that it came after
//! wire       a connection to the device, which can be cut so that nothing of it arrives any more
//! headers    what goes along and what does not
//! hands      what is asked of whoever knows the lease
//! ```
//!
//! The device's serial point is here: what moves it goes out one at a time, and is looked at once more right before.

mod body;
mod device_tcp_stream;
mod device_websocket;
mod error_response;
mod forward;
mod headers;
mod in_flight;
mod ownership_source;
mod relay;
mod relay_handle;
mod settings;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::response::Response;
use tenure_control::gateway::{DeviceMessage, RequestHead, Rules};
use tenure_control::ownership::Permit;
use tenure_control::permission_matrix::CommandClass;
use tokio::sync::{Semaphore, mpsc};
use tokio_tungstenite::tungstenite::Message;

pub(crate) use self::error_response::request_id;
pub(crate) use self::ownership_source::{CommandError, OwnershipSource};
pub(crate) use self::relay_handle::RelayHandle;
pub use self::settings::{DeviceAddress, GatewaySettings, GatewayTimeouts, InvalidDeviceAddress};

use self::in_flight::InFlight;

/// How many requests that move nothing are on their way to the device at once. Devices are small.
const MAX_READS: usize = 4;

/// What stands in front of a device.
pub(crate) struct Gateway {
    rules: Rules,
    shared: Arc<GatewayContext>,
}

/// What every request and every WebSocket needs.
struct GatewayContext {
    device: DeviceAddress,
    timeouts: GatewayTimeouts,
    ownership: Arc<dyn OwnershipSource>,
    in_flight: Arc<InFlight>,
    /// Whose turn it is to move the device. Fair: who came first goes first.
    command_slot: Arc<Semaphore>,
    read_slots: Arc<Semaphore>,
}

impl Gateway {
    pub(crate) fn new(settings: GatewaySettings, hands: Arc<dyn OwnershipSource>) -> Self {
        let GatewaySettings { device, rules, timeouts: patience } = settings;
        let shared = GatewayContext {
            device,
            timeouts: patience,
            ownership: hands,
            in_flight: Arc::default(),
            command_slot: Arc::new(Semaphore::new(1)),
            read_slots: Arc::new(Semaphore::new(MAX_READS)),
        };
        Self { rules, shared: Arc::new(shared) }
    }

    /// What a message does to the device.
    pub(crate) fn classify_message(&self, message: &Message) -> CommandClass {
        match message {
            Message::Text(text) => self.rules.classify_message(DeviceMessage::Text(text)),
            Message::Binary(_) => self.rules.classify_message(DeviceMessage::Binary),
            // They are between the two ends of one connection, and never passed on.
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => {
                CommandClass::Reads
            }
        }
    }

    /// What a request does to the device. Nothing of its body is read for that.
    pub(crate) fn classify_request(&self, request: &Request<Body>) -> CommandClass {
        let (uri, has_body) = (request.uri(), !request.body().is_end_stream());
        let request =
            RequestHead { method: request.method().as_str(), path: uri.path(), query: uri.query(), has_body };
        self.rules.classify_request(&request)
    }

    /// Sends a request on to the device and gives back what it says; where that cannot be done, why not.
    ///
    /// The pass is for [`Self::classify_request`]'s class. It is looked at again when the request's turn has come.
    pub(crate) async fn forward(&self, pass: Permit, request: Request<Body>) -> Response {
        let answered = self.try_forward(pass, request).await;
        answered.unwrap_or_else(|blocked| {
            error_response::rest_response(&blocked, self.shared.ownership.uptime_ms())
        })
    }

    /// The same, for whoever has words of its own.
    pub(crate) async fn try_forward(
        &self,
        pass: Permit,
        request: Request<Body>,
    ) -> Result<Response, CommandError> {
        let class = self.classify_request(&request);
        let is_gated = !matches!(class, CommandClass::Reads | CommandClass::Exempt);
        assert!(!is_gated || !pass.is_unconditional(), "a pass that reads does not move a device");
        forward::forward(&self.shared, pass, request).await
    }

    /// A client's way to the device's WebSocket. What the device says goes to `to_client`; when that is full, it ends,
    /// and the client with it. It is opened at once: a device tells its state to whoever connects.
    pub(crate) fn open_relay(&self, identity: Arc<str>, to_client: mpsc::Sender<Message>) -> RelayHandle {
        RelayHandle::open(self.shared.clone(), identity, to_client)
    }

    /// The same, opened with the first message.
    #[cfg(test)]
    pub(crate) fn open_relay_on_demand(
        &self,
        identity: Arc<str>,
        to_client: mpsc::Sender<Message>,
    ) -> RelayHandle {
        RelayHandle::open_on_demand(self.shared.clone(), identity, to_client)
    }

    /// Waits until nothing is on its way to the device that was let through before this change of hands. Whoever is
    /// told of the new hand is told afterwards.
    ///
    /// Not to be waited for under a lock that [`OwnershipSource`] needs: what is cut asks whose hand it is now.
    pub(crate) async fn drain(&self, generation: u64) {
        self.shared.in_flight.drain(generation).await;
    }
}
