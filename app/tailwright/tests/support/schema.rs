//! Judges JSON documents by the schemas in docs/schemas, with an implementation that is not ours.

use jsonschema::Validator;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The folder of the schemas.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas")
}

/// Checks what `--json` has printed: one document, or one in each line. Gives the names of their formats.
#[track_caller]
pub(crate) fn check(text: &str) -> Vec<String> {
    match serde_json::from_str::<Value>(text) {
        Ok(document) => vec![check_document(&document)],
        Err(_) => text.lines().map(|line| check_document(&parsed(line))).collect(),
    }
}

#[track_caller]
fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// Checks one document and gives the name of its format.
#[track_caller]
pub(crate) fn check_document(document: &Value) -> String {
    let format = document["format"].as_str().unwrap_or_else(|| panic!("no format: {document}"));
    let name = format.strip_prefix("tailwright.").unwrap_or_else(|| panic!("the format is {format}"));
    let errors: Vec<String> = validator(name)
        .iter_errors(document)
        .map(|error| format!("{}: {error:.300}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "not a {format}:\n{}", errors.join("\n"));
    name.to_owned()
}

fn validator(name: &str) -> Validator {
    let text = std::fs::read_to_string(folder().join(format!("{name}.json")))
        .unwrap_or_else(|error| panic!("docs/schemas/{name}.json: {error}"));
    let mut schema: Value = serde_json::from_str(&text).expect("a schema is JSON");
    close(&mut schema);
    jsonschema::validator_for(&schema).expect("a schema that can be used")
}

/// Refuses fields that the schema does not name: readers must pass over them, but then nothing would say what they are.
pub(crate) fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_open = is_open_object(fields);
            if is_open {
                fields.insert("unevaluatedProperties".to_owned(), Value::Bool(false));
            }
            for (name, field) in fields.iter_mut() {
                match field {
                    // These describe other fields of the same object.
                    Value::Array(parts)
                        if is_open && ["allOf", "anyOf", "oneOf"].contains(&name.as_str()) =>
                    {
                        parts.iter_mut().filter_map(Value::as_object_mut).for_each(close_parts);
                    }
                    field => close(field),
                }
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(close),
        _ => {}
    }
}

fn close_parts(fields: &mut Map<String, Value>) {
    fields.values_mut().for_each(close);
}

fn is_open_object(fields: &Map<String, Value>) -> bool {
    let is_schema = fields.get("properties").is_some_and(Value::is_object) && fields.contains_key("type");
    is_schema && !fields.contains_key("additionalProperties")
}
