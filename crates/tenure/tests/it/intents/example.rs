//! The example of the guide, as a person would run it.

use std::path::Path;
use std::process::Command;

// S1-16, S1-17: two tuners, and a third channel.
#[test]
fn example_script_runs_and_cleans_up() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/intents/run.sh");
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.arg(script).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", folder.path());
    command.env("TMPDIR", folder.path()).env("TENURE", env!("CARGO_BIN_EXE_tenure"));
    command.env("TENURE_LEDGER_RESERVE", "65536").env("TENURE_LEDGER_SEGMENT_SIZE", "65536");
    let output = command.output().unwrap();
    let (stdout, complained) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{stdout}{complained}");
    assert_eq!(complained, "", "{stdout}");
    let counts = ["RUNNING", "REJECTED_NO_TUNER", "STOPPED"].map(|word| stdout.matches(word).count());
    // Two lists: before the stop, and after it.
    assert_eq!(counts, [4, 2, 1], "{stdout}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the temporary folder is gone");
}
