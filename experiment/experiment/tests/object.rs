//! The compiled object in the tree is what its source compiles to.

use std::path::Path;

#[test]
fn compiling_again_gives_the_same_object() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    testkit::expect_compiled_objects(&folder, &["sockets"]);
}
