//! `tenure run` on a terminal, which `script` makes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tenure_testkit::{TestHome, read_or_empty, wait_until};

/// A shell on a terminal of its own, whose screen goes to a file.
pub struct TestTerminal {
    file: PathBuf,
    script: Child,
}

impl TestTerminal {
    /// Runs `line` in the folder of this home.
    fn show(home: &TestHome, line: &str) -> Self {
        Self::start_in(&home.command(&[]), &home.path(""), home.path("screen"), line)
    }

    /// Runs `line` in this folder, in the environment of this command. What is shown goes to a file.
    pub fn start_in(command: &Command, folder: &Path, file: PathBuf, line: &str) -> Self {
        let mut script = Command::new("script");
        script.args(["--quiet", "--flush", "--return", "--command", line]).arg(&file);
        script.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        script.env("TENURE", env!("CARGO_BIN_EXE_tenure")).env("SHELL", "/bin/sh").current_dir(folder);
        let script = script.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        Self { file, script }
    }

    /// Types this.
    pub fn type_keys(&mut self, keys: &str) {
        let mut input = self.script.stdin.as_ref().unwrap();
        input.write_all(keys.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    pub fn text(&self) -> String {
        read_or_empty(&self.file)
    }

    pub fn wait_for(&self, what: &str) {
        wait_until(&format!("{what:?} is shown"), || self.text().contains(what));
    }

    /// Waits for the end: the exit code.
    pub fn wait(&mut self) -> Option<i32> {
        self.script.wait().unwrap().code()
    }
}

impl Drop for TestTerminal {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

#[test]
fn ctrl_c_interrupts_the_command_and_its_exit_code_is_returned() {
    let home = TestHome::new();
    // The eighth word about a process is the group that has its terminal: the command begins a moment before it gets it.
    let script = r#"trap "echo caught; exit 9" INT
        until set -- $(cat /proc/$$/stat); [ "$8" = $$ ]; do sleep 0.01; done
        echo begun; while :; do sleep 0.05; done"#;
    std::fs::write(home.path("script.sh"), script).unwrap();
    let run = r#""$TENURE" run --on db:a -- sh script.sh"#;
    let mut screen = TestTerminal::show(&home, run);
    screen.wait_for("begun");
    screen.type_keys("\x03");
    screen.wait_for("caught");
    assert_eq!(screen.wait(), Some(9), "{}", screen.text());
    assert_eq!(home.run(&["who", "db:a"]).code, Some(1), "it was given back");
}

#[test]
fn command_has_the_terminal_and_the_script_gets_it_back() {
    let home = TestHome::new();
    let line = r#""$TENURE" run --on db:a -- sh -c 'read a; echo first $a'; read b; echo second $b"#;
    let mut screen = TestTerminal::show(&home, line);
    screen.type_keys("one\n");
    screen.wait_for("first one");
    screen.type_keys("two\n");
    screen.wait_for("second two");
    assert_eq!(screen.wait(), Some(0));
}

#[test]
fn ctrl_z_stops_the_job_and_fg_resumes_it() {
    let home = TestHome::new();
    // As above: a key pressed before the command has the terminal stops somebody else.
    let script = r#"until set -- $(cat /proc/$$/stat); [ "$8" = $$ ]; do sleep 0.01; done
        echo begun; read a; echo got $a"#;
    std::fs::write(home.path("script.sh"), script).unwrap();
    let mut screen = TestTerminal::show(&home, "bash --norc --noprofile -i");
    screen.type_keys("\"$TENURE\" run --on db:a -- sh script.sh\n");
    screen.wait_for("begun");
    screen.type_keys("\x1a");
    screen.wait_for("Stopped");
    screen.type_keys("echo at the pro\"\"mpt\n");
    screen.wait_for("at the prompt");
    screen.type_keys("fg\n");
    screen.type_keys("input\n");
    screen.wait_for("got input");
    screen.type_keys("exit\n");
    assert_eq!(screen.wait(), Some(0));
}

#[test]
fn queue_progress_line_disappears_after_the_grant() {
    let home = TestHome::new();
    let held = home.client().acquire("db:a", 60_000, None).unwrap().held_lease();
    let mut screen = TestTerminal::show(&home, r#""$TENURE" run --on db:a -- echo it runs"#);
    screen.wait_for("waiting for db:a: place 1 of 1, held by tester for ");
    home.client().release(&held).unwrap();
    screen.wait_for("it runs");
    assert_eq!(screen.wait(), Some(0));
    assert!(screen.text().contains("\r\x1b[Kit runs"), "{:?}", screen.text());
}
