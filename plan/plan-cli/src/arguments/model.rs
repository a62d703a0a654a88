//! Arguments that name models and admission procedures.

use clap::builder::TypedValueParser;
use cli::choice::value_of;
use plan::prediction::{ModelName, PROCEDURES, ProcedureName};

/// Creates a parser of the names of models.
pub(crate) fn model() -> impl TypedValueParser<Value = ModelName> {
    let models = PROCEDURES.iter().filter_map(|row| match row.procedure {
        ProcedureName::ByModel(model) => Some((model, row.name, row.words)),
        _ => None,
    });
    value_of(models)
}

/// Creates a parser of the names of admission procedures.
pub(crate) fn procedure() -> impl TypedValueParser<Value = ProcedureName> {
    value_of(PROCEDURES.iter().map(|row| (row.procedure, row.name, row.words)))
}
