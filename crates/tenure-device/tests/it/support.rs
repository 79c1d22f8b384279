//! A device, and time for it.

use serde_json::Value;
use tenure_control::{DeviceClock, Problem};
use tenure_core::kernel::Tick;
use tenure_device::{PersistentState, VirtualDevice};

/// When the device of these tests starts: nobody may count on 0.
pub const START: u64 = 5_000_000;

/// So many milliseconds after the start.
pub const fn tick_at_millis(millis: u64) -> Tick {
    Tick(START + millis * 1_000)
}

/// A device that was never used.
pub fn device() -> VirtualDevice {
    device_with_state(PersistentState::default())
}

/// A device that starts with what was stored.
pub fn device_with_state(stored: PersistentState) -> VirtualDevice {
    VirtualDevice::new(stored, DeviceClock::new(Tick(START), 0))
}

/// What a command is answered.
pub fn execute(
    device: &mut VirtualDevice,
    command: &str,
    fields: Value,
    millis: u64,
) -> Result<Value, Problem> {
    let fields = fields.as_object().expect("fields are an object").clone();
    device.execute(command, fields, tick_at_millis(millis)).map(|done| done.data)
}

/// The same of a command that is carried out.
pub fn execute_ok(device: &mut VirtualDevice, command: &str, fields: Value, millis: u64) -> Value {
    execute(device, command, fields, millis).unwrap_or_else(|problem| panic!("{command}: {problem}"))
}

/// Code and field of a command that is refused.
pub fn execute_rejected(
    device: &mut VirtualDevice,
    command: &str,
    fields: Value,
    millis: u64,
) -> (&'static str, Option<String>) {
    match execute(device, command, fields, millis) {
        Ok(data) => panic!("{command} was carried out: {data}"),
        Err(problem) => (problem.code.as_str(), problem.field),
    }
}

/// A small generator, so that a seed says everything.
pub struct TestRng(pub u64);

impl TestRng {
    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
