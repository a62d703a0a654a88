//! The programs for open sockets, on sockets that are simulated: `simulated_sockets.c` has the judge.

use std::path::Path;
use std::process::Command;

/// As many games as take a second.
const SEEDS: u64 = 100_000;

#[test]
fn every_socket_has_in_the_end_what_its_server_has_given_it() {
    let Some(compiler) = machine::programs::find("cc") else { return testkit::skip("there is no cc") };
    let made = tempfile::tempdir().expect("a temporary folder can be made");
    let program = made.path().join("simulated");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulated_sockets.c");
    let mut compile = Command::new(compiler);
    compile.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]);
    compile.args(["-fsanitize=undefined", "-fno-sanitize-recover"]).arg(source).arg("-o").arg(&program);
    let output = compile.output().expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(program).args(["0", &SEEDS.to_string()]).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    // A game without the event that it is about shows nothing.
    let counts = said.split([' ', ',', '\n']).filter_map(|word| word.parse::<u64>().ok());
    assert!(counts.clone().count() == 8 && counts.clone().all(|count| count > SEEDS / 10), "{said}");
    println!("{said}");
}
