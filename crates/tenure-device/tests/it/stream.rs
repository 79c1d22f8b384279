//! A render stream: what is shown, what is counted, and how it ends.

use serde_json::{Value, json};
use tenure_control::DeviceClock;
use tenure_core::kernel::Tick;
use tenure_device::{PersistentState, RenderFrame, StopReason, VirtualDevice};

use crate::support::{START, device, execute, execute_ok, execute_rejected, tick_at_millis};

fn frame(sequence: u32, colour: u8) -> Vec<u8> {
    RenderFrame { flags: 0, sequence, colours: &[colour; 960] }.to_bytes().to_vec()
}

fn status(device: &mut VirtualDevice, millis: u64) -> Value {
    execute_ok(device, "render.stream.status", json!({}), millis)
}

fn shown(device: &VirtualDevice, millis: u64) -> (&'static str, u8) {
    let shown = device.displayed_frame(tick_at_millis(millis));
    (shown.source, shown.pixels[500])
}

fn streaming() -> VirtualDevice {
    let mut device = device();
    execute_ok(&mut device, "render.stream.start", json!({}), 0);
    device
}

#[test]
fn stream_defaults_are_120_fps_and_750_ms_timeout() {
    let mut device = device();
    let started = execute_ok(&mut device, "render.stream.start", json!({}), 0);
    assert_eq!((&started["active"], &started["targetFps"]), (&json!(true), &json!(120)));
    assert_eq!(started["staleTimeoutMs"], json!(750));
    let ours = json!({
        "targetFps": 240, "staleTimeoutMs": 5_000, "ledCount": 320, "format": 1, "version": 1
    });
    let started = execute_ok(&mut device, "render.stream.start", ours, 1);
    assert_eq!((&started["targetFps"], &started["streamsStarted"]), (&json!(240), &json!(2)));
}

#[test]
fn a_stream_with_mismatched_parameters_is_rejected() {
    let mut device = device();
    let cases = [
        (json!({ "ledCount": 319 }), "STREAM_CONTRACT_MISMATCH", "ledCount"),
        (json!({ "format": 2 }), "STREAM_CONTRACT_MISMATCH", "format"),
        (json!({ "version": 0 }), "STREAM_CONTRACT_MISMATCH", "version"),
        (json!({ "version": "1" }), "INVALID_TYPE", "version"),
        (json!({ "targetFps": 0 }), "OUT_OF_RANGE", "targetFps"),
        (json!({ "targetFps": 241 }), "OUT_OF_RANGE", "targetFps"),
        (json!({ "staleTimeoutMs": 249 }), "OUT_OF_RANGE", "staleTimeoutMs"),
        (json!({ "staleTimeoutMs": 5_001 }), "OUT_OF_RANGE", "staleTimeoutMs"),
        (json!({ "fps": 60 }), "UNKNOWN_FIELD", "fps"),
    ];
    for (fields, code, field) in cases {
        let answer = execute_rejected(&mut device, "render.stream.start", fields, 0);
        assert_eq!(answer, (code, Some(field.to_owned())));
    }
    assert_eq!(status(&mut device, 0)["active"], json!(false));
}

// S0-21
#[test]
fn frames_are_shown_instead_of_the_effect_and_counted() {
    let mut device = streaming();
    assert_eq!(shown(&device, 0), ("stream", 0), "dark before the first frame");
    for sequence in 0..10 {
        device
            .accept_frame(
                &frame(sequence, 10 + u8::try_from(sequence).expect("small")),
                tick_at_millis(u64::from(sequence)),
            )
            .expect("shown");
    }
    assert_eq!(shown(&device, 9), ("stream", 19));
    assert!(device.accept_frame(b"too short", tick_at_millis(9)).is_err());
    let status = status(&mut device, 9);
    assert_eq!((&status["framesReceived"], &status["framesInvalid"]), (&json!(10), &json!(1)));
    assert_eq!((&status["lastSequence"], &status["lastFrameMs"]), (&json!(9), &json!(9)));
    assert_eq!((&status["sequenceGaps"], &status["stopReason"]), (&json!(0), &Value::Null));
    execute_ok(&mut device, "render.stream.stop", json!({}), 20);
    assert_eq!(shown(&device, 20).0, "effect");
    let stopped = self::status(&mut device, 30);
    assert_eq!((&stopped["stopReason"], &stopped["stoppedAtMs"]), (&json!("client_stop"), &json!(20)));
    assert_eq!(stopped["framesReceived"], json!(10), "the numbers of the last one stay");
}

// O-7
#[test]
fn a_frame_without_a_stream_is_rejected_with_the_stop_reason() {
    let mut device = device();
    let problem = device.accept_frame(&frame(0, 1), tick_at_millis(0)).expect_err("there is no stream");
    assert_eq!(problem.code.as_str(), "STREAM_NOT_ACTIVE");
    assert_eq!(execute_rejected(&mut device, "render.stream.stop", json!({}), 0).0, "STREAM_NOT_ACTIVE");
    for reason in [StopReason::LeaseLost, StopReason::OwnerDisconnected] {
        execute_ok(&mut device, "render.stream.start", json!({}), 1);
        assert!(device.stop_stream(reason, tick_at_millis(2)));
        assert!(!device.stop_stream(reason, tick_at_millis(2)), "it ends once");
        let problem = device.accept_frame(&frame(0, 1), tick_at_millis(3)).expect_err("it has ended");
        assert!(problem.message.contains(reason.as_str()), "{}", problem.message);
        assert_eq!(status(&mut device, 3)["stopReason"], json!(reason.as_str()));
    }
    assert_eq!(status(&mut device, 3)["framesWithoutStream"], json!(3));
}

// O-7
#[test]
fn a_stream_without_frames_ends_exactly_at_its_timeout() {
    let mut device = streaming();
    assert_eq!(device.next_deadline(), Some(tick_at_millis(750)));
    assert_eq!(
        [749, 750].map(|millis| shown(&device, millis).0),
        ["stream", "effect"],
        "though nobody noticed yet"
    );
    device.accept_frame(&frame(7, 1), tick_at_millis(749)).expect("just in time");
    assert_eq!(device.next_deadline(), Some(tick_at_millis(1_499)));
    assert_eq!(device.poll_stream_expiry(Tick(tick_at_millis(1_499).0 - 1)), None);
    assert_eq!(device.poll_stream_expiry(tick_at_millis(1_499)), Some(StopReason::StaleTimeout));
    assert_eq!(
        (device.poll_stream_expiry(tick_at_millis(1_499)), device.next_deadline()),
        (None, None),
        "told once"
    );
    assert_eq!(shown(&device, 1_499).0, "effect");
    assert_eq!(status(&mut device, 1_500)["stoppedAtMs"], json!(1_499));
}

// O-7
#[test]
fn a_late_frame_is_rejected_and_the_timeout_is_reported_once() {
    let mut device = streaming();
    let problem = device.accept_frame(&frame(0, 1), tick_at_millis(750)).expect_err("at equality it is over");
    assert_eq!(problem.code.as_str(), "STREAM_NOT_ACTIVE");
    assert!(device.next_deadline().is_some(), "somebody must still be told");
    assert_eq!(device.poll_stream_expiry(tick_at_millis(750)), Some(StopReason::StaleTimeout));
    assert_eq!(device.next_deadline(), None);
    // A new one is not taken for the one that ran out.
    execute_ok(&mut device, "render.stream.start", json!({}), 800);
    execute(&mut device, "render.stream.status", json!({}), 1_600).expect("it runs out unseen");
    execute_ok(&mut device, "render.stream.start", json!({}), 1_700);
    assert_eq!(
        (device.poll_stream_expiry(tick_at_millis(1_701)), device.next_deadline()),
        (None, Some(tick_at_millis(2_450)))
    );
}

#[test]
fn invalid_frames_do_not_keep_a_stream_alive() {
    let mut device = streaming();
    for millis in (0..750).step_by(50) {
        assert!(device.accept_frame(&[0; 976], tick_at_millis(millis)).is_err());
    }
    assert_eq!(device.next_deadline(), Some(tick_at_millis(750)));
}

#[test]
fn sequence_gaps_are_counted_across_the_wrap() {
    let mut device = streaming();
    for sequence in [u32::MAX - 1, u32::MAX, 0, 1] {
        device.accept_frame(&frame(sequence, 1), tick_at_millis(1)).expect("shown");
    }
    let count = |device: &mut VirtualDevice| {
        let status = status(device, 2);
        ["sequenceGaps", "framesMissing", "framesOutOfOrder"]
            .map(|name| status[name].as_u64().expect("a number"))
    };
    assert_eq!(count(&mut device), [0, 0, 0]);
    device.accept_frame(&frame(5, 1), tick_at_millis(1)).expect("shown");
    assert_eq!(count(&mut device), [1, 3, 0]);
    device.accept_frame(&frame(4, 77), tick_at_millis(1)).expect("also one that is late is shown");
    device.accept_frame(&frame(4, 78), tick_at_millis(1)).expect("and one that comes twice");
    assert_eq!(count(&mut device), [1, 3, 2]);
    assert_eq!(shown(&device, 1).1, 78);
}

#[test]
fn all_frames_at_240_fps_are_shown() {
    let mut device = device();
    execute_ok(&mut device, "render.stream.start", json!({ "targetFps": 240 }), 0);
    for sequence in 0..2_400_u32 {
        let now = Tick(START + u64::from(sequence) * 1_000_000 / 240);
        let colour = u8::try_from(sequence % 251).expect("a byte");
        device.accept_frame(&frame(sequence, colour), now).expect("shown");
        let shown = device.displayed_frame(now);
        assert_eq!((shown.sequence, shown.pixels), (u64::from(sequence), [colour; 960]));
    }
    let status = status(&mut device, 10_000);
    assert_eq!((&status["framesReceived"], &status["framesMissing"]), (&json!(2_400), &json!(0)));
    assert_eq!(status["fps"], json!(240));
}

#[test]
fn the_brightness_limit_applies_to_streams_and_brightness_does_not() {
    let mut device = streaming();
    execute_ok(&mut device, "parameters.set", json!({ "brightness": 0 }), 1);
    device.accept_frame(&frame(0, 200), tick_at_millis(1)).expect("shown");
    assert_eq!(shown(&device, 1).1, 200);
    execute_ok(&mut device, "settings.set", json!({ "brightnessLimit": 51 }), 1);
    assert_eq!(shown(&device, 1).1, 40);
}

// S0-15
#[test]
fn clock_wrap_affects_reported_times_only() {
    let mut device =
        VirtualDevice::new(PersistentState::default(), DeviceClock::new(Tick(START), u32::MAX - 2_999));
    execute_ok(&mut device, "render.stream.start", json!({ "staleTimeoutMs": 5_000 }), 0);
    device.accept_frame(&frame(0, 1), tick_at_millis(3_500)).expect("shown");
    let status = status(&mut device, 3_500);
    assert_eq!((&status["startedAtMs"], &status["lastFrameMs"]), (&json!(u32::MAX - 2_999), &json!(500)));
    assert_eq!(device.next_deadline(), Some(tick_at_millis(8_500)));
}
