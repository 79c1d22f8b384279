//! Our entries among those of others.

use serde_json::Value;

use super::hook_command::is_own_command;
use super::json::{Json, Node, NotJson, append, insert_member, remove, scan};
use super::shell_variable::ShellVariable;

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
