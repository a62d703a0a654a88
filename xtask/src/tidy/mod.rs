//! What compilers and lints do not check: that documents tell the truth about the tree, and that the
//! tree keeps the rules which documents state.
//!
//! Every check returns its complaints; all of them are printed, each with the file and what to do.

mod code_map;
mod dependencies;
mod length;
pub(crate) mod manifest;
mod references;

use crate::root;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Runs every check.
///
/// # Errors
/// How many complaints there are; they are on stderr.
pub(crate) fn run() -> Result<(), String> {
    let root = root();
    let crates = manifest::workspace(&root)?;
    let sources = sources(&root).map_err(|error| format!("reading the sources: {error}"))?;
    let mut complaints = Vec::new();
    let map = read(&root, "ARCHITECTURE.md")?;
    complaints.extend(code_map::check(&map, &crates));
    complaints.extend(dependencies::check(&code_map::rules(&map), &crates));
    complaints.extend(dependencies::uncommented(&crates));
    complaints.extend(length::check(&sources));
    complaints.extend(references::check(&read(&root, "REFERENCES.md")?, &sources));
    for complaint in &complaints {
        eprintln!("tidy: {complaint}");
    }
    if complaints.is_empty() {
        eprintln!("tidy: {} crates, {} source files", crates.len(), sources.len());
        Ok(())
    } else {
        Err(format!("{} complaints of tidy, above", complaints.len()))
    }
}

/// One file of Rust.
pub(crate) struct Source {
    /// From the workspace's root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

fn read(root: &Path, name: &str) -> Result<String, String> {
    fs::read_to_string(root.join(name)).map_err(|error| format!("{name}: {error}"))
}

fn sources(root: &Path) -> io::Result<Vec<Source>> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = ["crates", "xtask", "fuzz"].map(|folder| root.join(folder)).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                if !path.ends_with("target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(root).unwrap_or(&path);
                let path_text = relative.to_string_lossy().replace('\\', "/");
                found.push(Source { path: path_text, text: fs::read_to_string(&path)? });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}
