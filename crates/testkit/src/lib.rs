//! What tests of several crates share: real data where it is present, loud skips where it is not.

use std::io::Write;
use std::path::{Path, PathBuf};

/// `relative` inside the `shared` folder beside the project, where that exists. Otherwise `None`, and a
/// line on stderr that test capture does not swallow says what was skipped.
pub fn shared(relative: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(relative);
    if path.exists() {
        return Some(path);
    }
    skip(&format!("real data {relative} is not beside the project"));
    None
}

/// Says on stderr, past test capture, that the current test does not run and why.
pub fn skip(reason: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // Written directly: eprintln! would be captured and lost for passing tests.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
}
