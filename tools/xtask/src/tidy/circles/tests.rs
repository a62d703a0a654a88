use super::*;
use crate::syntax::literal;

fn links(files: &[(&str, &str)]) -> Vec<String> {
    let circles = find(&literal(files));
    let lines = circles.iter().flat_map(|circle| &circle.links).map(describe);
    lines.map(|line| line.replace("crates/x/src/", "")).collect()
}

#[test]
fn files_in_an_order_pass() {
    let code = literal(&[
        ("lib.rs", "mod a; mod b; pub use a::A; use b::c::d; fn run() { a::go(); d() }"),
        ("a.rs", "use super::b::B; pub struct A(B); pub fn go() {}"),
        ("b/mod.rs", "pub mod c; pub struct B; pub use c::d;"),
        ("b/c.rs", "use super::B; pub fn d() {} #[cfg(test)] mod tests { use crate::run; }"),
    ]);
    assert_eq!(check(&code), [""; 0]);
}

#[test]
fn two_files_that_need_each_other_are_refused() {
    let code = literal(&[
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", "use super::b::B;\npub struct A;"),
        ("b.rs", "pub struct B;\nfn f() -> crate::a::A { todo!() }\nfn g(a: super::a::A) {}"),
    ]);
    let complaints = check(&code);
    assert!(complaints.len() == 1 && complaints[0].starts_with("crates/x/src/a.rs:1: a circle of 2 files"));
    assert!(complaints[0].contains("b.rs:2 → crates/x/src/a.rs (crate::a::A and 1 more)"), "{complaints:?}");
}

#[test]
fn a_parent_needs_a_child_by_use_and_by_path() {
    for root in ["mod a;\nuse a::A;\nfn f() {}", "mod a;\nfn f() {\n}\nfn g() -> a::A { A }"] {
        let files = [("lib.rs", root), ("a.rs", "pub struct A; fn h() { super::f() }")];
        assert_eq!(links(&files).len(), 2, "{root}");
    }
}

#[test]
fn a_circle_through_others_and_names_passed_on() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::c; pub struct B(c::C);"),
        ("c.rs", "use crate::A; pub struct C;"),
    ];
    let expected = ["a.rs:1 → b.rs (crate::b::B)", "b.rs:1 → c.rs (c::C)", "c.rs:1 → a.rs (crate::A)"];
    assert_eq!(links(&files), expected);
}

#[test]
fn a_name_that_is_passed_on_and_used_counts() {
    let files = [("lib.rs", "mod a; pub use a::go; fn f() { go() }"), ("a.rs", "pub fn go() { crate::f() }")];
    assert_eq!(links(&files), ["a.rs:1 → lib.rs (crate::f)", "lib.rs:1 → a.rs (go)"]);
}

#[test]
fn calls_of_macros_and_imports_of_everything_count() {
    let files = [
        ("lib.rs", "mod a;\nstruct R;\nfn f(x: u8) { println!(\"{}\", x.a + a::g(1)); }"),
        ("a.rs", "use super::*;\npub fn g(x: u8) -> u8 { x }"),
    ];
    assert_eq!(links(&files), ["a.rs:1 → lib.rs (super)", "lib.rs:3 → a.rs (a::g)"]);
}

#[test]
fn inline_modules_belong_to_their_file() {
    let files = [
        ("lib.rs", "mod a; mod b { pub fn f() { super::a::g() } }"),
        ("a.rs", "pub fn g() { crate::b::f() }"),
    ];
    assert_eq!(links(&files).len(), 2);
    assert_eq!(
        links(&[(
            "lib.rs",
            "mod a { use super::b::B; pub struct A; } mod b { use super::a::A; pub struct B; }"
        )]),
        [""; 0]
    );
}
