//! Devices that are not there, go away and come back.

use std::io::Write as _;

use super::super::Inputs;
use super::desk::Desk;
use super::knob::{pipe, turned};
use super::terminal::Terminal;
use super::wait_until;
use crate::control::{ControlSettings, EncoderSettings, SerialSettings};

#[tokio::test]
async fn an_unplugged_serial_port_is_reported_once_and_reopened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port");
    let desk = Desk::new();
    let serial = Some(SerialSettings { path: path.clone(), baud: 115_200 });
    let inputs = Inputs::start(&desk, &ControlSettings { serial, ..ControlSettings::default() });
    let is_said = || {
        let troubles = inputs.troubles();
        assert!(troubles.len() <= 1, "{troubles:?}");
        troubles.iter().any(|text| text.contains("serial port") && text.contains("port cannot be used"))
    };
    wait_until("it is said that there is none", is_said).await;
    for _ in 0..2 {
        let mut terminal = Terminal::plug_in(&path);
        terminal.is_heard().await;
        // A line that is torn by the unplugging is none.
        assert_eq!(terminal.ask("status").await["success"], true);
        terminal.send("parameters.set brightness=1").await;
        wait_until("that is over", || inputs.troubles().is_empty()).await;
        drop(terminal);
        wait_until("it is said that it is gone", is_said).await;
    }
    let mut terminal = Terminal::plug_in(&path);
    terminal.is_heard().await;
    assert_eq!(terminal.ask("parameters.set brightness=33").await["data"]["brightness"], 33);
    inputs.stop().await;
}

#[tokio::test]
async fn a_replaced_encoder_is_reopened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("knob");
    let desk = Desk::new();
    let parameter = EncoderSettings::USUAL_PARAMETER.to_owned();
    let encoder = Some(EncoderSettings { path: path.clone(), parameter, step: 1 });
    let inputs = Inputs::start(&desk, &ControlSettings { encoder, ..ControlSettings::default() });
    wait_until("it is said that there is none", || !inputs.troubles().is_empty()).await;
    for brightness in [101, 102] {
        let mut knob = pipe(&path);
        // Half a record of the last one must not be in the way of this one.
        knob.write_all(&[&turned(1)[..], &[7; 11]].concat()).unwrap();
        wait_until("it is heard", || desk.look().brightness == brightness).await;
        wait_until("all is well", || inputs.troubles().is_empty()).await;
        std::fs::remove_file(&path).unwrap();
        wait_until("it is said that it is gone", || !inputs.troubles().is_empty()).await;
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
    let desk = Desk::new();
    let parameter = EncoderSettings::USUAL_PARAMETER.to_owned();
    let settings = ControlSettings {
        serial: Some(SerialSettings { path: file, baud: 9_600 }),
        encoder: Some(EncoderSettings { path: garbage, parameter, step: 1 }),
        ..ControlSettings::default()
    };
    let inputs = Inputs::start(&desk, &settings);
    let says = |what: &str| inputs.troubles().iter().any(|text| text.contains(what));
    wait_until("both are said", || says("no serial port") && says("no records")).await;
    // What comes next begins at its beginning, because it is opened anew.
    wait_until("it is heard", || {
        pipe.write_all(&turned(1)).unwrap();
        desk.look().brightness > 100
    })
    .await;
    inputs.stop().await;
}
