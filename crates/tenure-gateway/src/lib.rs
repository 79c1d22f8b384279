//! Gateway: the control lease in front of a device that knows nothing of leases.
//!
//! ```text
//! device_rules       which requests and messages move the device
//! forward            one HTTP request: its turn, its connection, its headers, the device's response
//! relay              one WebSocket of a client, and the task that relays it to the device
//! device_tcp_stream  a connection to the device, which can be reset so that nothing more of it arrives
//! body               bodies, passed through in pieces
//! settings           address of the device, timeouts
//! ```
//!
//! What moves the device is sent one at a time, and its permit is checked again right before. `InFlight` counts it by
//! ownership epoch, so that an ownership change can drain what was sent before.

mod body;
pub mod device_rules;
mod device_tcp_stream;
mod forward;
mod relay;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::response::Response;
use serde_json::Value;
use tenure_control::CommandError;
use tenure_control::ownership::Permit;
use tenure_control::permission_matrix::CommandClass;
use tenure_control::rejection::ControlRejection;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_tungstenite::tungstenite::Message;

pub use self::relay::RelayHandle;
pub use self::settings::{DeviceAddress, GatewaySettings, GatewayTimeouts, InvalidDeviceAddress};
use crate::device_rules::{DeviceMessage, RequestHead, Rules};

/// How many requests that move nothing are on their way to the device at once. Devices are small.
const MAX_READS: usize = 4;

/// What stands in front of a device.
pub struct Gateway {
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
    pub fn new(settings: GatewaySettings, hands: Arc<dyn OwnershipSource>) -> Self {
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
    pub fn classify_message(&self, message: &Message) -> CommandClass {
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
    pub fn classify_request(&self, request: &Request<Body>) -> CommandClass {
        let (uri, has_body) = (request.uri(), !request.body().is_end_stream());
        let request =
            RequestHead { method: request.method().as_str(), path: uri.path(), query: uri.query(), has_body };
        self.rules.classify_request(&request)
    }

    /// Sends a request on to the device and gives back what it says; where that cannot be done, why not. `client` is the
    /// address that it came from, if it came over a network.
    ///
    /// The pass is for [`Self::classify_request`]'s class. It is looked at again when the request's turn has come.
    pub async fn forward(
        &self,
        pass: Permit,
        request: Request<Body>,
        client: Option<IpAddr>,
    ) -> Result<Response, CommandError> {
        let class = self.classify_request(&request);
        let is_gated = !matches!(class, CommandClass::Reads | CommandClass::Exempt);
        assert!(!is_gated || !pass.is_unconditional(), "a pass that reads does not move a device");
        forward::forward(&self.shared, pass, request, client).await
    }

    /// A client's way to the device's WebSocket. What the device says goes to `to_client`; when that is full, it ends,
    /// and the client with it. It is opened at once: a device tells its state to whoever connects.
    pub fn open_relay(&self, identity: Arc<str>, to_client: mpsc::Sender<Message>) -> RelayHandle {
        RelayHandle::open(self.shared.clone(), identity, to_client)
    }

    /// The same, opened with the first message.
    #[cfg(test)]
    pub fn open_relay_on_demand(&self, identity: Arc<str>, to_client: mpsc::Sender<Message>) -> RelayHandle {
        RelayHandle::open_on_demand(self.shared.clone(), identity, to_client)
    }

    /// Waits until nothing is on its way to the device that was let through before this change of hands. Whoever is
    /// told of the new hand is told afterwards.
    ///
    /// Not to be waited for under a lock that [`OwnershipSource`] needs: what is cut asks whose hand it is now.
    pub async fn drain(&self, generation: u64) {
        self.shared.in_flight.drain(generation).await;
    }
}

/// The `requestId` of a message.
pub fn request_id(message: &Message) -> Option<String> {
    let Message::Text(text) = message else { return None };
    let Ok(Value::Object(mut fields)) = serde_json::from_str(text) else { return None };
    match fields.remove("requestId") {
        Some(Value::String(id)) => Some(id),
        _ => None,
    }
}

/// Whoever knows whose hand is on the device.
pub trait OwnershipSource: Send + Sync {
    /// Whether the pass still counts, now.
    fn check_permit(&self, pass: Permit) -> Result<(), ControlRejection>;
    /// Tells of every change of hands: the number of the generation that has begun. It is told after
    /// [`Self::check_permit`] knows.
    fn subscribe(&self) -> watch::Receiver<u64>;
    /// Whether the lease is this connection's, now.
    fn is_owner(&self, identity: &str) -> bool;
    /// What a WebSocket is told about a command that was not let through.
    fn websocket_error(&self, request_id: Option<&str>, blocked: &CommandError) -> String;
}

/// How many commands are under way, by generation.
struct InFlight(watch::Sender<BTreeMap<u64, usize>>);

impl Default for InFlight {
    fn default() -> Self {
        Self(watch::Sender::new(BTreeMap::new()))
    }
}

impl InFlight {
    /// Something is under way until the ticket is dropped.
    ///
    /// Whoever takes one looks at its pass *afterwards*: a change of hands that came before is seen by the look, and
    /// one that comes later sees the ticket.
    fn begin(self: &Arc<Self>, generation: u64) -> InFlightGuard {
        self.0.send_modify(|counts| *counts.entry(generation).or_default() += 1);
        InFlightGuard { in_flight: self.clone(), epoch: generation }
    }

    /// Waits until nothing is under way that is older than this.
    async fn drain(&self, generation: u64) {
        let is_drained = |counts: &BTreeMap<u64, usize>| counts.range(..generation).next().is_none();
        self.0.subscribe().wait_for(is_drained).await.expect("the sender is here");
    }
}

struct InFlightGuard {
    in_flight: Arc<InFlight>,
    epoch: u64,
}

impl InFlightGuard {
    fn epoch(&self) -> u64 {
        self.epoch
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.in_flight.0.send_modify(|counts| {
            if let Some(count) = counts.get_mut(&self.epoch) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&self.epoch);
                }
            }
        });
    }
}

#[cfg(test)]
mod owner_change_tests {
    use futures_util::FutureExt as _;

    use super::*;

    // Device and gateway check the fence at their own serial point.
    #[test]
    fn drain_returns_when_older_epochs_have_ended() {
        let in_flight = Arc::new(InFlight::default());
        let is_drained = |generation| in_flight.drain(generation).now_or_never().is_some();
        assert!(is_drained(7));
        let (one, other, newer) = (in_flight.begin(3), in_flight.begin(3), in_flight.begin(4));
        assert!(is_drained(3) && !is_drained(4) && !is_drained(5));
        drop(one);
        assert!(!is_drained(4));
        drop(other);
        assert!(is_drained(4) && !is_drained(5), "what came after the change is in nobody's way");
        drop(newer);
        assert!(is_drained(u64::MAX));
    }
}
