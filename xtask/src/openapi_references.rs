//! An OpenAPI document without its references, so that two documents can be compared by what they promise.

use serde_json::{Map, Value, json};

/// Keywords for people. They promise nothing.
const ANNOTATIONS: &[&str] = &["description", "summary"];
/// Keywords whose value is data, and is kept as it is.
const LITERALS: &[&str] = &["const", "default", "enum", "example", "examples"];
/// Keywords whose keys are names: a `description` among them is a name, too.
const MAPS: &[&str] = &[
    "$defs",
    "callbacks",
    "content",
    "dependentSchemas",
    "encoding",
    "headers",
    "links",
    "mapping",
    "paths",
    "patternProperties",
    "properties",
    "responses",
    "scopes",
    "securitySchemes",
    "variables",
    "webhooks",
];

/// Replaces every `$ref` by what it names, and removes descriptions, summaries and the names of components.
///
/// - Keys are sorted.
/// - A reference to a component that is being expanded becomes `{"$ref-cycle": n}`: it names the value `n` levels further up.
/// - `components` keeps `securitySchemes`, whose names are part of the interface, and has in `unreferenced` the components
///   that no other part of the document names.
/// - A reference with other keywords beside it becomes `{"allOf": [referenced, rest]}`.
/// - A reference to a value that does not exist is kept.
pub fn resolve_references(document: &Value) -> Value {
    let mut expansion = Expansion { document, open: Vec::new() };
    let mut result = Value::Object(Map::new());
    for (key, value) in document.as_object().into_iter().flatten().filter(|(key, _)| *key != "components") {
        result[key] = expansion.field(key, value, 1);
    }
    let Some(components) = document.get("components").and_then(Value::as_object) else { return result };
    if let Some(schemes) = components.get("securitySchemes") {
        result["components"]["securitySchemes"] = expansion.field("securitySchemes", schemes, 2);
    }
    let mut unreferenced = Vec::new();
    for (kind, group) in components.iter().filter(|(kind, _)| *kind != "securitySchemes") {
        for (name, component) in group.as_object().into_iter().flatten() {
            if !is_referenced(document, &format!("#/components/{kind}/{name}"), component) {
                unreferenced.push(expansion.expand(component, 3));
            }
        }
    }
    unreferenced.sort_by_cached_key(Value::to_string);
    if !unreferenced.is_empty() {
        result["components"]["unreferenced"] = unreferenced.into();
    }
    result
}

/// Whether a reference outside of `component` names it.
fn is_referenced(document: &Value, pointer: &str, component: &Value) -> bool {
    fn count(value: &Value, pointer: &str) -> usize {
        match value {
            Value::Object(fields) => {
                let here = usize::from(fields.get("$ref").is_some_and(|named| named == pointer));
                here + fields.values().map(|value| count(value, pointer)).sum::<usize>()
            }
            Value::Array(items) => items.iter().map(|item| count(item, pointer)).sum(),
            _ => 0,
        }
    }
    count(document, pointer) > count(component, pointer)
}

struct Expansion<'a> {
    document: &'a Value,
    /// The references that are being expanded, and at which level each is.
    open: Vec<(&'a str, usize)>,
}

impl<'a> Expansion<'a> {
    /// Expands the value of a keyword.
    fn field(&mut self, key: &str, value: &'a Value, level: usize) -> Value {
        match value {
            literal if LITERALS.contains(&key) => literal.clone(),
            Value::Object(named) if MAPS.contains(&key) => {
                object(named.iter().map(|(name, value)| (name, self.expand(value, level + 1))))
            }
            value => self.expand(value, level),
        }
    }

    /// Expands a value whose keys, if it is an object, are keywords.
    fn expand(&mut self, value: &'a Value, level: usize) -> Value {
        match value {
            Value::Object(fields) => {
                let mut siblings: Vec<_> =
                    fields.iter().filter(|(key, _)| !ANNOTATIONS.contains(&key.as_str())).collect();
                let reference = fields.get("$ref").and_then(Value::as_str);
                let target = reference.and_then(|name| Some((name, self.target(name)?)));
                let Some((name, target)) = target else {
                    return object(
                        siblings.into_iter().map(|(key, value)| (key, self.field(key, value, level + 1))),
                    );
                };
                siblings.retain(|(key, _)| *key != "$ref");
                if siblings.is_empty() {
                    return self.expand_reference(name, target, level);
                }
                let target = self.expand_reference(name, target, level + 2);
                let rest =
                    object(siblings.into_iter().map(|(key, value)| (key, self.field(key, value, level + 3))));
                json!({ "allOf": [target, rest] })
            }
            Value::Array(items) => items.iter().map(|item| self.expand(item, level + 1)).collect(),
            scalar => scalar.clone(),
        }
    }

    fn target(&self, reference: &str) -> Option<&'a Value> {
        self.document.pointer(reference.strip_prefix('#')?)
    }

    fn expand_reference(&mut self, name: &'a str, target: &'a Value, level: usize) -> Value {
        if let Some((_, opened_at)) = self.open.iter().find(|(open, _)| *open == name) {
            return json!({ "$ref-cycle": level - opened_at });
        }
        self.open.push((name, level));
        let expanded = self.expand(target, level);
        self.open.pop();
        expanded
    }
}

/// An object. `serde_json` sorts its keys.
fn object<'a>(fields: impl Iterator<Item = (&'a String, Value)>) -> Value {
    fields.map(|(key, value)| (key.clone(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expands `schema` in a document with these components.
    fn expanded(schema: &Value, components: &Value) -> Value {
        resolve_references(&json!({ "paths": { "/a": schema }, "components": components }))["paths"]["/a"]
            .take()
    }

    #[test]
    fn references_are_replaced_by_what_they_name() {
        let components = json!({
            "schemas": { "Count": { "type": "integer" }, "Pair": { "items": { "$ref": "#/components/schemas/Count" } } },
            "responses": { "Done": { "description": "Done", "schema": { "$ref": "#/components/schemas/Pair" } } },
        });
        let named = json!({ "get": { "responses": { "200": { "$ref": "#/components/responses/Done" } } } });
        let inline =
            json!({ "get": { "responses": { "200": { "schema": { "items": { "type": "integer" } } } } } });
        assert_eq!(expanded(&named, &components), inline);
    }

    #[test]
    fn documents_that_differ_in_component_names_and_texts_only_are_equal() {
        let document = |name: &str, text: &str| {
            json!({
                "openapi": "3.1.0",
                "info": { "title": "Tenure", "description": text },
                "paths": { "/a": { "summary": text, "schema": { "$ref": format!("#/components/schemas/{name}") } } },
                "components": { "schemas": { name: { "description": text, "type": "string" } } },
            })
        };
        assert_eq!(resolve_references(&document("A", "one")), resolve_references(&document("B", "two")));
    }

    #[test]
    fn a_property_called_description_is_kept() {
        let schema =
            json!({ "properties": { "description": { "description": "For people", "type": "string" } } });
        let kept = json!({ "properties": { "description": { "type": "string" } } });
        assert_eq!(expanded(&schema, &json!({})), kept);
    }

    #[test]
    fn data_is_kept_as_it_is() {
        let schema = json!({ "example": { "description": "red", "$ref": "#/paths" }, "enum": ["b", "a"] });
        assert_eq!(expanded(&schema, &json!({})), schema);
        let schema = json!({ "properties": { "example": { "description": "For people" } } });
        assert_eq!(expanded(&schema, &json!({})), json!({ "properties": { "example": {} } }));
    }

    #[test]
    fn a_cycle_ends_with_the_number_of_levels_to_its_start() {
        let components = json!({ "schemas": {
            "Tree": { "properties": { "children": { "items": { "$ref": "#/components/schemas/Tree" } } } },
        }});
        let tree = json!({ "properties": { "children": { "items": { "$ref-cycle": 3 } } } });
        assert_eq!(expanded(&json!({ "$ref": "#/components/schemas/Tree" }), &components), tree);
        // The same with a component in between.
        let components = json!({ "schemas": {
            "Tree": { "properties": { "children": { "$ref": "#/components/schemas/Children" } } },
            "Children": { "items": { "$ref": "#/components/schemas/Tree" } },
        }});
        assert_eq!(expanded(&json!({ "$ref": "#/components/schemas/Tree" }), &components), tree);
    }

    #[test]
    fn a_component_that_is_used_twice_is_no_cycle() {
        let components = json!({ "schemas": { "Id": { "type": "string" } } });
        let id = json!({ "$ref": "#/components/schemas/Id" });
        let twice = json!({ "properties": { "a": { "type": "string" }, "b": { "type": "string" } } });
        assert_eq!(expanded(&json!({ "properties": { "a": id, "b": id } }), &components), twice);
    }

    #[test]
    fn keywords_beside_a_reference_are_kept_unless_they_are_texts() {
        let components = json!({ "schemas": { "Id": { "type": "string" } } });
        let reference = "#/components/schemas/Id";
        let described = json!({ "$ref": reference, "description": "For people" });
        assert_eq!(expanded(&described, &components), json!({ "type": "string" }));
        let bounded = json!({ "$ref": reference, "maxLength": 3 });
        let both = json!({ "allOf": [{ "type": "string" }, { "maxLength": 3 }] });
        assert_eq!(expanded(&bounded, &components), both);
    }

    #[test]
    fn an_unknown_reference_is_kept() {
        let reference = json!({ "$ref": "#/components/schemas/Missing" });
        assert_eq!(expanded(&reference, &json!({})), reference);
    }

    #[test]
    fn components_that_nothing_names_are_kept_without_their_names() {
        let with = |names: [&str; 2]| {
            json!({ "components": {
                "schemas": { names[0]: { "type": "string" }, names[1]: { "type": "integer" } },
                "securitySchemes": { "bearer": { "type": "http", "description": "A token" } },
            }})
        };
        let kept = json!({ "components": {
            "unreferenced": [{ "type": "integer" }, { "type": "string" }],
            "securitySchemes": { "bearer": { "type": "http" } },
        }});
        assert_eq!(resolve_references(&with(["A", "B"])), kept);
        assert_eq!(resolve_references(&with(["B", "A"])), kept);
    }

    #[test]
    fn keys_are_sorted() {
        let text =
            resolve_references(&json!({ "paths": { "/b": { "z": 1, "a": 2 }, "/a": {} } })).to_string();
        assert_eq!(text, r#"{"paths":{"/a":{},"/b":{"a":2,"z":1}}}"#);
    }

    #[test]
    fn committed_openapi_document_has_no_dangling_reference() {
        let text = include_str!("../../docs/openapi.json");
        let text = resolve_references(&serde_json::from_str(text).unwrap()).to_string();
        assert!(text.len() > 100_000 && !text.contains("\"$ref\""), "{} bytes", text.len());
    }
}
