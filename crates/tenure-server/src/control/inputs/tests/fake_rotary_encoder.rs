//! A knob, played by a pipe.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;
use tenure_control::CommandSource;

use super::super::LocalInputs;
use super::fake_controller::FakeController;
use super::wait_until;
use crate::control::{ControlSettings, RotaryEncoderSettings};

/// A pipe into which a knob's records are written.
pub(super) fn pipe(path: &Path) -> File {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

/// A record of the input layer.
pub(super) fn record(kind: u16, code: u16, value: i32) -> Vec<u8> {
    let numbers = [kind.to_le_bytes(), code.to_le_bytes()].concat();
    [&[0; 16][..], &numbers, &value.to_le_bytes()].concat()
}

/// One step of a knob, with the report behind it.
pub(super) fn rotation_records(steps: i32) -> Vec<u8> {
    [record(2, 7, steps), record(0, 0, 0)].concat()
}

fn pressed() -> Vec<u8> {
    [record(1, 0x160, 1), record(0, 0, 0), record(1, 0x160, 0), record(0, 0, 0)].concat()
}

struct KnobFixture {
    controller: Arc<FakeController>,
    knob: File,
    inputs: LocalInputs,
    _folder: TempDir,
}

impl KnobFixture {
    fn new(parameter: &str, step: i32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("knob");
        let (controller, knob) = (FakeController::new(), pipe(&path));
        let encoder = Some(RotaryEncoderSettings { path, parameter: parameter.into(), step });
        let inputs =
            LocalInputs::start(&controller, &ControlSettings { encoder, ..ControlSettings::default() });
        Self { controller, knob, inputs, _folder: folder }
    }

    async fn brightness_is(&self, value: i64) {
        wait_until(&format!("{value}"), || self.controller.device().brightness == value).await;
    }
}

// S0-75
#[tokio::test]
async fn without_a_lease_the_knob_changes_its_parameter_and_the_effect() {
    let mut world = KnobFixture::new("brightness", 8);
    world.knob.write_all(&rotation_records(1)).unwrap();
    world.brightness_is(108).await;
    world.knob.write_all(&rotation_records(-2)).unwrap();
    world.brightness_is(92).await;
    for effect in [1, 2, 0] {
        world.knob.write_all(&pressed()).unwrap();
        wait_until("the next effect", || world.controller.device().effect == effect).await;
    }
    assert_eq!(world.controller.blocked_count(CommandSource::Encoder), 0);
    world.inputs.stop().await;
}

// S0-75, O-8
#[tokio::test]
async fn under_a_lease_each_move_is_blocked_counted_and_discarded() {
    let mut world = KnobFixture::new("brightness", 8);
    world.controller.begin_lease();
    world
        .knob
        .write_all(&[rotation_records(1), rotation_records(1), pressed(), rotation_records(-5)].concat())
        .unwrap();
    wait_until("all four are counted", || world.controller.blocked_count(CommandSource::Encoder) == 4).await;
    world.controller.end_lease();
    world.knob.write_all(&rotation_records(1)).unwrap();
    world.brightness_is(108).await;
    assert_eq!(world.controller.device().effect, 0);
    assert_eq!(world.controller.blocked_count(CommandSource::Encoder), 4);
    world.inputs.stop().await;
}

// S0-75, O-8
#[tokio::test]
async fn a_move_admitted_before_the_lease_was_taken_has_no_effect() {
    let mut world = KnobFixture::new("brightness", 8);
    let on_the_road = world.controller.delay().await;
    world.knob.write_all(&rotation_records(1)).unwrap();
    world.controller.wait_for_admitted_command().await;
    world.controller.begin_lease();
    drop(on_the_road);
    wait_until("it is counted", || world.controller.blocked_count(CommandSource::Encoder) == 1).await;
    let (brightness, carried) = {
        let inside = world.controller.device();
        (inside.brightness, inside.executed.clone())
    };
    assert_eq!((brightness, carried), (100, vec!["parameters.get".to_owned()]));
    world.inputs.stop().await;
}

#[tokio::test]
async fn a_fast_turn_ends_at_the_end_of_the_range() {
    let mut world = KnobFixture::new("brightness", 8);
    for _ in 0..40 {
        world.knob.write_all(&rotation_records(1)).unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.brightness_is(255).await;
    world.knob.write_all(&rotation_records(-1_000)).unwrap();
    world.brightness_is(0).await;
    assert_eq!(world.inputs.warnings(), [""; 0]);
    world.inputs.stop().await;
}

#[tokio::test]
async fn many_moves_are_combined_into_a_bounded_number_of_commands() {
    let mut world = KnobFixture::new("brightness", 1);
    let flood = rotation_records(1).repeat(100);
    world.knob.write_all(&flood).unwrap();
    world.brightness_is(200).await;
    let sets =
        world.controller.device().executed.iter().filter(|command| *command == "parameters.set").count();
    assert!(sets <= 10, "{sets} commands for 100 moves");
    world.inputs.stop().await;
}

#[tokio::test]
async fn a_record_in_pieces_is_one_record() {
    let mut world = KnobFixture::new("brightness", 8);
    for byte in rotation_records(1) {
        world.knob.write_all(&[byte]).unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.brightness_is(108).await;
    world.inputs.stop().await;
}

#[tokio::test]
async fn an_unknown_parameter_is_reported_as_a_warning() {
    let mut world = KnobFixture::new("volume", 8);
    world.knob.write_all(&rotation_records(1)).unwrap();
    wait_until("it is said", || world.inputs.warnings().iter().any(|text| text.contains("`volume`"))).await;
    world.inputs.stop().await;
}
