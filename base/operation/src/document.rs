//! Answers as JSON documents: each says its format and version, and has a JSON Schema made from its type.
//!
//! A document is an object whose `format` is `tailwright.NAME`. Its `version` grows when a field is removed or changes its
//! meaning. Each crate that defines documents lists them with [`documents!`](crate::documents); docs/schemas has the schemas.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Value, json};

/// A document with the name and version that it carries.
pub trait JsonDocument: Serialize + JsonSchema {
    /// Second part of its format, `tailwright.NAME`.
    const NAME: &'static str;
    /// Version of its fields.
    const VERSION: u32;
}

/// Format of a document: its name and schema.
pub struct DocumentFormat {
    /// Second part of the format, `tailwright.NAME`; also the name of the schema's file.
    pub name: &'static str,
    /// Schema of its fields.
    pub schema: Schema,
}

impl DocumentFormat {
    /// Returns the text of the schema's file.
    pub fn text(&self) -> String {
        pretty(&self.schema)
    }
}

/// Lists the documents of a crate: their types, names and versions.
///
/// Implements [`JsonDocument`](crate::document::JsonDocument) for each and defines `documents()`, which returns their formats.
#[macro_export]
macro_rules! documents {
    ($($document:ty: $name:literal, $version:literal;)*) => {
        $(impl $crate::document::JsonDocument for $document {
            const NAME: &'static str = $name;
            const VERSION: u32 = $version;
        })*

        /// Returns the formats of the documents of this crate.
        pub fn documents() -> Vec<$crate::document::DocumentFormat> {
            vec![$($crate::document::format_of::<$document>()),*]
        }
    };
}

/// Format and version, followed by the content.
#[derive(Serialize)]
struct NamedDocument<'a, D> {
    format: String,
    version: u32,
    #[serde(flatten)]
    content: &'a D,
}

impl<'a, D: JsonDocument> NamedDocument<'a, D> {
    fn of(content: &'a D) -> Self {
        Self { format: format!("tailwright.{}", D::NAME), version: D::VERSION, content }
    }
}

/// Returns a document with its format and version, indented.
pub fn document<D: JsonDocument>(content: &D) -> String {
    pretty(&NamedDocument::of(content))
}

/// Returns a document with its format and version, in one line.
///
/// # Panics
///
/// When a map in it has keys other than text.
pub fn line<D: JsonDocument>(content: &D) -> String {
    let mut text =
        serde_json::to_string(&NamedDocument::of(content)).expect("plain data with text keys serialises");
    text.push('\n');
    text
}

/// Returns a value that states its format itself, such as a policy, indented.
///
/// # Panics
///
/// When a map in it has keys other than text.
pub fn pretty(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain data with text keys serialises");
    text.push('\n');
    text
}

/// Returns the format of a document.
pub fn format_of<D: JsonDocument>() -> DocumentFormat {
    let mut schema = schema_of::<D>();
    let format = format!("tailwright.{}", D::NAME);
    schema.insert("title".to_owned(), D::NAME.into());
    let object = schema.ensure_object();
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.insert("format".to_owned(), json!({ "type": "string", "const": format }));
        properties.insert("version".to_owned(), json!({ "type": "integer", "const": D::VERSION }));
    }
    if let Some(Value::Array(required)) = object.get_mut("required") {
        required.splice(0..0, ["format".into(), "version".into()]);
    }
    DocumentFormat { name: D::NAME, schema }
}

/// Returns the schema of a type as it serialises, with the units of its fields.
pub fn schema_of<T: JsonSchema>() -> Schema {
    let mut schema =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    schema.ensure_object().values_mut().for_each(say_units);
    schema
}

/// Units by the end of a field's name; the first match counts.
const UNITS: [(&str, &str); 7] = [
    ("bytes_per_s", "Bytes per second."),
    ("_per_s", "Per second."),
    ("_s2", "Square seconds."),
    ("_s", "Seconds."),
    ("bytes", "Bytes."),
    ("_pct", "Percent."),
    ("_j", "Joules."),
];

/// Describes the fields that have a unit and no description of their own.
fn say_units(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                let unit = UNITS.iter().find(|(ending, _)| name.ends_with(ending));
                if let (Some((_, unit)), Value::Object(field)) = (unit, &mut *field)
                    && field.contains_key("type")
                {
                    field.entry("description").or_insert_with(|| (*unit).into());
                }
                say_units(field);
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(say_units),
        _ => {}
    }
}
