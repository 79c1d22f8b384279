//! The knob on the device: records of Linux's input layer to steps and presses.
//!
//! ```text
//!  0        8        16    18    20     24
//!  | sec i64 | usec i64 | type | code | value i32 |   little-endian, as a 64-bit system writes it
//! ```

mod knob;

pub use knob::{Knob, Moves};

use std::fmt;

/// How many bytes a record has.
pub const RECORD: usize = 24;

/// What somebody did with the knob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Turned it by so many steps.
    Turned(i32),
    Pressed,
}

const EV_SYN: u16 = 0x00;
const EV_KEY: u16 = 0x01;
const EV_REL: u16 = 0x02;
const SYN_REPORT: u16 = 0;
const SYN_DROPPED: u16 = 3;
/// No kind of event has a larger number.
const EV_MAX: u16 = 0x1f;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Its value is how many steps the parameter goes up or down.
    Turns,
    /// Its value 1 is a press: the next effect. 0 is the release and 2 the repetition of a key that is held: nothing.
    Presses,
}

/// A kind of record that means something.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    pub name: &'static str,
    pub kind: u16,
    /// Its code, if only one counts.
    pub code: Option<u16>,
    pub effect: Effect,
}

/// Every record that means something. The others (a wheel's finer steps, times, switches) are for other programs.
pub const BINDINGS: [Binding; 4] = [
    Binding { name: "REL_X", kind: EV_REL, code: Some(0x00), effect: Effect::Turns },
    Binding { name: "REL_DIAL", kind: EV_REL, code: Some(0x07), effect: Effect::Turns },
    Binding { name: "REL_WHEEL", kind: EV_REL, code: Some(0x08), effect: Effect::Turns },
    Binding { name: "EV_KEY", kind: EV_KEY, code: None, effect: Effect::Presses },
];

/// What comes are no records of an input device, or they begin in the middle of one. There is no way to find the next
/// beginning but to open it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfStep;

impl fmt::Display for OutOfStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("what it sends are no records of an input device")
    }
}

impl std::error::Error for OutOfStep {}

#[derive(Debug, Default)]
pub struct Records {
    begun: Vec<u8>,
    /// The system's buffer was full and something is missing: what comes before the next report is not whole.
    is_torn: bool,
}

impl Records {
    /// Takes what came, and says what was done with the knob. A record may come in pieces.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<Input>, OutOfStep> {
        self.begun.extend_from_slice(bytes);
        let whole = self.begun.len() / RECORD * RECORD;
        let rest = self.begun.split_off(whole);
        let records = std::mem::replace(&mut self.begun, rest);
        let mut inputs = Vec::new();
        for record in records.chunks_exact(RECORD) {
            inputs.extend(self.read(record)?);
        }
        Ok(inputs)
    }

    fn read(&mut self, record: &[u8]) -> Result<Option<Input>, OutOfStep> {
        let microseconds = i64::from_le_bytes(part(record, 8));
        let (kind, code) = (u16::from_le_bytes(part(record, 16)), u16::from_le_bytes(part(record, 18)));
        let value = i32::from_le_bytes(part(record, 20));
        if kind > EV_MAX || !(0..1_000_000).contains(&microseconds) {
            return Err(OutOfStep);
        }
        match (kind, code) {
            (EV_SYN, SYN_DROPPED) => self.is_torn = true,
            (EV_SYN, SYN_REPORT) => self.is_torn = false,
            _ if self.is_torn => {}
            _ => return Ok(meaning(kind, code, value)),
        }
        Ok(None)
    }
}

fn meaning(kind: u16, code: u16, value: i32) -> Option<Input> {
    let is_it = |binding: &&Binding| binding.kind == kind && binding.code.is_none_or(|only| only == code);
    match BINDINGS.iter().find(is_it)?.effect {
        Effect::Turns => (value != 0).then_some(Input::Turned(value)),
        Effect::Presses => (value == 1).then_some(Input::Pressed),
    }
}

fn part<const LENGTH: usize>(record: &[u8], at: usize) -> [u8; LENGTH] {
    record[at..at + LENGTH].try_into().expect("a record is longer than any of its parts")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u16, code: u16, value: i32) -> Vec<u8> {
        let (seconds, microseconds) = (1_700_000_000_i64.to_le_bytes(), 999_999_i64.to_le_bytes());
        let numbers = [kind.to_le_bytes(), code.to_le_bytes()].concat();
        [&seconds[..], &microseconds, &numbers, &value.to_le_bytes()].concat()
    }

    #[test]
    fn only_turn_and_press_events_become_inputs() {
        for (kind, code, value, meaning) in [
            (EV_REL, 0x07, 1, Some(Input::Turned(1))),
            (EV_REL, 0x08, -3, Some(Input::Turned(-3))),
            (EV_REL, 0x00, i32::MIN, Some(Input::Turned(i32::MIN))),
            (EV_REL, 0x07, 0, None),
            (EV_REL, 0x01, 5, None),
            (EV_REL, 0x0b, 120, None),
            (EV_KEY, 0x160, 1, Some(Input::Pressed)),
            (EV_KEY, 0x160, 0, None),
            (EV_KEY, 0x160, 2, None),
            (EV_SYN, SYN_REPORT, 0, None),
            (0x04, 4, 77, None),
        ] {
            let found = Records::default().take(&record(kind, code, value)).unwrap();
            assert_eq!(found, Vec::from_iter(meaning), "{kind} {code} {value}");
        }
    }

    #[test]
    fn records_are_decoded_from_chunks_of_any_size() {
        let bytes = [record(EV_REL, 7, 2), record(EV_SYN, 0, 0), record(EV_KEY, 1, 1)].concat();
        for size in 1..=bytes.len() {
            let mut records = Records::default();
            let found: Vec<_> = bytes.chunks(size).flat_map(|piece| records.take(piece).unwrap()).collect();
            assert_eq!(found, [Input::Turned(2), Input::Pressed], "in pieces of {size}");
        }
    }

    #[test]
    fn events_after_a_dropped_sync_are_ignored_until_the_next_report() {
        let bytes = [
            record(EV_SYN, SYN_DROPPED, 0),
            record(EV_REL, 7, 5),
            record(EV_SYN, SYN_REPORT, 0),
            record(EV_REL, 7, 1),
        ];
        assert_eq!(Records::default().take(&bytes.concat()), Ok(vec![Input::Turned(1)]));
    }

    #[test]
    fn malformed_records_are_rejected() {
        for bytes in [&[0xff; RECORD][..], b"status\nstatus\nstatus\nstatus\n", &record(EV_MAX + 1, 0, 0)] {
            assert_eq!(Records::default().take(bytes), Err(OutOfStep));
        }
        let bytes = [vec![0], record(EV_REL, 7, 1), record(EV_REL, 7, 1)].concat();
        assert_eq!(Records::default().take(&bytes), Err(OutOfStep), "one byte too many");
    }
}
