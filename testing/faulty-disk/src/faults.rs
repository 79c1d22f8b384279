//! What is to go wrong, and when.

use std::io;

use super::rng::FaultRng;

/// What is planned. Counters count down to the operation that goes wrong: 0 is the next one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    /// How many operations there were.
    pub(crate) operations: u64,
    pub(crate) crash_after: Option<u64>,
    /// From the crash to the restart.
    pub(crate) is_powered_off: bool,
    pub(crate) failing_sync: Option<u64>,
    pub(crate) failing_write: Option<u64>,
    pub(crate) stalling_sync: Option<(u64, u64)>,
    pub(crate) flipping_read: Option<u64>,
    pub(crate) sync_cost: u64,
    pub(crate) ignores_syncs: bool,
    pub(crate) capacity: Option<u64>,
}

/// How an operation goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperationOutcome {
    /// As it should.
    Success,
    /// The machine goes off in the middle of it.
    Crash,
    /// With an error of the device.
    DeviceError,
}

impl Faults {
    /// Refuses everything on a machine that is off.
    pub(crate) fn check_powered_on(&self) -> io::Result<()> {
        if self.is_powered_off { Err(powered_off_error()) } else { Ok(()) }
    }

    /// Counts an operation, and says how it goes.
    pub(crate) fn begin_operation(&mut self) -> io::Result<OperationOutcome> {
        self.check_powered_on()?;
        self.operations += 1;
        if is_due(&mut self.crash_after) {
            self.is_powered_off = true;
            return Ok(OperationOutcome::Crash);
        }
        Ok(OperationOutcome::Success)
    }

    pub(crate) fn begin_write(&mut self) -> io::Result<OperationOutcome> {
        let outcome = self.begin_operation()?;
        Ok(if outcome == OperationOutcome::Success && is_due(&mut self.failing_write) {
            OperationOutcome::DeviceError
        } else {
            outcome
        })
    }

    pub(crate) fn begin_sync(&mut self) -> io::Result<OperationOutcome> {
        let outcome = self.begin_operation()?;
        if let Some((remaining, cost)) = self.stalling_sync {
            self.stalling_sync = remaining.checked_sub(1).map(|remaining| (remaining, cost));
            self.sync_cost += if remaining == 0 { cost } else { 0 };
        }
        Ok(if outcome == OperationOutcome::Success && is_due(&mut self.failing_sync) {
            OperationOutcome::DeviceError
        } else {
            outcome
        })
    }

    /// Spoils one bit of what is read, if it is time to.
    pub(crate) fn corrupt_read(&mut self, mut bytes: Vec<u8>, rng: &mut FaultRng) -> Vec<u8> {
        if !bytes.is_empty() && is_due(&mut self.flipping_read) {
            let bit = rng.below(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        bytes
    }
}

fn is_due(countdown: &mut Option<u64>) -> bool {
    let due = *countdown == Some(0);
    *countdown = countdown.and_then(|remaining| remaining.checked_sub(1));
    due
}

pub(crate) fn powered_off_error() -> io::Error {
    io::Error::other("the machine is off")
}

/// What the system says when a device fails.
pub(crate) fn device_error() -> io::Error {
    io::Error::from_raw_os_error(5)
}
