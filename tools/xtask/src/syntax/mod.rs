//! The workspace's code as syntax trees, each file parsed once for all checks, and its comments.
//!
//! Code that is compiled for tests only is left out of the trees: rules are about the code that ships.

mod comments;
mod modules;
mod shipped;
mod spot;

pub(crate) use comments::{Comment, comments};
pub(crate) use modules::{CodeFile, parse, plain};
pub(crate) use spot::{Spot, line_of};

/// A crate of a test from the texts of its files in `src`.
#[cfg(test)]
pub(crate) fn literal(files: &[(&str, &str)]) -> Vec<CodeFile> {
    let files: Vec<crate::workspace::RustFile> = files
        .iter()
        .map(|(name, text)| crate::workspace::RustFile {
            path: format!("crates/x/src/{name}"),
            text: (*text).to_owned(),
        })
        .collect();
    parse("crates/x", &files).expect("a crate")
}
