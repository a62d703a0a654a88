//! The workspace's code as syntax trees: each file is parsed once, and every check looks at the same
//! trees.
//!
//! What is compiled only for tests is not in them: the rules are about what a reader of a crate meets.

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
