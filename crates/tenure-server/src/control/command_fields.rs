//! The fields of a command of the lease, taken out one by one. What is not known is left alone: clients of the device
//! send more than one version of it knows.

use serde_json::{Map, Value};
use tenure_control::{Problem, ProblemCode};

/// The fields that were not taken yet. It has no `Debug`: one of them may be a token.
pub(super) struct CommandFields(pub(super) Map<String, Value>);

impl CommandFields {
    pub(super) fn optional_text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Problem::of_field(ProblemCode::InvalidType, name, "must be a string")),
        }
    }

    pub(super) fn text(&mut self, name: &str) -> Result<String, Problem> {
        let missing = || Problem::of_field(ProblemCode::MissingField, name, "is missing");
        self.optional_text(name)?.ok_or_else(missing)
    }

    pub(super) fn bounded_text(&mut self, name: &str, longest: usize) -> Result<String, Problem> {
        let text = self.text(name)?;
        checked(name, text, longest)
    }

    pub(super) fn optional_bounded_text(
        &mut self,
        name: &str,
        longest: usize,
    ) -> Result<Option<String>, Problem> {
        self.optional_text(name)?.map(|text| checked(name, text, longest)).transpose()
    }
}

fn checked(name: &str, text: String, longest: usize) -> Result<String, Problem> {
    let wrong = |why: String| Err(Problem::of_field(ProblemCode::InvalidValue, name, why));
    if text.is_empty() || text.len() > longest {
        return wrong(format!("has from 1 to {longest} bytes"));
    }
    if text.chars().any(char::is_control) {
        return wrong("has no control characters".to_owned());
    }
    Ok(text)
}
