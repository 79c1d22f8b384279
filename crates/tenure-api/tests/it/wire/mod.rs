//! One golden sample of every wire type: with every optional field, and with none.

mod agents;
mod files;
mod leases;
mod work;

use std::any::type_name;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::golden::assert_golden;

const AT: &str = "2026-01-02T03:04:05.678Z";
const LATER: &str = "2026-01-02T03:04:35.678Z";

/// The serialized samples, and the names of their types.
#[derive(Default)]
struct Samples {
    lines: Vec<String>,
    types: BTreeSet<&'static str>,
}

impl Samples {
    /// Reading a sample and writing it again changes nothing.
    fn add<T: Serialize + DeserializeOwned>(&mut self, samples: impl IntoIterator<Item = T>) {
        let name = type_name::<T>().rsplit("::").next().unwrap();
        assert!(self.types.insert(name), "{name} has samples already");
        for sample in samples {
            let text = serde_json::to_string(&sample).unwrap();
            let again: T =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name} {text}: {error}"));
            assert_eq!(serde_json::to_string(&again).unwrap(), text, "{name}");
            let line = format!("{name} {text}");
            if self.lines.last() != Some(&line) {
                self.lines.push(line);
            }
        }
    }
}

fn samples() -> Samples {
    let mut samples = Samples::default();
    leases::add_samples(&mut samples);
    work::add_samples(&mut samples);
    agents::add_samples(&mut samples);
    files::add_samples(&mut samples);
    samples
}

/// The value if optional fields are wanted.
fn some<T>(full: bool, value: impl Into<T>) -> Option<T> {
    full.then(|| value.into())
}

/// The values if optional fields are wanted.
fn list<T, const N: usize>(full: bool, values: [T; N]) -> Vec<T> {
    if full { values.into() } else { Vec::new() }
}

/// Texts if optional fields are wanted.
fn texts<const N: usize>(full: bool, values: [&str; N]) -> Vec<String> {
    list(full, values.map(str::to_owned))
}

fn labels(full: bool) -> BTreeMap<String, String> {
    list(full, [("run".to_owned(), "7".to_owned()), ("team".to_owned(), "ops".to_owned())])
        .into_iter()
        .collect()
}

/// Both samples of a type: with every optional field, and with none.
fn full_and_none<T>(make: impl Fn(bool) -> T) -> [T; 2] {
    [make(true), make(false)]
}

#[test]
fn every_wire_type_has_its_recorded_json() {
    assert_golden("wire.txt", &(samples().lines.join("\n") + "\n"));
}

#[test]
fn every_wire_type_in_the_source_has_samples() {
    let mut found = BTreeSet::new();
    find_types(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    let sampled: BTreeSet<String> = samples().types.into_iter().map(str::to_owned).collect();
    assert_eq!(sampled, found, "samples, and types in the source");
    assert!(found.len() > 100, "{}", found.len());
}

/// The types below `folder` that serialize. Each of them deserializes too.
fn find_types(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find_types(&path, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        for (at, _) in text.match_indices("#[derive(") {
            let (traits, rest) = text[at..].split_once(")]").unwrap();
            let traits: Vec<_> = traits["#[derive(".len()..]
                .split(',')
                .map(|name| name.trim().rsplit("::").next().unwrap())
                .collect();
            let (out, into) = (traits.contains(&"Serialize"), traits.contains(&"Deserialize"));
            if !out && !into {
                continue;
            }
            let item = rest.lines().find_map(|line| {
                let line = line.trim().strip_prefix("pub ")?;
                line.strip_prefix("struct ").or_else(|| line.strip_prefix("enum "))
            });
            let item = item.unwrap_or_else(|| panic!("a wire type in {} that is not public", path.display()));
            let name = item.split(|character: char| !character.is_alphanumeric()).next().unwrap();
            assert!(out && into, "{name} is written or read, and not both");
            found.insert(name.to_owned());
        }
    }
}
