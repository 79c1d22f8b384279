//! The knob: turns and presses to commands.

use std::io;
use std::sync::Arc;

use serde_json::{Map, Value};
use tenure_control::encoder::{Input, Knob, Moves, RECORD, Records};
use tenure_control::table::{CommandRow, command};
use tenure_control::{Pass, Problem, ProblemCode, Source};
use tokio::sync::watch;

use super::attend::{Trouble, attend, stopped};
use super::beat::Beat;
use super::port::Port;
use super::{Blocked, Gate};
use crate::control::EncoderSettings;

/// Records that are read at once: as many as the system keeps for one reader.
const AT_ONCE: usize = 64;

/// Listens until it is told to stop.
pub(super) async fn listen<G: Gate>(
    gate: Arc<G>,
    settings: EncoderSettings,
    trouble: Trouble,
    stop: watch::Receiver<bool>,
) {
    let EncoderSettings { path, parameter, step } = settings;
    let follower = Follower { gate: &*gate, knob: Knob { parameter, step }, trouble: &trouble };
    let listen = |port| follower.follow(port, stop.clone());
    attend("encoder", &path, &trouble, stop.clone(), Port::input, listen).await;
}

/// Moves that were let in together, under one pass.
type Waiting = Option<(Pass, Moves)>;

/// What the knob is connected to.
struct Follower<'a, G> {
    gate: &'a G,
    knob: Knob,
    trouble: &'a Trouble,
}

impl<G: Gate> Follower<'_, G> {
    /// Follows the knob for as long as it is there.
    async fn follow(&self, port: Port, mut stop: watch::Receiver<bool>) -> io::Error {
        let (mut records, mut beat) = (Records::default(), Beat::new());
        let mut buffer = [0; RECORD * AT_ONCE];
        loop {
            let read = tokio::select! {
                () = stopped(&mut stop) => return io::Error::other("the server stops"),
                reason = port.replaced() => return reason,
                read = port.read(&mut buffer) => read,
            };
            let inputs = match read.map(|read| records.take(&buffer[..read])) {
                Ok(Ok(inputs)) => inputs,
                Ok(Err(reason)) => return io::Error::other(reason),
                Err(reason) => return reason,
            };
            let mut waiting: Waiting = None;
            for input in inputs {
                self.let_in(input, &mut waiting);
            }
            if let Some((pass, moves)) = waiting {
                self.obey(pass, moves).await;
            }
            beat.next().await;
        }
    }

    /// Asks the gate. What is kept out is forgotten: it does not happen later, when the lease is over.
    fn let_in(&self, input: Input, waiting: &mut Waiting) {
        let row = match input {
            Input::Turned(_) => row("parameters.set"),
            Input::Pressed => row("effects.setCurrent"),
        };
        let Ok(pass) = self.gate.pass_local(Source::Encoder, row.class) else { return };
        match waiting {
            Some((given, moves)) if *given == pass => moves.add(input),
            // Nothing yet, or the hand has changed: what was let in before is worth nothing now.
            _ => {
                let mut moves = Moves::default();
                moves.add(input);
                *waiting = Some((pass, moves));
            }
        }
    }

    /// Turns first: it does not matter which, because one does not touch what the other does.
    async fn obey(&self, pass: Pass, moves: Moves) {
        let turned = if moves.steps == 0 { Ok(()) } else { self.turn(pass, moves.steps).await };
        let pressed = if moves.presses == 0 { Ok(()) } else { self.press(pass, moves.presses).await };
        match turned.and(pressed) {
            // Under a lease that is as it should be, and it is counted.
            Ok(()) | Err(Blocked::Refused(_)) => {}
            Err(Blocked::Problem(problem)) => {
                self.trouble.say(format!("the encoder was moved and that did nothing: {}", problem.message));
                return;
            }
        }
        self.trouble.is_over();
    }

    async fn turn(&self, pass: Pass, steps: i32) -> Result<(), Blocked> {
        let parameters = self.read("parameters.get").await?;
        let Some(tries) = self.knob.turn(steps, &parameters) else {
            let parameter = &self.knob.parameter;
            let message = format!(
                "the device has no parameter `{parameter}` that is a number; choose another in [control.encoder]"
            );
            return Err(Blocked::Problem(Problem::new(ProblemCode::NotFound, message)));
        };
        for fields in tries {
            match self.change("parameters.set", pass, fields).await {
                Err(Blocked::Problem(problem)) if problem.code == ProblemCode::OutOfRange => {}
                done => return done,
            }
        }
        // It is at its end, or was there already.
        Ok(())
    }

    async fn press(&self, pass: Pass, presses: u32) -> Result<(), Blocked> {
        let (list, current) = (self.read("effects.list").await?, self.read("effects.getCurrent").await?);
        let Some(fields) = Knob::press(presses, &list, &current) else {
            let message = "the device does not say which effect comes next";
            return Err(Blocked::Problem(Problem::new(ProblemCode::NotFound, message)));
        };
        self.change("effects.setCurrent", pass, fields).await
    }

    async fn change(&self, name: &str, pass: Pass, fields: Map<String, Value>) -> Result<(), Blocked> {
        super::carry_out(self.gate, Source::Encoder, row(name), pass, fields).await.map(drop)
    }

    async fn read(&self, name: &str) -> Result<Value, Blocked> {
        let row = row(name);
        let pass = self.gate.pass_local(Source::Encoder, row.class).map_err(Blocked::Refused)?;
        super::carry_out(self.gate, Source::Encoder, row, pass, Map::new()).await
    }
}

fn row(name: &str) -> &'static CommandRow {
    command(name).expect("the table has every command that the knob sends")
}
