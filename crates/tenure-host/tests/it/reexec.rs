//! A test that runs once more in a process of its own: with other rights, or other mounts.

use std::path::Path;
use std::process::Command;

/// Says to a test that it is the one that was started.
const INSIDE: &str = "TENURE_TEST_INSIDE";

/// Whether this is the process that was started, and not the one that starts it.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Runs the test with this name through `prefix` (such as `unshare -m`), and expects that it passes there.
pub fn rerun(prefix: &[&str], name: &str) {
    rerun_program(&std::env::current_exe().unwrap(), prefix, name, |_| {});
}

/// The same with this program, which is a copy of the one that runs.
pub fn rerun_program(program: &Path, prefix: &[&str], name: &str, prepare: impl FnOnce(&mut Command)) {
    let mut command = Command::new(prefix[0]);
    command.args(&prefix[1..]).arg(program);
    command.args([name, "--exact", "--nocapture"]).env(INSIDE, "1");
    prepare(&mut command);
    let output = command.output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "the test did not run inside: {text}");
}

/// Whether a command does here what it is for.
pub fn command_succeeds(command: &[&str]) -> bool {
    let output = Command::new(command[0]).args(&command[1..]).output();
    output.is_ok_and(|output| output.status.success())
}
