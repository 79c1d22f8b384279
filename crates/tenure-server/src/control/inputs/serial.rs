//! The serial port: lines to commands, answers to lines.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use tenure_control::{CommandError, CommandSource, Problem, ProblemCode};
use tenure_device::serial::{
    self, LineDecoder, MAX_LINE_BYTES, RejectedLine, SerialAction, SerialConsoleCommand, SerialLine,
};
use tokio::sync::watch;

use super::device_file::{DeviceFile, InputHealth, run_with_reconnect, wait_for_stop};
use super::{LocalCommandController, Throttle};
use crate::control::SerialSettings;

/// Answers that the port has not taken yet: the most bytes. What does not fit is dropped whole, so that somebody who never
/// reads is heard all the same.
const OUTBOX: usize = 16 << 10;

/// Listens until it is told to stop.
pub(super) async fn listen<G: LocalCommandController>(
    gate: Arc<G>,
    settings: SerialSettings,
    health: InputHealth,
    stop: watch::Receiver<bool>,
) {
    let SerialSettings { path, baud } = settings;
    let open = |path: &_| DeviceFile::serial(path, baud);
    run_with_reconnect("serial port", &path, &health, stop.clone(), open, |port| {
        serve_port(&*gate, port, stop.clone())
    })
    .await;
}

/// Talks over an open port for as long as it is there.
async fn serve_port<G: LocalCommandController>(
    gate: &G,
    port: DeviceFile,
    mut stop: watch::Receiver<bool>,
) -> io::Error {
    let (mut lines, mut beat, mut outbox) = (LineDecoder::default(), Throttle::new(), Outbox::default());
    let mut lines_received: VecDeque<SerialLine> = VecDeque::new();
    let mut buffer = [0; MAX_LINE_BYTES];
    loop {
        tokio::select! {
            () = wait_for_stop(&mut stop) => return io::Error::other("the server stops"),
            reason = port.wait_until_replaced() => return reason,
            written = port.write(outbox.bytes()), if !outbox.bytes().is_empty() => match written {
                Ok(written) => outbox.written(written),
                Err(reason) => return reason,
            },
            // One for each line, and one for each piece of a line that has no end.
            () = beat.wait(), if !lines_received.is_empty() => {
                if let Some(line) = lines_received.pop_front() {
                    outbox.put(&answer(gate, line).await);
                }
            }
            read = port.read(&mut buffer), if lines_received.is_empty() => match read {
                Ok(read) => {
                    lines_received.extend(lines.feed(&buffer[..read]));
                    if lines_received.is_empty() {
                        beat.wait().await;
                    }
                }
                Err(reason) => return reason,
            },
        }
    }
}

async fn answer<G: LocalCommandController>(gate: &G, line: SerialLine) -> String {
    let read = match line {
        SerialLine::Text(text) => serial::parse_line(&text),
        SerialLine::Invalid(problem) => Err(RejectedLine { id: None, problem }),
    };
    let SerialConsoleCommand { id, action: request } = match read {
        Ok(request) => request,
        Err(RejectedLine { id, problem }) => return serial::format_error(id.as_deref(), &problem.into()),
    };
    let id = id.as_deref();
    let SerialAction::Command { row, fields } = request else { return serial::format_help(id) };
    let pass = match gate.permit_local(CommandSource::Serial, row.class) {
        Ok(pass) => pass,
        Err(rejection) => return serial::format_error(id, &rejection.into()),
    };
    let done = match fields {
        Ok(fields) => super::carry_out(gate, CommandSource::Serial, row, pass, fields).await,
        Err(problem) => Err(CommandError::Problem(problem)),
    };
    match done {
        Ok(data) => serial::format_success(row.name, id, &data),
        Err(error) => serial::format_error(id, &error),
    }
}

/// Answers that the port has not taken yet.
#[derive(Default)]
struct Outbox {
    bytes: Vec<u8>,
    dropped: u64,
}

impl Outbox {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn written(&mut self, count: usize) {
        self.bytes.drain(..count);
    }

    /// Adds an answer, if there is room for it and for what has to be said before it.
    fn put(&mut self, answer: &str) {
        let missing = match self.dropped {
            0 => String::new(),
            dropped => {
                let message = format!("{dropped} answers were dropped, because nobody read them");
                serial::format_error(None, &Problem::new(ProblemCode::Busy, message).into()) + END
            }
        };
        if self.bytes.len() + missing.len() + answer.len() + END.len() > OUTBOX {
            self.dropped += 1;
            return;
        }
        self.dropped = 0;
        for part in [&missing, answer, END] {
            self.bytes.extend_from_slice(part.as_bytes());
        }
    }
}

/// Both, because the port is raw: with one alone, a terminal would write stairs.
const END: &str = "\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_above_the_outbox_limit_are_dropped_and_reported() {
        let mut outbox = Outbox::default();
        let answer = "x".repeat(1_000);
        for _ in 0..20 {
            outbox.put(&answer);
        }
        let kept = outbox.bytes().len() / (answer.len() + END.len());
        assert_eq!((kept, outbox.dropped), (16, 4));
        outbox.written(10 * (answer.len() + END.len()));
        outbox.put("next");
        let text = String::from_utf8(outbox.bytes().to_vec()).unwrap();
        let lines: Vec<_> = text.split(END).collect();
        assert_eq!(lines[..6], vec![answer.as_str(); 6]);
        assert!(lines[6].contains("4 answers were dropped") && lines[6].contains("BUSY"), "{}", lines[6]);
        assert_eq!(lines[7..], ["next", ""]);
    }
}
