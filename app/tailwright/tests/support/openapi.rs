//! Judges answers of the controller by its OpenAPI document, with an implementation of JSON Schema that is not ours.

use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The document as it is written in docs.
pub(crate) static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let text = std::fs::read_to_string(super::schema::folder().join("openapi.json"))
        .expect("docs/schemas/openapi.json");
    serde_json::from_str(&text).expect("JSON")
});

/// Validators that were made, by the place of their schema.
static VALIDATORS: LazyLock<std::sync::Mutex<BTreeMap<String, Validator>>> = LazyLock::new(Default::default);

/// Finds the operation of a request: its path in the document.
pub(crate) fn path_of(path: &str) -> Option<&'static str> {
    let path = path.split('?').next().unwrap_or_default();
    let paths = DOCUMENT["paths"].as_object().expect("an object").keys();
    // A path without variables goes first.
    let mut found: Vec<&str> = paths.map(String::as_str).filter(|described| fits(described, path)).collect();
    found.sort_by_key(|described| described.matches('{').count());
    found.first().copied()
}

fn fits(described: &str, path: &str) -> bool {
    let described: Vec<&str> = described.split('/').collect();
    let parts: Vec<&str> = path.split('/').collect();
    let is_same = |(described, part): (&&str, &&str)| described == part || described.starts_with('{');
    described.len() == parts.len() && described.iter().zip(&parts).all(is_same)
}

/// Checks an answer. Those of paths that the document does not have are pages for browsers.
#[track_caller]
pub(crate) fn check_answer(method: &str, path: &str, status: u16, media_type: Option<&str>, body: &str) {
    let Some(described) = path_of(path) else { return };
    let operation = &DOCUMENT["paths"][described][method.to_lowercase()];
    if operation.is_null() {
        assert_eq!(status, 405, "{method} {path} is not described: {body}");
        return;
    }
    let name = format!("{method} {path}, {status}");
    let mut place =
        format!("/paths/{}/{}/responses/{status}", described.replace('/', "~1"), method.to_lowercase());
    let mut response = DOCUMENT.pointer(&place).unwrap_or_else(|| panic!("{name} is not described: {body}"));
    if let Some(reference) = response["$ref"].as_str() {
        place = reference.trim_start_matches('#').to_owned();
        response = DOCUMENT.pointer(&place).expect("references lead somewhere");
    }
    let Some(content) = response["content"].as_object() else {
        assert_eq!(body, "", "{name} has no body");
        return;
    };
    let media_type = media_type.unwrap_or_default().split(';').next().unwrap_or_default();
    assert!(content.contains_key(media_type), "{name}: {media_type} is not described: {body}");
    if media_type != "application/json" {
        return;
    }
    let body: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{name}: {error}: {body}"));
    let place = format!("{place}/content/application~1json/schema");
    let mut validators = VALIDATORS.lock().expect("no test panics with it");
    let validator = validators.entry(place).or_insert_with_key(|place| validator(place));
    let errors: Vec<String> = validator
        .iter_errors(&body)
        .map(|error| format!("{}: {error:.300}", error.instance_path()))
        .collect();
    drop(validators);
    assert!(errors.is_empty(), "{name} is not what is described:\n{}\n{body:#}", errors.join("\n"));
}

/// Makes the validator of a schema of the document. Fields that it does not name are refused.
fn validator(place: &str) -> Validator {
    let mut components = DOCUMENT["components"].clone();
    super::schema::close(&mut components);
    let mut schema = DOCUMENT.pointer(place).expect("it is there").clone();
    super::schema::close(&mut schema);
    let root = json!({ "components": components, "allOf": [schema] });
    jsonschema::validator_for(&root).expect("a schema that can be used")
}
