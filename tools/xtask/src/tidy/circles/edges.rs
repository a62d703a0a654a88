//! Dependencies between files of a crate: file A needs file B if A's code names something that B defines.
//!
//! Names come from `use` declarations, from paths, and from the tokens inside macro calls. A name that
//! is passed on (`pub use`) and a module that is declared need nothing by themselves. Of names without `::`
//! only types, constants and called functions are followed: others may be variables.

use super::scopes::{Import, Scopes, child, imports};
use crate::syntax::{CodeFile, line_of, plain};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprCall, ItemMod, ItemUse, Macro, Path, Visibility};

/// One file names what another defines.
#[derive(Debug)]
pub(super) struct Naming {
    /// The number of the file that names.
    pub(super) from: usize,
    /// The number of the file that defines.
    pub(super) to: usize,
    pub(super) line: usize,
    /// The path as it is written.
    pub(super) path: String,
}

/// Everything that the file of this number names in other files, in the order of lines.
pub(super) fn of_file(number: usize, file: &CodeFile, scopes: &Scopes) -> Vec<Naming> {
    let mut search = NamingSearch { number, scopes, module: file.module.clone(), found: Vec::new() };
    search.visit_file(&file.syntax);
    search.found.sort_by_key(|naming| naming.line);
    search.found
}

struct NamingSearch<'a> {
    number: usize,
    scopes: &'a Scopes,
    module: Vec<String>,
    found: Vec<Naming>,
}

impl NamingSearch<'_> {
    fn add(&mut self, to: Option<usize>, path: &[String], line: usize) {
        if let Some(to) = to.filter(|&to| to != self.number) {
            self.found.push(Naming { from: self.number, to, line, path: path.join("::") });
        }
    }

    fn path(&mut self, path: &[String], line: usize) {
        self.add(self.scopes.file_of(&self.module, path), path, line);
    }

    fn import(&mut self, import: &Import) {
        if import.name.is_some() {
            self.path(&import.path, import.line);
        } else {
            self.add(self.scopes.file_of_all(&self.module, &import.path), &import.path, import.line);
        }
    }

    /// The paths in the tokens of a macro call.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(first) if !follows_dot(&tokens, at) => {
                    let path = path_at(&tokens, at);
                    let end = at + 1 + 3 * (path.len() - 1);
                    if path.len() > 1 || is_type(&path[0]) || is_call(tokens.get(end)) {
                        self.path(&path, line_of(first.span()));
                    }
                    at = end;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
    }
}

impl<'ast> Visit<'ast> for NamingSearch<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let outer = std::mem::take(&mut self.module);
        self.module = child(&outer, &plain(&item.ident));
        visit::visit_item_mod(self, item);
        self.module = outer;
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !matches!(item.vis, Visibility::Inherited) || item.leading_colon.is_some() {
            return;
        }
        let mut leaves = Vec::new();
        imports(&item.tree, &mut Vec::new(), &mut leaves);
        for leaf in &leaves {
            self.import(leaf);
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| plain(&segment.ident)).collect();
        if path.leading_colon.is_none() && (names.len() > 1 || is_type(&names[0])) {
            self.path(&names, line_of(path.segments[0].ident.span()));
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(function) = &*call.func
            && let Some(name) = function.path.get_ident()
        {
            self.path(&[plain(name)], line_of(name.span()));
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

fn is_type(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}

fn is_call(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
}

fn is_punctuation(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(found)) if found.as_char() == sign)
}

/// True for a field or method, false for the end of a range.
fn follows_dot(tokens: &[TokenTree], at: usize) -> bool {
    at > 0 && is_punctuation(tokens.get(at - 1), '.') && !(at > 1 && is_punctuation(tokens.get(at - 2), '.'))
}

/// The names from here on that are joined by `::`.
fn path_at(tokens: &[TokenTree], start: usize) -> Vec<String> {
    let mut path = Vec::new();
    let mut at = start;
    while let Some(TokenTree::Ident(name)) = tokens.get(at) {
        path.push(plain(name));
        if !(is_punctuation(tokens.get(at + 1), ':') && is_punctuation(tokens.get(at + 2), ':')) {
            break;
        }
        at += 3;
    }
    path
}
