//! `tailwright schemas`, a hidden verb: the schemas of all JSON documents, for docs/schemas.

use crate::formats;
use clap::Args;
use cli::exit::VerbAnswer;
use model::OperationError;
use operation::files::write_result;
use std::path::PathBuf;

/// Write the JSON Schema of every document that `--json` prints.
#[derive(Debug, Args)]
pub(crate) struct SchemasArgs {
    /// An existing folder that schemas are written to.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Returns the names and texts of the files of docs/schemas: the documents of `--json`, and the controller's interface.
pub(crate) fn files() -> Vec<(String, String)> {
    let documents = formats::all().into_iter().map(|format| (format!("{}.json", format.name), format.text()));
    let interface = ("openapi.json".to_owned(), serve_cli::interface_description().to_owned());
    documents.chain([interface]).collect()
}

pub(crate) fn run(args: &SchemasArgs) -> Result<VerbAnswer, OperationError> {
    for (name, text) in files() {
        write_result(&args.folder.join(name), &text, "schema")?;
    }
    Ok(VerbAnswer::Yes)
}
