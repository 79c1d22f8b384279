//! Compares responses with `docs/openapi.json`, which a test of the server compares with the code.

use std::sync::OnceLock;

use serde_json::Value;

use crate::http::Response;

/// The OpenAPI document of the repository.
pub fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    DOCUMENT.get_or_init(|| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
}

/// The operation that a request line such as `GET /v1/leases?limit=1` asks for, if there is one.
fn operation(line: &str) -> Option<&'static Value> {
    let (method, target) = line.split_once(' ')?;
    let path = target.split('?').next()?;
    let matches = |template: &str| {
        let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
        let pairs = || template.iter().zip(&path);
        template.len() == path.len() && pairs().all(|(part, found)| part.starts_with('{') || part == found)
    };
    let paths = document()["paths"].as_object()?;
    // What is named exactly comes before what stands for anything.
    let exact = paths.get(path);
    let found =
        exact.or_else(|| paths.iter().find(|(template, _)| matches(template)).map(|(_, item)| item))?;
    found.get(method.to_ascii_lowercase())
}

/// Fails if the document does not have this response to that request.
#[track_caller]
pub fn assert_documented(line: &str, answer: &Response) {
    let Some(operation) = operation(line) else { return };
    let mut response = &operation["responses"][answer.status.to_string()];
    if let Some(name) = response["$ref"].as_str() {
        response = document().pointer(&name[1..]).unwrap();
    }
    assert!(response.is_object(), "{line}: no {} is described: {answer:?}", answer.status);
    let media_type = answer.header("content-type").unwrap_or_default();
    let content = &response["content"][media_type];
    assert!(content.is_object(), "{line}: no {media_type} is described: {answer:?}");
    if answer.status >= 400 {
        let own = &content["schema"]["allOf"][1]["properties"];
        // The device says what is wrong one level deeper.
        let (codes, code) = match own["error"]["properties"]["code"]["enum"].as_array() {
            Some(codes) => (codes, answer.json()["error"]["code"].clone()),
            None => (own["code"]["enum"].as_array().unwrap(), answer.json()["code"].clone()),
        };
        assert!(codes.contains(&code), "{line}: the code is not described: {answer:?}");
    }
}
