//! Public items of a crate, and which of them no other code names.
//!
//! Only names are compared: an item counts as used if its name occurs in a crate that depends on its crate, or
//! in a test, benchmark or example of documentation of its own. Common names of functions thus always count as
//! used.

use crate::syntax::{CodeFile, Spot};
use crate::tidy::manifest::Crate;
use crate::workspace::RustFile;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{ImplItemFn, Item, ItemImpl, Visibility};

/// The fuzz targets, a workspace of its own that may use any crate.
const FUZZ: &str = "tools/fuzz";

/// An item or associated function that is `pub`.
#[derive(Debug)]
pub(crate) struct PublicItem {
    pub(crate) name: String,
    pub(crate) at: Spot,
}

/// Returns the items and associated functions that are `pub`, without modules, re-exports and fields.
pub(crate) fn items(file: &CodeFile) -> Vec<PublicItem> {
    let mut search = ItemSearch { file, found: Vec::new() };
    search.visit_file(&file.syntax);
    search.found
}

struct ItemSearch<'a> {
    file: &'a CodeFile,
    found: Vec<PublicItem>,
}

impl ItemSearch<'_> {
    fn take(&mut self, visibility: &Visibility, name: &syn::Ident) {
        if matches!(visibility, Visibility::Public(_)) {
            self.found.push(PublicItem { name: name.to_string(), at: self.file.spot(name.span()) });
        }
    }
}

impl<'ast> Visit<'ast> for ItemSearch<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Const(item) => self.take(&item.vis, &item.ident),
            Item::Enum(item) => self.take(&item.vis, &item.ident),
            Item::Fn(item) => self.take(&item.vis, &item.sig.ident),
            Item::Static(item) => self.take(&item.vis, &item.ident),
            Item::Struct(item) => self.take(&item.vis, &item.ident),
            Item::Trait(item) => self.take(&item.vis, &item.ident),
            Item::Type(item) => self.take(&item.vis, &item.ident),
            Item::Union(item) => self.take(&item.vis, &item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        if block.trait_.is_none() {
            visit::visit_item_impl(self, block);
        }
    }

    fn visit_impl_item_fn(&mut self, method: &'ast ImplItemFn) {
        self.take(&method.vis, &method.sig.ident);
    }
}

/// The names that the code of each crate contains.
#[derive(Debug, Default)]
pub(crate) struct NameIndex {
    /// Folders of crates by the name in their `src`.
    sources: BTreeMap<String, BTreeSet<String>>,
    /// The same for other code of a crate: tests, benchmarks, examples and build scripts.
    others: BTreeMap<String, BTreeSet<String>>,
    /// The folders of all crates that depend on a crate, directly or not, by its folder.
    dependents: BTreeMap<String, BTreeSet<String>>,
}

impl NameIndex {
    /// Reads the names in all files of the crates.
    pub(crate) fn new(crates: &[Crate], files: &[RustFile]) -> Self {
        let mut index = Self::default();
        for krate in crates {
            index.dependents.insert(krate.folder.clone(), dependents(krate, crates));
        }
        for file in files {
            let parts: Vec<&str> = file.path.splitn(4, '/').collect();
            let [system, folder, kind, _] = parts[..] else { continue };
            let folder = format!("{system}/{folder}");
            let names = if kind == "src" { &mut index.sources } else { &mut index.others };
            add(names, &file.text, &folder);
            for example in doc_examples(&file.text) {
                add(&mut index.others, &example, &folder);
            }
        }
        index
    }

    /// Returns true if no code outside the sources of the crate in `folder` names an item of it.
    fn is_unused(&self, name: &str, folder: &str) -> bool {
        let dependents = &self.dependents[folder];
        let sources = self.sources.get(name).into_iter().flatten();
        let others = self.others.get(name).into_iter().flatten();
        let is_user = |user: &String| user == FUZZ || dependents.contains(user);
        !sources.into_iter().any(is_user) && !others.into_iter().any(|user| user == folder || is_user(user))
    }
}

/// The folders of the crates that depend on `krate`, directly or not.
fn dependents(krate: &Crate, crates: &[Crate]) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    let mut names = vec![krate.name()];
    while let Some(name) = names.pop() {
        let depends = |user: &&Crate| user.dependencies.iter().any(|dependency| dependency.name == name);
        for user in crates.iter().filter(depends) {
            if known.insert(user.folder.clone()) {
                names.push(user.name());
            }
        }
    }
    known
}

/// Adds the names of code to those of a crate; code that is no whole tokens has none.
fn add(names: &mut BTreeMap<String, BTreeSet<String>>, text: &str, folder: &str) {
    let mut streams: Vec<TokenStream> = text.parse().into_iter().collect();
    while let Some(stream) = streams.pop() {
        for token in stream {
            match token {
                TokenTree::Ident(name) => {
                    names.entry(name.to_string()).or_default().insert(folder.to_owned());
                }
                TokenTree::Group(group) => streams.push(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
}

/// The examples in a file's documentation, which compile as other crates do.
fn doc_examples(text: &str) -> Vec<String> {
    let mut open: Option<String> = None;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim_start) {
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim_start);
        open = match (open, comment) {
            (None, Some(comment)) if comment.starts_with("```") => Some(String::new()),
            (Some(example), Some(comment)) if comment.starts_with("```") => {
                found.push(example);
                None
            }
            (Some(example), Some(comment)) => Some(example + comment.trim_start_matches("# ") + "\n"),
            (_, _) => None,
        };
    }
    found
}

/// Public items that no other code names.
#[derive(Debug, Default)]
pub(crate) struct UnusedItems {
    /// Items that could be private to their crate.
    pub(crate) removable: Vec<PublicItem>,
    /// Types in fields and signatures of public items: the compiler wants them public.
    pub(crate) in_signatures: Vec<PublicItem>,
}

/// Returns the public items of the crate in `folder` that no other code names.
pub(crate) fn unused(folder: &str, code: &[CodeFile], index: &NameIndex) -> UnusedItems {
    let mut signatures = SignatureWords::default();
    for file in code {
        signatures.visit_file(&file.syntax);
    }
    let mut unused = UnusedItems::default();
    for item in code.iter().flat_map(items) {
        if !index.is_unused(&item.name, folder) {
            continue;
        }
        let group = if signatures.words.contains(&item.name) {
            &mut unused.in_signatures
        } else {
            &mut unused.removable
        };
        group.push(item);
    }
    unused
}

/// Names in public fields, variants, signatures, bounds and types.
#[derive(Debug, Default)]
struct SignatureWords {
    words: BTreeSet<String>,
    /// True while what is visited belongs to an interface.
    inside: bool,
}

impl SignatureWords {
    fn inside(&mut self, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.inside, true);
        visit(self);
        self.inside = before;
    }
}

impl<'ast> Visit<'ast> for SignatureWords {
    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        if self.inside {
            self.words.insert(segment.ident.to_string());
        }
        visit::visit_path_segment(self, segment);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if matches!(field.vis, Visibility::Public(_)) {
            self.inside(|words| words.visit_type(&field.ty));
        }
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        for field in &variant.fields {
            self.inside(|words| words.visit_type(&field.ty));
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if matches!(item.vis, Visibility::Public(_)) {
            self.inside(|words| words.visit_signature(&item.sig));
        }
    }

    fn visit_impl_item_fn(&mut self, method: &'ast ImplItemFn) {
        if matches!(method.vis, Visibility::Public(_)) {
            self.inside(|words| words.visit_signature(&method.sig));
        }
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        if matches!(item.vis, Visibility::Public(_)) {
            self.inside(|words| visit::visit_item_trait(words, item));
        }
    }

    fn visit_trait_item_fn(&mut self, method: &'ast syn::TraitItemFn) {
        self.visit_signature(&method.sig);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        if matches!(item.vis, Visibility::Public(_)) {
            self.inside(|words| words.visit_type(&item.ty));
        }
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        // Other crates name what an exported macro expands to.
        let mut names = BTreeMap::new();
        add(&mut names, &item.mac.tokens.to_string(), "");
        self.words.extend(names.into_keys());
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.inside(|words| words.visit_generics(&item.generics));
        visit::visit_item_struct(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        if matches!(item.vis, Visibility::Public(_)) {
            self.inside(|words| words.visit_type(&item.ty));
        }
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        if matches!(item.vis, Visibility::Public(_)) {
            self.inside(|words| words.visit_type(&item.ty));
        }
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        self.inside(|words| words.visit_generics(&block.generics));
        if block.trait_.is_none() {
            block.items.iter().for_each(|item| self.visit_impl_item(item));
            return;
        }
        // The type that an iterator yields is as public as the iterator.
        for item in &block.items {
            if let syn::ImplItem::Type(item) = item {
                self.inside(|words| words.visit_type(&item.ty));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::literal;
    use crate::tidy::manifest;

    fn names(items: &[PublicItem]) -> Vec<&str> {
        items.iter().map(|item| item.name.as_str()).collect()
    }

    #[test]
    fn public_items_are_those_that_other_crates_can_name() {
        let code = literal(&[(
            "lib.rs",
            "pub struct A { pub a: u8 } pub(crate) struct B; pub fn a() {} fn b() {} pub mod m { pub enum E {} }
             pub use m::E; impl A { pub fn c() {} fn d() {} pub const N: u8 = 1; }
             #[cfg(test)] mod tests { pub fn t() {} }",
        )]);
        let found: Vec<PublicItem> = code.iter().flat_map(items).collect();
        assert_eq!(names(&found), ["A", "a", "E", "c"]);
    }

    #[test]
    fn an_item_is_used_if_other_code_or_an_example_names_it() {
        let own =
            "/// ```\n/// shown();\n/// ```\npub fn shown() {}\npub fn alone() { own() }\npub fn own() {}
            pub struct Returned; pub fn called() -> Returned { Returned } pub fn tested() {}";
        let files = [
            ("crates/x/src/lib.rs", own),
            ("crates/y/src/lib.rs", "x::called()"),
            ("crates/x/tests/a.rs", "x::tested()"),
        ];
        let files = files.map(|(path, text)| RustFile { path: path.to_owned(), text: text.to_owned() });
        let krate = |folder: &str, dependencies: &str| {
            manifest::parse(
                folder.to_owned(),
                &format!("[package]\nname = \"{}\"\n{dependencies}", &folder[7..]),
            )
            .unwrap()
        };
        let crates =
            [krate("crates/x", ""), krate("crates/y", "[dependencies]\nx = 1\n"), krate("crates/z", "")];
        let index = NameIndex::new(&crates, &files);
        let found = unused("crates/x", &literal(&[("lib.rs", own)]), &index);
        assert_eq!(names(&found.removable), ["alone", "own"]);
        assert_eq!(names(&found.in_signatures), ["Returned"]);
    }
}
