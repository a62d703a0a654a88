//! The parts of the workspace's `Cargo.toml` files that tidy checks.
//!
//! Read line by line: the checks are about lines and the comments above them, which a TOML parser would
//! drop. A dependency must therefore be one line; any other form is an error.

use crate::workspace::SYSTEMS;
use std::fs;
use std::path::Path;

/// A crate of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    /// Path from the workspace's root: the system's folder and the crate's, such as `base/units`.
    pub(crate) folder: String,
    /// Name by which cargo knows the crate.
    pub(crate) package: String,
    pub(crate) description: String,
    pub(crate) dependencies: Vec<Dependency>,
    /// Names of `[[bench]]` targets.
    pub(crate) benches: Vec<String>,
}

/// One line of a dependency section.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Line in `Cargo.toml`, from 1.
    pub(crate) line: usize,
    /// False in sections that only tests and benchmarks use.
    pub(crate) shipped: bool,
    pub(crate) commented: bool,
}

impl Crate {
    /// The package without the prefix of published ones; rules and [`Dependency::name`] use it.
    pub(crate) fn name(&self) -> &str {
        without_prefix(&self.package)
    }

    /// True for libraries that other projects link against.
    pub(crate) fn is_published(&self) -> bool {
        self.package != self.name()
    }

    /// The folder of the workspace's root that the crate is in.
    pub(crate) fn system(&self) -> &str {
        self.folder.split('/').next().unwrap_or(&self.folder)
    }

    /// The crate's folder in that of its system.
    pub(crate) fn folder_name(&self) -> &str {
        self.folder.rsplit('/').next().unwrap_or(&self.folder)
    }
}

/// Published packages have this prefix; their folders and libraries do not.
fn without_prefix(package: &str) -> &str {
    package.strip_prefix("tailwright-").unwrap_or(package)
}

/// A workspace of its own.
const FUZZ: &str = "tools/fuzz";

/// All crates of the workspace at `root`, by folder.
pub(crate) fn workspace(root: &Path) -> Result<Vec<Crate>, String> {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let mut folders = Vec::new();
    for system in SYSTEMS {
        let folder = root.join(system);
        for entry in fs::read_dir(&folder).map_err(|error| failed(&folder, error))? {
            let entry = entry.map_err(|error| failed(&folder, error))?;
            let name = format!("{system}/{}", entry.file_name().to_string_lossy());
            if entry.path().join("Cargo.toml").exists() && name != FUZZ {
                folders.push(name);
            }
        }
    }
    folders.sort();
    let read = |folder: String| {
        let path = root.join(&folder).join("Cargo.toml");
        let text = fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
        parse(folder, &text)
    };
    folders.into_iter().map(read).collect()
}

pub(crate) fn parse(folder: String, text: &str) -> Result<Crate, String> {
    let mut found = Crate { folder, ..Crate::default() };
    let mut section = "";
    let mut commented = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            section = line;
            if section.starts_with("[dependencies.") || section.starts_with("[dev-dependencies.") {
                return Err(format!(
                    "{}/Cargo.toml:{}: write a dependency as one line in [dependencies], with its reason above",
                    found.folder,
                    number + 1
                ));
            }
        } else if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            found.entry(section, key.trim(), value.trim().trim_matches('"'), number + 1, commented);
        }
        commented = line.starts_with('#');
    }
    Ok(found)
}

impl Crate {
    fn entry(&mut self, section: &str, key: &str, value: &str, line: usize, commented: bool) {
        match (section, key) {
            ("[package]", "name") => value.clone_into(&mut self.package),
            ("[package]", "description") => value.clone_into(&mut self.description),
            ("[[bench]]", "name") => self.benches.push(value.to_owned()),
            _ if section.ends_with("dependencies]") => {
                let name = key.split('.').next().unwrap_or(key);
                let name = without_prefix(name).to_owned();
                let shipped = !section.contains("dev-");
                self.dependencies.push(Dependency { name, line, shipped, commented });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_by_hand() {
        let text = "[package]\nname = \"tailwright-x\"\ndescription = \"Does x\"\n[dependencies]\nunits.workspace = true\n\
                    # Why.\nserde = { version = \"1\" }\n[dev-dependencies]\nrand.workspace = true\n[[bench]]\nname = \"x\"\n";
        let found = parse("base/y".to_owned(), text).expect("well-formed");
        assert_eq!((found.package.as_str(), found.description.as_str()), ("tailwright-x", "Does x"));
        assert_eq!((found.name(), found.system(), found.folder_name()), ("x", "base", "y"));
        assert_eq!(found.benches, ["x"]);
        let seen: Vec<_> =
            found.dependencies.iter().map(|d| (d.name.as_str(), d.line, d.shipped, d.commented)).collect();
        assert_eq!(seen, [("units", 5, true, false), ("serde", 7, true, true), ("rand", 9, false, false)]);
        assert!(parse("base/x".to_owned(), "[dependencies.serde]\nversion = \"1\"\n").is_err());
    }
}
