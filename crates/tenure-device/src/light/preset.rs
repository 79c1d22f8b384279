//! Presets: looks that are kept under a name.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tenure_control::problem::{Problem, ProblemCode};

use super::effect::Effect;
use super::parameters::Parameters;

pub const MAX_PRESETS: usize = 32;
/// How many characters a name has at most.
pub const MAX_NAME_CHARACTERS: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Preset {
    /// What programs call it: lower-case letters, digits, `-` and `_`.
    pub id: String,
    pub name: String,
    pub effect: Effect,
    pub parameters: Parameters,
}

impl Preset {
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "effectId": self.effect.number(),
            "effectName": self.effect.name(),
            "parameters": self.parameters.to_json(),
        })
    }
}

/// All that are kept, in the order of their ids.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Presets(Vec<Preset>);

impl Presets {
    pub fn all(&self) -> &[Preset] {
        &self.0
    }

    pub fn get(&self, id: &str) -> Result<&Preset, Problem> {
        let preset = self.0.iter().find(|preset| preset.id == id);
        preset.ok_or_else(|| {
            let message = "names no preset that is kept; presets.list says which there are";
            Problem::of_field(ProblemCode::NotFound, "id", message)
        })
    }

    /// Keeps one more, or another one under an id that is taken.
    pub fn save(&mut self, preset: Preset, may_replace: bool) -> Result<(), Problem> {
        match self.0.binary_search_by(|kept| kept.id.cmp(&preset.id)) {
            Ok(place) if may_replace => self.0[place] = preset,
            Ok(_) => {
                let message = "is taken by another preset; send \"replace\": true to put this one in its place, or choose another";
                return Err(Problem::of_field(ProblemCode::Conflict, "id", message));
            }
            Err(_) if self.0.len() >= MAX_PRESETS => {
                let message =
                    format!("There are {MAX_PRESETS} presets, and that is the most; delete one first");
                return Err(Problem::new(ProblemCode::StorageFull, message));
            }
            Err(place) => self.0.insert(place, preset),
        }
        Ok(())
    }

    pub fn delete(&mut self, id: &str) -> Result<(), Problem> {
        self.get(id)?;
        self.0.retain(|preset| preset.id != id);
        Ok(())
    }

    /// Whether this program can have stored them.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.0.len() > MAX_PRESETS {
            return Err("there are more than 32 presets");
        }
        if !self.0.is_sorted_by(|one, next| one.id < next.id) {
            return Err("the presets are not in the order of their ids, or one stands twice");
        }
        for preset in &self.0 {
            check_id(&preset.id).map_err(|_| "a preset's `id` is none")?;
            check_name("name", &preset.name).map_err(|_| "a preset's `name` is none")?;
            preset.parameters.check()?;
        }
        Ok(())
    }
}

/// Whether people can call something this.
pub fn check_name(field: &str, name: &str) -> Result<(), Problem> {
    let is_fine = (1..=MAX_NAME_CHARACTERS).contains(&name.chars().count())
        && !name.chars().any(char::is_control)
        && name.trim() == name;
    if is_fine {
        return Ok(());
    }
    let message = format!(
        "must have 1 to {MAX_NAME_CHARACTERS} characters, none of them a control character, and no space at either end"
    );
    Err(Problem::of_field(ProblemCode::InvalidValue, field, message))
}

/// Whether programs can call a preset this.
pub fn check_id(id: &str) -> Result<(), Problem> {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    if (1..=MAX_NAME_CHARACTERS).contains(&id.len()) && id.bytes().all(is_part) {
        return Ok(());
    }
    let message = format!("must be 1 to {MAX_NAME_CHARACTERS} of: lower-case letters, digits, - and _");
    Err(Problem::of_field(ProblemCode::InvalidValue, "id", message))
}

/// The id that follows from a name: `Warm white` is `warm-white`.
pub fn id_from_name(name: &str) -> Result<String, Problem> {
    let words = name.split(|character: char| !character.is_ascii_alphanumeric());
    let id = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-").to_ascii_lowercase();
    if id.is_empty() {
        let message =
            "has no letter of a to z and no digit that an id could be made of; send an `id` as well";
        return Err(Problem::of_field(ProblemCode::InvalidValue, "name", message));
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(id: &str) -> Preset {
        let effect = Effect::named("comet").expect("it is there");
        Preset { id: id.to_owned(), name: id.to_owned(), effect, parameters: Parameters::default() }
    }

    #[test]
    fn preset_ids_are_derived_from_names() {
        assert_eq!(id_from_name("Warm white, 2").as_deref(), Ok("warm-white-2"));
        assert_eq!(id_from_name("日本").expect_err("no letters").code, ProblemCode::InvalidValue);
    }

    #[test]
    fn ambiguous_or_unprintable_preset_names_are_rejected() {
        for name in ["", " a", "a ", "a\nb", "\u{7f}", &"a".repeat(33)] {
            assert!(check_name("name", name).is_err(), "{name:?}");
        }
        assert_eq!(check_name("name", &"ä".repeat(32)), Ok(()));
        for id in ["", "A", "a b", "ä", "a/b", "..", &"a".repeat(33)] {
            assert!(check_id(id).is_err(), "{id:?}");
        }
        assert_eq!(check_id("warm-white_2"), Ok(()));
    }

    #[test]
    fn thirty_two_presets_fit_and_replacing_one_takes_no_slot() {
        let mut presets = Presets::default();
        for number in (0..MAX_PRESETS).rev() {
            presets.save(preset(&format!("p{number:02}")), false).expect("there is room");
        }
        assert_eq!(presets.save(preset("one-more"), true).expect_err("full").code, ProblemCode::StorageFull);
        assert_eq!(presets.save(preset("p07"), false).expect_err("taken").code, ProblemCode::Conflict);
        presets.save(preset("p07"), true).expect("it may be replaced");
        assert_eq!((presets.all().len(), presets.check()), (MAX_PRESETS, Ok(())));
        presets.delete("p07").expect("it is there");
        assert_eq!(presets.delete("p07").expect_err("it is gone").code, ProblemCode::NotFound);
        presets.save(preset("one-more"), false).expect("there is room again");
    }
}
