//! What pipelines print: one file for each session, that only its owner reads.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

/// How the name of every log ends.
const EXTENSION: &str = "log";

/// Opens the log of a session, to be added to, and says in it what is started.
pub fn open(folder: &Path, session: &str, command: &[String], at: Timestamp) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut log = OpenOptions::new().append(true).create(true).mode(0o600).open(path(folder, session))?;
    // As JSON, so that it is clear where an argument begins and ends.
    let command = serde_json::to_string(command)?;
    log.write_all(format!("tenure: {at:.3}: session {session} starts {command}\n").as_bytes())?;
    Ok(log)
}

/// Removes the oldest logs, so that no more than `kept` are left; never one of a session that goes on.
pub fn prune(folder: &Path, kept: usize, live: &HashSet<String>) -> io::Result<()> {
    let live: HashSet<PathBuf> = live.iter().map(|session| path(folder, session)).collect();
    let mut logs = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?.flatten(),
    };
    for entry in entries {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == EXTENSION) && !live.contains(&path) {
            logs.push((entry.metadata()?.modified()?, path));
        }
    }
    logs.sort();
    let too_many = (logs.len() + live.len()).saturating_sub(kept);
    for (_, path) in logs.into_iter().take(too_many) {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Where the log of a session is. The server chose the name, and it may be anybody's server.
fn path(folder: &Path, session: &str) -> PathBuf {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    let name: String = session.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    folder.join(format!("{name}.{EXTENSION}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn log_starts_with_the_command_and_is_private_to_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("a/b");
        let command = ["sh".to_owned(), "-c".to_owned(), "echo 'a b'".to_owned()];
        let mut log = open(&logs, "s-1", &command, Timestamp::UNIX_EPOCH).unwrap();
        log.write_all(b"said\n").unwrap();
        let path = logs.join("s-1.log");
        let text = fs::read_to_string(&path).unwrap();
        let first = r#"tenure: 1970-01-01T00:00:00.000Z: session s-1 starts ["sh","-c","echo 'a b'"]"#;
        assert_eq!(text, format!("{first}\nsaid\n"));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&logs), mode(&path)), (0o700, 0o600));
    }

    #[test]
    fn session_name_cannot_leave_the_log_directory() {
        assert_eq!(path(Path::new("/logs"), "../../etc/x"), Path::new("/logs/______etc_x.log"));
    }

    #[test]
    fn oldest_logs_are_pruned_except_those_of_live_sessions() {
        let folder = tempfile::tempdir().unwrap();
        for age in 0..5_u64 {
            let file = File::create(folder.path().join(format!("s{age}.log"))).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(100 - age)).unwrap();
        }
        File::create(folder.path().join("other.txt")).unwrap();
        prune(folder.path(), 3, &HashSet::from(["s4".to_owned()])).unwrap();
        let mut remaining: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        remaining.sort();
        assert_eq!(remaining, ["other.txt", "s0.log", "s1.log", "s4.log"]);
    }
}
