//! Files that programs write to rename them, and files that are only opened: no lease where none is needed, one wherever a line
//! could be lost.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use tenure_testkit::{CommandOutput, FakeAgent, TestRepository, sleep, wait_until};

// S4-15
#[test]
fn temporary_looking_name_loses_no_line() {
    for name in ["nav.partial.html", "notes.tmp", "sum.sha256"] {
        let repo = TestRepository::new();
        fs::write(repo.file("sum"), "").unwrap();
        let mut one = FakeAgent::start_kind(&repo, "one", "terminal");
        let script = format!(
            "import os, time\ntext = open('{name}').read()\nopen('../read', 'w')\nwhile not os.path.exists('../go'): \
             time.sleep(0.02)\nopen('{name}', 'w').write(text + 'first')\n"
        );
        fs::write(repo.path("script"), script).unwrap();
        one.start_line(&format!("\"$TENURE\" guard -- sh -c 'cp a {name}; python3 ../script'"));
        wait_until("it has read the file", || repo.path("read").exists());
        let mut two = FakeAgent::start(&repo, "two");
        two.run_hook(&repo.event_payload("s2", "SessionStart"));
        let result = two.run_line(&format!("\"$TENURE\" guard -- sh -c 'echo second >> {name}'"));
        let is_second = result.code == Some(0);
        assert!(is_second || result.errors.contains("has held it"), "{name}: {result:?}");
        fs::write(repo.path("go"), "").unwrap();
        let result = one.finish_line();
        assert_ne!(result.code == Some(0), is_second, "one of them waits: {name}: {result:?}");
        let expected = if is_second { "one\nsecond\n" } else { "one\nfirst" };
        assert_eq!(fs::read_to_string(repo.file(name)).unwrap(), expected, "{name}");
    }
}

// S4-62
#[test]
fn existing_file_that_is_only_read_requires_no_lease() {
    let repo = TestRepository::new();
    let mut owner = FakeAgent::start(&repo, "owner");
    assert!(owner.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    let mut other = FakeAgent::start(&repo, "other");
    let result = other.run_line("\"$TENURE\" guard -- flock a true");
    assert_eq!((result.code, &*result.errors), (Some(0), ""), "{result:?}");
    let result = other.run_line("\"$TENURE\" guard -- flock made true");
    assert_eq!(result.code, Some(0), "{result:?}");
    assert_eq!(repo.held_files(), ["a", "made"], "what is made is asked for");
}

// S4-62
#[test]
fn human_change_before_a_command_of_a_guarded_shell_is_not_stale() {
    let repo = TestRepository::new();
    // With job control, as at a terminal: each command is a job of its own.
    let line = "set -m; touch ../begun; while [ ! -e ../go ]; do sleep 0.02; done; sed -i s/two/three/ a || exit 9; true";
    let mut terminal = repo.shell_command("exec script -qec \"$TENURE guard -- bash -c '$LINE'\" ../screen");
    let terminal = terminal.env("LINE", line).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    wait_until("the shell runs", || repo.path("begun").exists());
    fs::write(repo.file("a"), "two\n").unwrap();
    // Times of processes are as coarse as this.
    sleep(Duration::from_millis(50));
    fs::write(repo.path("go"), "").unwrap();
    let result = CommandOutput::from_output(terminal.wait_with_output().unwrap());
    assert_eq!(result.code, Some(0), "{result:?}");
    assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "three\n");
}
