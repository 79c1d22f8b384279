//! Whether the person has chosen a shell for an agent. That choice stays.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_host::coding_agent::CodingAgent;

use super::agent_settings::{shell_variable, supports_shell_setting};
use super::install_record::missing_folders;
use super::json::{Json, Node, NotJson, insert_member, remove, scan};
use super::user_folders::{entry_exists, link_target, read_file};
use super::{InstallContext, InstallError, InstallPlan, InstallScope, PlannedChange};
use crate::interception_coverage::guard_command;

/// What the person says about an agent's shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfiguredShell {
    Unset,
    Set {
        by: String,
    },
    /// There may be one in this file, which has comments, or is no JSON.
    Unclear {
        path: PathBuf,
    },
}

/// What the person says about the shell of an agent that works at `place`. Reads, and changes nothing.
pub fn configured_shell(agent: CodingAgent, place: &InstallContext) -> ConfiguredShell {
    match agent {
        CodingAgent::Claude => claude_preference(place),
        CodingAgent::OpenCode => opencode_preference(place),
        CodingAgent::Codex | CodingAgent::Gemini | CodingAgent::Cursor => ConfiguredShell::Unset,
    }
}

fn claude_preference(place: &InstallContext) -> ConfiguredShell {
    let Some(name) = shell_variable(CodingAgent::Claude) else { return ConfiguredShell::Unset };
    let home = place.user_folders.folder(CodingAgent::Claude).map(|folder| folder.join("settings.json"));
    let project = project(place, &[".claude/settings.json", ".claude/settings.local.json"]);
    // Whichever of them counts more: ours beside it would overrule the person, or be overruled.
    for path in home.into_iter().chain(project) {
        if text(&path).is_some_and(|text| is_set_by_user(&text, name)) {
            return ConfiguredShell::Set { by: format!("`{name}` in `env` in {}", path.display()) };
        }
    }
    let exported = place.chosen_shell.as_ref().filter(|shell| !shell.as_os_str().is_empty());
    match exported.filter(|shell| !is_own_shell(shell)) {
        Some(_) => ConfiguredShell::Set { by: format!("`{name}` in your environment") },
        None => ConfiguredShell::Unset,
    }
}

fn opencode_preference(place: &InstallContext) -> ConfiguredShell {
    let home = place.user_folders.folder(CodingAgent::OpenCode).into_iter();
    let home = home
        .flat_map(|folder| ["config.json", "opencode.json", "opencode.jsonc"].map(|name| folder.join(name)));
    let names = ["opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"];
    let mut found = ConfiguredShell::Unset;
    for path in home.chain(project(place, &names)) {
        let Some(text) = text(&path) else { continue };
        match serde_json::from_str::<Value>(&text) {
            Ok(settings) => {
                let shell = settings.get("shell").and_then(Value::as_str).unwrap_or_default();
                if !shell.is_empty() && !is_own_shell(shell) {
                    return ConfiguredShell::Set { by: format!("`shell` in {}", path.display()) };
                }
            }
            // The word alone may be in a comment, or the name of something else.
            Err(_) if text.contains("\"shell\"") => found = ConfiguredShell::Unclear { path },
            Err(_) => {}
        }
    }
    found
}

/// Files of the project, if we are in one.
fn project(place: &InstallContext, names: &[&'static str]) -> Vec<PathBuf> {
    let is_one = place.scope != InstallScope::User;
    names.iter().filter(|_| is_one).map(|name| place.root.join(name)).collect()
}

fn text(path: &Path) -> Option<String> {
    read_file(path).ok().flatten().and_then(|bytes| String::from_utf8(bytes).ok())
}

/// Agents take a shell by its name: it must contain "bash".
const NAME: &str = "tenure-bash";

/// Where it is: with what Tenure keeps for itself.
pub fn shell_path(place: &InstallContext) -> PathBuf {
    place.backups.join("bin").join(NAME)
}

fn named(place: &InstallContext) -> Result<String, InstallError> {
    let path = shell_path(place);
    let text = path.to_str().filter(|text| path.is_absolute() && !text.chars().any(char::is_control));
    text.map(str::to_owned).ok_or_else(|| InstallError::State { path: place.backups.clone() })
}

/// Whether this names a shell of ours, here or somewhere else.
pub fn is_own_shell(shell: impl AsRef<Path>) -> bool {
    shell.as_ref().file_name().is_some_and(|name| name == NAME)
}

/// The shell that this agent gets, if it gets one; what there is to know about it goes into the plan.
pub fn shell_for_agent(
    agent: CodingAgent,
    place: &InstallContext,
    plan: &mut InstallPlan,
) -> Result<Option<String>, InstallError> {
    if let Some(why) = &place.interception_unavailable {
        plan.notes.push(format!(
            "This system does not let calls be watched ({why}), so its commands run in their own shell; only the audit sees \
             what they write. Allow seccomp in the container, and install again."
        ));
        return Ok(None);
    }
    if !supports_shell_setting(agent) {
        return Ok(None);
    }
    match configured_shell(agent, place) {
        ConfiguredShell::Set { by } => {
            plan.notes.push(format!(
                "You have chosen a shell yourself ({by}). It stays, so what commands write is not asked for. Take it out and \
                 install again, or start the agent with `{}`.",
                guard_command(agent)
            ));
            return Ok(None);
        }
        ConfiguredShell::Unclear { path } => plan.notes.push(format!(
            "{} cannot be read: it has comments, or is no JSON. If `shell` in it names another one, what commands write is not \
             asked for.",
            path.display()
        )),
        ConfiguredShell::Unset => {}
    }
    if let Some(theirs) = place.login_shell.as_ref().filter(|shell| !shell.ends_with("bash")) {
        plan.notes.push(format!(
            "Your own shell is {}; the agent's commands run in bash from now on, without what that one sets up.",
            theirs.display()
        ));
    }
    named(place).map(Some)
}

/// Adds what it takes to have it. It comes first: nobody shall be told of a shell that is not there yet.
pub fn plan_link(plan: &mut InstallPlan, place: &InstallContext) -> Result<(), InstallError> {
    let path = shell_path(place);
    let before = link_target(&path);
    if before.as_ref() == Some(&place.program) {
        return Ok(());
    }
    if before.is_none() && entry_exists(&path) {
        return Err(InstallError::Taken { path });
    }
    plan.record_changes.extend(missing_folders(&path));
    plan.changes.insert(0, PlannedChange::Link { path, target: place.program.clone(), before });
    Ok(())
}

/// Says that it stays, where hooks that may have named it go.
pub fn explain_kept_shell(plan: &mut InstallPlan, place: &InstallContext) {
    let path = shell_path(place);
    if !plan.changes.is_empty() && link_target(&path).is_some() {
        plan.notes.push(format!(
            "{} stays: settings of another clone or working tree may name it. It does nothing by itself.",
            path.display()
        ));
    }
}

const ENV: &str = "env";

/// A variable that names a shell.
pub struct ShellVariable {
    pub name: &'static str,
    /// The shell; nothing, if the choice is left to the person.
    pub value: Option<String>,
}

/// Whether somebody else chose, or wrote something there that can not be added to.
pub fn is_set_by_user(text: &str, name: &str) -> bool {
    let Ok(root) = scan(text) else { return false };
    let mut places = root.members().unwrap_or_default().iter().filter(|member| member.key == ENV);
    let Some(env) = places.next() else { return false };
    let Some(members) = env.value.members().filter(|_| places.next().is_none()) else { return true };
    let mut values = members.iter().filter(|member| member.key == name);
    match (values.next(), values.next()) {
        (None, _) => false,
        (Some(value), None) => !is_own_value(&value.value),
        (Some(_), Some(_)) => true,
    }
}

impl ShellVariable {
    /// Whether it is as it shall be.
    pub fn is_set(&self, document: &Value) -> bool {
        let found = document.get(ENV).and_then(|env| env.get(self.name)).and_then(Value::as_str);
        match &self.value {
            Some(value) => found == Some(value),
            None => !found.is_some_and(is_own_shell),
        }
    }

    /// The document with it, and which members had to be made for it.
    pub fn add(&self, text: &str) -> Result<(String, Vec<String>), NotJson> {
        let Some(value) = &self.value else { return Ok((text.to_owned(), Vec::new())) };
        let value = Json::string(value);
        let root = scan(text)?;
        Ok(match root.get(ENV) {
            Some(env) => (insert_member(text, env, self.name, &value), Vec::new()),
            None => {
                let env = Json::Object(vec![(self.name, value)]);
                (insert_member(text, &root, ENV, &env), vec![format!("/{ENV}")])
            }
        })
    }

    /// The document without it, if it is ours; and without `env`, if that is empty then and may go.
    pub fn remove(&self, text: &str, may_go: &dyn Fn(&str) -> bool) -> Result<String, NotJson> {
        let root = scan(text)?;
        for (at, env) in root.members().unwrap_or_default().iter().enumerate() {
            let members = env.value.members().filter(|_| env.key == ENV).unwrap_or_default();
            let is_it = |at: &usize| members[*at].key == self.name && is_own_value(&members[*at].value);
            let Some(found) = (0..members.len()).find(is_it) else { continue };
            let removes_parent = members.len() == 1 && may_go(&format!("/{ENV}"));
            return Ok(if removes_parent {
                remove(text, &root, at)
            } else {
                remove(text, &env.value, found)
            });
        }
        Ok(text.to_owned())
    }
}

fn is_own_value(value: &Node) -> bool {
    value.text().is_some_and(is_own_shell)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "CLAUDE_CODE_SHELL";

    #[test]
    fn a_user_set_shell_is_distinguished_from_an_installed_one() {
        for (text, is_theirs) in [
            ("{}", false),
            (r#"{"env": {}}"#, false),
            (r#"{"env": {"A": "/bin/zsh"}}"#, false),
            (r#"{"env": {"CLAUDE_CODE_SHELL": "/state/bin/tenure-bash"}}"#, false),
            (r#"{"env": {"CLAUDE_CODE_SHELL": "/bin/zsh"}}"#, true),
            (r#"{"env": {"CLAUDE_CODE_SHELL": ""}}"#, true),
            (r#"{"env": {"CLAUDE_CODE_SHELL": 7}}"#, true),
            (r#"{"env": {"CLAUDE_CODE_SHELL": "/tenure-bash/zsh"}}"#, true),
            (
                r#"{"env": {"CLAUDE_CODE_SHELL": "/x/tenure-bash", "CLAUDE_CODE_SHELL": "/x/tenure-bash"}}"#,
                true,
            ),
            (r#"{"env": {}, "env": {}}"#, true),
            (r#"{"env": "A=1"}"#, true),
            (r#"{"CLAUDE_CODE_SHELL": "/bin/zsh"}"#, false),
        ] {
            assert_eq!(is_set_by_user(text, NAME), is_theirs, "{text}");
        }
    }

    #[test]
    fn adding_and_removing_the_variable_restores_the_text() {
        let variable = ShellVariable { name: NAME, value: Some("/state/bin/tenure-bash".to_owned()) };
        for text in ["{}", "{\"env\":{}}", "{\n  \"env\": {\n    \"A\": \"1\"\n  },\n  \"b\": 2\n}\n"] {
            let (added, made) = variable.add(text).unwrap();
            assert!(variable.is_set(&serde_json::from_str(&added).unwrap()), "{added}");
            let may_go = |name: &str| made.iter().any(|made| made == name);
            assert_eq!(variable.remove(&added, &may_go).unwrap(), text);
        }
        let theirs = r#"{"env": {"CLAUDE_CODE_SHELL": "/bin/zsh"}}"#;
        assert_eq!(variable.remove(theirs, &|_| true).unwrap(), theirs);
    }
}
