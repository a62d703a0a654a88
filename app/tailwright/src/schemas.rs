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

pub(crate) fn run(args: &SchemasArgs) -> Result<VerbAnswer, OperationError> {
    for format in formats::all() {
        let file = args.folder.join(format!("{}.json", format.name));
        write_result(&file, &format.text(), "schema")?;
    }
    Ok(VerbAnswer::Yes)
}
