//! A controller with the real ownership rules, and a device with a few parameters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tenure_control::{
    CommandClass, CommandError, CommandSource, ControlLease, ControlOwner, ControlRejection, OwnershipState,
    Permit, Problem, ProblemCode, TokenDigest,
};
use tenure_core::kernel::{Fence, Tick, TickDuration};
use tokio::sync::Semaphore;

use super::super::LocalCommandController;

const NOW: Tick = Tick(1_000_000);

pub(super) struct FakeDevice {
    ownership: OwnershipState,
    pub(super) brightness: i64,
    pub(super) effect: i64,
    pub(super) executed: Vec<String>,
    /// What was kept out, by source.
    pub(super) blocked: BTreeMap<&'static str, u64>,
}

pub(super) struct FakeController {
    device: Mutex<FakeDevice>,
    /// A command takes one on its way: with none there, it is delayed between gate and device.
    in_transit: Semaphore,
    /// How many have passed the gate.
    admitted: AtomicU32,
}

impl FakeController {
    pub(super) fn new() -> Arc<Self> {
        let inside = FakeDevice {
            ownership: OwnershipState::default(),
            brightness: 100,
            effect: 0,
            executed: Vec::new(),
            blocked: BTreeMap::new(),
        };
        Arc::new(Self {
            device: Mutex::new(inside),
            in_transit: Semaphore::new(1),
            admitted: AtomicU32::new(0),
        })
    }

    pub(super) fn device(&self) -> MutexGuard<'_, FakeDevice> {
        self.device.lock()
    }

    pub(super) fn blocked_count(&self, source: CommandSource) -> u64 {
        self.device().blocked.get(source.as_str()).copied().unwrap_or(0)
    }

    pub(super) fn begin_lease(&self) {
        let owner = ControlOwner {
            identity: "a connection".into(),
            websocket_client_id: 12,
            client_name: "K1 Composer".into(),
            instance_id: "6f0d84a3".into(),
            token_digest: TokenDigest::of("secret"),
        };
        let held = ControlLease {
            fence: Fence(1),
            lease_id: "cl_9f4a2137c1d6".into(),
            owner,
            acquired_at: NOW,
            expires_at: Tick(NOW.0 + 5_000_000),
            ttl: TickDuration(5_000_000),
        };
        self.device().ownership.begin_lease(held);
    }

    pub(super) fn end_lease(&self) {
        self.device().ownership.end_lease(Fence(1)).expect("it was held");
    }

    /// Waits until a command has passed the gate and is on its way.
    pub(super) async fn wait_for_admitted_command(&self) {
        super::wait_until("a command has set out", || self.admitted.load(Ordering::SeqCst) > 0).await;
    }

    /// Delays whatever was let in, for as long as the answer lives.
    pub(super) async fn delay(&self) -> tokio::sync::SemaphorePermit<'_> {
        self.in_transit.acquire().await.unwrap()
    }
}

impl LocalCommandController for FakeController {
    fn permit_local(&self, source: CommandSource, class: CommandClass) -> Result<Permit, ControlRejection> {
        let mut inside = self.device();
        let passed = inside.ownership.permit_local(source, class, NOW);
        if passed.is_err() {
            *inside.blocked.entry(source.as_str()).or_default() += 1;
        }
        passed
    }

    async fn execute(
        &self,
        pass: Permit,
        command: &str,
        fields: Map<String, Value>,
    ) -> Result<Value, CommandError> {
        self.admitted.fetch_add(1, Ordering::SeqCst);
        let _arrived = self.in_transit.acquire().await.unwrap();
        let mut inside = self.device();
        inside.ownership.check_permit(pass, NOW).map_err(CommandError::Rejected)?;
        let done = inside.obey(command, &fields).map_err(CommandError::Problem)?;
        inside.executed.push(command.to_owned());
        Ok(done)
    }
}

impl FakeDevice {
    fn obey(&mut self, command: &str, fields: &Map<String, Value>) -> Result<Value, Problem> {
        let number = |field: &str, range: std::ops::RangeInclusive<i64>| {
            let missing = || Problem::of_field(ProblemCode::MissingField, field, "is missing");
            let number = fields.get(field).ok_or_else(missing)?.as_i64();
            let number =
                number.ok_or_else(|| Problem::of_field(ProblemCode::InvalidType, field, "is no number"))?;
            let outside = || Problem::of_field(ProblemCode::OutOfRange, field, "is out of range");
            range.contains(&number).then_some(number).ok_or_else(outside)
        };
        match command {
            "parameters.set" => self.brightness = number("brightness", 0..=255)?,
            "effects.setCurrent" => self.effect = number("effectId", 0..=2)?,
            "effects.list" => return Ok(json!({ "effects": [{ "id": 0 }, { "id": 1 }, { "id": 2 }] })),
            _ => {}
        }
        Ok(json!({ "brightness": self.brightness, "effectId": self.effect }))
    }
}
