//! The description of the interface as an OpenAPI document (OpenAPI Specification 3.1.0), from the operations that the
//! router is made of and from the types of their bodies.

use crate::documents::AlertPost;
use crate::error::ErrorDocument;
use crate::operation::Operation;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const INTRODUCTION: &str = "Who is promised what on a running cluster. Every operation but `getHealth` and `getDescription` \
    needs a token: `Authorization: Bearer TOKEN`. A token has one role: `operator`, `tenant` (its own workloads), `agent` \
    (reports of its host) or `metrics`. `x-roles` of an operation names the roles that may call it.";

/// Meanings of the statuses of errors, in the order of their numbers.
const ERRORS: [(u16, &str, &str); 13] = [
    (400, "Malformed", "A parameter, a header or the body is malformed, or asks for what can never be."),
    (401, "NoToken", "There is no token, or it is unknown or revoked."),
    (403, "WrongRole", "The role of the token may not do this."),
    (404, "NotThere", "There is no such thing."),
    (408, "Stalled", "The body stopped coming."),
    (409, "Conflict", "It does not suit the present state of the cluster."),
    (412, "Changed", "The description is not the one that `If-Match` names. Nothing was replaced."),
    (413, "TooLarge", "The body is too large."),
    (415, "WrongType", "The body has another `Content-Type` than is expected."),
    (422, "WrongDocument", "The body is JSON, and not the document that is expected."),
    (429, "TooManyStreams", "The token has too many streams open."),
    (
        503,
        "Stopped",
        "The controller has stopped deciding and has to be restarted; what was answered is stored.",
    ),
    (507, "DiskFull", "The disk cannot be written. Nothing was changed."),
];

fn generator(settings: SchemaSettings) -> SchemaGenerator {
    let place = |settings: &mut SchemaSettings| settings.definitions_path = "/components/schemas".into();
    settings.with(place).into_generator()
}

/// Describes operations.
pub(crate) fn document(operations: &[Operation]) -> Value {
    // A field that clients may leave out can be one that the controller always writes. A type that is sent and answered is described as sent.
    let mut sent = generator(SchemaSettings::draft2020_12().for_deserialize());
    let mut answered = generator(SchemaSettings::draft2020_12().for_serialize());
    let error = answered.subschema_for::<ErrorDocument>();
    let mut paths: Map<String, Value> = Map::new();
    let mut statuses = BTreeSet::new();
    for operation in operations {
        let errors = errors_of(operation);
        let entry = paths.entry(operation.path).or_insert_with(|| json!({}));
        entry[operation.method] = described(operation, &errors, &mut sent, &mut answered);
        statuses.extend(errors);
    }
    let alerts = answered.subschema_for::<AlertPost>();
    let mut schemas = answered.take_definitions(true);
    schemas.extend(sent.take_definitions(true));
    schemas.values_mut().for_each(join_words);
    let used = ERRORS.iter().filter(|(status, ..)| statuses.contains(status));
    let responses: Map<String, Value> = used
        .map(|(_, name, meaning)| {
            let response =
                json!({ "description": meaning, "content": { "application/json": { "schema": error } } });
            ((*name).to_owned(), response)
        })
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tailwright controller",
            "version": env!("CARGO_PKG_VERSION"),
            "description": INTRODUCTION,
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "webhooks": { "alerts": { "post": {
            "operationId": "alerts",
            "summary": "Changes of alerts, posted by the controller to the receivers of `--webhook`",
            "description": "Comes again until it is answered with a status of 200 to 299.",
            "security": [],
            "parameters": [{
                "name": "Tailwright-Signature", "in": "header", "required": true, "schema": { "type": "string" },
                "description": "`t=SECONDS,v1=HEX`: HMAC-SHA256 of `SECONDS.BODY` with the secret of `--webhook-secret`.",
            }],
            "requestBody": { "required": true, "content": { "application/json": { "schema": alerts } } },
            "responses": { "2XX": { "description": "It was taken." } },
        } } },
        "components": {
            "schemas": schemas,
            "responses": responses,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

/// Writes a choice of words as `enum`, with their meanings in the description. Generators of clients take a `oneOf` of
/// constants, which could describe each, for a choice of types.
fn join_words(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(join_words),
        Value::Object(fields) => {
            if let Some((words, meanings)) = fields.get("oneOf").and_then(Value::as_array).and_then(words_of)
            {
                fields.remove("oneOf");
                let own = fields.get("description").and_then(Value::as_str).map(str::to_owned);
                let description: Vec<String> = own.into_iter().chain(meanings).collect();
                fields.insert("type".to_owned(), "string".into());
                fields.insert("enum".to_owned(), words.into());
                fields.insert("description".to_owned(), description.join("\n\n").into());
            }
            fields.values_mut().for_each(join_words);
        }
        _ => {}
    }
}

/// Returns words and meanings of a choice; `None` if there is anything else to choose.
fn words_of(choice: &Vec<Value>) -> Option<(Vec<Value>, Vec<String>)> {
    let mut words = Vec::new();
    let mut meanings = Vec::new();
    for option in choice {
        let own = match (option.get("const"), option["enum"].as_array()) {
            (Some(word), _) => vec![word.clone()],
            (None, Some(words)) => words.clone(),
            (None, None) => return None,
        };
        if option["type"] != "string" {
            return None;
        }
        if let Some(meaning) = option["description"].as_str() {
            meanings.push(format!("`{}`: {meaning}", own[0].as_str()?));
        }
        words.extend(own);
    }
    Some((words, meanings))
}

/// Returns the statuses of errors of an operation: those that its token, its body and its parameters can cause, and its own.
fn errors_of(operation: &Operation) -> BTreeSet<u16> {
    let mut errors: BTreeSet<u16> = operation.errors.iter().copied().collect();
    if !operation.callers.is_empty() {
        errors.extend([401, 403]);
    }
    if operation.body.is_some() {
        errors.extend([400, 413]);
    }
    if operation.query.is_some() {
        errors.insert(400);
    }
    if operation.method != "get" {
        errors.extend([503, 507]);
    }
    errors
}

fn described(
    operation: &Operation,
    errors: &BTreeSet<u16>,
    sent: &mut SchemaGenerator,
    answered: &mut SchemaGenerator,
) -> Value {
    let mut answer = json!({ "description": operation.summary });
    if let Some(content) = operation.content {
        answer["content"] = content(answered);
    }
    if operation.has_tag {
        let tag = "Entity tag of the description, for `If-Match`.";
        answer["headers"] = json!({ "ETag": { "description": tag, "schema": { "type": "string" } } });
    }
    let mut responses = json!({ (operation.status.to_string()): answer });
    for status in errors {
        let known = ERRORS.iter().find(|(known, ..)| known == status);
        let (_, name, _) = known.expect("every status has a meaning");
        responses[status.to_string()] = json!({ "$ref": format!("#/components/responses/{name}") });
    }
    let roles: Vec<&str> = operation.callers.iter().map(|role| role.word()).collect();
    let whose = match roles.as_slice() {
        [] => "No token is needed.".to_owned(),
        roles => format!("Roles: {}.", roles.join(", ")),
    };
    let description = operation.detail.map_or_else(|| whose.clone(), |detail| format!("{detail} {whose}"));
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "description": description,
        "x-roles": roles,
        "parameters": parameters(operation, sent),
        "responses": responses,
    });
    if operation.callers.is_empty() {
        described["security"] = json!([]);
    }
    if let Some(body) = operation.body {
        described["requestBody"] = json!({ "required": true, "content": body(sent) });
    }
    described
}

fn parameters(operation: &Operation, schemas: &mut SchemaGenerator) -> Vec<Value> {
    let mut parameters = Vec::new();
    let text = json!({ "type": "string" });
    for part in operation.path.split('/') {
        if let Some(name) = part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
            parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": text }));
        }
    }
    let query = operation.query.map(|query| query(schemas)).unwrap_or_default();
    for (name, schema) in query["properties"].as_object().into_iter().flatten() {
        let mut schema = schema.clone();
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        let required = query["required"].as_array().is_some_and(|required| required.contains(&json!(name)));
        let mut parameter = json!({ "name": name, "in": "query", "required": required, "schema": schema });
        if let Some(description) = description {
            parameter["description"] = description;
        }
        parameters.push(parameter);
    }
    for (name, meaning) in &operation.headers {
        parameters.push(json!({ "name": name, "in": "header", "required": false, "description": meaning, "schema": text }));
    }
    parameters
}
