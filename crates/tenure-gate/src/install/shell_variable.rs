//! A variable among those that an agent's settings set for whatever it starts: `{"env": {"NAME": "value"}}`.

use serde_json::Value;

use super::json::{Json, Node, NotJson, insert_member, remove, scan};
use super::tenure_bash::is_own_shell;

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
