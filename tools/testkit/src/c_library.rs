//! Libraries for C: a program in C that uses one, and the functions that a header, a manual or a source names.

use std::path::Path;
use std::process::Command;

/// Compiles a C program of a crate with the crate's header and library, which is beside the test's
/// program, and runs it with these arguments. Returns its output; skips and returns `None` without a
/// compiler.
///
/// # Panics
/// When the program does not compile without warnings, or ends with an error.
pub fn printed_from_c(
    crate_folder: &Path,
    source: &str,
    library: &str,
    arguments: &[String],
) -> Option<String> {
    // The name of the linker that every build uses.
    let Some(compiler) = machine::programs::find("cc") else {
        crate::skip("there is no cc");
        return None;
    };
    let made = tempfile::tempdir().expect("a temporary folder");
    let program = made.path().join("from_c");
    let test = std::env::current_exe().expect("this program has a path");
    let libraries = test.parent().expect("a program has a folder");
    let mut compile = Command::new(compiler);
    compile.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-pthread", "-I"]);
    compile.arg(crate_folder.join("include")).arg(crate_folder.join("tests").join(source));
    let output = compile.arg(libraries.join(library)).arg("-o").arg(&program).output();
    let output = output.expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(program).args(arguments).env("LD_LIBRARY_PATH", libraries).output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("it prints text"))
}

/// Returns the distinct words that start with `prefix` and precede an opening parenthesis, sorted.
pub fn functions_named<'a>(text: &'a str, prefix: &str) -> Vec<&'a str> {
    let called =
        text.split('(').filter_map(|before| before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next());
    let mut found: Vec<&str> = called.filter(|word| word.starts_with(prefix)).collect();
    found.sort_unstable();
    found.dedup();
    found
}
