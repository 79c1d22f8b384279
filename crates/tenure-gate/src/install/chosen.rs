//! Whether the person has chosen a shell for an agent. That choice stays.

use super::agents::shell_variable;
use super::files::read;
use super::shell::is_ours;
use super::variable::is_chosen;
use super::{Place, Scope};
use crate::agent::Agent;

/// Where the person chose one, in words.
pub fn place_of_choice(agent: Agent, place: &Place) -> Option<String> {
    let name = shell_variable(agent)?;
    let home = place.home.iter().filter(|_| place.scope != Scope::User).map(|home| (home, "settings.json"));
    let project = [(&place.root, "settings.json"), (&place.root, "settings.local.json")];
    // Whichever of them counts more: ours beside it would overrule the person, or be overruled.
    for (folder, file) in home.chain(project) {
        let path = folder.join(".claude").join(file);
        let text = read(&path).ok().flatten().and_then(|bytes| String::from_utf8(bytes).ok());
        if text.is_some_and(|text| is_chosen(&text, name)) {
            return Some(format!("`env` in {}", path.display()));
        }
    }
    let exported = place.chosen_shell.as_ref().filter(|shell| !shell.as_os_str().is_empty());
    let is_exported = exported.is_some_and(|shell| !is_ours(shell));
    is_exported.then(|| "your environment".to_owned())
}
