//! Module headers: every file says what it decides, before anything else. A file that only declares
//! modules and re-exports names decides nothing and needs none.

use crate::syntax::CodeFile;
use syn::{AttrStyle, Item};

/// True for a file that needs a header and has none.
fn is_missing(file: &CodeFile) -> bool {
    let attributes = &file.syntax.attrs;
    let has_one = attributes
        .iter()
        .any(|attribute| attribute.path().is_ident("doc") && matches!(attribute.style, AttrStyle::Inner(_)));
    let only_passes_on = file.syntax.items.iter().all(|item| match item {
        Item::Mod(module) => module.content.is_none(),
        Item::Use(_) => true,
        _ => false,
    });
    !has_one && !only_passes_on
}

/// Complains about files without one.
pub(crate) fn check(code: &[CodeFile]) -> Vec<String> {
    code.iter()
        .filter(|file| is_missing(file))
        .map(|file| {
            format!(
                "{}:1: expected a module header; say in `//!` lines what the file decides and why so",
                file.path
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::literal;

    #[test]
    fn headers_and_lists_of_modules_pass() {
        for text in ["//! Decides nothing.\nfn a() {}", "mod a;\npub use a::b;", ""] {
            assert_eq!(check(&literal(&[("lib.rs", text), ("a.rs", "//! A.")])), [""; 0]);
        }
    }

    #[test]
    fn anything_else_needs_a_header() {
        for text in ["fn a() {}", "// Decides nothing.\nconst A: u8 = 1;", "mod a { fn b() {} }"] {
            let complaints = check(&literal(&[("lib.rs", text)]));
            assert!(complaints.len() == 1 && complaints[0].contains("lib.rs:1"), "{complaints:?}");
        }
    }
}
