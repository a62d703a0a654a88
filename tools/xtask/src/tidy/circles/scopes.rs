//! Resolves names in the modules of one crate to files: a path leads to the file that defines its item,
//! also through re-exports.
//!
//! Known are items, modules and `use` declarations. Methods, and items that macros write, are not.

use crate::syntax::{CodeFile, line_of, plain};
use std::collections::{BTreeMap, BTreeSet};
use syn::{Item, UseTree};

/// Maximum number of declarations that pass a name on; only circular ones need more.
const DEPTH_MAX: usize = 16;

/// A module of a crate by its names from the crate's root.
type ModulePath = Vec<String>;

/// Target of a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Module(ModulePath),
    /// Something defined in the file of this number.
    Defined(usize),
}

/// The modules of one crate.
#[derive(Default)]
pub(super) struct Scopes {
    modules: BTreeMap<ModulePath, ModuleNames>,
}

#[derive(Default)]
struct ModuleNames {
    file: usize,
    items: BTreeSet<String>,
    imports: Vec<Import>,
}

/// One leaf of a `use` declaration.
pub(super) struct Import {
    /// The name that it gives, or none if it gives all.
    pub(super) name: Option<String>,
    pub(super) path: Vec<String>,
    pub(super) line: usize,
}

impl Scopes {
    /// The modules of these files, which begin at the same one.
    pub(super) fn new(files: &[&CodeFile]) -> Self {
        let mut scopes = Self::default();
        for (number, file) in files.iter().enumerate() {
            scopes.add(number, &file.module, &file.syntax.items);
        }
        scopes
    }

    fn add(&mut self, file: usize, module: &[String], items: &[Item]) {
        let mut names = ModuleNames { file, ..ModuleNames::default() };
        for item in items {
            match item {
                Item::Mod(inner) => {
                    let path = child(module, &plain(&inner.ident));
                    if let Some((_, items)) = &inner.content {
                        self.add(file, &path, items);
                    }
                }
                Item::Use(declaration) if declaration.leading_colon.is_none() => {
                    imports(&declaration.tree, &mut Vec::new(), &mut names.imports);
                }
                item => names.items.extend(name(item)),
            }
        }
        self.modules.insert(module.to_vec(), names);
    }

    /// The file that defines what a path names in a module, or none if it names a module or another crate.
    pub(super) fn file_of(&self, module: &[String], path: &[String]) -> Option<usize> {
        match self.meaning(module, path, DEPTH_MAX)? {
            Meaning::Defined(file) => Some(file),
            Meaning::Module(_) => None,
        }
    }

    /// The file that all names come from that `use path::*` brings.
    pub(super) fn file_of_all(&self, module: &[String], path: &[String]) -> Option<usize> {
        match self.meaning(module, path, DEPTH_MAX)? {
            Meaning::Defined(file) => Some(file),
            Meaning::Module(module) => Some(self.modules.get(&module)?.file),
        }
    }

    fn meaning(&self, module: &[String], path: &[String], depth: usize) -> Option<Meaning> {
        let Some((first, rest)) = path.split_first() else { return Some(Meaning::Module(module.to_vec())) };
        let found = match first.as_str() {
            "crate" => Meaning::Module(Vec::new()),
            "self" => Meaning::Module(module.to_vec()),
            "super" => Meaning::Module(module.split_last()?.1.to_vec()),
            name => self.named(module, name, rest.is_empty(), depth)?,
        };
        match found {
            Meaning::Module(inner) => self.meaning(&inner, rest, depth),
            // The rest of the path belongs to the item: a variant, an associated function.
            defined @ Meaning::Defined(_) => Some(defined),
        }
    }

    fn named(&self, module: &[String], name: &str, is_last: bool, depth: usize) -> Option<Meaning> {
        let depth = depth.checked_sub(1)?;
        let names = self.modules.get(module)?;
        let defined = names.items.contains(name).then_some(Meaning::Defined(names.file));
        let inner = child(module, name);
        let inner = self.modules.contains_key(&inner).then_some(Meaning::Module(inner));
        if !is_last {
            return inner.or(defined).or_else(|| self.imported(module, names, name, depth));
        }
        // A function may have the name of a module, and is what a path then ends with.
        match defined.or_else(|| self.imported(module, names, name, depth)) {
            Some(Meaning::Defined(file)) => Some(Meaning::Defined(file)),
            other => inner.or(other),
        }
    }

    fn imported(&self, module: &[String], names: &ModuleNames, name: &str, depth: usize) -> Option<Meaning> {
        let by_name = names.imports.iter().filter(|import| import.name.as_deref() == Some(name));
        let mut by_name = by_name.filter(|import| import.path != [name]);
        by_name.find_map(|import| self.meaning(module, &import.path, depth)).or_else(|| {
            let mut of_all = names.imports.iter().filter(|import| import.name.is_none());
            of_all.find_map(|import| match self.meaning(module, &import.path, depth)? {
                Meaning::Module(from) if from != module => self.named(&from, name, true, depth),
                _ => None,
            })
        })
    }
}

/// The leaves of a `use` declaration.
pub(super) fn imports(tree: &UseTree, before: &mut Vec<String>, found: &mut Vec<Import>) {
    match tree {
        UseTree::Path(path) => {
            before.push(plain(&path.ident));
            imports(&path.tree, before, found);
            before.pop();
        }
        UseTree::Name(leaf) => found.push(import(&leaf.ident, &leaf.ident, before)),
        UseTree::Rename(leaf) => found.push(import(&leaf.ident, &leaf.rename, before)),
        UseTree::Glob(glob) => {
            let line = line_of(glob.star_token.spans[0]);
            found.push(Import { name: None, path: before.clone(), line });
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                imports(tree, before, found);
            }
        }
    }
}

fn import(named: &syn::Ident, given: &syn::Ident, before: &[String]) -> Import {
    let line = line_of(named.span());
    let mut path = before.to_vec();
    let mut given = plain(given);
    if named == "self" {
        // `use a::{self}` gives the name of the module.
        if given == "self" {
            given = before.last().cloned().unwrap_or_default();
        }
    } else {
        path.push(plain(named));
    }
    Import { name: Some(given), path, line }
}

/// The module of this name inside another.
pub(super) fn child(module: &[String], name: &str) -> ModulePath {
    [module, &[name.to_owned()]].concat()
}

fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(plain(ident))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::literal;

    fn path(text: &str) -> Vec<String> {
        text.split("::").map(str::to_owned).collect()
    }

    #[test]
    fn names_lead_to_the_file_that_defines_them() {
        let code = literal(&[
            ("a/b.rs", "pub(crate) struct Deep; pub(crate) fn b() {}"),
            (
                "a/mod.rs",
                "pub(crate) mod b; pub(crate) use b::{b, Deep as Renamed}; pub(crate) use inline::In;\nmod inline { pub struct In; }",
            ),
            ("lib.rs", "mod a; pub use a::*; use std::fmt; struct Root;"),
        ]);
        let scopes = Scopes::new(&code.iter().collect::<Vec<_>>());
        let of = |module: &[&str], name: &str| {
            let module: Vec<String> = module.iter().map(|&part| part.to_owned()).collect();
            scopes.file_of(&module, &path(name)).map(|file| code[file].path.replace("crates/x/src/", ""))
        };
        for (module, name, file) in [
            (&[][..], "crate::a::b::Deep", "a/b.rs"),
            (&[], "a::Renamed", "a/b.rs"),
            (&[], "Renamed", "a/b.rs"),
            (&[], "a::b", "a/b.rs"),
            (&[], "a::In::new", "a/mod.rs"),
            (&["a", "b"], "super::super::Root", "lib.rs"),
            (&["a", "inline"], "super::b::Deep", "a/b.rs"),
            (&["a"], "self::b::b", "a/b.rs"),
        ] {
            assert_eq!(of(module, name).as_deref(), Some(file), "{name}");
        }
        for name in ["a", "fmt::Display", "std::fmt", "a::Missing", "crate", "super::Root"] {
            assert_eq!(of(&[], name), None, "{name}");
        }
    }

    #[test]
    fn declarations_in_a_circle_end() {
        let code =
            literal(&[("a.rs", "pub use super::X;"), ("lib.rs", "mod a; pub use a::X; pub use a::*;")]);
        let scopes = Scopes::new(&code.iter().collect::<Vec<_>>());
        assert_eq!(scopes.file_of(&[], &path("X")), None);
    }
}
