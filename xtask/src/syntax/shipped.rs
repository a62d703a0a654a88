//! Which code is shipped: everything but items under `#[test]` or under a `cfg` that holds only in tests.
//!
//! Statements, fields and variants are not looked at: the workspace has no such condition on them.

use proc_macro2::Span;
use syn::punctuated::Punctuated;
use syn::{Attribute, Fields, ImplItem, Item, Meta, Token};

/// Removes what only tests have, and says how many lines that were.
pub(super) fn keep(items: &mut Vec<Item>) -> usize {
    let mut removed = 0;
    items.retain(|item| {
        let (attributes, end) = parts(item);
        let test = is_for_tests(attributes);
        removed += if test { lines(attributes, end) } else { 0 };
        !test
    });
    for item in items {
        match item {
            Item::Mod(module) => {
                removed += module.content.as_mut().map_or(0, |(_, items)| keep(items));
            }
            Item::Impl(block) => removed += keep_methods(&mut block.items),
            _ => {}
        }
    }
    removed
}

fn keep_methods(items: &mut Vec<ImplItem>) -> usize {
    let mut removed = 0;
    items.retain(|item| {
        let ImplItem::Fn(method) = item else { return true };
        let test = is_for_tests(&method.attrs);
        removed += if test { lines(&method.attrs, method.block.brace_token.span.close()) } else { 0 };
        !test
    });
    removed
}

/// Whether the attributes leave something to tests alone.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.parse_args::<Meta>().is_ok_and(|condition| implies_test(&condition))
    })
}

fn implies_test(condition: &Meta) -> bool {
    let Meta::List(list) = condition else { return condition.path().is_ident("test") };
    let parser = Punctuated::<Meta, Token![,]>::parse_terminated;
    let Ok(parts) = list.parse_args_with(parser) else { return false };
    if list.path.is_ident("all") {
        parts.iter().any(implies_test)
    } else {
        list.path.is_ident("any") && parts.iter().all(implies_test)
    }
}

fn lines(attributes: &[Attribute], end: Span) -> usize {
    let first = attributes.first().map_or(end, |attribute| attribute.pound_token.span);
    end.end().line + 1 - first.start().line
}

/// An item's attributes and its last token.
fn parts(item: &Item) -> (&[Attribute], Span) {
    match item {
        Item::Const(item) => (&item.attrs, item.semi_token.span),
        Item::Enum(item) => (&item.attrs, item.brace_token.span.close()),
        Item::ExternCrate(item) => (&item.attrs, item.semi_token.span),
        Item::Fn(item) => (&item.attrs, item.block.brace_token.span.close()),
        Item::Impl(item) => (&item.attrs, item.brace_token.span.close()),
        Item::Macro(item) => (&item.attrs, item.mac.delimiter.span().close()),
        Item::Mod(item) => {
            let end = item.content.as_ref().map(|(brace, _)| brace.span.close());
            (&item.attrs, end.or(item.semi.as_ref().map(|semi| semi.span)).unwrap_or(item.mod_token.span))
        }
        Item::Static(item) => (&item.attrs, item.semi_token.span),
        Item::Struct(item) => match &item.fields {
            Fields::Named(fields) => (&item.attrs, fields.brace_token.span.close()),
            _ => (&item.attrs, item.semi_token.as_ref().map_or(item.struct_token.span, |semi| semi.span)),
        },
        Item::Trait(item) => (&item.attrs, item.brace_token.span.close()),
        Item::Type(item) => (&item.attrs, item.semi_token.span),
        Item::Use(item) => (&item.attrs, item.semi_token.span),
        _ => (&[], Span::call_site()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(text: &str) -> (usize, usize) {
        let mut file = syn::parse_file(text).expect("Rust");
        let removed = keep(&mut file.items);
        (file.items.len(), removed)
    }

    #[test]
    fn what_tests_alone_have_goes() {
        assert_eq!(left("fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n"), (1, 4));
        assert_eq!(left("#[test]\nfn a() {\n}\n"), (0, 3));
        assert_eq!(left("#[cfg(all(test, unix))]\nuse a::b;\nuse c::d;"), (1, 2));
        assert_eq!(left("impl X {\n    #[cfg(test)]\n    fn a() {}\n    fn b() {}\n}"), (1, 2));
    }

    #[test]
    fn what_others_have_too_stays() {
        assert_eq!(left("#[cfg(unix)]\nfn a() {}"), (1, 0));
        assert_eq!(left("#[cfg(not(test))]\nfn a() {}"), (1, 0));
        assert_eq!(left("#[cfg(any(test, feature = \"testing\"))]\nfn a() {}"), (1, 0));
    }
}
