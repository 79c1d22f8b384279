//! The rotary encoder: records of Linux's input layer to steps and presses.
//!
//! ```text
//!  0        8        16    18    20     24
//!  | sec i64 | usec i64 | type | code | value i32 |   little-endian, as a 64-bit system writes it
//! ```

use std::fmt;

use serde_json::{Map, Value};

/// How many bytes a record has.
pub const RECORD_BYTES: usize = 24;

/// What somebody did with the knob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotaryEncoderInput {
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
pub enum InputAction {
    /// Its value is how many steps the parameter goes up or down.
    Turn,
    /// Its value 1 is a press: the next effect. 0 is the release and 2 the repetition of a key that is held: nothing.
    Press,
}

/// A kind of record that means something.
#[derive(Debug, Clone, Copy)]
pub struct RotaryEncoderBinding {
    pub name: &'static str,
    pub kind: u16,
    /// Its code, if only one counts.
    pub code: Option<u16>,
    pub action: InputAction,
}

/// Every record that means something. The others (a wheel's finer steps, times, switches) are for other programs.
pub const BINDINGS: [RotaryEncoderBinding; 4] = [
    RotaryEncoderBinding { name: "REL_X", kind: EV_REL, code: Some(0x00), action: InputAction::Turn },
    RotaryEncoderBinding { name: "REL_DIAL", kind: EV_REL, code: Some(0x07), action: InputAction::Turn },
    RotaryEncoderBinding { name: "REL_WHEEL", kind: EV_REL, code: Some(0x08), action: InputAction::Turn },
    RotaryEncoderBinding { name: "EV_KEY", kind: EV_KEY, code: None, action: InputAction::Press },
];

/// What comes are no records of an input device, or they begin in the middle of one. There is no way to find the next
/// beginning but to open it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputEventFramingError;

impl fmt::Display for InputEventFramingError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("what it sends are no records of an input device")
    }
}

impl std::error::Error for InputEventFramingError {}

#[derive(Debug, Default)]
pub struct InputEventDecoder {
    partial: Vec<u8>,
    /// The system's buffer was full and something is missing: what comes before the next report is not whole.
    is_torn: bool,
}

impl InputEventDecoder {
    /// Takes what came, and says what was done with the knob. A record may come in pieces.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<RotaryEncoderInput>, InputEventFramingError> {
        self.partial.extend_from_slice(bytes);
        let whole = self.partial.len() / RECORD_BYTES * RECORD_BYTES;
        let rest = self.partial.split_off(whole);
        let records = std::mem::replace(&mut self.partial, rest);
        let mut inputs = Vec::new();
        for record in records.chunks_exact(RECORD_BYTES) {
            inputs.extend(self.read(record)?);
        }
        Ok(inputs)
    }

    fn read(&mut self, record: &[u8]) -> Result<Option<RotaryEncoderInput>, InputEventFramingError> {
        let microseconds = i64::from_le_bytes(part(record, 8));
        let (kind, code) = (u16::from_le_bytes(part(record, 16)), u16::from_le_bytes(part(record, 18)));
        let value = i32::from_le_bytes(part(record, 20));
        if kind > EV_MAX || !(0..1_000_000).contains(&microseconds) {
            return Err(InputEventFramingError);
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

fn meaning(kind: u16, code: u16, value: i32) -> Option<RotaryEncoderInput> {
    let is_it = |binding: &&RotaryEncoderBinding| {
        binding.kind == kind && binding.code.is_none_or(|only| only == code)
    };
    match BINDINGS.iter().find(is_it)?.action {
        InputAction::Turn => (value != 0).then_some(RotaryEncoderInput::Turned(value)),
        InputAction::Press => (value == 1).then_some(RotaryEncoderInput::Pressed),
    }
}

fn part<const LENGTH: usize>(record: &[u8], at: usize) -> [u8; LENGTH] {
    record[at..at + LENGTH].try_into().expect("a record is longer than any of its parts")
}

/// What was done with the knob and has not reached the device yet. Who turns fast is served in larger steps, not later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RotaryEncoderMovement {
    /// Steps, up and down added together.
    pub steps: i32,
    pub presses: u32,
}

impl RotaryEncoderMovement {
    pub fn add(&mut self, input: RotaryEncoderInput) {
        match input {
            RotaryEncoderInput::Turned(steps) => self.steps = self.steps.saturating_add(steps),
            RotaryEncoderInput::Pressed => self.presses = self.presses.saturating_add(1),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotaryEncoderMapping {
    pub parameter: String,
    /// By how much with each step. Negative: the other way round.
    pub step: i32,
}

/// No parameter is smaller or larger; the device knows its own range.
const MAX_VALUE: i64 = u16::MAX as i64;

impl RotaryEncoderMapping {
    /// Which values to try for `parameters.set`, the wanted one first. The device alone knows the parameter's range: where
    /// it says that a value is out of range, half the way is tried, so that a fast turn ends at the end and not before.
    ///
    /// `parameters` is what `parameters.get` said. Without this parameter in it, nothing.
    pub fn candidate_parameter_values(
        &self,
        steps: i32,
        parameters: &Value,
    ) -> Option<impl Iterator<Item = Map<String, Value>>> {
        let now = parameters.get(&self.parameter)?.as_i64()?;
        let requested = i64::from(steps) * i64::from(self.step);
        let way = now.saturating_add(requested).clamp(0, MAX_VALUE) - now;
        let ways = std::iter::successors(Some(way), |way| Some(way / 2)).take_while(|way| *way != 0);
        Some(ways.map(move |way| one(&self.parameter, now + way)))
    }

    /// What to say to `effects.setCurrent` after so many presses. `list` and `current` are what `effects.list` and
    /// `effects.getCurrent` said. After the last effect comes the first.
    pub fn next_effect(presses: u32, list: &Value, current: &Value) -> Option<Map<String, Value>> {
        let ids: Vec<i64> =
            list.get("effects")?.as_array()?.iter().filter_map(|one| one["id"].as_i64()).collect();
        let current = current.get("effectId")?.as_i64()?;
        let at = ids.iter().position(|id| *id == current)?;
        let next = at.checked_add(usize::try_from(presses).ok()?)? % ids.len();
        Some(one("effectId", ids[next]))
    }
}

fn one(field: &str, value: i64) -> Map<String, Value> {
    Map::from_iter([(field.to_owned(), Value::from(value))])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(kind: u16, code: u16, value: i32) -> Vec<u8> {
        let (seconds, microseconds) = (1_700_000_000_i64.to_le_bytes(), 999_999_i64.to_le_bytes());
        let numbers = [kind.to_le_bytes(), code.to_le_bytes()].concat();
        [&seconds[..], &microseconds, &numbers, &value.to_le_bytes()].concat()
    }

    #[test]
    fn only_turn_and_press_events_become_inputs() {
        for (kind, code, value, meaning) in [
            (EV_REL, 0x07, 1, Some(RotaryEncoderInput::Turned(1))),
            (EV_REL, 0x08, -3, Some(RotaryEncoderInput::Turned(-3))),
            (EV_REL, 0x00, i32::MIN, Some(RotaryEncoderInput::Turned(i32::MIN))),
            (EV_REL, 0x07, 0, None),
            (EV_REL, 0x01, 5, None),
            (EV_REL, 0x0b, 120, None),
            (EV_KEY, 0x160, 1, Some(RotaryEncoderInput::Pressed)),
            (EV_KEY, 0x160, 0, None),
            (EV_KEY, 0x160, 2, None),
            (EV_SYN, SYN_REPORT, 0, None),
            (0x04, 4, 77, None),
        ] {
            let found = InputEventDecoder::default().feed(&record(kind, code, value)).unwrap();
            assert_eq!(found, Vec::from_iter(meaning), "{kind} {code} {value}");
        }
    }

    #[test]
    fn records_are_decoded_from_chunks_of_any_size() {
        let bytes = [record(EV_REL, 7, 2), record(EV_SYN, 0, 0), record(EV_KEY, 1, 1)].concat();
        for size in 1..=bytes.len() {
            let mut records = InputEventDecoder::default();
            let found: Vec<_> = bytes.chunks(size).flat_map(|piece| records.feed(piece).unwrap()).collect();
            assert_eq!(
                found,
                [RotaryEncoderInput::Turned(2), RotaryEncoderInput::Pressed],
                "in pieces of {size}"
            );
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
        assert_eq!(
            InputEventDecoder::default().feed(&bytes.concat()),
            Ok(vec![RotaryEncoderInput::Turned(1)])
        );
    }

    #[test]
    fn malformed_records_are_rejected() {
        for bytes in
            [&[0xff; RECORD_BYTES][..], b"status\nstatus\nstatus\nstatus\n", &record(EV_MAX + 1, 0, 0)]
        {
            assert_eq!(InputEventDecoder::default().feed(bytes), Err(InputEventFramingError));
        }
        let bytes = [vec![0], record(EV_REL, 7, 1), record(EV_REL, 7, 1)].concat();
        assert_eq!(
            InputEventDecoder::default().feed(&bytes),
            Err(InputEventFramingError),
            "one byte too many"
        );
    }

    fn tries(step: i32, steps: i32, now: i64) -> Vec<i64> {
        let knob = RotaryEncoderMapping { parameter: "brightness".into(), step };
        let parameters = json!({ "brightness": now, "speed": 1 });
        knob.candidate_parameter_values(steps, &parameters)
            .unwrap()
            .map(|fields| fields["brightness"].as_i64().unwrap())
            .collect()
    }

    #[test]
    fn a_turn_is_attempted_in_full_and_then_in_halves() {
        assert_eq!(tries(8, 1, 100), [108, 104, 102, 101]);
        assert_eq!(tries(-8, 1, 100), [92, 96, 98, 99], "the other way round");
        assert_eq!(tries(8, -20, 100), [0, 50, 75, 88, 94, 97, 99], "nothing is below 0");
        assert_eq!(tries(8, -1, 0), [0; 0], "it is there already");
        assert_eq!(tries(i32::MAX, i32::MAX, 1)[0], MAX_VALUE);
    }

    #[test]
    fn turns_up_and_down_add_up_and_never_overflow() {
        let mut moves = RotaryEncoderMovement::default();
        for input in [
            RotaryEncoderInput::Turned(5),
            RotaryEncoderInput::Pressed,
            RotaryEncoderInput::Turned(-2),
            RotaryEncoderInput::Pressed,
        ] {
            moves.add(input);
        }
        assert_eq!(moves, RotaryEncoderMovement { steps: 3, presses: 2 });
        moves.add(RotaryEncoderInput::Turned(i32::MAX));
        assert_eq!(moves.steps, i32::MAX);
    }

    #[test]
    fn pressing_past_the_last_effect_wraps_to_the_first() {
        let list = json!({ "effects": [{ "id": 0 }, { "id": 4 }, { "id": 9 }] });
        let press = |presses, current| {
            RotaryEncoderMapping::next_effect(presses, &list, &json!({ "effectId": current }))
        };
        assert_eq!(press(1, 0), Some(one("effectId", 4)));
        assert_eq!(press(1, 9), Some(one("effectId", 0)));
        assert_eq!(press(u32::MAX, 4), Some(one("effectId", 4)), "2^32 - 1 is three times something");
        assert_eq!(press(1, 5), None, "a device whose effect is none of its effects");
    }

    #[test]
    fn turning_a_knob_for_an_unknown_parameter_does_nothing() {
        let knob = RotaryEncoderMapping { parameter: "volume".into(), step: 1 };
        assert!(knob.candidate_parameter_values(1, &json!({ "brightness": 3 })).is_none());
    }
}
