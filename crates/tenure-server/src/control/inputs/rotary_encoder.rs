//! The rotary encoder: turns and presses to commands.

use std::io;
use std::sync::Arc;

use serde_json::{Map, Value};
use tenure_control::commands::{CommandDefinition, find_command};
use tenure_control::{CommandError, CommandSource, Permit, Problem, ProblemCode};
use tenure_device::rotary_encoder::{
    InputEventDecoder, RECORD_BYTES, RotaryEncoderInput, RotaryEncoderMapping, RotaryEncoderMovement,
};
use tokio::sync::watch;

use super::device_file::{DeviceFile, InputHealth, run_with_reconnect, wait_for_stop};
use super::{LocalCommandController, Throttle};
use crate::control::RotaryEncoderSettings;

/// Records that are read at once: as many as the system keeps for one reader.
const AT_ONCE: usize = 64;

/// Listens until it is told to stop.
pub(super) async fn listen<G: LocalCommandController>(
    gate: Arc<G>,
    settings: RotaryEncoderSettings,
    health: InputHealth,
    stop: watch::Receiver<bool>,
) {
    let RotaryEncoderSettings { path, parameter, step } = settings;
    let follower =
        RotaryEncoderReader { gate: &*gate, knob: RotaryEncoderMapping { parameter, step }, health: &health };
    let listen = |port| follower.follow(port, stop.clone());
    run_with_reconnect("encoder", &path, &health, stop.clone(), DeviceFile::input, listen).await;
}

/// Moves that were let in together, under one pass.
type PendingMoves = Option<(Permit, RotaryEncoderMovement)>;

/// What the knob is connected to.
struct RotaryEncoderReader<'a, G> {
    gate: &'a G,
    knob: RotaryEncoderMapping,
    health: &'a InputHealth,
}

impl<G: LocalCommandController> RotaryEncoderReader<'_, G> {
    /// Follows the knob for as long as it is there.
    async fn follow(&self, port: DeviceFile, mut stop: watch::Receiver<bool>) -> io::Error {
        let (mut records, mut beat) = (InputEventDecoder::default(), Throttle::new());
        let mut buffer = [0; RECORD_BYTES * AT_ONCE];
        loop {
            let read = tokio::select! {
                () = wait_for_stop(&mut stop) => return io::Error::other("the server stops"),
                reason = port.wait_until_replaced() => return reason,
                read = port.read(&mut buffer) => read,
            };
            let inputs = match read.map(|read| records.feed(&buffer[..read])) {
                Ok(Ok(inputs)) => inputs,
                Ok(Err(reason)) => return io::Error::other(reason),
                Err(reason) => return reason,
            };
            let mut waiting: PendingMoves = None;
            for input in inputs {
                self.let_in(input, &mut waiting);
            }
            if let Some((pass, moves)) = waiting {
                self.obey(pass, moves).await;
            }
            beat.wait().await;
        }
    }

    /// Asks the gate. What is kept out is forgotten: it does not happen later, when the lease is over.
    fn let_in(&self, input: RotaryEncoderInput, waiting: &mut PendingMoves) {
        let row = match input {
            RotaryEncoderInput::Turned(_) => row("parameters.set"),
            RotaryEncoderInput::Pressed => row("effects.setCurrent"),
        };
        let Ok(pass) = self.gate.permit_local(CommandSource::Encoder, row.class) else { return };
        match waiting {
            Some((permit, moves)) if *permit == pass => moves.add(input),
            // Nothing yet, or the hand has changed: what was let in before is worth nothing now.
            _ => {
                let mut moves = RotaryEncoderMovement::default();
                moves.add(input);
                *waiting = Some((pass, moves));
            }
        }
    }

    /// Turns first: it does not matter which, because one does not touch what the other does.
    async fn obey(&self, pass: Permit, moves: RotaryEncoderMovement) {
        let turned = if moves.steps == 0 { Ok(()) } else { self.turn(pass, moves.steps).await };
        let pressed = if moves.presses == 0 { Ok(()) } else { self.press(pass, moves.presses).await };
        match turned.and(pressed) {
            // Under a lease that is as it should be, and it is counted.
            Ok(()) | Err(CommandError::Rejected(_)) => {}
            Err(CommandError::Problem(problem)) => {
                self.health
                    .report(format!("the encoder was moved and that did nothing: {}", problem.message));
                return;
            }
        }
        self.health.clear();
    }

    async fn turn(&self, pass: Permit, steps: i32) -> Result<(), CommandError> {
        let parameters = self.read("parameters.get").await?;
        let Some(tries) = self.knob.candidate_parameter_values(steps, &parameters) else {
            let parameter = &self.knob.parameter;
            let message = format!(
                "the device has no parameter `{parameter}` that is a number; choose another in [control.encoder]"
            );
            return Err(CommandError::Problem(Problem::new(ProblemCode::NotFound, message)));
        };
        for fields in tries {
            match self.change("parameters.set", pass, fields).await {
                Err(CommandError::Problem(problem)) if problem.code == ProblemCode::OutOfRange => {}
                done => return done,
            }
        }
        // It is at its end, or was there already.
        Ok(())
    }

    async fn press(&self, pass: Permit, presses: u32) -> Result<(), CommandError> {
        let (list, current) = (self.read("effects.list").await?, self.read("effects.getCurrent").await?);
        let Some(fields) = RotaryEncoderMapping::next_effect(presses, &list, &current) else {
            let message = "the device does not say which effect comes next";
            return Err(CommandError::Problem(Problem::new(ProblemCode::NotFound, message)));
        };
        self.change("effects.setCurrent", pass, fields).await
    }

    async fn change(&self, name: &str, pass: Permit, fields: Map<String, Value>) -> Result<(), CommandError> {
        super::carry_out(self.gate, CommandSource::Encoder, row(name), pass, fields).await.map(drop)
    }

    async fn read(&self, name: &str) -> Result<Value, CommandError> {
        let row = row(name);
        let pass =
            self.gate.permit_local(CommandSource::Encoder, row.class).map_err(CommandError::Rejected)?;
        super::carry_out(self.gate, CommandSource::Encoder, row, pass, Map::new()).await
    }
}

fn row(name: &str) -> &'static CommandDefinition {
    find_command(name).expect("the table has every command that the knob sends")
}
