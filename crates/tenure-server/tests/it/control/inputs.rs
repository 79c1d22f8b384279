//! A serial port and a knob on a running server: a real terminal, and a pipe with the records of an input device.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::{Value, json};
use tempfile::TempDir;
use tenure_server::{RotaryEncoderSettings, SerialSettings};
use tenure_testkit::control::ControlClient;
use tenure_testkit::{TestServer, wait_until};

/// Somebody at a terminal, and somebody at the knob.
struct Stage {
    server: TestServer,
    terminal: BufReader<File>,
    knob: File,
    _devices: TempDir,
}

fn stage() -> Stage {
    let devices = tempfile::tempdir().unwrap();
    let (port, knob) = (devices.path().join("port"), devices.path().join("knob"));
    let terminal = terminal(&port);
    mknodat(CWD, &knob, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let turned = OpenOptions::new().read(true).write(true).open(&knob).unwrap();
    let server = TestServer::start_with(|settings| {
        settings.control.serial = Some(SerialSettings { path: port, baud: SerialSettings::DEFAULT_BAUD });
        let parameter = RotaryEncoderSettings::DEFAULT_PARAMETER.to_owned();
        settings.control.encoder = Some(RotaryEncoderSettings { path: knob, parameter, step: 1 });
    });
    wait_until("listened to", || !tcgetattr(&terminal).unwrap().local_modes.contains(LocalModes::ECHO));
    Stage { server, terminal: BufReader::new(terminal), knob: turned, _devices: devices }
}

/// A terminal that the system makes; `path` leads to its other end.
fn terminal(path: &Path) -> File {
    let file = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&file).unwrap();
    unlockpt(&file).unwrap();
    symlink(ptsname(&file, Vec::new()).unwrap().to_str().unwrap(), path).unwrap();
    File::from(file)
}

impl Stage {
    /// Types a line, and reads its answer.
    fn type_line(&mut self, line: &str) -> Value {
        self.terminal.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        self.terminal.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }

    /// Turns the knob by so many steps.
    fn turn(&mut self, steps: i32) {
        let record = |kind: u16, code: u16, value: i32| {
            let numbers = [kind.to_le_bytes(), code.to_le_bytes()].concat();
            [&[0; 16][..], &numbers, &value.to_le_bytes()].concat()
        };
        self.knob.write_all(&[record(2, 7, steps), record(0, 0, 0)].concat()).unwrap();
    }

    fn brightness(&self) -> i64 {
        self.server.get("/api/v1/parameters").json()["data"]["brightness"].as_i64().unwrap()
    }

    fn blocked(&self, source: &str) -> bool {
        let line = format!("tenure_control_events_total{{event=\"control.command.blocked.{source}\"}} 1\n");
        self.server.get("/metrics").text.contains(&line)
    }
}

// S0-75, S0-76, S0-77, O-8
#[test]
fn serial_and_encoder_inputs_are_blocked_while_a_lease_is_active() {
    let mut stage = stage();
    assert_eq!(stage.type_line("parameters.set brightness=40")["success"], json!(true));
    assert_eq!(stage.brightness(), 40);
    stage.turn(2);
    wait_until("brighter", || stage.brightness() == 42);
    let mut owner = ControlClient::open(&stage.server);
    let lease = owner.acquire("K1 Composer");
    // Whoever types or turns: there is no way to show a lease there.
    let refused = stage.type_line("parameters.set brightness=1");
    assert_eq!((&refused["type"], &refused["error"]["code"]), (&json!("error"), &json!("CONTROL_LOCKED")));
    assert_eq!(refused["error"]["ownerClientName"], "K1 Composer");
    assert_eq!(stage.type_line("parameters.get")["data"]["brightness"], json!(42));
    stage.turn(2);
    wait_until("counted", || stage.blocked("local.encoder") && stage.blocked("local.serial"));
    assert_eq!(stage.brightness(), 42);
    owner.heartbeat(&lease);
    let counters = owner.next_state_change_to("heartbeat")["data"]["counters"].clone();
    assert_eq!(
        (&counters["blockedLocalEncoderInputs"], &counters["blockedLocalSerialInputs"]),
        (&json!(1), &json!(1))
    );
    owner.release(&lease);
    stage.turn(-2);
    wait_until("darker", || stage.brightness() == 40);
    stage.server.stop();
}
