//! The workspace as files: where it is, and every file of Rust in it, read once.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// The folders of the workspace's root that hold crates, from the foundations up.
pub(crate) const SYSTEMS: [&str; 10] = [
    "base",
    "plan",
    "simulate",
    "enforce",
    "measure",
    "experiment",
    "schedule",
    "evaluation",
    "app",
    "tools",
];

/// One file of Rust.
pub(crate) struct RustFile {
    /// The path from the workspace's root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The workspace, wherever the command was started.
pub(crate) fn root() -> PathBuf {
    let mut path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    path.pop();
    path.pop();
    path
}

/// The text of a file that the workspace must have.
pub(crate) fn read(root: &Path, name: &str) -> Result<String, String> {
    fs::read_to_string(root.join(name)).map_err(|error| format!("{name}: {error}"))
}

/// All files of Rust, tests and benchmarks too, by path.
pub(crate) fn rust_files(root: &Path) -> Result<Vec<RustFile>, String> {
    let mut found = Vec::new();
    for folder in SYSTEMS {
        collect(root, &root.join(folder), &mut found)
            .map_err(|error| format!("reading the sources in {folder}: {error}"))?;
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<RustFile>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if !path.ends_with("target") {
                collect(root, &path, found)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            let path_text = relative.to_string_lossy().replace('\\', "/");
            found.push(RustFile { path: path_text, text: fs::read_to_string(&path)? });
        }
    }
    Ok(())
}
