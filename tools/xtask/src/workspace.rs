//! The workspace as files: where it is, and every file of Rust in it, read once.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// The folders of the workspace's root that hold crates, from the foundations up.
pub(crate) const SYSTEMS: [&str; 12] = [
    "base",
    "plan",
    "simulate",
    "enforce",
    "measure",
    "experiment",
    "schedule",
    "reach",
    "serve",
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

/// A file that rules of style look at.
pub(crate) struct SourceFile {
    /// The path from the workspace's root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) language: Language,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    C,
    Markdown,
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
    let sources = source_files(root)?.into_iter().filter(|source| source.language == Language::Rust);
    Ok(sources.map(|source| RustFile { path: source.path, text: source.text }).collect())
}

/// All files of Rust and C in the systems, and all pages, by path.
pub(crate) fn source_files(root: &Path) -> Result<Vec<SourceFile>, String> {
    let mut found = Vec::new();
    for folder in SYSTEMS.iter().chain(&["docs", "examples"]) {
        let folder = root.join(folder);
        if folder.is_dir() {
            collect(root, &folder, &mut found)
                .map_err(|error| format!("reading {}: {error}", folder.display()))?;
        }
    }
    collect_files(root, root, &mut found).map_err(|error| format!("reading {}: {error}", root.display()))?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<SourceFile>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            collect(root, &path, found)?;
        }
    }
    collect_files(root, folder, found)
}

/// The files of one folder, without those of folders in it.
fn collect_files(root: &Path, folder: &Path, found: &mut Vec<SourceFile>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let language = match path.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => Language::Rust,
            Some("c" | "h") => Language::C,
            Some("md") => Language::Markdown,
            _ => continue,
        };
        let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        found.push(SourceFile { path: relative, text: fs::read_to_string(&path)?, language });
    }
    Ok(())
}
