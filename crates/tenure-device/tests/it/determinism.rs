//! What is shown follows from what was stored, the commands and their ticks, and from nothing else.

use serde_json::{Value, json};
use tenure_device::light::EFFECTS;
use tenure_device::{RenderFrame, VirtualDevice};

use crate::support::{TestRng, device, device_with_state, execute, execute_ok, tick_at_millis};

/// Something that somebody might do.
fn any_command(dice: &mut TestRng) -> (&'static str, Value) {
    let preset = format!("p{}", dice.below(3));
    match dice.below(15) {
        0 => ("effects.setCurrent", json!({ "effectId": dice.below(18) })),
        1 => ("parameters.set", json!({ "speed": dice.below(110), "hue": dice.below(256) })),
        2 => ("parameters.set", json!({ "palette": if dice.below(2) == 0 { "ocean" } else { "none" } })),
        3 => ("parameters.set", json!({ "intensity": dice.below(256), "mirror": dice.below(2) == 0 })),
        4 => ("presets.save", json!({ "name": preset, "replace": dice.below(2) == 0 })),
        5 => ("presets.load", json!({ "id": preset })),
        6 => ("presets.delete", json!({ "id": preset })),
        7 => ("transport.play", json!({})),
        8 => ("transport.pause", json!({})),
        9 => ("transport.stop", json!({})),
        10 => ("transport.play", json!({ "positionMs": dice.below(90_000_000) })),
        11 => ("settings.set", json!({ "maxFps": dice.below(250), "brightnessLimit": dice.below(256) })),
        12 => ("device.restart", json!({})),
        13 => ("render.stream.start", json!({ "staleTimeoutMs": 250 + dice.below(500) })),
        _ => ("render.stream.stop", json!({})),
    }
}

fn step(device: &mut VirtualDevice, dice: &mut TestRng, millis: u64) -> String {
    if dice.below(4) == 0 {
        let colours = [u8::try_from(dice.below(256)).expect("a byte"); 960];
        let sequence = u32::try_from(dice.below(1_000)).expect("small");
        return format!(
            "{:?}",
            device.accept_frame(
                &RenderFrame { flags: 0, sequence, colours: &colours }.to_bytes(),
                tick_at_millis(millis)
            )
        );
    }
    let (command, fields) = any_command(dice);
    format!("{command} {:?}", execute(device, command, fields, millis))
}

#[test]
fn devices_with_the_same_commands_show_the_same_frames() {
    for seed in 1..=40 {
        let (mut one, mut other) = (device(), device());
        let (mut dice, mut same_dice, mut times) = (TestRng(seed), TestRng(seed), TestRng(seed + 1_000));
        let mut millis = 0;
        for number in 0..150 {
            millis += times.below(400);
            let expected = step(&mut one, &mut dice, millis);
            // Somebody looks at one of them all the time, and at the other one never.
            execute(&mut one, "device.frame", json!({}), millis).expect("everybody may look");
            execute(&mut one, "device.status", json!({}), millis).expect("everybody may look");
            assert_eq!(step(&mut other, &mut same_dice, millis), expected, "seed {seed}, step {number}");
            let (here, there) =
                (one.displayed_frame(tick_at_millis(millis)), other.displayed_frame(tick_at_millis(millis)));
            assert_eq!(
                (here.source, here.sequence),
                (there.source, there.sequence),
                "seed {seed}, step {number}"
            );
            assert_eq!(here.pixels, there.pixels, "seed {seed}, step {number}");
            assert_eq!(one.persistent_state(), other.persistent_state(), "seed {seed}, step {number}");
        }
    }
}

#[test]
fn starting_from_persistent_state_equals_a_restart() {
    for seed in 1..=40 {
        let (mut device, mut dice) = (device(), TestRng(seed));
        for number in 0..40 {
            step(&mut device, &mut dice, number * 10);
        }
        let mut again = device_with_state(device.persistent_state());
        for device in [&mut device, &mut again] {
            execute(device, "device.restart", json!({}), 1_000).expect("it starts again");
        }
        assert_eq!(
            device.displayed_frame(tick_at_millis(2_345)).pixels,
            again.displayed_frame(tick_at_millis(2_345)).pixels,
            "seed {seed}"
        );
        assert_eq!(device.persistent_state(), again.persistent_state(), "seed {seed}");
    }
}

#[test]
fn requesting_a_frame_twice_returns_the_same_frame() {
    let mut device = device();
    let mut frame = |millis| {
        let data = execute(&mut device, "device.frame", json!({}), millis).expect("everybody may look");
        (data["sequence"].as_u64().expect("a number"), data["rgb"].as_str().expect("a text").to_owned())
    };
    // 120 frames a second: one lasts 8.3 milliseconds.
    assert_eq!(frame(1_000), frame(1_008));
    assert_ne!(frame(1_000).1, frame(1_100).1);
    assert_eq!((frame(1_000).0, frame(1_000).1.len()), (120, 1_920));
}

/// What every effect shows at a few moments, in one number each. A preset that somebody kept looks the same after an update:
/// whoever changes one of these numbers changes how that looks.
#[test]
fn effects_render_the_recorded_frames() {
    let shown = EFFECTS.iter().map(|row| (row.name, number_of(row.name))).collect::<Vec<_>>();
    assert_eq!(shown, KNOWN);
}

const KNOWN: [(&str, u32); 17] = [
    ("solid", 0x3FB2_4F45),
    ("gradient", 0xCD67_8555),
    ("rainbow", 0x89FC_2771),
    ("breathe", 0xE5BD_6DC5),
    ("strobe", 0xA278_6505),
    ("chase", 0xB30F_FB45),
    ("comet", 0xBC8D_395F),
    ("scanner", 0x4546_85B5),
    ("wipe", 0x97D1_CF76),
    ("wave", 0x0E3C_E9D2),
    ("plasma", 0xB70B_AB3C),
    ("ripple", 0x7D3C_2C49),
    ("ocean", 0x1551_4AB9),
    ("fire", 0x701E_51CC),
    ("twinkle", 0x5EAD_6E7F),
    ("sparkle", 0x449E_ADC8),
    ("rain", 0x84D2_8008),
];

fn number_of(effect: &str) -> u32 {
    let mut device = device();
    execute_ok(&mut device, "effects.setCurrent", json!({ "effectId": effect }), 0);
    execute_ok(&mut device, "parameters.set", json!({ "brightness": 255, "hue": 30, "saturation": 230 }), 0);
    let moments = [0, 333, 1_000, 2_718, 31_415, 86_400_000];
    let bytes = moments.into_iter().flat_map(|millis| device.displayed_frame(tick_at_millis(millis)).pixels);
    bytes.fold(0x811C_9DC5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
