//! `tailwright schemas`, a hidden verb: the schemas of all JSON documents, for docs/schemas.

use crate::exit::VerbAnswer;
use crate::formats;
use clap::Args;
use model::OperationError;
use std::path::PathBuf;
use workflow::files::write_result;

/// Write the JSON Schema of every document that `--json` prints.
#[derive(Debug, Args)]
pub(crate) struct SchemasArgs {
    /// An existing folder that schemas are written to.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub(crate) fn run(args: &SchemasArgs) -> Result<VerbAnswer, OperationError> {
    for format in formats::all() {
        let file = args.folder.join(format!("{}.json", format.name));
        write_result(&file, &formats::text(&format), "schema")?;
    }
    Ok(VerbAnswer::Yes)
}
