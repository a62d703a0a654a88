//! Checks that compilers and clippy do not make: that pages are true of the tree, that crates depend on each other
//! only as the rules permit, and that habits of style become rarer.
//!
//! Every check returns complaints, each with the file and a remedy; all of them are printed.

mod allowances;
mod circles;
mod code_map;
pub(crate) mod dependencies;
mod headers;
mod length;
pub(crate) mod manifest;
mod pages;
mod references;
mod rules;
pub(crate) mod style;

use crate::syntax;
use crate::workspace::{SYSTEMS, SourceFile, read, root, rust_files, source_files};
use std::path::Path;

/// Runs every check.
///
/// # Errors
/// The number of complaints, which are on stderr.
pub(crate) fn run() -> Result<(), String> {
    let root = root();
    let crates = manifest::workspace(&root)?;
    let files = rust_files(&root)?;
    let mut complaints = Vec::new();
    complaints.extend(code_map::check(&root, &system_pages(&root)?, &crates));
    complaints.extend(dependencies::check(&crates));
    complaints.extend(dependencies::uncommented(&crates));
    complaints.extend(length::check(&files));
    complaints.extend(references::check(&read(&root, "REFERENCES.md")?, &files));
    let mut code = Vec::new();
    for krate in &crates {
        code.extend(syntax::parse(&krate.folder, &files)?);
    }
    complaints.extend(of_code(&code));
    let sources = source_files(&root)?;
    complaints.extend(pages::check(&root, &sources));
    complaints.extend(of_style(&root, &sources)?);
    for complaint in &complaints {
        eprintln!("tidy: {complaint}");
    }
    if complaints.is_empty() {
        eprintln!("tidy: {} crates, {} source files", crates.len(), files.len());
        Ok(())
    } else {
        Err(format!("{} complaints of tidy, above", complaints.len()))
    }
}

/// Complains about counts of style above their limits, and notes those below.
fn of_style(root: &Path, sources: &[SourceFile]) -> Result<Vec<String>, String> {
    let counts = style::count(sources)?;
    let totals: Vec<_> = counts.iter().map(|count| (count.rule, count.total())).collect();
    let judgement = style::judge(&read(root, style::LIMITS_FILE)?, &totals);
    for note in judgement.notes {
        eprintln!("tidy: note: {note}");
    }
    Ok(judgement.complaints)
}

/// Files that `--counts` prints of each rule.
const FILES_SHOWN: usize = 10;

/// Prints what rules of style count, with the files that have most.
///
/// # Errors
/// A file that cannot be read or is not Rust.
pub(crate) fn print_counts() -> Result<(), String> {
    for count in style::count(&source_files(&root())?)? {
        println!("{} {} in {} files", count.rule.name, count.total(), count.files.len());
        for (path, occurrences) in count.files.iter().take(FILES_SHOWN) {
            println!("{occurrences:7} {path}");
        }
    }
    Ok(())
}

fn system_pages(root: &Path) -> Result<Vec<code_map::SystemPage>, String> {
    let page =
        |system| Ok(code_map::SystemPage { system, text: read(root, &format!("{system}/README.md"))? });
    SYSTEMS.into_iter().map(page).collect()
}

/// Returns the complaints about code other than tests.
fn of_code(code: &[syntax::CodeFile]) -> Vec<String> {
    [headers::check(code), allowances::check(code), circles::check(code)].concat()
}
