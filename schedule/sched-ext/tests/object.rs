//! The compiled objects in the tree are what their sources compile to.

use std::path::Path;

#[test]
fn compiling_again_gives_the_same_objects() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    testkit::expect_compiled_objects(&folder, &["oldest_first", "oldest_first_group", "fair_root"]);
}
