//! The report behind `cargo xtask words`: how the code uses names, comments, closures and files, as places
//! and as numbers to compare before and after a change.
//!
//! It judges nothing; what is refused is decided in `tidy`. The workspace's own toolbox is left out unless
//! it is named.

mod chain;
mod error_types;
mod functions;
mod sections;

use crate::syntax;
use crate::tidy::manifest;
use crate::workspace::{root, rust_files};

/// Prints the report about the crates that are named, or all.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let root = root();
    let crates = manifest::workspace(&root)?;
    let files = rust_files(&root)?;
    let chosen = chosen(arguments, &crates)?;
    let mut code = Vec::new();
    for krate in crates.iter().filter(|krate| krate.short_name() != "xtask" || !chosen.is_empty()) {
        code.extend(syntax::parse(&krate.folder, &files)?);
    }
    let list = arguments.contains(&"--list") || !chosen.is_empty();
    let scope = sections::ReportScope { code, chosen, list };
    sections::print(&scope, &chain::longest(&crates));
    Ok(())
}

fn chosen(arguments: &[&str], crates: &[manifest::Crate]) -> Result<Vec<String>, String> {
    let names = arguments.iter().filter(|&&name| name != "--list");
    names
        .map(|&name| {
            let known = crates.iter().any(|krate| krate.short_name() == name);
            known.then(|| name.to_owned()).ok_or_else(|| {
                let names: Vec<&str> = crates.iter().map(manifest::Crate::short_name).collect();
                format!("there is no crate '{name}'; expected --list or some of {}", names.join(", "))
            })
        })
        .collect()
}
