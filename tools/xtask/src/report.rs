//! Figures of the tree: its size by system, what it exposes, its habits of style, its pages and its dependencies.
//!
//! A comparison of two trees uses one program: `cargo xtask report FOLDER` reads another checkout.

use crate::public::{self, NameIndex, PublicItem};
use crate::syntax::{self, CodeFile};
use crate::tidy::manifest::{self, Crate};
use crate::tidy::{dependencies, style};
use crate::workspace::{Language, RustFile, SYSTEMS, SourceFile, rust_files, source_files};
use std::path::Path;
use syn::Item;

/// Prints the figures of the tree at `root`.
///
/// # Errors
/// A tree that cannot be read or is not Rust.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let crates = manifest::workspace(root)?;
    let sources = source_files(root)?;
    println!(
        "{:<12}{:>8}{:>10}{:>10}{:>8}{:>14}{:>8}{:>15}{:>9}",
        "system", "crates", "src", "tests", "C", "public items", "unused", "in signatures", "mirrors"
    );
    let rust = rust_files(root)?;
    let index = NameIndex::new(&crates, &rust);
    let mut sum = SystemFigures::default();
    for system in SYSTEMS {
        let figures = SystemFigures::of(system, &crates, &sources, &rust, &index)?;
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

/// Prints the public items that no other code names, and what only their fields and signatures need.
///
/// # Errors
/// A tree that cannot be read or is not Rust.
pub(crate) fn print_unused(root: &Path) -> Result<(), String> {
    let rust = rust_files(root)?;
    let crates = manifest::workspace(root)?;
    let index = NameIndex::new(&crates, &rust);
    for krate in crates.iter().filter(|krate| !krate.is_published()) {
        let code = syntax::parse(&krate.folder, &rust)?;
        let unused = public::unused(&krate.folder, &code, &index);
        let print = |item: &PublicItem, note| println!("{}: {}{note}", item.at, item.name);
        unused.removable.iter().for_each(|item| print(item, ""));
        unused.in_signatures.iter().for_each(|item| print(item, " (in a signature)"));
    }
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
    /// Public items that no other code names and that could be private.
    unused: usize,
    /// Public types that only fields and signatures name.
    in_signatures: usize,
    mirrors: usize,
}

impl SystemFigures {
    fn of(
        system: &str,
        crates: &[Crate],
        sources: &[SourceFile],
        files: &[RustFile],
        index: &NameIndex,
    ) -> Result<Self, String> {
        let mut figures = Self::default();
        for krate in crates.iter().filter(|krate| krate.system() == system) {
            figures.crates += 1;
            let code = syntax::parse(&krate.folder, files)?;
            figures.public += code.iter().map(|file| public::items(file).len()).sum::<usize>();
            if !krate.is_published() {
                let unused = public::unused(&krate.folder, &code, index);
                figures.unused += unused.removable.len();
                figures.in_signatures += unused.in_signatures.len();
            }
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
        self.unused += other.unused;
        self.in_signatures += other.in_signatures;
        self.mirrors += other.mirrors;
    }

    fn print(&self, name: &str) {
        let Self { crates, src, beside, c, public, unused, in_signatures, mirrors } = self;
        println!(
            "{name:<12}{crates:>8}{src:>10}{beside:>10}{c:>8}{public:>14}{unused:>8}{in_signatures:>15}{mirrors:>9}"
        );
    }
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
    fn copies_of_types_are_found_by_name() {
        let code =
            literal(&[("lib.rs", "struct PlanDocument; enum ModelChoice {} struct Plan; fn a_view() {}")]);
        assert_eq!(code.iter().map(mirrors).sum::<usize>(), 2);
    }
}
