//! The control face: one hand on the device, over WebSocket and REST.
//!
//! ```text
//! message ──> session     one WebSocket, one command after the other, at a bounded pace
//!             dispatch    read it, look it up in the table, ask the gate, obey
//!             lifecycle   acquire, heartbeat, release, status: through the registrar, like any lease
//! request ──> rest        the same commands under their addresses
//!             gateway     or somebody else's device, behind the same lease
//!             inputs      the knob and the serial port
//!             desk        the device and whose hand is on it, behind one lock; listens to the ledger
//! ```
//!
//! What a lease changes for whom is said in `tenure-control`, in one table; nothing here decides it.

mod change;
mod counters;
mod desk;
mod dispatch;
mod fields;
pub(crate) mod gateway;
mod identity;
mod inputs;
mod lifecycle;
mod message;
mod ota_token;
mod pace;
mod rest;
mod seat;
mod session;
mod settings;
mod store;
mod unanswered;
mod websocket;
mod writer;

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tenure_control::Uptime;
use tenure_control::device::VirtualDevice;
use tenure_core::kernel::{Cause, Command, Fence, Principal, Resource, Span};

use self::desk::Terms;
pub(crate) use self::desk::{DOMAIN, Desk};
use self::gateway::Gateway;
use self::inputs::Inputs;
use self::ota_token::OtaToken;
pub(crate) use self::rest::described::{CODES_OF_RESPONSE, OWN_SHAPE, complete as complete_description};
pub(crate) use self::rest::envelope::elsewhere;
pub(crate) use self::rest::routes;
pub use self::settings::{ControlSettings, EncoderSettings, SerialSettings};
use self::store::Store;
pub use self::store::StoreError;
use crate::registrar::Registrar;

pub(crate) struct Control {
    pub(crate) desk: Arc<Desk>,
    ota_token: OtaToken,
    settings: ControlSettings,
    /// Somebody else's device, instead of the built-in one.
    gateway: Option<Gateway>,
    /// Nothing before the start, and after the stop.
    inputs: Mutex<Option<Inputs>>,
}

impl Control {
    /// Opens what the device keeps in `data`. It waits for the disk.
    pub(crate) fn open(
        settings: &ControlSettings,
        data: &Path,
        registrar: &Registrar,
    ) -> Result<Self, StoreError> {
        let (store, stored) = Store::open(data)?;
        let uptime = Uptime::new(registrar.now(), settings.millis_at_start);
        let terms = Terms {
            ttl: Span::from_millis(u64::from(settings.ttl_ms)),
            heartbeat_interval_ms: settings.heartbeat_interval_ms,
        };
        let device = VirtualDevice::new(stored, uptime);
        let desk = Arc::new(Desk::new(registrar.view().clone(), uptime, terms, device, store));
        let settings = settings.clone();
        let gateway = settings.gateway.clone().map(|gateway| Gateway::new(gateway, desk.clone()));
        Ok(Self { desk, ota_token: OtaToken::default(), settings, gateway, inputs: Mutex::default() })
    }

    /// Ends what was held before this server started: the connections that had it are gone. Then it keeps watch.
    pub(crate) async fn start(&self, registrar: &Registrar) {
        for lease in left_behind(registrar) {
            let by = Principal::parse("registrar").expect("it is a name");
            let detail = Arc::from("the server was started anew: its connection is gone");
            let command = Command::Revoke { lease, cause: Cause::Disconnected, by, detail };
            // If that is refused, its time runs out.
            registrar.ask(command).await;
        }
        tokio::spawn(self.desk.clone().watch_the_stream());
        *self.inputs.lock() = Some(Inputs::start(&self.desk, &self.settings));
    }

    /// Listens to the knob and the serial port no more.
    pub(crate) async fn stop(&self) {
        let inputs = self.inputs.lock().take();
        if let Some(inputs) = inputs {
            inputs.stop().await;
        }
    }

    /// What keeps an input from being heard, for people.
    pub(crate) fn troubles(&self) -> Vec<String> {
        self.inputs.lock().as_ref().map(Inputs::troubles).unwrap_or_default()
    }

    /// Waits until nothing is on its way to the device that was sent before the last change of hands.
    async fn quiet(&self) {
        if let Some(gateway) = &self.gateway {
            let generation = *self.desk.hands().borrow();
            gateway.quiet(generation).await;
        }
    }
}

fn left_behind(registrar: &Registrar) -> Vec<Fence> {
    let resource = Resource::parse(desk::RESOURCE).expect("it is a name");
    registrar.read(|state| {
        let leases = state.leases_from(Fence::default());
        leases.filter(|lease| *lease.resource == resource).map(|lease| lease.fence).collect()
    })
}
