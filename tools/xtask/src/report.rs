//! Figures of the tree: its size by system, what it exposes, its habits of style, its pages and its dependencies.
//!
//! A comparison of two trees uses one program: `cargo xtask report FOLDER` reads another checkout.

use crate::syntax::{self, CodeFile};
use crate::tidy::manifest::{self, Crate};
use crate::tidy::{dependencies, style};
use crate::workspace::{Language, SYSTEMS, SourceFile, rust_files, source_files};
use std::path::Path;
use syn::visit::{self, Visit};
use syn::{ImplItemFn, Item, ItemImpl, Visibility};

/// Prints the figures of the tree at `root`.
///
/// # Errors
/// A tree that cannot be read or is not Rust.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let crates = manifest::workspace(root)?;
    let sources = source_files(root)?;
    println!(
        "{:<12}{:>8}{:>10}{:>10}{:>8}{:>14}{:>9}",
        "system", "crates", "src", "tests", "C", "public items", "mirrors"
    );
    let mut sum = SystemFigures::default();
    for system in SYSTEMS {
        let figures = SystemFigures::of(system, root, &crates, &sources)?;
        figures.print(system);
        sum.add(&figures);
    }
    sum.print("all");
    println!();
    for count in style::count(&sources)? {
        println!("{:<24}{:>8}", count.rule.name, count.total());
    }
    print_pages(&sources);
    let chain = dependencies::longest_chain(&crates);
    println!("{:<24}{:>8}  {}", "longest chain, crates", chain.len(), chain.join(" → "));
    Ok(())
}

/// Lines, crates and public items of one system.
#[derive(Debug, Default)]
struct SystemFigures {
    crates: usize,
    src: usize,
    /// Lines of Rust outside `src`: tests, benchmarks, examples, build scripts.
    beside: usize,
    c: usize,
    public: usize,
    mirrors: usize,
}

impl SystemFigures {
    fn of(system: &str, root: &Path, crates: &[Crate], sources: &[SourceFile]) -> Result<Self, String> {
        let mut figures = Self::default();
        let files = rust_files(root)?;
        for krate in crates.iter().filter(|krate| krate.system() == system) {
            figures.crates += 1;
            let code = syntax::parse(&krate.folder, &files)?;
            figures.public += code.iter().map(public_items).sum::<usize>();
            figures.mirrors += code.iter().map(mirrors).sum::<usize>();
        }
        for source in sources.iter().filter(|source| source.path.split('/').next() == Some(system)) {
            let lines = source.text.lines().count();
            match source.language {
                Language::Rust if source.path.contains("/src/") => figures.src += lines,
                Language::Rust => figures.beside += lines,
                Language::C => figures.c += lines,
                Language::Markdown => {}
            }
        }
        Ok(figures)
    }

    fn add(&mut self, other: &Self) {
        self.crates += other.crates;
        self.src += other.src;
        self.beside += other.beside;
        self.c += other.c;
        self.public += other.public;
        self.mirrors += other.mirrors;
    }

    fn print(&self, name: &str) {
        let Self { crates, src, beside, c, public, mirrors } = self;
        println!("{name:<12}{crates:>8}{src:>10}{beside:>10}{c:>8}{public:>14}{mirrors:>9}");
    }
}

/// Counts items and associated functions that are `pub`, without modules, re-exports and fields.
fn public_items(file: &CodeFile) -> usize {
    let mut search = PublicSearch { found: 0 };
    search.visit_file(&file.syntax);
    search.found
}

/// Endings of names of types that repeat another type for JSON, a table or an argument.
const MIRROR_ENDINGS: [&str; 4] = ["Document", "Fields", "View", "Choice"];

/// Counts types that are called like a copy of another type.
fn mirrors(file: &CodeFile) -> usize {
    let name = |item: &Item| match item {
        Item::Struct(item) => Some(item.ident.to_string()),
        Item::Enum(item) => Some(item.ident.to_string()),
        _ => None,
    };
    let is_mirror = |name: &String| MIRROR_ENDINGS.iter().any(|ending| name.ends_with(ending));
    file.syntax.items.iter().filter_map(name).filter(is_mirror).count()
}

struct PublicSearch {
    found: usize,
}

impl<'ast> Visit<'ast> for PublicSearch {
    fn visit_item(&mut self, item: &'ast Item) {
        let visibility = match item {
            Item::Const(item) => Some(&item.vis),
            Item::Enum(item) => Some(&item.vis),
            Item::Fn(item) => Some(&item.vis),
            Item::Static(item) => Some(&item.vis),
            Item::Struct(item) => Some(&item.vis),
            Item::Trait(item) => Some(&item.vis),
            Item::Type(item) => Some(&item.vis),
            Item::Union(item) => Some(&item.vis),
            _ => None,
        };
        self.found += usize::from(matches!(visibility, Some(Visibility::Public(_))));
        visit::visit_item(self, item);
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        if block.trait_.is_none() {
            visit::visit_item_impl(self, block);
        }
    }

    fn visit_impl_item_fn(&mut self, method: &'ast ImplItemFn) {
        self.found += usize::from(matches!(method.vis, Visibility::Public(_)));
    }
}

fn print_pages(sources: &[SourceFile]) {
    let words = |source: &SourceFile| source.text.split_whitespace().count();
    let pages: Vec<&SourceFile> = sources
        .iter()
        .filter(|source| source.language == Language::Markdown && source.path.starts_with("docs/"))
        .collect();
    let total: usize = pages.iter().map(|page| words(page)).sum();
    println!("{:<24}{total:>8}  in {} pages", "words of docs/", pages.len());
    if let Some(longest) = pages.iter().max_by_key(|page| words(page)) {
        println!("{:<24}{:>8}  {}", "longest page, words", words(longest), longest.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::literal;

    #[test]
    fn public_items_are_those_that_other_crates_can_name() {
        let code = literal(&[(
            "lib.rs",
            "pub struct A { pub a: u8 } pub(crate) struct B; pub fn a() {} fn b() {} pub mod m { pub enum E {} }
             pub use m::E; impl A { pub fn c() {} fn d() {} pub const N: u8 = 1; }
             #[cfg(test)] mod tests { pub fn t() {} }",
        )]);
        assert_eq!(code.iter().map(public_items).sum::<usize>(), 4);
    }

    #[test]
    fn copies_of_types_are_found_by_name() {
        let code =
            literal(&[("lib.rs", "struct PlanDocument; enum ModelChoice {} struct Plan; fn a_view() {}")]);
        assert_eq!(code.iter().map(mirrors).sum::<usize>(), 2);
    }
}
