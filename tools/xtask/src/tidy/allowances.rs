//! Every silenced lint has a reason: `reason = "…"`, or a comment on the line above.

use crate::syntax::{CodeFile, Spot};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{Attribute, Meta};

/// The `#[allow]` and `#[expect]` attributes of a file that give no reason.
fn without_reason(file: &CodeFile) -> Vec<Spot> {
    let mut search = SilenceSearch { file, found: Vec::new() };
    search.visit_file(&file.syntax);
    search.found
}

/// Complains about lints that are silenced without a reason.
pub(crate) fn check(code: &[CodeFile]) -> Vec<String> {
    code.iter()
        .flat_map(without_reason)
        .map(|spot| {
            format!(
                "{spot}: expected a reason for silencing a lint; add `reason = \"…\"` or a comment on the \
                 line above"
            )
        })
        .collect()
}

struct SilenceSearch<'a> {
    file: &'a CodeFile,
    found: Vec<Spot>,
}

impl<'ast> Visit<'ast> for SilenceSearch<'_> {
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let Meta::List(list) = &attribute.meta else { return };
        let silences = list.path.is_ident("allow")
            || list.path.is_ident("expect")
            || list.path.is_ident("cfg_attr") && (has(&list.tokens, "allow") || has(&list.tokens, "expect"));
        let spot = self.file.spot(attribute.pound_token.span);
        if silences && !has(&list.tokens, "reason") && !is_commented(&self.file.text, spot.line) {
            self.found.push(spot);
        }
    }
}

fn has(tokens: &TokenStream, word: &str) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == word,
        TokenTree::Group(group) => has(&group.stream(), word),
        _ => false,
    })
}

/// True if the line above is a comment. Documentation is for users and gives no reason.
fn is_commented(text: &str, line: usize) -> bool {
    let above = text.lines().nth(line.saturating_sub(2)).unwrap_or_default().trim();
    let documents = above.starts_with("///") || above.starts_with("//!");
    line > 1 && above.starts_with("//") && !documents
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::literal;

    #[test]
    fn reasons_pass() {
        for text in [
            "#[allow(dead_code, reason = \"kept\")]\nfn a() {}",
            "// Kept.\n#[expect(dead_code)]\nfn a() {}",
            "// Kept.\n#![allow(dead_code)]",
            "#[derive(Debug)]\nstruct A;",
        ] {
            assert_eq!(check(&literal(&[("lib.rs", text)])), [""; 0], "{text}");
        }
    }

    #[test]
    fn silence_without_a_reason_is_refused() {
        for text in [
            "\n#[allow(dead_code)]\nfn a() {}",
            "//! Header.\n#![allow(dead_code)]",
            "/// Documented.\n#[expect(dead_code)]\nfn a() {}",
            "fn a() {\n    #[allow(unused)]\n    let b = 1;\n}",
            "\n#[cfg_attr(unix, allow(dead_code))]\nfn a() {}",
        ] {
            let complaints = check(&literal(&[("lib.rs", text)]));
            assert!(complaints.len() == 1 && complaints[0].contains("lib.rs:2: "), "{text}: {complaints:?}");
        }
    }
}
