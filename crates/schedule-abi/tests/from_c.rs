//! The library as a C program uses it, and the header held against what the library exports.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of this test's program has the library, too.
fn shared_library() -> PathBuf {
    let program = std::env::current_exe().expect("this program has a path");
    program.with_file_name("libtailwright_schedule_abi.so")
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn a_program_in_c() {
    // The linker of every build.
    let Some(compiler) = machine::programs::find("cc") else { return testkit::skip("there is no cc") };
    let made = tempfile::tempdir().expect("a temporary folder");
    let program = made.path().join("from_c");
    let mut compile = Command::new(compiler);
    compile.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-pthread", "-I"]);
    compile.arg(folder("include")).arg(folder("tests/from_c.c"));
    let output = compile.arg(shared_library()).arg("-o").arg(&program).output().expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let library = shared_library();
    let output = Command::new(program).env("LD_LIBRARY_PATH", library.parent().expect("a folder")).output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout, b"all of it\n");
}

/// The words with our prefix that are followed by a round bracket.
fn functions(text: &str) -> Vec<&str> {
    let called =
        text.split('(').filter_map(|before| before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next());
    let mut found: Vec<&str> = called.filter(|word| word.starts_with("tailwright_")).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn header_and_library_have_the_same_functions() {
    let read =
        |path: PathBuf| std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let [header, library] = ["include/tailwright_schedule.h", "src/lib.rs"].map(|path| read(folder(path)));
    let declared = functions(&header);
    assert_eq!(declared.len(), 8, "{declared:?}");
    assert_eq!(functions(&library), declared);
    assert!(header.contains(&format!("#define TAILWRIGHT_SCHEDULE_ABI {}\n", tailwright_schedule_abi::ABI)));
}
