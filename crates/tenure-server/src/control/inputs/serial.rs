//! The serial port: lines to commands, answers to lines.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use tenure_control::serial::{self, LONGEST, Line, Lines, Request, Unread, Wish};
use tenure_control::{Problem, ProblemCode, Source};
use tokio::sync::watch;

use super::attend::{Trouble, attend, stopped};
use super::beat::Beat;
use super::port::Port;
use super::{Blocked, Gate};
use crate::control::SerialSettings;

/// Answers that the port has not taken yet: the most bytes. What does not fit is dropped whole, so that somebody who never
/// reads is heard all the same.
const OUTBOX: usize = 16 << 10;

/// Listens until it is told to stop.
pub(super) async fn listen<G: Gate>(
    gate: Arc<G>,
    settings: SerialSettings,
    trouble: Trouble,
    stop: watch::Receiver<bool>,
) {
    let SerialSettings { path, baud } = settings;
    let open = |path: &_| Port::serial(path, baud);
    attend("serial port", &path, &trouble, stop.clone(), open, |port| talk(&*gate, port, stop.clone())).await;
}

/// Talks over an open port for as long as it is there.
async fn talk<G: Gate>(gate: &G, port: Port, mut stop: watch::Receiver<bool>) -> io::Error {
    let (mut lines, mut beat, mut outbox) = (Lines::default(), Beat::new(), Outbox::default());
    let mut came: VecDeque<Line> = VecDeque::new();
    let mut buffer = [0; LONGEST];
    loop {
        tokio::select! {
            () = stopped(&mut stop) => return io::Error::other("the server stops"),
            reason = port.replaced() => return reason,
            written = port.write(outbox.bytes()), if !outbox.bytes().is_empty() => match written {
                Ok(written) => outbox.written(written),
                Err(reason) => return reason,
            },
            // One for each line, and one for each piece of a line that has no end.
            () = beat.next(), if !came.is_empty() => {
                if let Some(line) = came.pop_front() {
                    outbox.put(&answer(gate, line).await);
                }
            }
            read = port.read(&mut buffer), if came.is_empty() => match read {
                Ok(read) => {
                    came.extend(lines.take(&buffer[..read]));
                    if came.is_empty() {
                        beat.next().await;
                    }
                }
                Err(reason) => return reason,
            },
        }
    }
}

async fn answer<G: Gate>(gate: &G, line: Line) -> String {
    let read = match line {
        Line::Text(text) => serial::read(&text),
        Line::Wrong(problem) => Err(Unread { id: None, problem }),
    };
    let Request { id, wish } = match read {
        Ok(request) => request,
        Err(Unread { id, problem }) => return serial::wrong(id.as_deref(), &problem),
    };
    let id = id.as_deref();
    let Wish::Command { row, fields } = wish else { return serial::help(id) };
    let pass = match gate.pass_local(Source::Serial, row.class) {
        Ok(pass) => pass,
        Err(refusal) => return serial::refused(id, &refusal),
    };
    let done = match fields {
        Ok(fields) => super::carry_out(gate, Source::Serial, row, pass, fields).await,
        Err(problem) => Err(Blocked::Problem(problem)),
    };
    match done {
        Ok(data) => serial::done(row.name, id, &data),
        Err(Blocked::Refused(refusal)) => serial::refused(id, &refusal),
        Err(Blocked::Problem(problem)) => serial::wrong(id, &problem),
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
                serial::wrong(None, &Problem::new(ProblemCode::Busy, message)) + END
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
