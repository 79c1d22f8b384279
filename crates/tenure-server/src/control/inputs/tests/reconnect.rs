//! Devices that are not there, go away and come back.

use std::io::Write as _;

use super::super::LocalInputs;
use super::fake_controller::FakeController;
use super::fake_rotary_encoder::{pipe, rotation_records};
use super::fake_serial_port::FakeSerialPort;
use super::wait_until;
use crate::control::{ControlSettings, RotaryEncoderSettings, SerialSettings};

#[tokio::test]
async fn an_unplugged_serial_port_is_reported_once_and_reopened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port");
    let controller = FakeController::new();
    let serial = Some(SerialSettings { path: path.clone(), baud: 115_200 });
    let inputs = LocalInputs::start(&controller, &ControlSettings { serial, ..ControlSettings::default() });
    let is_reported = || {
        let troubles = inputs.warnings();
        assert!(troubles.len() <= 1, "{troubles:?}");
        troubles.iter().any(|text| text.contains("serial port") && text.contains("port cannot be used"))
    };
    wait_until("it is said that there is none", is_reported).await;
    for _ in 0..2 {
        let mut terminal = FakeSerialPort::plug_in(&path);
        terminal.wait_until_opened().await;
        // A line that is torn by the unplugging is none.
        assert_eq!(terminal.send_and_receive("status").await["success"], true);
        terminal.send("parameters.set brightness=1").await;
        wait_until("that is over", || inputs.warnings().is_empty()).await;
        drop(terminal);
        wait_until("it is said that it is gone", is_reported).await;
    }
    let mut terminal = FakeSerialPort::plug_in(&path);
    terminal.wait_until_opened().await;
    assert_eq!(terminal.send_and_receive("parameters.set brightness=33").await["data"]["brightness"], 33);
    inputs.stop().await;
}

#[tokio::test]
async fn a_replaced_encoder_is_reopened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("knob");
    let controller = FakeController::new();
    let parameter = RotaryEncoderSettings::DEFAULT_PARAMETER.to_owned();
    let encoder = Some(RotaryEncoderSettings { path: path.clone(), parameter, step: 1 });
    let inputs = LocalInputs::start(&controller, &ControlSettings { encoder, ..ControlSettings::default() });
    wait_until("it is said that there is none", || !inputs.warnings().is_empty()).await;
    for brightness in [101, 102] {
        let mut knob = pipe(&path);
        // Half a record of the last one must not be in the way of this one.
        knob.write_all(&[&rotation_records(1)[..], &[7; 11]].concat()).unwrap();
        wait_until("it is heard", || controller.device().brightness == brightness).await;
        wait_until("all is well", || inputs.warnings().is_empty()).await;
        std::fs::remove_file(&path).unwrap();
        wait_until("it is said that it is gone", || !inputs.warnings().is_empty()).await;
    }
    inputs.stop().await;
}

#[tokio::test]
async fn a_path_that_is_no_device_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (file, garbage) = (folder.path().join("file"), folder.path().join("garbage"));
    std::fs::write(&file, "no port").unwrap();
    let mut pipe = pipe(&garbage);
    pipe.write_all(&[b'x'; 100]).unwrap();
    let controller = FakeController::new();
    let parameter = RotaryEncoderSettings::DEFAULT_PARAMETER.to_owned();
    let settings = ControlSettings {
        serial: Some(SerialSettings { path: file, baud: 9_600 }),
        encoder: Some(RotaryEncoderSettings { path: garbage, parameter, step: 1 }),
        ..ControlSettings::default()
    };
    let inputs = LocalInputs::start(&controller, &settings);
    let says = |what: &str| inputs.warnings().iter().any(|text| text.contains(what));
    wait_until("both are said", || says("no serial port") && says("no records")).await;
    // What comes next begins at its beginning, because it is opened anew.
    wait_until("it is heard", || {
        pipe.write_all(&rotation_records(1)).unwrap();
        controller.device().brightness > 100
    })
    .await;
    inputs.stop().await;
}
