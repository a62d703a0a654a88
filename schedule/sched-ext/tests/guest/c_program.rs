//! The program in C: compiled on the host, run in the guest.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Path of the program, the same on the host and in the guest.
const PROGRAM: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/tagged");

/// Compiles it with the library. Returns the files that the guest needs besides the tests; `None`, with a
/// message, without a compiler.
pub(crate) fn compiled() -> Option<Vec<PathBuf>> {
    let Some(compiler) = machine::programs::find("cc") else {
        testkit::skip("there is no cc");
        return None;
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = std::env::current_exe().expect("it is running");
    let libraries = program.parent().expect("a program has a folder");
    let mut compile = Command::new(compiler);
    compile.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"]);
    compile.arg(here.join("../gat-abi/include")).arg(here.join("tests/guest/tagged.c"));
    compile.arg(libraries.join("libtailwright_gat.so"));
    compile.arg(format!("-Wl,-rpath,{}", libraries.display())).args(["-o", PROGRAM]);
    let output = compile.output().expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(vec![PathBuf::from(PROGRAM)])
}

/// Returns the program's command with these arguments.
pub(crate) fn with(arguments: &[&dyn ToString]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments.iter().map(|argument| argument.to_string()));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

pub(crate) fn started(arguments: &[&dyn ToString]) -> Child {
    with(arguments).spawn().expect("the program starts")
}

/// Returns the numbers that it prints if it succeeds.
pub(crate) fn printed(child: Child) -> Vec<f64> {
    let Output { status, stdout, .. } = child.wait_with_output().expect("it is ours");
    assert!(status.success(), "the program in C ended with {status}");
    let text = String::from_utf8_lossy(&stdout).into_owned();
    text.split_whitespace().map(|number| number.parse().expect("it prints numbers")).collect()
}
