//! Whether Gemini CLI trusts this folder: the hooks of a project that it does not trust never run, and nothing says so.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;
use tenure_hooks::install::InstallScope;

use super::DoctorEnvironment;
use super::agent_hooks::AgentHooks;
use super::check::Check;

const NAME: &str = "gemini.trust";

/// What the person told Gemini CLI about this folder, if the project has hooks. Nothing, if nothing was told: it asks then.
pub fn check(gemini: &AgentHooks, environment: &DoctorEnvironment) -> Option<Check> {
    gemini.installed().find(|(scope, _)| *scope == InstallScope::Project)?;
    let home = environment.home()?.join(".gemini");
    if is_off(&home.join("settings.json")) {
        return None;
    }
    let path = home.join("trustedFolders.json");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => return Some(unknown(&path, &error)),
    };
    match serde_json::from_str::<HashMap<String, String>>(&text) {
        Ok(rules) => judged(&rules, environment.folder(), &path),
        Err(error) => Some(unknown(&path, &error)),
    }
}

fn unknown(path: &Path, error: &dyn std::fmt::Display) -> Check {
    Check::unknown(
        NAME,
        format!("{} cannot be read ({error}), and says which folders are trusted", path.display()),
    )
    .with_fix("start `gemini` here, and look at `/permissions`")
}

/// Whether the person does without trust: then everything runs.
fn is_off(settings: &Path) -> bool {
    let text = fs::read_to_string(settings).unwrap_or_default();
    let settings: Value = serde_json::from_str(&text).unwrap_or_default();
    settings.pointer("/security/folderTrust/enabled") == Some(&Value::Bool(false))
}

/// What the rule for the nearest folder says.
fn judged(rules: &HashMap<String, String>, folder: &Path, file: &Path) -> Option<Check> {
    let reached = rules.iter().filter_map(|(path, word)| {
        let path = Path::new(path);
        let top = if word == "TRUST_PARENT" { path.parent().unwrap_or(path) } else { path };
        folder.starts_with(top).then_some((path.components().count(), top, word.as_str()))
    });
    let (_, top, word) = reached.max_by_key(|(depth, ..)| *depth)?;
    let top = top.display();
    match word {
        "TRUST_FOLDER" | "TRUST_PARENT" => Some(Check::ok(NAME, format!("{top} is trusted"))),
        "DO_NOT_TRUST" => {
            let what = format!(
                "{top} is not trusted ({}), so Gemini CLI runs no hook of this project, and edits without asking",
                file.display()
            );
            let fix = "start `gemini` here, and trust the folder with `/permissions`; or `tenure install gemini --user`";
            Some(Check::gap(NAME, what, fix))
        }
        _ => Some(unknown(file, &format_args!("`{word}` is not understood"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::file::doctor::check::CheckStatus;

    #[test]
    fn nearest_trust_rule_applies() {
        let judge = |rules: &[(&str, &str)]| {
            let rules = rules.iter().map(|(path, word)| ((*path).to_owned(), (*word).to_owned())).collect();
            judged(&rules, Path::new("/work/a/b"), Path::new("/trust")).map(|check| check.status)
        };
        assert_eq!(judge(&[]), None);
        assert_eq!(judge(&[("/work/a/bc", "DO_NOT_TRUST")]), None);
        assert_eq!(judge(&[("/work/a/b", "DO_NOT_TRUST")]), Some(CheckStatus::Gap));
        assert_eq!(
            judge(&[("/work/a/b", "DO_NOT_TRUST"), ("/work", "TRUST_FOLDER")]),
            Some(CheckStatus::Gap)
        );
        assert_eq!(judge(&[("/work/a/b", "TRUST_FOLDER"), ("/work", "DO_NOT_TRUST")]), Some(CheckStatus::Ok));
        assert_eq!(judge(&[("/work/a/c", "TRUST_PARENT")]), Some(CheckStatus::Ok));
        assert_eq!(judge(&[("/work", "PERHAPS")]), Some(CheckStatus::Unknown));
    }
}
