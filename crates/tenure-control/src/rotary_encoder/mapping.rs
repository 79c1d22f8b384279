//! What becomes of turns and presses: one parameter goes up and down, the next effect is shown.

use serde_json::{Map, Value};

use super::RotaryEncoderInput;

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
