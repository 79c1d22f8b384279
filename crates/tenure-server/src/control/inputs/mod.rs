//! The device's own inputs: a serial port and a rotary encoder.
//!
//! Both are local, and neither can hold a lease. Each command needs a permit; while any lease is active, a command that moves
//! the device gets none, and is counted. The device checks the permit again, so a command that was permitted before an
//! acquire has no effect after it.
//!
//! ```text
//! device_file     the file of a device: non-blocking reads and writes, reopened when it comes back
//! serial          lines to commands, responses to lines
//! rotary_encoder  turns and presses to commands
//! ```

mod device_file;
mod rotary_encoder;
mod serial;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tenure_control::commands::CommandDefinition;
use tenure_control::{CommandClass, CommandError, CommandSource, ControlRejection, Permit};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval};

use self::device_file::InputHealth;
use super::ControlSettings;
use super::controller::Controller;

pub(crate) trait LocalCommandController: Send + Sync + 'static {
    /// Whether this source may send what is of this class, now. What may not is counted.
    fn permit_local(&self, source: CommandSource, class: CommandClass) -> Result<Permit, ControlRejection>;

    /// Carries a command out, if its pass still counts at the moment at which the device would obey.
    fn execute(
        &self,
        pass: Permit,
        command: &str,
        fields: Map<String, Value>,
    ) -> impl Future<Output = Result<Value, CommandError>> + Send;
}

impl LocalCommandController for Controller {
    fn permit_local(&self, source: CommandSource, class: CommandClass) -> Result<Permit, ControlRejection> {
        Controller::permit_local(self, source, class)
    }

    async fn execute(
        &self,
        pass: Permit,
        command: &str,
        fields: Map<String, Value>,
    ) -> Result<Value, CommandError> {
        Controller::execute(self, pass, command, fields).await
    }
}

/// How long a command that is on its way may take when the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// Inputs that are listened to. Without it, nobody listens.
pub(crate) struct LocalInputs {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
    health: Vec<InputHealth>,
}

impl LocalInputs {
    /// Listens to what is configured. A device that is not there yet is waited for.
    pub(crate) fn start<G: LocalCommandController>(gate: &Arc<G>, settings: &ControlSettings) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut inputs = Self { stop, tasks: Vec::new(), health: Vec::new() };
        if let Some(settings) = settings.serial.clone() {
            let health = inputs.add_health();
            inputs.tasks.push(tokio::spawn(serial::listen(gate.clone(), settings, health, stopped.clone())));
        }
        if let Some(settings) = settings.encoder.clone() {
            let health = inputs.add_health();
            inputs.tasks.push(tokio::spawn(rotary_encoder::listen(gate.clone(), settings, health, stopped)));
        }
        inputs
    }

    fn add_health(&mut self) -> InputHealth {
        let health = InputHealth::default();
        self.health.push(health.clone());
        health
    }

    /// What keeps an input from being heard, for people: one line each.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.health.iter().filter_map(InputHealth::message).collect()
    }

    /// Listens no more. What was let through to the device is brought to its end, unless that has none.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(true);
        for mut task in self.tasks {
            if tokio::time::timeout(STOP_TIMEOUT, &mut task).await.is_err() {
                task.abort();
            }
        }
    }
}

/// Sends a command with a pass that the gate gave for it.
async fn carry_out<G: LocalCommandController>(
    gate: &G,
    source: CommandSource,
    row: &CommandDefinition,
    pass: Permit,
    fields: Map<String, Value>,
) -> Result<Value, CommandError> {
    match gate.execute(pass, row.name, fields).await {
        // The hand changed on the way. The gate is asked once more, because it is who counts.
        Err(CommandError::Rejected(late)) => {
            Err(CommandError::Rejected(gate.permit_local(source, row.class).err().unwrap_or(late)))
        }
        done => done,
    }
}

/// How many lines, or movements of the knob, are taken in a second. Nobody types or turns faster.
const MAX_PER_SECOND: u32 = 100;

/// Lets through so many and no more. What comes faster waits where it is: in the port, and at last at its sender.
struct Throttle(Interval);

impl Throttle {
    fn new() -> Self {
        let mut interval = interval(Duration::from_secs(1) / MAX_PER_SECOND);
        // Who was silent for long has saved up nothing.
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self(interval)
    }

    /// Waits until the next one may come.
    async fn wait(&mut self) {
        self.0.tick().await;
    }
}
