//! The device's own inputs: a serial port and a knob.
//!
//! Both are local, and neither can hold a lease. Each command asks the gate first; under any lease, whoever's it is, the
//! gate keeps it out and counts it. The device looks at the pass again, so what was let in before somebody took the lease
//! does nothing after it.
//!
//! ```text
//! attend    opens a device, and again when it was away
//! port      a device's file: read and written without waiting for it
//! beat      how often: whoever floods is slowed
//! serial    lines to commands, answers to lines
//! encoder   turns and presses to commands
//! ```

mod attend;
mod beat;
mod encoder;
mod port;
mod serial;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tenure_control::table::CommandRow;
use tenure_control::{Class, Pass, Refusal, Source};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::attend::Trouble;
use super::ControlSettings;
use super::desk::Desk;
pub(crate) use super::message::Blocked;

pub(crate) trait Gate: Send + Sync + 'static {
    /// Whether this source may send what is of this class, now. What may not is counted.
    fn pass_local(&self, source: Source, class: Class) -> Result<Pass, Refusal>;

    /// Carries a command out, if its pass still counts at the moment at which the device would obey.
    fn carry_out(
        &self,
        pass: Pass,
        command: &str,
        fields: Map<String, Value>,
    ) -> impl Future<Output = Result<Value, Blocked>> + Send;
}

impl Gate for Desk {
    fn pass_local(&self, source: Source, class: Class) -> Result<Pass, Refusal> {
        Desk::pass_local(self, source, class)
    }

    async fn carry_out(
        &self,
        pass: Pass,
        command: &str,
        fields: Map<String, Value>,
    ) -> Result<Value, Blocked> {
        Desk::carry_out(self, pass, command, fields).await
    }
}

/// How long a command that is on its way may take when the server stops.
const LONGEST_FAREWELL: Duration = Duration::from_secs(3);

/// Inputs that are listened to. Without it, nobody listens.
pub(crate) struct Inputs {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
    troubles: Vec<Trouble>,
}

impl Inputs {
    /// Listens to what is configured. A device that is not there yet is waited for.
    pub(crate) fn start<G: Gate>(gate: &Arc<G>, settings: &ControlSettings) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut inputs = Self { stop, tasks: Vec::new(), troubles: Vec::new() };
        if let Some(settings) = settings.serial.clone() {
            let trouble = inputs.trouble();
            inputs.tasks.push(tokio::spawn(serial::listen(gate.clone(), settings, trouble, stopped.clone())));
        }
        if let Some(settings) = settings.encoder.clone() {
            let trouble = inputs.trouble();
            inputs.tasks.push(tokio::spawn(encoder::listen(gate.clone(), settings, trouble, stopped)));
        }
        inputs
    }

    fn trouble(&mut self) -> Trouble {
        let trouble = Trouble::default();
        self.troubles.push(trouble.clone());
        trouble
    }

    /// What keeps an input from being heard, for people: one line each.
    pub(crate) fn troubles(&self) -> Vec<String> {
        self.troubles.iter().filter_map(Trouble::said).collect()
    }

    /// Listens no more. What was let through to the device is brought to its end, unless that has none.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(true);
        for mut task in self.tasks {
            if tokio::time::timeout(LONGEST_FAREWELL, &mut task).await.is_err() {
                task.abort();
            }
        }
    }
}

/// Sends a command with a pass that the gate gave for it.
async fn carry_out<G: Gate>(
    gate: &G,
    source: Source,
    row: &CommandRow,
    pass: Pass,
    fields: Map<String, Value>,
) -> Result<Value, Blocked> {
    match gate.carry_out(pass, row.name, fields).await {
        // The hand changed on the way. The gate is asked once more, because it is who counts.
        Err(Blocked::Refused(late)) => {
            Err(Blocked::Refused(gate.pass_local(source, row.class).err().unwrap_or(late)))
        }
        done => done,
    }
}

#[cfg(test)]
mod tests;
