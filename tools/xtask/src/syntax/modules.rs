//! The files of a crate: those that its module declarations lead to, from `lib.rs`, `main.rs` and the programs in
//! `bin/`.
//!
//! Files are looked up as the compiler does (`a.rs` or `a/mod.rs`, `#[path]`, folders of inline modules).
//! Modules that only tests have are not followed.

use super::shipped;
use super::spot::{Spot, line_of};
use crate::workspace::RustFile;
use syn::{Attribute, Expr, Item, ItemMod, Lit, Meta};

/// A file of a crate without what only tests have.
pub(crate) struct CodeFile {
    /// The path from the workspace's root.
    pub(crate) path: String,
    /// The file that the module tree of this one begins at.
    pub(crate) target: String,
    /// The module that the file is, from the crate's root.
    pub(crate) module: Vec<String>,
    pub(crate) text: String,
    pub(crate) syntax: syn::File,
}

impl CodeFile {
    /// The place of a piece of this file's syntax.
    pub(crate) fn spot(&self, span: proc_macro2::Span) -> Spot {
        Spot { path: self.path.clone(), line: line_of(span) }
    }
}

/// The files of the crate in `folder`, by path.
///
/// # Errors
/// A file that is not Rust, and a module without a file.
pub(crate) fn parse(folder: &str, files: &[RustFile]) -> Result<Vec<CodeFile>, String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_root(folder, &file.path)) {
        let mut tree = ModuleTree { target: &file.path, files, found: Vec::new() };
        tree.file(file, Vec::new(), parent(&file.path).to_owned())?;
        found.extend(tree.found);
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn is_root(folder: &str, path: &str) -> bool {
    let within = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix("/src/"));
    match within.map(|within| within.split('/').collect::<Vec<_>>()).as_deref() {
        Some(["lib.rs" | "main.rs"] | ["bin", _, "main.rs"]) => true,
        Some(["bin", file]) => file.ends_with(".rs"),
        _ => false,
    }
}

struct ModuleTree<'a> {
    target: &'a str,
    files: &'a [RustFile],
    found: Vec<CodeFile>,
}

/// The module or inline block that declares modules.
struct ModuleSite<'a> {
    file: &'a str,
    module: Vec<String>,
    /// Folder of the files of child modules.
    folder: String,
    inline: bool,
}

impl ModuleTree<'_> {
    fn file(&mut self, file: &RustFile, module: Vec<String>, folder: String) -> Result<(), String> {
        let mut syntax = syn::parse_file(&file.text)
            .map_err(|error| format!("{}:{}: {error}", file.path, line_of(error.span())))?;
        if shipped::is_for_tests(&syntax.attrs) {
            return Ok(());
        }
        shipped::keep(&mut syntax.items);
        let level = ModuleSite { file: &file.path, module: module.clone(), folder, inline: false };
        self.declared(&syntax.items, &level)?;
        self.found.push(CodeFile {
            path: file.path.clone(),
            target: self.target.to_owned(),
            module,
            text: file.text.clone(),
            syntax,
        });
        Ok(())
    }

    fn declared(&mut self, items: &[Item], level: &ModuleSite) -> Result<(), String> {
        for item in items {
            let Item::Mod(declaration) = item else { continue };
            let name = plain(&declaration.ident);
            let module = [level.module.as_slice(), std::slice::from_ref(&name)].concat();
            if let Some((_, items)) = &declaration.content {
                let part = path_attribute(&declaration.attrs).unwrap_or(name);
                let folder = join(&level.folder, &part);
                self.declared(items, &ModuleSite { file: level.file, module, folder, inline: true })?;
            } else {
                let (path, folder) = self.find(declaration, &name, level)?;
                let file = self.files.iter().find(|file| file.path == path);
                let file = file.ok_or_else(|| format!("{}: there is no {path}", level.file))?;
                self.file(file, module, folder)?;
            }
        }
        Ok(())
    }

    /// A module's file and the folder of its children.
    fn find(
        &self,
        declaration: &ItemMod,
        name: &str,
        level: &ModuleSite,
    ) -> Result<(String, String), String> {
        if let Some(path) = path_attribute(&declaration.attrs) {
            let beside = if level.inline { &level.folder } else { parent(level.file) };
            let path = join(beside, &path);
            let folder = parent(&path).to_owned();
            return Ok((path, folder));
        }
        let folder = join(&level.folder, name);
        for path in [format!("{folder}.rs"), format!("{folder}/mod.rs")] {
            if self.files.iter().any(|file| file.path == path) {
                return Ok((path, folder));
            }
        }
        let line = line_of(declaration.ident.span());
        Err(format!("{}:{line}: there is no file of the module {name}", level.file))
    }
}

/// An identifier without the mark of raw ones.
pub(crate) fn plain(ident: &syn::Ident) -> String {
    ident.to_string().trim_start_matches("r#").to_owned()
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    })
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A path from a folder, with `..` followed.
fn join(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<RustFile> = files
            .iter()
            .map(|(path, text)| RustFile { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect();
        let parsed = parse("crates/x", &files).expect("well-formed");
        parsed.iter().map(|file| format!("{} {}", file.path, file.module.join("::"))).collect()
    }

    #[test]
    fn both_layouts_of_folders() {
        let files = [
            ("crates/x/src/lib.rs", "mod a; mod b;"),
            ("crates/x/src/a.rs", "mod c;"),
            ("crates/x/src/a/c.rs", ""),
            ("crates/x/src/b/mod.rs", "mod d;"),
            ("crates/x/src/b/d.rs", ""),
            ("crates/x/src/left_over.rs", ""),
            ("crates/xy/src/lib.rs", ""),
        ];
        assert_eq!(
            modules(&files),
            [
                "crates/x/src/a.rs a",
                "crates/x/src/a/c.rs a::c",
                "crates/x/src/b/d.rs b::d",
                "crates/x/src/b/mod.rs b",
                "crates/x/src/lib.rs ",
            ]
        );
    }

    #[test]
    fn paths_and_inline_modules() {
        let files = [
            ("crates/x/src/bin/other/main.rs", ""),
            (
                "crates/x/src/lib.rs",
                "mod a { mod b; #[path = \"../z.rs\"] mod c; } #[path = \"q/y.rs\"] mod d;",
            ),
            ("crates/x/src/a/b.rs", ""),
            ("crates/x/src/z.rs", ""),
            ("crates/x/src/q/y.rs", "mod e;"),
            ("crates/x/src/q/e.rs", ""),
        ];
        assert_eq!(
            modules(&files),
            [
                "crates/x/src/a/b.rs a::b",
                "crates/x/src/bin/other/main.rs ",
                "crates/x/src/lib.rs ",
                "crates/x/src/q/e.rs d::e",
                "crates/x/src/q/y.rs d",
                "crates/x/src/z.rs a::c",
            ]
        );
    }

    #[test]
    fn files_of_tests_are_not_followed() {
        let files = [
            ("crates/x/src/lib.rs", "#[cfg(test)] mod tests; #[cfg(all(test, unix))] mod twins; mod a;"),
            ("crates/x/src/tests.rs", "not Rust"),
            ("crates/x/src/a.rs", "#![cfg(test)]"),
        ];
        assert_eq!(modules(&files), ["crates/x/src/lib.rs "]);
    }

    #[test]
    fn a_module_without_a_file_is_refused() {
        let files = [RustFile { path: "crates/x/src/lib.rs".to_owned(), text: "\nmod a;".to_owned() }];
        let error = parse("crates/x", &files).err().unwrap_or_default();
        assert!(error.contains("lib.rs:2") && error.contains("module a"), "{error}");
    }
}
