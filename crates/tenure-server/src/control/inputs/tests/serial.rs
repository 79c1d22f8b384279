//! Lines over a real serial port.

use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use tenure_control::CommandSource;
use tokio::time::Instant;

use super::super::{LocalInputs, MAX_PER_SECOND};
use super::fake_controller::FakeController;
use super::fake_serial_port::FakeSerialPort;
use super::wait_until;
use crate::control::{ControlSettings, SerialSettings};

/// A port that is listened to, and a terminal at its other end.
struct SerialFixture {
    controller: Arc<FakeController>,
    terminal: FakeSerialPort,
    inputs: LocalInputs,
    _folder: TempDir,
}

impl SerialFixture {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("port");
        let (controller, terminal) = (FakeController::new(), FakeSerialPort::plug_in(&path));
        let serial = Some(SerialSettings { path, baud: 57_600 });
        let inputs =
            LocalInputs::start(&controller, &ControlSettings { serial, ..ControlSettings::default() });
        terminal.wait_until_opened().await;
        Self { controller, terminal, inputs, _folder: folder }
    }

    fn blocked(&self) -> u64 {
        self.controller.blocked_count(CommandSource::Serial)
    }
}

fn code(answer: &Value) -> &str {
    answer["error"]["code"].as_str().unwrap_or("")
}

// S0-76, S0-77
#[tokio::test]
async fn without_a_lease_a_line_is_executed_and_answered() {
    let mut world = SerialFixture::new().await;
    assert_eq!(world.terminal.speed(), 57_600);
    let answer = world.terminal.send_and_receive("parameters.set brightness=7 requestId=one").await;
    let data = json!({ "brightness": 7, "effectId": 0 });
    assert_eq!(
        answer,
        json!({ "type": "parameters.set", "requestId": "one", "success": true, "data": data })
    );
    let answer = world.terminal.send_and_receive(r#"{"type":"effects.setCurrent","effectId":2}"#).await;
    assert_eq!(answer["data"]["effectId"], 2);
    assert_eq!(world.terminal.send_and_receive("status").await["type"], "device.status");
    assert_eq!(world.terminal.send_and_receive("help").await["type"], "help");
    let answer = world.terminal.send_and_receive("effects.setCurrent effectId=3").await;
    assert_eq!((code(&answer), &answer["error"]["field"]), ("OUT_OF_RANGE", &json!("effectId")));
    assert_eq!(world.controller.device().effect, 2);
    assert_eq!(world.blocked(), 0);
    world.inputs.stop().await;
}

// S0-76, S0-77, S0-72, O-8
#[tokio::test]
async fn under_a_lease_a_changing_command_is_blocked_and_a_reading_one_is_not() {
    let mut world = SerialFixture::new().await;
    world.controller.begin_lease();
    let answer = world.terminal.send_and_receive("parameters.set brightness=7 requestId=req-201").await;
    let error = json!({
        "code": "CONTROL_LOCKED", "message": "Command blocked by active control lease",
        "ownerClientName": "K1 Composer", "remainingMs": 5000, "scope": "global",
    });
    assert_eq!(answer, json!({ "type": "error", "requestId": "req-201", "success": false, "error": error }));
    // The lease answers before anybody looks at the fields.
    assert_eq!(code(&world.terminal.send_and_receive("effects.setCurrent effectId").await), "CONTROL_LOCKED");
    assert_eq!(world.blocked(), 2);
    assert_eq!(world.terminal.send_and_receive("parameters.get").await["data"]["brightness"], 100);
    assert_eq!(world.terminal.send_and_receive("status").await["success"], true);
    assert_eq!(world.blocked(), 2, "who reads is not in the way");
    world.controller.end_lease();
    assert_eq!(world.terminal.send_and_receive("parameters.set brightness=7").await["success"], true);
    assert_eq!(world.blocked(), 2);
    world.inputs.stop().await;
}

// S0-76
#[tokio::test]
async fn a_serial_port_cannot_acquire_a_lease_or_stream() {
    let mut world = SerialFixture::new().await;
    for is_locked in [false, true] {
        if is_locked {
            world.controller.begin_lease();
        }
        for line in ["control.acquire clientName=me", "render.stream.start", "ota.begin", "auth.login"] {
            assert_eq!(code(&world.terminal.send_and_receive(line).await), "FORBIDDEN", "{line}");
        }
    }
    assert_eq!(world.controller.device().executed, [""; 0]);
    world.inputs.stop().await;
}

// S0-76, O-8
#[tokio::test]
async fn a_command_admitted_before_the_lease_was_taken_has_no_effect() {
    let mut world = SerialFixture::new().await;
    let on_the_road = world.controller.delay().await;
    world.terminal.send("parameters.set brightness=7\n").await;
    world.controller.wait_for_admitted_command().await;
    world.controller.begin_lease();
    drop(on_the_road);
    assert_eq!(code(&world.terminal.answer().await), "CONTROL_LOCKED");
    assert_eq!(world.controller.device().brightness, 100);
    assert_eq!(world.blocked(), 1);
    world.inputs.stop().await;
}

#[tokio::test]
async fn invalid_input_is_answered_and_the_next_line_is_executed() {
    let mut world = SerialFixture::new().await;
    world
        .terminal
        .send([&b"\xff\xfe\n"[..], b"st\x7fatus\r\n", &[b'x'; 9_000], b"\nstatus\n"].concat())
        .await;
    let mut codes = Vec::new();
    for _ in 0..4 {
        codes.push(code(&world.terminal.answer().await).to_owned());
    }
    assert_eq!(codes, ["INVALID_VALUE", "INVALID_VALUE", "TOO_LARGE", ""]);
    world.inputs.stop().await;
}

#[tokio::test]
async fn input_above_the_rate_limit_is_delayed_and_not_lost() {
    let mut world = SerialFixture::new().await;
    let (count, started) = (60, Instant::now());
    let lines: String = (0..count).map(|number| format!("status requestId={number}\n")).collect();
    world.terminal.send(lines).await;
    for number in 0..count {
        assert_eq!(world.terminal.answer().await["requestId"], number.to_string());
    }
    let min_duration = std::time::Duration::from_secs(1) * (count - 1) / MAX_PER_SECOND;
    assert!(started.elapsed() >= min_duration.mul_f64(0.9), "{:?} for {count} lines", started.elapsed());
    world.inputs.stop().await;
}

#[tokio::test]
async fn a_sender_that_never_reads_answers_is_still_served() {
    let mut world = SerialFixture::new().await;
    // Each answer is long: together more than the port and the outbox take.
    for _ in 0..100 {
        world.terminal.send("help\n").await;
    }
    world.terminal.send("parameters.set brightness=9\n").await;
    let controller = world.controller.clone();
    wait_until("the last line is carried out", || controller.device().brightness == 9).await;
    let mut answers = vec![world.terminal.send_and_receive("status requestId=last").await];
    while answers.last().unwrap()["requestId"] != "last" {
        answers.push(world.terminal.answer().await);
    }
    assert!(answers.iter().any(|answer| code(answer) == "BUSY"), "that some are missing is said");
    world.inputs.stop().await;
}
