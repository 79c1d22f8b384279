//! Who has a file open for writing, of all processes.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};

use tenure_host::process::writers_of;

// S4-15
#[test]
fn only_processes_with_a_file_open_for_writing_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "text").unwrap();
    let about = fs::metadata(&file).unwrap();
    let files = HashSet::from([(about.dev(), about.ino())]);
    assert_eq!(writers_of(&files), []);
    let mut shells: Vec<_> = ["exec 3<file", "exec 3>>file"]
        .map(|open| {
            let mut command = Command::new("bash");
            command.args(["-c", &format!("{open}; echo ready; read line")]).current_dir(folder.path());
            let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            BufReader::new(shell.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n");
            shell
        })
        .into();
    let found = writers_of(&files);
    let found: Vec<_> = found.iter().map(|writer| (writer.process.pid, &*writer.name)).collect();
    assert_eq!(found, [(shells[1].id(), "bash")]);
    for shell in &mut shells {
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
    assert_eq!(writers_of(&files), []);
}
