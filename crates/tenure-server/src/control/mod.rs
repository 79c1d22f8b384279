//! The control face: one hand on the device, over WebSocket and REST.
//!
//! ```text
//! message ──> websocket       one connection, one command after another, at a bounded rate
//!             dispatch        read it, look it up in the table, ask the gate, obey
//!             lease_commands  acquire, heartbeat, release, status: through the registrar, like any lease
//! request ──> rest            the same commands under their addresses
//!             gateway         or somebody else's device, behind the same lease
//!             inputs          the knob and the serial port
//!             controller      the device and whose hand is on it, behind one lock; listens to the ledger
//! ```
//!
//! What a lease changes for whom is said in `tenure-control`, in one table; nothing here decides it.

mod connection;
mod controller;
mod counters;
mod device_store;
mod dispatch;
mod inputs;
mod lease_commands;
mod message;
mod rest;
mod websocket;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tenure_control::DeviceClock;
use tenure_core::kernel::{Command, Fence, Principal, Resource, RevocationCause, TickDuration};
use tenure_device::device::VirtualDevice;
use tenure_gateway::{Gateway, GatewaySettings};

use self::controller::ControlLeaseTerms;
pub(crate) use self::controller::{Controller, DOMAIN};
use self::device_store::DeviceStore;
pub use self::device_store::DeviceStoreError;
use self::inputs::LocalInputs;
use self::rest::OtaToken;
pub(crate) use self::rest::openapi::{
    CODES_OF_RESPONSE, OWN_SHAPE, add_device_routes as complete_description,
};
pub(crate) use self::rest::{fallback, routes};
use crate::engine::RegistrarHandle;

pub(crate) struct ControlApi {
    pub(crate) controller: Arc<Controller>,
    ota_token: OtaToken,
    settings: ControlSettings,
    /// Somebody else's device, instead of the built-in one.
    gateway: Option<Gateway>,
    /// Nothing before the start, and after the stop.
    inputs: Mutex<Option<LocalInputs>>,
}

impl ControlApi {
    /// Opens what the device keeps in `data`. It waits for the disk.
    pub(crate) fn open(
        settings: &ControlSettings,
        data: &Path,
        registrar: &RegistrarHandle,
    ) -> Result<Self, DeviceStoreError> {
        let (store, stored) = DeviceStore::open(data)?;
        let uptime = DeviceClock::new(registrar.now(), settings.millis_at_start);
        let terms = ControlLeaseTerms {
            ttl: TickDuration::from_millis(u64::from(settings.ttl_ms)),
            heartbeat_interval_ms: settings.heartbeat_interval_ms,
        };
        let device = VirtualDevice::new(stored, uptime);
        let controller = Arc::new(Controller::new(registrar.view().clone(), uptime, terms, device, store));
        let settings = settings.clone();
        let gateway = settings.gateway.clone().map(|gateway| Gateway::new(gateway, controller.clone()));
        Ok(Self { controller, ota_token: OtaToken::default(), settings, gateway, inputs: Mutex::default() })
    }

    /// Ends what was held before this server started: the connections that had it are gone. Then it keeps watch.
    pub(crate) async fn start(&self, registrar: &RegistrarHandle) {
        for lease in stale_leases(registrar) {
            let by = Principal::parse("registrar").expect("it is a name");
            let detail = Arc::from("the server was started anew: its connection is gone");
            let command = Command::Revoke { lease, cause: RevocationCause::Disconnected, by, detail };
            // If that is refused, its time runs out.
            registrar.submit(command).await;
        }
        tokio::spawn(self.controller.clone().enforce_stream_timeout());
        *self.inputs.lock() = Some(LocalInputs::start(&self.controller, &self.settings));
    }

    /// Listens to the knob and the serial port no more.
    pub(crate) async fn stop(&self) {
        let inputs = self.inputs.lock().take();
        if let Some(inputs) = inputs {
            inputs.stop().await;
        }
    }

    /// What keeps an input from being heard, for people.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.inputs.lock().as_ref().map(LocalInputs::warnings).unwrap_or_default()
    }

    /// Waits until nothing is on its way to the device that was sent before the last change of hands.
    async fn drain(&self) {
        if let Some(gateway) = &self.gateway {
            let generation = *self.controller.subscribe_ownership().borrow();
            gateway.drain(generation).await;
        }
    }
}

fn stale_leases(registrar: &RegistrarHandle) -> Vec<Fence> {
    let resource = Resource::parse(controller::RESOURCE).expect("it is a name");
    registrar.read(|state| {
        let leases = state.leases_from(Fence::default());
        leases.filter(|lease| *lease.resource == resource).map(|lease| lease.fence).collect()
    })
}

#[derive(Debug, Clone)]
pub struct ControlSettings {
    /// How long a control lease lasts from each heartbeat, in milliseconds.
    pub ttl_ms: u32,
    /// How often its owner is asked to send a heartbeat, in milliseconds.
    pub heartbeat_interval_ms: u32,
    /// What the device's clock says when it starts. It has 32 bits: near the end of them, its wrap can be tried.
    pub millis_at_start: u32,
    /// Somebody else's device to stand in front of; nothing is the built-in one.
    pub gateway: Option<GatewaySettings>,
    pub serial: Option<SerialSettings>,
    pub encoder: Option<RotaryEncoderSettings>,
}

impl Default for ControlSettings {
    fn default() -> Self {
        Self {
            ttl_ms: 5_000,
            heartbeat_interval_ms: 1_000,
            millis_at_start: 0,
            gateway: None,
            serial: None,
            encoder: None,
        }
    }
}

impl ControlSettings {
    /// Shorter is no lease here; longer, and the device waits an hour for nobody.
    pub const TTL_MS: std::ops::RangeInclusive<u32> = 1_000..=3_600_000;
    /// More often would be more heartbeats than commands.
    pub const MIN_HEARTBEAT_INTERVAL_MS: u32 = 10;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerialSettings {
    /// Where, such as `/dev/ttyUSB0`. A link under `/dev/serial/by-id` finds it again after it was plugged in elsewhere.
    pub path: PathBuf,
    /// How fast, in bits per second.
    pub baud: u32,
}

impl SerialSettings {
    pub const DEFAULT_BAUD: u32 = 115_200;
    /// What ports can do, from the slowest modem to the fastest adapter.
    pub const BAUD: std::ops::RangeInclusive<u32> = 50..=12_000_000;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotaryEncoderSettings {
    /// Where, such as `/dev/input/event3`.
    pub path: PathBuf,
    pub parameter: String,
    /// By how much with each step. Negative: the other way round.
    pub step: i32,
}

impl RotaryEncoderSettings {
    /// What it moves if nobody chose another.
    pub const DEFAULT_PARAMETER: &str = "brightness";
    /// 32 steps from dark to bright.
    pub const DEFAULT_STEP: i32 = 8;
    /// The largest step, in either direction.
    pub const MAX_STEP: i32 = 255;
}
