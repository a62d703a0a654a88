//! Which code is shipped: everything but items under `#[test]` or under a `cfg` that holds only in tests.
//!
//! Statements, fields and variants are not examined: the workspace has no such condition on them.

use syn::punctuated::Punctuated;
use syn::{Attribute, ImplItem, Item, Meta, Token};

/// Removes items that only tests have.
pub(super) fn keep(items: &mut Vec<Item>) {
    items.retain(|item| !is_for_tests(attributes(item)));
    for item in items {
        match item {
            Item::Mod(module) => {
                if let Some((_, items)) = &mut module.content {
                    keep(items);
                }
            }
            Item::Impl(block) => block.items.retain(|item| match item {
                ImplItem::Fn(method) => !is_for_tests(&method.attrs),
                _ => true,
            }),
            _ => {}
        }
    }
}

/// True if the attributes limit an item to tests.
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

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items that are left, and functions of implementations among them.
    fn left(text: &str) -> (usize, usize) {
        let mut file = syn::parse_file(text).expect("Rust");
        keep(&mut file.items);
        let methods = file.items.iter().map(|item| match item {
            Item::Impl(block) => block.items.iter().filter(|item| matches!(item, ImplItem::Fn(_))).count(),
            _ => 0,
        });
        (file.items.len(), methods.sum())
    }

    #[test]
    fn items_of_tests_are_removed() {
        assert_eq!(left("fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n"), (1, 0));
        assert_eq!(left("#[test]\nfn a() {\n}\n"), (0, 0));
        assert_eq!(left("#[cfg(all(test, unix))]\nuse a::b;\nuse c::d;"), (1, 0));
        assert_eq!(left("impl X {\n    #[cfg(test)]\n    fn a() {}\n    fn b() {}\n}"), (1, 1));
    }

    #[test]
    fn items_of_others_stay() {
        assert_eq!(left("#[cfg(unix)]\nfn a() {}"), (1, 0));
        assert_eq!(left("#[cfg(not(test))]\nfn a() {}"), (1, 0));
        assert_eq!(left("#[cfg(any(test, feature = \"testing\"))]\nfn a() {}"), (1, 0));
    }
}
