//! Compiled programs for the kernel that are in the tree, judged by compiling their sources again.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Expects that each object NAME.bpf.o in a folder is what `base/machine/bpf/build.sh` makes of NAME.bpf.c. The sources are
/// compiled in another folder, so that an object cannot depend on where the tree is. Says so without the compiler.
///
/// # Panics
/// When a source does not compile, or to something else.
#[track_caller]
pub fn expect_compiled_objects(folder: &Path, names: &[&str]) {
    if crate::program("clang-14").is_none() || crate::program("llvm-objcopy-14").is_none() {
        return;
    }
    let elsewhere = tempfile::tempdir().expect("a temporary folder can be made");
    let common = elsewhere.path().join("common");
    let sources = elsewhere.path().join("sources");
    copy_sources(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../base/machine/bpf")), &common);
    copy_sources(folder, &sources);
    let built = elsewhere.path().join("again.o");
    for name in names {
        let source = format!("{name}.bpf.c");
        let object = format!("{name}.bpf.o");
        let mut command = Command::new("sh");
        command.arg(common.join("build.sh")).arg(sources.join(&source)).arg(&built);
        let output = command.output().expect("sh can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(
            read(&built) == read(&folder.join(&object)),
            "{folder}/{object} is not what its source compiles to: run sh base/machine/bpf/build.sh {folder}/{source} \
             {folder}/{object} with Debian's clang-14",
            folder = folder.display()
        );
    }
}

fn copy_sources(folder: &Path, into: &Path) {
    fs::create_dir(into).expect("the temporary folder is ours");
    for file in fs::read_dir(folder).expect("the sources are there").flatten() {
        if file.path().extension().is_none_or(|ending| ending != "o") {
            fs::copy(file.path(), into.join(file.file_name())).expect("the folder is ours");
        }
    }
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
