//! Our entries among those of others.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::InstallError;
use super::configured_shell::ShellVariable;
use super::json::{Json, Node, NotJson, append, insert_member, remove, scan};

/// How the entries of an event look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookEntryShape {
    /// `{"matcher": …, "hooks": [{"command": …}]}`
    Grouped,
    /// `{"command": …}`
    Flat,
}

/// What shall be in a settings file.
pub struct DesiredSettings {
    pub shape: HookEntryShape,
    /// Members of the document itself that must be there, whatever their value.
    pub top: Vec<(&'static str, Json)>,
    /// An event and the entry for it.
    pub entries: Vec<(&'static str, Json)>,
    /// The variable that names the agent's shell, where it has one.
    pub variable: Option<ShellVariable>,
}

pub struct OwnCommands<'a> {
    /// Commands that we know to have written.
    pub known: &'a [String],
    /// The name behind `hook`.
    pub hook_name: &'a str,
}

/// Why a document cannot be worked on.
#[derive(Debug, PartialEq, Eq)]
pub enum SettingsEditError {
    NotJson(NotJson),
    UnexpectedShape(String),
}

impl From<NotJson> for SettingsEditError {
    fn from(not_json: NotJson) -> Self {
        SettingsEditError::NotJson(not_json)
    }
}

/// Whether exactly what is wanted is there already, and nothing else of ours.
pub fn is_complete(text: &str, desired: &DesiredSettings, ours: &OwnCommands<'_>) -> bool {
    let Ok(document) = serde_json::from_str::<Value>(text) else { return false };
    let is_there = |(key, _): &(&str, Json)| document.get(key).is_some();
    let empty = serde_json::Map::new();
    let hooks = document.get("hooks").and_then(Value::as_object).unwrap_or(&empty);
    let mut found: Vec<_> = hooks
        .iter()
        .flat_map(|(event, entries)| {
            entries.as_array().into_iter().flatten().map(move |entry| (event.as_str(), entry))
        })
        .filter(|(_, entry)| {
            entry_commands(entry).any(|command| is_own_command(command, ours.known, ours.hook_name))
        })
        .map(|(event, entry)| (event, entry.clone()))
        .collect();
    let mut expected: Vec<_> =
        desired.entries.iter().map(|(event, entry)| (*event, entry.to_serde_value())).collect();
    // In which order events stand says nothing.
    found.sort_by_key(|(event, _)| *event);
    expected.sort_by_key(|(event, _)| *event);
    let is_set = desired.variable.as_ref().is_none_or(|variable| variable.is_set(&document));
    desired.top.iter().all(is_there) && is_set && found == expected
}

/// The commands that an entry of an event runs.
pub fn entry_commands(entry: &Value) -> impl Iterator<Item = &str> {
    let nested = entry.get("hooks").and_then(Value::as_array).into_iter().flatten();
    [entry].into_iter().chain(nested).filter_map(|run| run.get("command").and_then(Value::as_str))
}

/// The document with what is wanted, and which members had to be made for it (`/hooks/Stop`).
pub fn add_entries(
    text: &str,
    desired: &DesiredSettings,
) -> Result<(String, Vec<String>), SettingsEditError> {
    let mut text = text.to_owned();
    let mut made = Vec::new();
    check_shape(&scan(&text)?)?;
    for (key, value) in &desired.top {
        let root = scan(&text)?;
        if root.get(key).is_none() {
            text = insert_member(&text, &root, key, value);
            made.push(format!("/{key}"));
        }
    }
    if let Some(variable) = &desired.variable {
        let (added, more) = variable.add(&text)?;
        text = added;
        made.extend(more);
    }
    for (event, entry) in &desired.entries {
        let root = scan(&text)?;
        match root.get("hooks") {
            None => {
                text = insert_member(
                    &text,
                    &root,
                    "hooks",
                    &Json::Object(vec![(*event, Json::Array(vec![entry.clone()]))]),
                );
                made.extend(["/hooks".to_owned(), format!("/hooks/{event}")]);
            }
            Some(hooks) => match hooks.get(event) {
                None => {
                    text = insert_member(&text, hooks, event, &Json::Array(vec![entry.clone()]));
                    made.push(format!("/hooks/{event}"));
                }
                Some(entries) => text = append(&text, entries, entry),
            },
        }
    }
    Ok((text, made))
}

/// The document without what is ours. A member that is empty then goes too, if we made it; who made it is known by `made`,
/// and where nobody knows, we did.
pub fn remove_entries(
    text: &str,
    desired: &DesiredSettings,
    ours: &OwnCommands<'_>,
    made: Option<&[String]>,
) -> Result<String, SettingsEditError> {
    let may_go = |name: &str| made.is_none_or(|made| made.iter().any(|made| made == name));
    let mut text = text.to_owned();
    check_shape(&scan(&text)?)?;
    loop {
        let root = scan(&text)?;
        let Some(next) = remove_first_own(&text, &root, desired.shape, ours, &may_go) else { break };
        text = next;
    }
    if let Some(variable) = &desired.variable {
        text = variable.remove(&text, &may_go)?;
    }
    for (key, value) in &desired.top {
        let root = scan(&text)?;
        let members = root.members().unwrap_or_default();
        let place = members.iter().position(|member| member.key == *key);
        let is_as_made = |index: usize| {
            let span = members[index].value.span.clone();
            serde_json::from_str::<Value>(&text[span]).is_ok_and(|found| found == value.to_serde_value())
        };
        let made = made.unwrap_or_default();
        let was_made = |name: String| made.contains(&name);
        // It goes back to how it was; but hooks that others put in after us need it.
        let is_needed = was_made("/hooks".to_owned()) && root.get("hooks").is_some();
        if let Some(index) = place.filter(|at| was_made(format!("/{key}")) && is_as_made(*at) && !is_needed) {
            text = remove(&text, &root, index);
        }
    }
    Ok(text)
}

/// Takes out the first thing that is ours, with whatever is empty then and may go.
fn remove_first_own(
    text: &str,
    root: &Node,
    shape: HookEntryShape,
    ours: &OwnCommands<'_>,
    may_go: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let is_ours = |run: &Node| {
        let command = run.get("command").and_then(Node::text);
        command.is_some_and(|command| is_own_command(command, ours.known, ours.hook_name))
    };
    let hooks = root.get("hooks")?;
    let events = hooks.members()?;
    for (at_event, event) in events.iter().enumerate() {
        let entries = event.value.items().unwrap_or_default();
        for (at_entry, entry) in entries.iter().enumerate() {
            let runs = entry.get("hooks").and_then(Node::items).unwrap_or_default();
            let at_run = match shape {
                HookEntryShape::Flat => is_ours(entry).then_some(0),
                HookEntryShape::Grouped => runs.iter().position(is_ours),
            };
            let Some(at_run) = at_run else { continue };
            if shape == HookEntryShape::Grouped && runs.len() > 1 {
                return Some(remove(text, entry.get("hooks")?, at_run));
            }
            if entries.len() > 1 || !may_go(&format!("/hooks/{}", event.key)) {
                return Some(remove(text, &event.value, at_entry));
            }
            if events.len() > 1 || !may_go("/hooks") {
                return Some(remove(text, hooks, at_event));
            }
            let at_hooks = root.members()?.iter().position(|member| member.key == "hooks")?;
            return Some(remove(text, root, at_hooks));
        }
    }
    None
}

/// Whether there is nothing in it.
pub fn is_empty(text: &str) -> bool {
    text.trim().is_empty() || scan(text).is_ok_and(|root| root.members().is_some_and(<[_]>::is_empty))
}

/// An object, whose `hooks` are an object of arrays, each named once. Where a key stands twice, nobody knows which counts.
fn check_shape(root: &Node) -> Result<(), SettingsEditError> {
    let strange = |what: String| Err(SettingsEditError::UnexpectedShape(what));
    let Some(members) = root.members() else { return strange("it is no object".to_owned()) };
    let twice = |keys: Vec<&str>| keys.iter().enumerate().any(|(at, key)| keys[..at].contains(key));
    if twice(members.iter().map(|member| member.key.as_str()).filter(|key| *key == "hooks").collect()) {
        return strange("`hooks` stands there twice".to_owned());
    }
    let Some(hooks) = root.get("hooks") else { return Ok(()) };
    let Some(events) = hooks.members() else { return strange("`hooks` is no object".to_owned()) };
    if twice(events.iter().map(|event| event.key.as_str()).collect()) {
        return strange("one event stands in `hooks` twice".to_owned());
    }
    Ok(())
}

/// Whether the entries of the events that are wanted can be added to.
pub fn check_event_shapes(text: &str, desired: &DesiredSettings) -> Result<(), SettingsEditError> {
    let root = scan(text)?;
    let Some(hooks) = root.get("hooks") else { return Ok(()) };
    for (event, _) in &desired.entries {
        if hooks.get(event).is_some_and(|entries| entries.items().is_none()) {
            return Err(SettingsEditError::UnexpectedShape(format!("`hooks.{event}` is no array")));
        }
    }
    Ok(())
}

/// `PROGRAM hook NAME`, quoted for a shell.
pub fn hook_command(program: &Path, hook_name: &str) -> Result<String, InstallError> {
    Ok(format!("{} hook {hook_name}", shell_quote(program)?))
}

/// The same command behind a shell that says no in its place if the program is gone, for an agent that would go on.
///
/// It names `sh`: whose shell an agent takes for its hooks is not known. Nothing stays between the agent and the program.
pub fn guarded_command(command: &str, hook_name: &str) -> String {
    let program = command.strip_suffix(&format!(" hook {hook_name}")).unwrap_or(command);
    format!("{}{program}", guard_prefix(hook_name))
}

fn guard_prefix(hook_name: &str) -> String {
    format!(
        "sh -c '[ -x \"$0\" ] || {{ echo \"Nothing was changed: $0 is gone, so nobody can say whether another agent is \
         editing this. Ask the person to run: tenure install {hook_name}\" >&2; exit 2; }}; \
         exec \"$0\" hook {hook_name}' "
    )
}

/// The program as one word of a shell.
pub fn shell_quote(program: &Path) -> Result<String, InstallError> {
    let path = program_path(program)?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+@%=:,".contains(letter);
    if path.chars().all(is_plain) {
        return Ok(path.to_owned());
    }
    Ok(format!("'{}'", path.replace('\'', r"'\''")))
}

pub fn program_path(program: &Path) -> Result<&str, InstallError> {
    let path = program.to_str().ok_or(InstallError::Program)?;
    if !program.is_absolute() || path.chars().any(char::is_control) {
        return Err(InstallError::Program);
    }
    Ok(path)
}

/// Whether we wrote this command: it is the one that is known, or that of a `tenure` somewhere else.
///
/// Other tools have a `hook` of their own; theirs stay.
pub fn is_own_command(command: &str, known: &[String], hook_name: &str) -> bool {
    let plain = without_guard(command, hook_name);
    if known.contains(&plain) {
        return true;
    }
    program_of(command, hook_name)
        .is_some_and(|program| program.file_name().is_some_and(|name| name == "tenure"))
}

/// The program that such a command runs. Nothing, if the command is not of that form.
pub fn program_of(command: &str, hook_name: &str) -> Option<PathBuf> {
    let plain = without_guard(command, hook_name);
    shell_unquote(plain.strip_suffix(&format!(" hook {hook_name}"))?)
}

/// The path in one word of a shell, as [`shell_quote`] writes it.
pub fn shell_unquote(word: &str) -> Option<PathBuf> {
    match word.strip_prefix('\'').and_then(|content| content.strip_suffix('\'')) {
        Some(content) => Some(content.replace(r"'\''", "'").into()),
        None if word.contains([' ', '\'', '"', '\\', ';', '|', '&']) => None,
        None => Some(word.into()),
    }
}

fn without_guard(command: &str, hook_name: &str) -> String {
    let program = command.strip_prefix(&guard_prefix(hook_name));
    program.map_or_else(|| command.to_owned(), |program| format!("{program} hook {hook_name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_path_is_quoted_as_one_shell_word() {
        for program in ["/usr/bin/tenure", "/with space/tenure", "/it's/$(here)/`x`/tenure", "/ü/*/tenure"] {
            let command = hook_command(Path::new(program), "claude").unwrap();
            let script = format!("printf '%s\\n' {command}");
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{program}\nhook\nclaude\n"));
            assert!(is_own_command(&command, &[], "claude"), "{command}");
            assert!(!is_own_command(&command, &[], "codex"));
            assert_eq!(program_of(&command, "claude").as_deref(), Some(Path::new(program)));
            assert_eq!(
                program_of(&guarded_command(&command, "claude"), "claude").as_deref(),
                Some(Path::new(program))
            );
        }
        for program in ["tenure", "/a\nb/tenure", ""] {
            assert!(matches!(hook_command(Path::new(program), "claude"), Err(InstallError::Program)));
        }
    }

    // S4-15
    #[test]
    fn a_guarded_command_blocks_with_a_reason_if_the_program_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("it's `a` $(b)/tenure");
        let command = guarded_command(&hook_command(&program, "codex").unwrap(), "codex");
        assert!(
            is_own_command(&command, &[], "codex") && !is_own_command(&command, &[], "claude"),
            "{command}"
        );
        let run = || std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
        let output = run();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), b"".as_slice()));
        assert!(String::from_utf8(output.stderr).unwrap().contains("tenure install codex"));
        std::fs::create_dir(program.parent().unwrap()).unwrap();
        std::fs::write(&program, "#!/bin/sh\necho \"$@\"\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let output = run();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"hook codex\n".as_slice()));
        let renamed = guarded_command("/build/tenure-1 hook codex", "codex");
        assert!(!is_own_command(&renamed, &[], "codex"));
        assert!(is_own_command(&renamed, &["/build/tenure-1 hook codex".to_owned()], "codex"));
    }

    #[test]
    fn commands_of_other_programs_are_not_taken_for_own() {
        for command in [
            "/usr/bin/other hook claude",
            "tenure-like hook claude",
            "echo; /usr/bin/tenure hook claude",
            "x /usr/bin/tenure hook claude",
            "/usr/bin/tenure hook claude --more",
            "/usr/bin/tenure",
        ] {
            assert!(!is_own_command(command, &[], "claude"), "{command}");
        }
        assert!(is_own_command(
            "/build/tenure-1 hook claude",
            &["/build/tenure-1 hook claude".to_owned()],
            "claude"
        ));
    }
}
