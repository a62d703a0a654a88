//! The error types of the workspace, and the word that their names end with.

use crate::syntax::{CodeFile, Spot};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use syn::visit::Visit;
use syn::{ItemImpl, Path, Type};

/// The types that implement `std::error::Error`.
pub(super) fn find(file: &CodeFile) -> Vec<(String, Spot)> {
    let mut search = ErrorSearch { file, found: Vec::new() };
    search.visit_file(&file.syntax);
    search.found
}

/// How many names end with which word, the commonest first.
pub(super) fn endings<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        *counts.entry(last_word(name)).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|&(_, count)| Reverse(count));
    counts
}

fn last_word(name: &str) -> &str {
    &name[name.rfind(char::is_uppercase).unwrap_or_default()..]
}

struct ErrorSearch<'a> {
    file: &'a CodeFile,
    found: Vec<(String, Spot)>,
}

impl<'ast> Visit<'ast> for ErrorSearch<'_> {
    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        let Some((path, _)) = &block.trait_ else { return };
        let Type::Path(of) = &*block.self_ty else { return };
        if let (true, Some(last)) = (is_error(path), of.path.segments.last()) {
            self.found.push((last.ident.to_string(), self.file.spot(last.ident.span())));
        }
    }
}

fn is_error(path: &Path) -> bool {
    let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    ["Error", "error::Error", "std::error::Error", "core::error::Error"].contains(&names.join("::").as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::literal;

    #[test]
    fn types_and_their_endings() {
        let text = "impl std::error::Error for TraceError {}\nimpl Error for a::NoRoom<'_> {}\n\
                    impl serde::de::Error for X {}\nimpl Display for Y {}\nimpl Error for ReadError {}";
        let code = literal(&[("lib.rs", text)]);
        let found = find(&code[0]);
        let names: Vec<(&str, usize)> = found.iter().map(|(name, spot)| (name.as_str(), spot.line)).collect();
        assert_eq!(names, [("TraceError", 1), ("NoRoom", 2), ("ReadError", 5)]);
        assert_eq!(endings(names.iter().map(|(name, _)| *name)), [("Error", 2), ("Room", 1)]);
    }
}
