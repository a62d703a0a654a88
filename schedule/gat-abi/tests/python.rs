//! OpenTelemetry's context in Python sets the tag of a thread in the library.

use std::path::Path;
use std::process::Command;

#[test]
fn opentelemetrys_context_tags_threads() {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let Some(programs) = testkit::python_with_opentelemetry(kept) else { return };
    let library =
        std::env::current_exe().expect("this program has a path").with_file_name("libtailwright_gat.so");
    let mut python = Command::new(programs.join("python"));
    python
        .args(["-B", "test_slot.py"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schedule/bindings/python"));
    python.env("OTEL_PYTHON_CONTEXT", "tailwright_context").env("TAILWRIGHT_GAT_LIBRARY", library);
    let output = python.output().expect("python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    python.env("TAILWRIGHT_GAT_LIBRARY", "/there-is-none.so");
    let output = python.output().expect("python starts");
    assert_eq!(output.status.code(), Some(2), "a library that is named has to be there: {output:?}");
}
