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
    for name in ["build.sh", "kernel.h", "rule.h", "sockets.bpf.c"] {
        std::fs::copy(source.join(name), folder.path().join(name)).expect("the sources are there");
    }
    let built = folder.path().join("again.o");
    let mut command = Command::new("sh");
    command.arg(folder.path().join("build.sh")).arg("sockets.bpf.c").arg(&built);
    let output = command.output().expect("sh can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        read(&built) == read(&source.join("sockets.bpf.o")),
        "crates/experiment/bpf/sockets.bpf.o is not what its source compiles to: in that folder, run ./build.sh \
         sockets.bpf.c sockets.bpf.o with Debian's clang-14"
    );
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
