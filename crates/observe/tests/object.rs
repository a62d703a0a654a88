//! The compiled object in the tree is what its source compiles to.

use std::path::Path;
use std::process::Command;

#[test]
fn compiling_again_gives_the_same_object() {
    if testkit::program("clang-14").is_none() || testkit::program("llvm-objcopy-14").is_none() {
        return;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    // Elsewhere, so that the object cannot depend on where it is compiled.
    for name in ["build.sh", "kernel.h", "observe.bpf.c"] {
        std::fs::copy(source.join(name), folder.path().join(name)).expect("the sources are there");
    }
    let built = folder.path().join("again.o");
    let output = Command::new("sh").arg(folder.path().join("build.sh")).arg(&built).output();
    let output = output.expect("sh can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read =
        |path: &Path| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(
        read(&built) == read(&source.join("observe.bpf.o")),
        "crates/observe/bpf/observe.bpf.o is not what its source compiles to: run crates/observe/bpf/build.sh \
         crates/observe/bpf/observe.bpf.o with Debian's clang-14"
    );
}
