//! Functions read downwards. A named closure makes the reader jump back to what stood above, with all the
//! variables that it may have taken along: one or two are an abbreviation, more are a file of functions.

use crate::syntax::{CodeFile, Spot};
use syn::visit::{self, Visit};
use syn::{Expr, ImplItemFn, ItemFn, Local, Pat, Signature, TraitItemFn};

/// So many named closures a function may have.
const CLOSURES_MAX: usize = 2;

/// A function and its named closures.
pub(crate) struct Closures {
    pub(crate) spot: Spot,
    pub(crate) function: String,
    pub(crate) count: usize,
}

impl Closures {
    pub(crate) fn are_too_many(&self) -> bool {
        self.count > CLOSURES_MAX
    }
}

/// The functions of a file with at least one named closure.
pub(crate) fn of_functions(file: &CodeFile) -> Vec<Closures> {
    let mut search = ClosureSearch { file, open: Vec::new(), found: Vec::new() };
    search.visit_file(&file.syntax);
    search.found.retain(|function| function.count > 0);
    search.found
}

/// Complains about functions with too many.
pub(crate) fn check(code: &[CodeFile]) -> Vec<String> {
    let functions = code.iter().flat_map(of_functions).filter(Closures::are_too_many);
    functions
        .map(|function| {
            format!(
                "{}: {} has {} named closures, at most {CLOSURES_MAX}; make them functions with their \
                 inputs as arguments",
                function.spot, function.function, function.count
            )
        })
        .collect()
}

struct ClosureSearch<'a> {
    file: &'a CodeFile,
    /// Functions that the search is inside of, the innermost last.
    open: Vec<Closures>,
    found: Vec<Closures>,
}

impl ClosureSearch<'_> {
    fn enter(&mut self, signature: &Signature) {
        let spot = self.file.spot(signature.ident.span());
        self.open.push(Closures { spot, function: signature.ident.to_string(), count: 0 });
    }

    fn leave(&mut self) {
        self.found.extend(self.open.pop());
    }
}

impl<'ast> Visit<'ast> for ClosureSearch<'_> {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.enter(&function.sig);
        visit::visit_item_fn(self, function);
        self.leave();
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.enter(&function.sig);
        visit::visit_impl_item_fn(self, function);
        self.leave();
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        self.enter(&function.sig);
        visit::visit_trait_item_fn(self, function);
        self.leave();
    }

    fn visit_local(&mut self, local: &'ast Local) {
        let closure = local.init.as_ref().is_some_and(|init| is_closure(&init.expr));
        if let (true, Some(function)) = (closure && is_name(&local.pat), self.open.last_mut()) {
            function.count += 1;
        }
        visit::visit_local(self, local);
    }
}

fn is_name(pattern: &Pat) -> bool {
    match pattern {
        Pat::Ident(_) => true,
        Pat::Type(typed) => is_name(&typed.pat),
        _ => false,
    }
}

fn is_closure(value: &Expr) -> bool {
    match value {
        Expr::Closure(_) => true,
        Expr::Paren(inner) => is_closure(&inner.expr),
        Expr::Reference(inner) => is_closure(&inner.expr),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::literal;

    #[test]
    fn two_closures_and_unnamed_ones_pass() {
        let text = "fn a() { let b = |x| x; let c = |y| y; d.map(|z| z); let e = d.map(|x| x); }";
        assert_eq!(check(&literal(&[("lib.rs", text)])), [""; 0]);
        let nested = "fn a() { let b = |x| x; let c = || 1; fn d() { let e = || 2; } }";
        assert_eq!(check(&literal(&[("lib.rs", nested)])), [""; 0]);
    }

    #[test]
    fn three_closures_are_refused() {
        for text in [
            "fn a() {\n let b = |x| x; let mut c = move || 1; let d: &dyn Fn() = &|| (); }",
            "impl X {\n fn a() { let b = || { let c = (|| 1); let d = || 2; }; } }",
            "trait X {\n fn a() { let b = || 1; if b() { let c = || 1; let d = || 2; } } }",
        ] {
            let complaints = check(&literal(&[("lib.rs", text)]));
            assert!(complaints.len() == 1 && complaints[0].contains("a has 3"), "{complaints:?}");
        }
    }
}
