//! The commands of the README, in the order of the page, on one fresh server.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenure_testkit::{TestHome, program_path};

const README: &str = include_str!("../../../../README.md");

/// Where the README says that the server listens. A test must not use that port: a server may run there.
const DEFAULT_ADDRESS: &str = "127.0.0.1:7420";

/// The first two blocks: this test starts the server itself, and is run by `cargo xtask test`.
const BLOCKS_BEFORE_THE_SECTIONS: usize = 2;

/// What a reader has to see in the output of each section.
const SECTIONS: [(&str, &[&str]); 5] = [
    ("Run a command under a lease", &["deploying with fence 1", "ci-42 (exclusive, fence 2", "exit code 75"]),
    ("Several coding agents in one checkout", &[".claude/settings.json", "COVERED BY"]),
    ("Leases over HTTP", &[r#""passport":"#, r#""code":"HELD""#, "job-7 holds db:migrate"]),
    ("Control of a device", &["control.acquired", r#""effectId":3"#]),
    ("A worker with tuners", &["state        RUNNING", "REJECTED_NO_TUNER", "two tuners, both in use"]),
];

#[test]
fn readme_commands_work_in_the_order_of_the_page() {
    let home = TestHome::new();
    clone_in(home.folder());
    let script = script().replace(DEFAULT_ADDRESS, &home.server().address);
    let mut command = Command::new("bash");
    command.args(["-c", &script]).current_dir(home.path("clone"));
    command.env_clear().envs([
        ("HOME", home.folder()),
        ("XDG_RUNTIME_DIR", home.folder()),
        ("TMPDIR", home.folder()),
    ]);
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", python().parent().unwrap().display());
    command.env("PATH", path).env("TENURE_URL", format!("http://{}", home.server().address));
    command.env("TENURE_TOKEN", home.token());

    let done = tenure_testkit::run_command(&mut command);

    assert_eq!(done.code, Some(0), "{done:?}");
    let outputs: Vec<_> = done.output.split("== section\n").skip(1).collect();
    assert_eq!(outputs.len(), SECTIONS.len(), "{done:?}");
    for ((section, expected), output) in SECTIONS.iter().zip(outputs) {
        for text in *expected {
            assert!(output.contains(text), "{section}: no {text:?} in\n{output}\n{}", done.errors);
        }
    }
}

#[test]
fn readme_is_short_and_starts_with_two_commands() {
    assert!(README.lines().count() <= 150);
    let first: Vec<_> = blocks().into_iter().take(BLOCKS_BEFORE_THE_SECTIONS).collect();
    assert_eq!(first, ["cargo run --release -- serve\n", "cargo xtask test\n"]);
    for (section, block) in SECTIONS.iter().zip(blocks().into_iter().skip(BLOCKS_BEFORE_THE_SECTIONS)) {
        assert!(block.lines().count() <= 10, "{}: more than ten lines", section.0);
        assert!(README.contains(&format!("### {}\n", section.0)), "no section {:?}", section.0);
    }
}

/// The commands of all sections as one script that stops at the first failure.
fn script() -> String {
    let mut script = "set -euo pipefail\n".to_owned();
    for block in blocks().into_iter().skip(BLOCKS_BEFORE_THE_SECTIONS) {
        // The package is in the Python that `cargo xtask test` installs.
        let block = block.replace("pip install --quiet websockets\n", "");
        script.push_str(&format!("echo '== section'\n{block}"));
    }
    script
}

/// The blocks of shell commands.
fn blocks() -> Vec<&'static str> {
    let behind = README.split("```sh\n").skip(1);
    behind.map(|text| text.split_once("```").expect("the end of a block").0).collect()
}

/// A folder that has what the commands expect in a clone: the built program and the examples.
fn clone_in(folder: &Path) {
    let clone = folder.join("clone");
    std::fs::create_dir_all(clone.join("target/release")).unwrap();
    symlink(program_path(), clone.join("target/release/tenure")).unwrap();
    symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples"), clone.join("examples")).unwrap();
}

/// The Python in which `cargo xtask test` installed the packages of its tests.
fn python() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let python = target.join("tools/python-client/bin/python3");
    assert!(python.exists(), "no {}: run `cargo xtask test` once, which installs it", python.display());
    python
}
