//! Functions that do not fit on a screen.

use crate::syntax::{CodeFile, Spot};
use syn::visit::{self, Visit};
use syn::{Block, ImplItemFn, ItemFn, Signature, TraitItemFn};

/// Longer ones are reported.
pub(super) const LINES_MAX: usize = 60;

/// A function and how many lines it has from `fn` to its closing brace.
pub(super) struct FunctionLength {
    pub(super) spot: Spot,
    pub(super) function: String,
    pub(super) lines: usize,
}

/// The functions of a file with more than `LINES_MAX` lines.
pub(super) fn long(file: &CodeFile) -> Vec<FunctionLength> {
    let mut search = LengthSearch { file, found: Vec::new() };
    search.visit_file(&file.syntax);
    search.found
}

struct LengthSearch<'a> {
    file: &'a CodeFile,
    found: Vec<FunctionLength>,
}

impl LengthSearch<'_> {
    fn measure(&mut self, signature: &Signature, body: &Block) {
        let spot = self.file.spot(signature.fn_token.span);
        let lines = body.brace_token.span.close().end().line + 1 - spot.line;
        if lines > LINES_MAX {
            self.found.push(FunctionLength { spot, function: signature.ident.to_string(), lines });
        }
    }
}

impl<'ast> Visit<'ast> for LengthSearch<'_> {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(body) = &function.default {
            self.measure(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::literal;

    #[test]
    fn the_sixty_first_line_is_too_many() {
        let lengths = |lines: usize| {
            let text = format!("\nimpl A {{ pub fn a() {{{}}} }}", "\n".repeat(lines - 1));
            let code = literal(&[("lib.rs", &text)]);
            long(&code[0]).iter().map(|found| (found.spot.line, found.lines)).collect::<Vec<_>>()
        };
        assert_eq!(lengths(60), []);
        assert_eq!(lengths(61), [(2, 61)]);
    }
}
