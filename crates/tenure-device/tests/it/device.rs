//! The virtual light's commands.

use serde_json::{Value, json};
use tenure_control::COMMANDS;
use tenure_control::permission_matrix::CommandClass;
use tenure_device::PersistentState;

use crate::support::{device, device_with_state, execute, execute_ok, execute_rejected, tick_at_millis};

#[test]
fn the_device_executes_every_device_command_of_the_table() {
    let elsewhere = ["ota.upload", "ota.token", "ota.tokens"];
    for row in COMMANDS {
        let is_ours = !row.name.starts_with("control.")
            && !row.name.starts_with("auth.")
            && !elsewhere.contains(&row.name);
        let answer = execute(&mut device(), row.name, json!({}), 0);
        let is_known = answer.err().is_none_or(|problem| problem.code.as_str() != "UNKNOWN_COMMAND");
        assert_eq!(is_known, is_ours, "{}", row.name);
    }
    assert_eq!(execute_rejected(&mut device(), "device.explode", json!({}), 0).0, "UNKNOWN_COMMAND");
}

// S0-77
#[test]
fn reading_commands_change_nothing() {
    for row in COMMANDS.iter().filter(|row| row.class == CommandClass::Reads) {
        let mut device = device();
        execute_ok(&mut device, "presets.save", json!({ "name": "one" }), 0);
        let before = (device.persistent_state(), device.displayed_frame(tick_at_millis(5)).pixels);
        let fields = if row.name == "presets.get" { json!({ "id": "one" }) } else { json!({}) };
        let fields = fields.as_object().expect("an object").clone();
        let done = device.execute(row.name, fields, tick_at_millis(5)).expect("everybody may look");
        assert!(!done.must_store, "{}", row.name);
        assert_eq!(
            (device.persistent_state(), device.displayed_frame(tick_at_millis(5)).pixels),
            before,
            "{}",
            row.name
        );
        assert!(done.data.is_object(), "{}", row.name);
    }
}

#[test]
fn every_command_rejects_unknown_fields() {
    for row in COMMANDS {
        let complete = match row.name {
            "effects.setCurrent" => json!({ "effectId": 1, "surplus": 1 }),
            "parameters.set" => json!({ "hue": 1, "surplus": 1 }),
            "settings.set" => json!({ "maxFps": 1, "surplus": 1 }),
            "presets.save" => json!({ "name": "a", "surplus": 1 }),
            "presets.get" | "presets.load" | "presets.delete" => json!({ "id": "a", "surplus": 1 }),
            "ota.begin" => json!({ "size": 1, "surplus": 1 }),
            "ota.chunk" => json!({ "offset": 0, "data": "", "surplus": 1 }),
            _ => json!({ "surplus": 1 }),
        };
        let problem = execute(&mut device(), row.name, complete, 0).expect_err("there is one too many");
        let code = problem.code.as_str();
        if code != "UNKNOWN_COMMAND" {
            assert_eq!((code, problem.field.as_deref()), ("UNKNOWN_FIELD", Some("surplus")), "{}", row.name);
        }
    }
}

#[test]
fn an_effect_is_set_by_number_or_by_name() {
    let mut device = device();
    let set = execute_ok(&mut device, "effects.setCurrent", json!({ "effectId": 3 }), 0);
    assert_eq!((&set["effectId"], &set["effectName"]), (&json!(3), &json!("breathe")));
    execute_ok(&mut device, "effects.setCurrent", json!({ "effectId": "comet" }), 0);
    let current = execute_ok(&mut device, "effects.getCurrent", json!({}), 0);
    assert_eq!((&current["effectId"], &current["count"]), (&json!(6), &json!(17)));
    let list = execute_ok(&mut device, "effects.list", json!({}), 0);
    assert_eq!(list["effects"][6]["name"], json!("comet"));
    let cases = [
        (json!({}), "MISSING_FIELD"),
        (json!({ "effectId": 17 }), "OUT_OF_RANGE"),
        (json!({ "effectId": -1 }), "OUT_OF_RANGE"),
        (json!({ "effectId": 1.5 }), "INVALID_TYPE"),
        (json!({ "effectId": true }), "INVALID_TYPE"),
        (json!({ "effectId": "no such" }), "NOT_FOUND"),
    ];
    for (fields, code) in cases {
        assert_eq!(
            execute_rejected(&mut device, "effects.setCurrent", fields, 0),
            (code, Some("effectId".to_owned()))
        );
    }
}

#[test]
fn parameters_change_together_or_not_at_all() {
    let mut device = device();
    let all = json!({
        "brightness": 255, "speed": 100, "palette": "ice", "hue": 1, "saturation": 2, "intensity": 3,
        "mirror": true, "reverse": true
    });
    assert_eq!(execute_ok(&mut device, "parameters.set", all.clone(), 0), all);
    let wrong = json!({ "brightness": 9, "speed": 101 });
    assert_eq!(
        execute_rejected(&mut device, "parameters.set", wrong, 0),
        ("OUT_OF_RANGE", Some("speed".to_owned()))
    );
    let mut shown = execute_ok(&mut device, "parameters.get", json!({}), 0);
    let ranges = shown.as_object_mut().expect("an object").remove("ranges").expect("they are told");
    assert_eq!((shown, &ranges["speed"]), (all, &json!({ "min": 1, "max": 100 })));
    assert_eq!(execute_rejected(&mut device, "parameters.set", json!({}), 0).0, "MISSING_FIELD");
    let wrong = json!({ "palette": "mud" });
    assert_eq!(
        execute_rejected(&mut device, "parameters.set", wrong, 0),
        ("INVALID_VALUE", Some("palette".to_owned()))
    );
}

#[test]
fn loading_a_preset_restores_effect_and_parameters() {
    let mut device = device();
    execute_ok(&mut device, "effects.setCurrent", json!({ "effectId": "plasma" }), 0);
    execute_ok(&mut device, "parameters.set", json!({ "palette": "dusk", "hue": 40 }), 0);
    let before = device.displayed_frame(tick_at_millis(777)).pixels;
    let preset = execute_ok(&mut device, "presets.save", json!({ "name": "Evening light" }), 0);
    assert_eq!(preset["id"], json!("evening-light"));
    execute_ok(&mut device, "effects.setCurrent", json!({ "effectId": "solid" }), 0);
    execute_ok(&mut device, "parameters.set", json!({ "palette": "ice", "hue": 0 }), 0);
    assert_ne!(device.displayed_frame(tick_at_millis(777)).pixels, before);
    execute_ok(&mut device, "presets.load", json!({ "id": "evening-light" }), 0);
    assert_eq!(device.displayed_frame(tick_at_millis(777)).pixels, before);
    assert_eq!(execute_ok(&mut device, "presets.get", json!({ "id": "evening-light" }), 0), preset);
    let taken = execute_rejected(&mut device, "presets.save", json!({ "name": "Evening light" }), 0);
    assert_eq!(taken, ("CONFLICT", Some("id".to_owned())));
    execute_ok(&mut device, "presets.delete", json!({ "id": "evening-light" }), 0);
    for command in ["presets.get", "presets.load", "presets.delete"] {
        assert_eq!(
            execute_rejected(&mut device, command, json!({ "id": "evening-light" }), 0).0,
            "NOT_FOUND"
        );
        assert_eq!(execute_rejected(&mut device, command, json!({}), 0).0, "MISSING_FIELD");
    }
    assert_eq!(execute_ok(&mut device, "presets.list", json!({}), 0)["count"], json!(0));
}

#[test]
fn pause_freezes_playback_and_stop_turns_the_light_off() {
    let mut device = device();
    let position = |state: &Value| state["positionMs"].as_u64().expect("a number");
    assert_eq!(position(&execute_ok(&mut device, "transport.status", json!({}), 1_500)), 1_500);
    execute_ok(&mut device, "transport.pause", json!({}), 2_000);
    assert_eq!(position(&execute_ok(&mut device, "transport.status", json!({}), 9_000)), 2_000);
    assert_eq!(
        device.displayed_frame(tick_at_millis(2_000)).pixels,
        device.displayed_frame(tick_at_millis(9_000)).pixels
    );
    assert_eq!(position(&execute_ok(&mut device, "transport.play", json!({}), 9_000)), 2_000);
    execute_ok(&mut device, "transport.stop", json!({}), 10_000);
    assert_eq!(
        (
            device.displayed_frame(tick_at_millis(10_001)).source,
            device.displayed_frame(tick_at_millis(10_001)).pixels
        ),
        ("stopped", [0; 960])
    );
    assert_eq!(execute_rejected(&mut device, "transport.pause", json!({}), 10_001).0, "CONFLICT");
    assert_eq!(position(&execute_ok(&mut device, "transport.play", json!({}), 10_002)), 0);
    let far = json!({ "positionMs": 86_400_001_u64 });
    assert_eq!(execute_rejected(&mut device, "transport.play", far, 10_003).0, "OUT_OF_RANGE");
}

#[test]
fn changing_speed_does_not_jump() {
    let mut device = device();
    execute_ok(&mut device, "presets.save", json!({ "name": "normal" }), 0);
    let slower = [("parameters.set", json!({ "speed": 1 })), ("presets.load", json!({ "id": "normal" }))];
    for ((command, fields), millis) in slower.into_iter().zip([60_000, 120_000]) {
        let before = device.displayed_frame(tick_at_millis(millis)).pixels;
        execute_ok(&mut device, command, fields, millis);
        assert!(device.displayed_frame(tick_at_millis(millis)).pixels == before, "{command}");
        assert!(
            device.displayed_frame(tick_at_millis(millis + 2_500)).pixels != before,
            "{command}: and it goes on"
        );
    }
}

#[test]
fn a_restart_keeps_only_persistent_state() {
    let mut device = device();
    let settings = json!({ "deviceName": "Stairs", "powerOnEffect": "fire", "powerOnBrightness": 30 });
    execute_ok(&mut device, "settings.set", settings, 0);
    execute_ok(&mut device, "presets.save", json!({ "name": "one" }), 0);
    execute_ok(&mut device, "parameters.set", json!({ "hue": 99 }), 0);
    execute_ok(&mut device, "render.stream.start", json!({}), 0);
    execute_ok(&mut device, "transport.pause", json!({}), 0);
    let stored = device.persistent_state();
    execute_ok(&mut device, "device.restart", json!({}), 500);
    let status = execute_ok(&mut device, "device.status", json!({}), 700);
    assert_eq!((&status["effectName"], &status["brightness"]), (&json!("fire"), &json!(30)));
    assert_eq!((&status["uptimeMs"], &status["millis"]), (&json!(200), &json!(700)));
    assert_eq!(status["transport"], json!({ "state": "playing", "positionMs": 200 }));
    assert_eq!(status["stream"]["stopReason"], json!("client_stop"));
    assert_eq!(status["counters"]["restarts"], json!(1));
    assert_eq!(execute_ok(&mut device, "parameters.get", json!({}), 700)["hue"], json!(0));
    assert_eq!(device.persistent_state(), stored);
    assert_eq!(
        device_with_state(stored).displayed_frame(tick_at_millis(200)).pixels,
        device.displayed_frame(tick_at_millis(700)).pixels
    );
}

#[test]
fn commands_that_change_persistent_state_report_it_and_the_state_round_trips() {
    let mut device = device();
    let stores = [
        ("settings.set", json!({ "maxFps": 60 })),
        ("presets.save", json!({ "name": "one" })),
        ("presets.save", json!({ "name": "two" })),
        ("presets.delete", json!({ "id": "two" })),
    ];
    for (command, fields) in stores {
        let before = device.persistent_state();
        let fields = fields.as_object().expect("an object").clone();
        let done = device.execute(command, fields, tick_at_millis(0)).expect("it is carried out");
        assert!(done.must_store && device.persistent_state() != before, "{command}");
        assert_eq!(
            PersistentState::from_json(&device.persistent_state().to_json()),
            Ok(device.persistent_state())
        );
    }
    let before = device.persistent_state();
    execute_ok(&mut device, "presets.save", json!({ "name": "three" }), 0);
    device.revert_persistent_state(before.clone());
    assert_eq!(device.persistent_state(), before, "what could not be written is not there");
}

// S0-22
#[test]
fn status_reports_rates_uptime_and_counters() {
    let mut device = device();
    for millis in 0..1_000 {
        execute_ok(&mut device, "device.frame", json!({}), millis);
    }
    let status = execute_ok(&mut device, "device.status", json!({}), 1_000);
    assert_eq!(status["fps"], json!({ "asked": 120, "rendered": 1_000 }));
    assert_eq!((&status["uptimeMs"], &status["counters"]["framesRendered"]), (&json!(1_000), &json!(1_000)));
    let info = execute_ok(&mut device, "device.info", json!({}), 1_000);
    assert_eq!((&info["ledCount"], &info["name"]), (&json!(320), &json!("Tenure light")));
    assert_eq!(info["stream"], json!({ "version": 1, "format": 1, "frameBytes": 976 }));
}
