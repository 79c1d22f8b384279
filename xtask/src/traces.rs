//! What the tests leave behind: every secret that they got, and everything that they saw. No secret may be in the
//! latter.

use std::fs;
use std::path::{Path, PathBuf};

use crate::problem::Problem;
use crate::process::say;
use crate::secret_scan::Scan;
use crate::workspace::Workspace;

/// Tells the tests where to write.
pub const VARIABLE: &str = "TENURE_TEST_TRACES";

/// Where the tests write; empty now.
pub fn begin(workspace: &Workspace) -> Result<PathBuf, Problem> {
    let folder = workspace.root.join("target/traces");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| Problem::file(&folder, &error))?;
    Ok(folder)
}

/// Looks for every secret in everything that was seen.
pub fn check(folder: &Path) -> Result<(), Problem> {
    let (mut scan, mut seen) = (Scan::default(), Vec::new());
    for entry in fs::read_dir(folder).map_err(|error| Problem::file(folder, &error))? {
        let path = entry.map_err(|error| Problem::file(folder, &error))?.path();
        let content = fs::read(&path).map_err(|error| Problem::file(&path, &error))?;
        if path.extension().is_some_and(|ending| ending == "secrets") {
            String::from_utf8_lossy(&content).lines().for_each(|secret| scan.add(secret));
        } else {
            seen.push((path, content));
        }
    }
    let bytes: usize = seen.iter().map(|(_, content)| content.len()).sum();
    if scan.len() == 0 || bytes == 0 {
        return Err(Problem::new(
            format!("{} secrets and {bytes} bytes in {}", scan.len(), folder.display()),
            "the tests did not say what they got and saw, so nothing was looked at",
            format!("see whether the tests still read {VARIABLE}"),
        ));
    }
    let found: Vec<_> = seen
        .iter()
        .flat_map(|(path, content)| scan.look(content).into_iter().map(move |found| (path, found)))
        .collect();
    let Some((path, first)) = found.first() else {
        say(&format!("none of {} secrets is in the {bytes} bytes that the tests saw", scan.len()));
        return Ok(());
    };
    Err(Problem::new(
        format!(
            "{} secrets where none should be, the first at byte {} of {}: {}",
            found.len(),
            first.at,
            path.display(),
            first.form
        ),
        "something prints, sends or stores what only its owner may have",
        "look at what stands around it in that file, and at the test of that process",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "tnr_qZ3-0aB_cDeFgHiJkLmNoPqRsTuVwXyZ0123456789A";

    #[test]
    fn a_leak_is_a_problem_that_does_not_repeat_it() {
        let folder = folder_for("leak");
        fs::write(folder.join("1.secrets"), format!("{SECRET}\n")).unwrap();
        assert!(check(&folder).is_err(), "nothing was seen, so nothing was shown");
        fs::write(folder.join("1.seen"), "all is well").unwrap();
        assert!(check(&folder).is_ok());
        fs::write(folder.join("2.seen"), format!("error: {SECRET}")).unwrap();
        let problem = check(&folder).unwrap_err().to_string();
        assert!(problem.contains("2.seen") && !problem.contains(SECRET), "{problem}");
        fs::remove_dir_all(folder).unwrap();
    }

    fn folder_for(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tenure-xtask-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }
}
