//! The library as a C program uses it, and a comparison of the header with the library's exports.

use std::path::{Path, PathBuf};
use testkit::functions_named;

const PREFIX: &str = "tailwright_";
const LIBRARY: &str = "libtailwright_schedule_abi.so";

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn a_program_in_c() {
    if let Some(printed) = testkit::printed_from_c(&folder(""), "from_c.c", LIBRARY, &[]) {
        assert_eq!(printed, "all of it\n");
    }
}

/// Runs for two seconds; the long form is `TAILWRIGHT_SOAK_SECONDS=600 cargo test -p
/// tailwright-schedule-abi --test from_c storm -- --nocapture`.
#[test]
fn a_storm_leaves_no_permit_taken_and_no_thread_demoted() {
    let seconds = std::env::var("TAILWRIGHT_SOAK_SECONDS").unwrap_or_else(|_| "2".into());
    if let Some(printed) = testkit::printed_from_c(&folder(""), "storm.c", LIBRARY, &[seconds]) {
        print!("{printed}");
        assert!(printed.ends_with("nothing leaked\n"), "{printed}");
    }
}

#[test]
fn header_and_library_have_the_same_functions() {
    let read =
        |path: PathBuf| std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let [header, library] = ["include/tailwright_schedule.h", "src/lib.rs"].map(|path| read(folder(path)));
    let declared = functions_named(&header, PREFIX);
    assert_eq!(declared.len(), 8, "{declared:?}");
    assert_eq!(functions_named(&library, PREFIX), declared);
    assert!(header.contains(&format!("#define TAILWRIGHT_SCHEDULE_ABI {}\n", tailwright_schedule_abi::ABI)));
}
