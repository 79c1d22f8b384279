//! A device, and time for it.

use serde_json::Value;
use tenure_control::{Problem, Stored, Uptime, VirtualDevice};
use tenure_core::kernel::Tick;

/// When the device of these tests starts: nobody may count on 0.
pub const START: u64 = 5_000_000;

/// So many milliseconds after the start.
pub const fn at(millis: u64) -> Tick {
    Tick(START + millis * 1_000)
}

/// A device that was never used.
pub fn device() -> VirtualDevice {
    started_with(Stored::default())
}

/// A device that starts with what was stored.
pub fn started_with(stored: Stored) -> VirtualDevice {
    VirtualDevice::new(stored, Uptime::new(Tick(START), 0))
}

/// What a command is answered.
pub fn ask(device: &mut VirtualDevice, command: &str, fields: Value, millis: u64) -> Result<Value, Problem> {
    let fields = fields.as_object().expect("fields are an object").clone();
    device.carry_out(command, fields, at(millis)).map(|done| done.data)
}

/// The same of a command that is carried out.
pub fn tell(device: &mut VirtualDevice, command: &str, fields: Value, millis: u64) -> Value {
    ask(device, command, fields, millis).unwrap_or_else(|problem| panic!("{command}: {problem}"))
}

/// Code and field of a command that is refused.
pub fn refused(
    device: &mut VirtualDevice,
    command: &str,
    fields: Value,
    millis: u64,
) -> (&'static str, Option<String>) {
    match ask(device, command, fields, millis) {
        Ok(data) => panic!("{command} was carried out: {data}"),
        Err(problem) => (problem.code.as_str(), problem.field),
    }
}

/// A small generator, so that a seed says everything.
pub struct Dice(pub u64);

impl Dice {
    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
