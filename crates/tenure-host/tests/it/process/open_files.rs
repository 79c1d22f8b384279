//! Which files a family of processes has open for writing.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use tenure_core::kernel::ProcessId;
use tenure_host::process::{self, open_for_writing};

fn identity(path: &Path) -> (u64, u64) {
    let about = fs::metadata(path).unwrap();
    (about.dev(), about.ino())
}

/// A shell below a shell that runs this, and says a line after each step. It ends when its input does.
fn nested_shell(folder: &Path, script: &str) -> (Child, BufReader<ChildStdout>) {
    let outer = r#"bash -c "$1"; :"#;
    let mut command = Command::new("bash");
    command
        .args(["-c", outer, "bash", script])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    (child, stdout)
}

fn next(stdout: &mut BufReader<ChildStdout>) {
    let mut line = String::new();
    assert!(stdout.read_line(&mut line).unwrap() > 0, "it ended");
}

#[test]
fn a_file_written_by_a_descendant_is_open_until_closed() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["appended", "read", "both", "untouched"].map(|name| folder.path().join(name));
    paths.iter().for_each(|path| fs::write(path, "text").unwrap());
    let files = paths.each_ref().map(|path| identity(path));
    let script =
        "exec 3>>appended 4<read 5<>both; echo ready; read line; exec 3>&- 5>&-; echo closed; read line";
    let (mut child, mut stdout) = nested_shell(folder.path(), script);
    let root = process::of(child.id()).unwrap();
    next(&mut stdout);
    assert_eq!(open_for_writing(&root, &files), [true, false, true, false]);
    // It is the file that counts, not its name, and each place is answered.
    fs::rename(&paths[0], folder.path().join("renamed")).unwrap();
    assert_eq!(open_for_writing(&root, &[files[3], files[0], files[0]]), [false, true, true]);
    let earlier = ProcessId { started: root.started - 1, ..root };
    assert_eq!(open_for_writing(&earlier, &files[..1]), [false], "another one's files");
    child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    next(&mut stdout);
    assert_eq!(open_for_writing(&root, &files), [false; 4]);
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(open_for_writing(&root, &files), [false; 4]);
}

#[test]
fn files_open_in_unrelated_processes_are_not_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let ours = fs::File::create(&path).unwrap();
    let (mut child, mut stdout) = nested_shell(folder.path(), "echo ready; read line");
    next(&mut stdout);
    let root = process::of(child.id()).unwrap();
    assert_eq!(open_for_writing(&root, &[identity(&path)]), [false]);
    assert_eq!(open_for_writing(&process::own().unwrap(), &[identity(&path)]), [true]);
    drop(ours);
    assert_eq!(open_for_writing(&process::own().unwrap(), &[identity(&path)]), [false]);
    drop(child.stdin.take());
    child.wait().unwrap();
}
