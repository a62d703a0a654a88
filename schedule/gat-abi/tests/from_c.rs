//! The library as a C program uses it, and a comparison of the header with the library's exports.

use std::path::{Path, PathBuf};
use testkit::functions_named;

const PREFIX: &str = "tailwright_gat_";

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn a_program_in_c() {
    if let Some(printed) = testkit::printed_from_c(&folder(""), "from_c.c", "libtailwright_gat.so", &[]) {
        assert_eq!(printed, "all of it\n");
    }
}

#[test]
fn header_manual_and_library_have_the_same_functions() {
    let read =
        |path: PathBuf| std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let [header, manual, library] =
        ["include/tailwright_gat.h", "man/tailwright_gat.3", "src/lib.rs"].map(|path| read(folder(path)));
    let declared = functions_named(&header, PREFIX);
    assert_eq!(declared.len(), 10, "{declared:?}");
    assert_eq!(functions_named(&manual, PREFIX), declared);
    assert_eq!(functions_named(&library, PREFIX), declared);
    assert!(header.contains(&format!("#define TAILWRIGHT_GAT_ABI {}\n", tailwright_gat::ABI)));
}
