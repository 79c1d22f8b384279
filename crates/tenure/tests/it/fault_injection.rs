//! A server whose surroundings are not as usual: under a wrapper, or with a tracer that makes system calls fail.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};

use tenure_testkit::ServerProcess;

/// Debian's packages of programs that these tests start; the others are in util-linux.
const PACKAGES: &[(&str, &str)] = &[("strace", "strace"), ("mount", "mount")];

/// Where a program is; the test fails and says what to install if it is not there.
pub fn tool_path(name: &str) -> PathBuf {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| {
        let package = PACKAGES
            .iter()
            .find(|(program, _)| *program == name)
            .map_or("util-linux", |(_, package)| package);
        panic!("`{name}` is not installed; run `cargo xtask test`, or as root: apt-get install {package}")
    })
}

/// `inner`, started by a program that becomes it: the process has the same id.
pub fn wrapped_command(wrapper: &str, arguments: &[&str], wrapped: &Command) -> Command {
    let mut command = Command::new(tool_path(wrapper));
    command.args(arguments).arg(wrapped.get_program()).args(wrapped.get_args()).env_clear();
    command.envs(wrapped.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(wrapped.get_current_dir().expect("it has a folder of its own"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A tracer that is attached to a server, and ended when it is dropped.
pub struct Tracer {
    child: Child,
    messages: BufReader<ChildStderr>,
}

impl Tracer {
    /// Lets `fault` happen to the system calls of every thread of a server, from now on.
    pub fn attach(served: &ServerProcess, fault: &str) -> Self {
        Self::start(&["-f"], served.process_id(), fault)
    }

    /// The same, of a server that nobody here started.
    pub fn attach_to(process: u32, fault: &str) -> Self {
        Self::start(&["-f"], process, fault)
    }

    /// Lets `fault` happen to the system calls of the thread that writes the ledger, from now on.
    pub fn attach_to_writer(served: &ServerProcess, fault: &str) -> Self {
        let threads = std::fs::read_dir(format!("/proc/{}/task", served.process_id())).unwrap();
        let is_writer = |path: &PathBuf| {
            std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim_end() == "tenure-writer")
        };
        let writer = threads.map(|entry| entry.unwrap().path()).find(is_writer).expect("a writer's thread");
        let thread = writer.file_name().unwrap().to_str().unwrap().parse().unwrap();
        Self::start(&[], thread, fault)
    }

    fn start(arguments: &[&str], process: u32, fault: &str) -> Self {
        let mut command = Command::new(tool_path("strace"));
        let (calls, _) = fault.split_once(':').expect("calls, and what happens to them");
        command.args(arguments).args(["-o", "/dev/null", "-e"]).arg(format!("trace={calls}"));
        command.arg("-e").arg(format!("inject={fault}")).arg("-p").arg(process.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let messages = BufReader::new(child.stderr.take().unwrap());
        let mut tracer = Self { child, messages };
        let mut line = String::new();
        tracer.messages.read_line(&mut line).unwrap();
        if !line.contains(" attached") {
            let _ = tracer.messages.read_to_string(&mut line);
            panic!("strace cannot attach; it must be root, or allowed to trace: {line}");
        }
        tracer
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // Whatever it traced goes on without faults.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
