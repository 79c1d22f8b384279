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

mod answer;
mod body;
mod flight;
mod forward;
mod hands;
mod headers;
mod line;
mod link;
mod relay;
mod settings;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::response::Response;
use tenure_control::gateway::{Asked, Heard, Rules};
use tenure_control::hand::Pass;
use tenure_control::matrix::Class;
use tokio::sync::{Semaphore, mpsc};
use tokio_tungstenite::tungstenite::Message;

pub(crate) use self::answer::request_id;
pub(crate) use self::hands::{Blocked, Hands};
pub(crate) use self::link::Link;
pub use self::settings::{DeviceAddress, GatewaySettings, InvalidDevice, Patience};

use self::flight::Flight;

/// How many requests that move nothing are on their way to the device at once. Devices are small.
const MOST_READS: usize = 4;

/// What stands in front of a device.
pub(crate) struct Gateway {
    rules: Rules,
    shared: Arc<Shared>,
}

/// What every request and every WebSocket needs.
struct Shared {
    device: DeviceAddress,
    patience: Patience,
    hands: Arc<dyn Hands>,
    flight: Arc<Flight>,
    /// Whose turn it is to move the device. Fair: who came first goes first.
    turns: Arc<Semaphore>,
    reads: Arc<Semaphore>,
}

impl Gateway {
    pub(crate) fn new(settings: GatewaySettings, hands: Arc<dyn Hands>) -> Self {
        let GatewaySettings { device, rules, patience } = settings;
        let shared = Shared {
            device,
            patience,
            hands,
            flight: Arc::default(),
            turns: Arc::new(Semaphore::new(1)),
            reads: Arc::new(Semaphore::new(MOST_READS)),
        };
        Self { rules, shared: Arc::new(shared) }
    }

    /// What a message does to the device.
    pub(crate) fn classify(&self, message: &Message) -> Class {
        match message {
            Message::Text(text) => self.rules.of_message(Heard::Text(text)),
            Message::Binary(_) => self.rules.of_message(Heard::Binary),
            // They are between the two ends of one connection, and never passed on.
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => Class::Reads,
        }
    }

    /// What a request does to the device. Nothing of its body is read for that.
    pub(crate) fn classify_request(&self, request: &Request<Body>) -> Class {
        let (uri, has_body) = (request.uri(), !request.body().is_end_stream());
        let asked =
            Asked { method: request.method().as_str(), path: uri.path(), query: uri.query(), has_body };
        self.rules.of_request(&asked)
    }

    /// Sends a request on to the device and gives back what it says; where that cannot be done, why not.
    ///
    /// The pass is for [`Self::classify_request`]'s class. It is looked at again when the request's turn has come.
    pub(crate) async fn forward(&self, pass: Pass, request: Request<Body>) -> Response {
        let answered = self.try_forward(pass, request).await;
        answered.unwrap_or_else(|blocked| answer::on_rest(&blocked, self.shared.hands.millis()))
    }

    /// The same, for whoever has words of its own.
    pub(crate) async fn try_forward(&self, pass: Pass, request: Request<Body>) -> Result<Response, Blocked> {
        let class = self.classify_request(&request);
        let is_gated = !matches!(class, Class::Reads | Class::Exempt);
        assert!(!is_gated || !pass.is_free(), "a pass that reads does not move a device");
        forward::forward(&self.shared, pass, request).await
    }

    /// A client's way to the device's WebSocket. What the device says goes to `to_client`; when that is full, it ends,
    /// and the client with it. It is opened at once: a device tells its state to whoever connects.
    pub(crate) fn listen(&self, identity: Arc<str>, to_client: mpsc::Sender<Message>) -> Link {
        Link::listen(self.shared.clone(), identity, to_client)
    }

    /// The same, opened with the first message.
    #[cfg(test)]
    pub(crate) fn open(&self, identity: Arc<str>, to_client: mpsc::Sender<Message>) -> Link {
        Link::open(self.shared.clone(), identity, to_client)
    }

    /// Waits until nothing is on its way to the device that was let through before this change of hands. Whoever is
    /// told of the new hand is told afterwards.
    ///
    /// Not to be waited for under a lock that [`Hands`] needs: what is cut asks whose hand it is now.
    pub(crate) async fn quiet(&self, generation: u64) {
        self.shared.flight.quiet(generation).await;
    }
}
