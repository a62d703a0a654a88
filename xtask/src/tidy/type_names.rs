//! One name, one type: a reader who meets a name in two crates must not have to ask which one is meant.
//!
//! Words so general that every crate may have its own are listed in `ARCHITECTURE.md`, in the paragraph
//! that begins with `LEAD`. Associated types are not counted: their traits name them.

use crate::syntax::{CodeFile, Spot};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use syn::visit::{self, Visit};
use syn::{Ident, ItemEnum, ItemStruct, ItemTrait, ItemType, ItemUnion};

const LEAD: &str = "Words that every crate may use for its own:";

/// A type name and where it is defined.
pub(crate) struct Definitions {
    pub(crate) name: String,
    pub(crate) spots: Vec<Spot>,
}

/// The names with more than one definition, those with most first.
pub(crate) fn repeated<'a>(code: impl IntoIterator<Item = &'a CodeFile>) -> Vec<Definitions> {
    let mut by_name: BTreeMap<String, Vec<Spot>> = BTreeMap::new();
    for file in code {
        let mut defined = Defined { file, by_name: &mut by_name };
        defined.visit_file(&file.syntax);
    }
    let mut found: Vec<Definitions> = by_name
        .into_iter()
        .filter(|(_, spots)| spots.len() > 1)
        .map(|(name, spots)| Definitions { name, spots })
        .collect();
    found.sort_by_key(|definitions| Reverse(definitions.spots.len()));
    found
}

/// Complains about repeated names that the glossary does not allow.
pub(crate) fn check(code: &[CodeFile], glossary: &str) -> Vec<String> {
    let allowed = allowed(glossary);
    repeated(code)
        .iter()
        .filter(|definitions| !allowed.contains(&definitions.name.as_str()))
        .map(|definitions| {
            let spots: Vec<String> = definitions.spots.iter().map(ToString::to_string).collect();
            format!(
                "{}: the type name {} has {} definitions ({}), expected one; say in each name what it is \
                 of, or list the word in ARCHITECTURE.md",
                definitions.spots[0],
                definitions.name,
                spots.len(),
                spots.join(", ")
            )
        })
        .collect()
}

fn allowed(glossary: &str) -> Vec<&str> {
    let listed = glossary.split_once(LEAD).map_or("", |(_, rest)| rest);
    // The list ends with its paragraph.
    let paragraph = listed.split("\n\n").next().unwrap_or_default();
    paragraph.split('`').skip(1).step_by(2).collect()
}

struct Defined<'a> {
    file: &'a CodeFile,
    by_name: &'a mut BTreeMap<String, Vec<Spot>>,
}

impl Defined<'_> {
    fn add(&mut self, name: &Ident) {
        self.by_name.entry(name.to_string()).or_default().push(self.file.spot(name.span()));
    }
}

impl<'ast> Visit<'ast> for Defined<'_> {
    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.add(&item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        self.add(&item.ident);
    }

    fn visit_item_union(&mut self, item: &'ast ItemUnion) {
        self.add(&item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        self.add(&item.ident);
        // Default methods may define types of their own.
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast ItemType) {
        self.add(&item.ident);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::literal;

    #[test]
    fn different_names_pass() {
        let text = "struct A; enum B {} trait C { type A; } type D = A; impl C for A { type A = u8; }";
        assert_eq!(check(&literal(&[("lib.rs", text)]), ""), [""; 0]);
    }

    #[test]
    fn a_name_of_two_types_is_refused() {
        let code = literal(&[("lib.rs", "mod b;\nstruct Step;"), ("b.rs", "fn f() {\n    enum Step {}\n}")]);
        let complaints = check(&code, "Nothing.");
        assert!(complaints.len() == 1 && complaints[0].contains("b.rs:2"), "{complaints:?}");
        assert!(complaints[0].contains("lib.rs:2"), "{complaints:?}");
        let twins = literal(&[("lib.rs", "type Step = u8; mod x { union Step { a: u8 } trait Step {} }")]);
        assert!(check(&twins, "")[0].contains("3 definitions"));
    }

    #[test]
    fn words_of_the_glossary_may_repeat() {
        let code = literal(&[("lib.rs", "mod b;\nstruct Step;"), ("b.rs", "enum Step {}")]);
        let glossary = "Words that every crate may use for its own: `Row`,\n`Step`.\n\nNot `Entry`.";
        assert_eq!(check(&code, glossary), [""; 0]);
        assert_eq!(check(&code, &glossary.replace("Step", "Entry")).len(), 1);
    }
}
