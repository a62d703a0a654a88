//! The compiled objects in the tree are what their sources compile to.

use std::path::Path;
use std::process::Command;

#[test]
fn compiling_again_gives_the_same_objects() {
    if testkit::program("clang-14").is_none() || testkit::program("llvm-objcopy-14").is_none() {
        return;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    // Elsewhere, so that the objects cannot depend on where they are compiled.
    for name in [
        "build.sh",
        "kernel.h",
        "events.h",
        "threads.h",
        "bytes.h",
        "packets.h",
        "observe.bpf.c",
        "block.bpf.c",
    ] {
        std::fs::copy(source.join(name), folder.path().join(name)).expect("the sources are there");
    }
    let built = folder.path().join("again.o");
    for name in ["observe", "block"] {
        let mut command = Command::new("sh");
        command.arg(folder.path().join("build.sh")).arg(format!("{name}.bpf.c")).arg(&built);
        let output = command.output().expect("sh can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let object = format!("{name}.bpf.o");
        assert!(
            read(&built) == read(&source.join(&object)),
            "crates/observe/bpf/{object} is not what its source compiles to: in that folder, run ./build.sh \
             {name}.bpf.c {object} with Debian's clang-14"
        );
    }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
