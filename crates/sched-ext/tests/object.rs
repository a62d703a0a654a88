//! The compiled objects in the tree are what their sources compile to.

use std::path::Path;
use std::process::Command;

const OBJECTS: [&str; 3] = ["oldest_first", "oldest_first_group", "fair_root"];

#[test]
fn compiling_again_gives_the_same_objects() {
    if testkit::program("clang-14").is_none() || testkit::program("llvm-objcopy-14").is_none() {
        return;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    // Elsewhere, so that an object cannot depend on where it is compiled.
    let sources = OBJECTS.map(|name| format!("{name}.bpf.c"));
    let others = ["build.sh", "kernel.h", "layout.h", "common.h"].map(str::to_owned);
    for name in sources.iter().chain(&others) {
        std::fs::copy(source.join(name), folder.path().join(name)).expect("the sources are there");
    }
    for name in OBJECTS {
        let built = folder.path().join("again.o");
        let mut command = Command::new("sh");
        command.arg(folder.path().join("build.sh")).arg(format!("{name}.bpf.c")).arg(&built);
        let output = command.output().expect("sh can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(
            read(&built) == read(&source.join(format!("{name}.bpf.o"))),
            "crates/sched-ext/bpf/{name}.bpf.o is not what its source compiles to: in that folder, run ./build.sh \
             {name}.bpf.c {name}.bpf.o with Debian's clang-14"
        );
    }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
