//! The example of the documents shows what they say.

use std::process::Command;

#[test]
fn the_store_serves_the_oldest_first() {
    let program = std::env::current_exe().expect("this program has a path");
    let folder = program.parent().and_then(|folder| folder.parent()).expect("the folder of the build");
    let example = folder.join("examples/oldest_first");
    if !example.exists() {
        return testkit::skip("the example was not built: run all tests of the package");
    }
    let output = Command::new(example).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let shown = String::from_utf8_lossy(&output.stdout);
    let served: Vec<&str> =
        shown.lines().filter_map(|line| line.strip_prefix("the store serves request ")).collect();
    assert_eq!(served, ["4", "0", "1", "2", "3"], "the first call was alone");
    assert_eq!(shown.matches("200 OK").count(), 5);
}
