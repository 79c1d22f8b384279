//! Whatever is sent: it is carried out or refused, and what is refused has changed nothing.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tenure_control::COMMANDS;
use tenure_core::kernel::Tick;

use crate::support::{device, tick_at_millis};

/// Every field that some command knows.
const NAMES: &[&str] = &[
    "brightness",
    "speed",
    "palette",
    "hue",
    "saturation",
    "intensity",
    "mirror",
    "reverse",
    "effectId",
    "id",
    "name",
    "replace",
    "positionMs",
    "deviceName",
    "maxFps",
    "brightnessLimit",
    "powerOnEffect",
    "powerOnBrightness",
    "powerOnPlaying",
    "targetFps",
    "staleTimeoutMs",
    "ledCount",
    "format",
    "version",
    "size",
    "offset",
    "data",
    "encoding",
    "surplus",
];

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => (0..400_i64).prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        2 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
        3 => prop::sample::select(vec!["", "ice", "comet", "a", "6Q==", "e9", "hex"]).prop_map(Value::from),
        1 => any::<String>().prop_map(Value::from),
        1 => Just(json!([1])),
        1 => Just(json!({ "a": 1 })),
    ]
}

fn fields() -> impl Strategy<Value = Map<String, Value>> {
    let field = (prop::sample::select(NAMES), value());
    prop::collection::vec(field, 0..4)
        .prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

proptest! {
    #[test]
    fn a_rejected_command_changes_nothing(
        commands in prop::collection::vec((0..COMMANDS.len(), fields(), 0..900_u64), 1..30),
    ) {
        let mut device = device();
        let mut millis = 0;
        for (number, fields, passed) in commands {
            millis += passed;
            // The end of a stream is time's doing, not the command's.
            device.poll_stream_expiry(tick_at_millis(millis));
            let before = (device.persistent_state(), device.displayed_frame(tick_at_millis(millis)).pixels);
            let answer = device.execute(COMMANDS[number].name, fields, tick_at_millis(millis));
            let after = (device.persistent_state(), device.displayed_frame(tick_at_millis(millis)).pixels);
            match answer {
                Ok(done) => prop_assert!(done.must_store || after.0 == before.0),
                Err(problem) => {
                    prop_assert!(after == before);
                    prop_assert!(!problem.message.is_empty() && problem.message.len() < 400);
                }
            }
            prop_assert_eq!(tenure_device::PersistentState::from_json(&device.persistent_state().to_json()), Ok(device.persistent_state()));
        }
    }

    // The clock is read before the device's lock is had: ticks come a little out of order, and nobody knows how far.
    #[test]
    fn extreme_and_unordered_ticks_do_not_panic(
        commands in prop::collection::vec((0..COMMANDS.len(), fields(), any::<u64>(), 0..64_u32), 1..30),
    ) {
        let mut device = device();
        for (number, fields, tick, shift) in commands {
            let now = Tick(tick >> shift);
            let _ = device.execute(COMMANDS[number].name, fields, now);
            let _ = device.accept_frame(&[0; 976], now);
            let _ = (device.next_deadline(), device.poll_stream_expiry(now), device.displayed_frame(now));
        }
    }

    #[test]
    fn a_parameter_is_either_updated_or_unchanged(name in 0..8_usize, value in value()) {
        let mut device = device();
        let name = NAMES[name];
        let ask = |device: &mut tenure_device::VirtualDevice, command: &str, fields: Value| {
            device.execute(command, fields.as_object().expect("an object").clone(), tick_at_millis(0)).map(|done| done.data)
        };
        let before = ask(&mut device, "parameters.get", json!({})).expect("everybody may look");
        let answer = ask(&mut device, "parameters.set", json!({ name: value.clone() }));
        let after = ask(&mut device, "parameters.get", json!({})).expect("everybody may look");
        prop_assert_eq!(&after[name], if answer.is_ok() { &value } else { &before[name] });
        if let Some(number) = after[name].as_u64() {
            let range = &after["ranges"][name];
            prop_assert!(range["min"].as_u64() <= Some(number) && Some(number) <= range["max"].as_u64());
        }
    }
}
