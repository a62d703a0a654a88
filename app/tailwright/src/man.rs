//! `tailwright man`: a page for the program and for each verb.

use crate::manual;
use clap::{Args, Command};
use cli::exit::VerbAnswer;
use cli::terminal::{Talk, talk};
use model::OperationError;
use operation::files::write_result;
use std::path::PathBuf;

const HELP: &str = "\
Examples:
  tailwright man ~/.local/share/man/man1       for this user
  tailwright man /usr/local/share/man/man1     for all users

Then `man tailwright` and `man tailwright-plan` show them.

Exit codes: 0 done; 2 bad input; 3 the folder cannot be made or written.";

/// Write man pages: of the program, and of each verb.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ManArgs {
    /// The folder that pages are written to; it is made if it is not there.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub(crate) fn run(args: &ManArgs, program: Command) -> Result<VerbAnswer, OperationError> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).map_err(|error| {
        OperationError::machine(format_args!("{}: cannot make the folder: {error}", folder.display()))
            .hint("choose another folder, or run as its owner")
    })?;
    let pages = manual::pages(program);
    for page in &pages {
        write_result(&folder.join(&page.file), &page.text, "man page")?;
    }
    talk(Talk::Plain, format_args!("wrote {} pages to {}", pages.len(), folder.display()));
    Ok(VerbAnswer::Yes)
}
