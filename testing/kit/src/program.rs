//! The program, away from whatever the user who runs the tests has configured.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::client::TestClient;
use crate::http::{self, Response, bearer, format_request};
use crate::leak_recorder;
use crate::process::{CommandOutput, signal};
use crate::wait::LIMIT;

/// Where the program is. Cargo and nextest say it to the tests of its crate, and to no others; a test that is run by
/// hand finds it beside itself.
pub fn program_path() -> PathBuf {
    let environment_path =
        ["CARGO_BIN_EXE_tenure", "NEXTEST_BIN_EXE_tenure"].iter().find_map(std::env::var_os);
    environment_path.map_or_else(|| std::env::current_exe().unwrap().join("../../tenure"), PathBuf::from)
}

/// A loopback address of this test process alone, with any free port.
///
/// While a server is down, the system may give its port to the server of another test, but not its address.
pub fn own_loopback_address() -> String {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    format!("127.{}.{middle}.{low}:0", high + 1)
}

/// `tenure serve` with its data in `folder`, on any free port.
pub fn serve_command(folder: &Path) -> Command {
    let mut command = tenure_command(folder);
    command.args(["serve", "--listen", &own_loopback_address(), "--data"]).arg(folder.join("data"));
    command
}

/// `tenure` with nothing in its environment but a home.
pub fn tenure_command(folder: &Path) -> Command {
    let mut command = Command::new(program_path());
    command.env_clear().env("HOME", folder).env("XDG_RUNTIME_DIR", folder).current_dir(folder);
    // The usual amount of zeros would take longer than everything else in these tests.
    command.env("TENURE_LEDGER_RESERVE", "65536").env("TENURE_LEDGER_SEGMENT_SIZE", "65536");
    // A server without it says so, which is a story of its own.
    command.env("TENURE_IDEM_SECRET", "a secret of no importance");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs to its end: the exit code, and what it said on standard error. A server that serves is ended, and the test.
pub fn run_expecting_failure(command: &mut Command) -> (i32, String) {
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if !line.is_empty() {
        let _ = child.kill();
    }
    let done = CommandOutput::from_output(child.wait_with_output().unwrap());
    leak_recorder::record_output(done.errors.as_bytes());
    assert_eq!(line, "", "nothing was to be served");
    (done.code.unwrap(), done.errors)
}

/// Runs to its end.
pub fn run_command(command: &mut Command) -> CommandOutput {
    CommandOutput::from_output(command.output().unwrap())
}

/// A server that was started. It is killed when it is dropped.
pub struct ServerProcess {
    child: Child,
    output: BufReader<ChildStdout>,
    /// `127.0.0.1:PORT`.
    pub address: String,
    data: Option<PathBuf>,
}

impl ServerProcess {
    /// Starts, and waits until it is ready.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address =
            line.strip_prefix("listening on http://").or(line.strip_prefix("listening on https://"));
        let address = address.map(|rest| rest.trim_end().to_owned());
        let address = address.unwrap_or_else(|| panic!("{line:?}: {}", read_errors(&mut child)));
        let data = command.get_args().skip_while(|argument| *argument != "--data").nth(1).map(PathBuf::from);
        Self { child, output, address, data }
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// The id of its process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end: the exit code, what else it said on standard output, and on standard error.
    pub fn wait_for_exit(mut self) -> (Option<i32>, String, String) {
        let mut output = String::new();
        self.output.read_to_string(&mut output).unwrap();
        let errors = read_errors(&mut self.child);
        leak_recorder::record_output(output.as_bytes());
        leak_recorder::record_output(errors.as_bytes());
        (self.child.wait().unwrap().code(), output, errors)
    }

    /// A connection with the administrator's token.
    pub fn client(&self) -> TestClient {
        TestClient::connect(&self.address, self.data.as_ref().expect("--data is given"))
    }

    /// Stops it, which it must do without complaint.
    pub fn stop(self) {
        self.signal("TERM");
        let (code, _, errors) = self.wait_for_exit();
        assert_eq!(code, Some(0), "{errors}");
    }

    /// `kill -9`.
    pub fn kill(self) {
        self.signal("KILL");
        assert_eq!(self.wait_for_exit().0, None, "it was killed");
    }

    /// One request with this token.
    pub fn request(&self, line: &str, token: &str, body: &str) -> Response {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let own = [format!("Host: {}", self.address), bearer(token), "Connection: close".into()];
        let headers = own.into_iter().chain(["Content-Type: application/json".into()]);
        http::exchange(stream, format_request(line, headers, body).as_bytes())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(data) = &self.data {
            leak_recorder::record_directory(data);
        }
    }
}

fn read_errors(child: &mut Child) -> String {
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    errors
}
