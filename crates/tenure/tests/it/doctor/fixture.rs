//! A repo for the doctor: what is installed there, and what it finds.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::{CommandOutput, TestRepository};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_tenure");

/// A repo where this was installed.
pub fn repository_with(what: &[&str]) -> TestRepository {
    let repo = TestRepository::new();
    for what in what {
        let arguments: Vec<&str> = ["install"].into_iter().chain(what.split(' ')).collect();
        let result = repo.run(&arguments);
        assert_eq!(result.code, Some(0), "{result:?}");
    }
    repo
}

/// Claude Code's commands run in our shell.
pub fn install_shell(repo: &TestRepository) {
    if has_own_shell(repo) {
        return;
    }
    let shell = repo.path("tenure-bash");
    if !shell.exists() {
        symlink(PROGRAM, &shell).unwrap();
    }
    edit_settings(&repo.file(".claude/settings.json"), |settings| {
        settings["env"] = json!({"CLAUDE_CODE_SHELL": shell});
    });
}

pub fn edit_settings(path: &Path, edit: impl FnOnce(&mut Value)) {
    let text = fs::read_to_string(path).unwrap_or_else(|_| "{}".to_owned());
    let mut settings = serde_json::from_str(&text).unwrap();
    edit(&mut settings);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, settings.to_string()).unwrap();
}

/// Every check with its status, and with its detail and what helps.
pub struct DoctorChecks(pub Vec<Value>, pub CommandOutput);

pub fn run_doctor(repo: &TestRepository) -> DoctorChecks {
    parse_checks(repo.run(&["doctor", "--json"]))
}

pub fn parse_checks(result: CommandOutput) -> DoctorChecks {
    let list: Value = serde_json::from_str(&result.output).unwrap_or_else(|_| panic!("{result:?}"));
    DoctorChecks(list.as_array().unwrap().clone(), result)
}

impl DoctorChecks {
    pub fn find(&self, name: &str) -> &Value {
        self.0.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name}: {:?}", self.1))
    }

    pub fn status(&self, name: &str) -> &str {
        self.find(name)["status"].as_str().unwrap()
    }

    pub fn detail(&self, name: &str) -> &str {
        self.find(name)["detail"].as_str().unwrap()
    }

    pub fn gaps(&self) -> Vec<&str> {
        let gaps = self.0.iter().filter(|check| check["status"] == "gap");
        gaps.map(|check| check["name"].as_str().unwrap()).collect()
    }
}

/// No canary, no session, no lease.
pub fn assert_clean(repo: &TestRepository) {
    let names = fs::read_dir(repo.file("")).unwrap().map(|entry| entry.unwrap().file_name());
    let remaining: Vec<_> = names.filter(|name| name.to_string_lossy().contains("canary")).collect();
    assert!(remaining.is_empty(), "{remaining:?}");
    let line = "curl -s --unix-socket ../tenure/tenure.sock http://localhost/v1/files";
    let result = repo.shell(line);
    let found: Value = serde_json::from_str(&result.output).unwrap_or_else(|_| panic!("{result:?}"));
    assert_eq!((&found["files"], &found["sessions"]), (&json!([]), &json!([])));
}

pub fn has_own_shell(repo: &TestRepository) -> bool {
    fs::read_to_string(repo.file(".claude/settings.json")).unwrap().contains("CLAUDE_CODE_SHELL")
}
