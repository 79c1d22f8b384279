//! Runs `tenure`, away from whatever the user who runs the tests has configured.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use crate::traces;

/// `tenure serve` with its data in `folder`, on any free port.
pub fn serve(folder: &Path) -> Command {
    let mut command = tenure(folder);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.join("data"));
    command
}

/// `tenure` with nothing in its environment but a home.
pub fn tenure(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.env_clear().env("HOME", folder).env("XDG_RUNTIME_DIR", folder).current_dir(folder);
    // The usual amount of zeros would take longer than everything else in these tests.
    command.env("TENURE_LEDGER_RESERVE", "65536").env("TENURE_LEDGER_SEGMENT_SIZE", "65536");
    // A server without it says so, which is a story of its own.
    command.env("TENURE_IDEM_SECRET", "a secret of no importance");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs to its end: the exit code, and what it said on standard error. A server that serves is ended, and the test.
pub fn run(command: &mut Command) -> (i32, String) {
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if !line.is_empty() {
        let _ = child.kill();
    }
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    traces::seen(&stderr);
    assert_eq!(line, "", "nothing was to be served");
    (status.code().unwrap(), String::from_utf8(stderr).unwrap())
}

/// A server that was started. It is killed when it is dropped.
pub struct Served {
    child: Child,
    output: BufReader<ChildStdout>,
    /// `127.0.0.1:PORT`.
    pub address: String,
    data: Option<PathBuf>,
}

impl Served {
    /// Starts, and waits until it is ready.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address =
            line.strip_prefix("listening on http://").or(line.strip_prefix("listening on https://"));
        let address = address.map(|rest| rest.trim_end().to_owned());
        let address = address.unwrap_or_else(|| panic!("{line:?}: {}", rest_of(&mut child)));
        let data = command.get_args().skip_while(|argument| *argument != "--data").nth(1).map(PathBuf::from);
        Self { child, output, address, data }
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// The id of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end: the exit code, what else it said on standard output, and on standard error.
    pub fn end(mut self) -> (Option<i32>, String, String) {
        let mut output = String::new();
        self.output.read_to_string(&mut output).unwrap();
        let errors = rest_of(&mut self.child);
        traces::seen(output.as_bytes());
        traces::seen(errors.as_bytes());
        (self.child.wait().unwrap().code(), output, errors)
    }

    /// One request with this token: the status and the body.
    pub fn ask(&self, line: &str, token: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        traces::answer(head, body);
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(data) = &self.data {
            traces::directory(data);
        }
    }
}

fn rest_of(child: &mut Child) -> String {
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    errors
}
