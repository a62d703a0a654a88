//! Interpreters of Python with the packages that tests need: NumPy, or OpenTelemetry in a virtual environment that is made
//! once and kept.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Exit code of `build_venv.sh` if the packages cannot be fetched.
const NO_PACKAGES: i32 = 3;
/// Exit code if Python cannot make an environment.
const NO_VENV: i32 = 4;

/// Makes the environment in `folder` and returns the folder of its programs; skips and returns `None` if
/// that is not possible.
pub fn python_with_opentelemetry(folder: &Path) -> Option<PathBuf> {
    crate::program("python3")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schedule/bindings/python/build_venv.sh");
    let folder = folder.join("python-opentelemetry");
    let status = Command::new("sh").arg(script).arg(&folder).status().expect("sh starts");
    let missing = match status.code() {
        Some(NO_PACKAGES) => {
            "the packages of schedule/bindings/python/requirements-test.txt cannot be fetched by pip"
                .to_owned()
        }
        Some(NO_VENV) => format!("python3 -m venv does not work: {} python3-venv", crate::INSTALL),
        _ => {
            assert!(status.success(), "build_venv.sh: {status}");
            return Some(folder.join("bin"));
        }
    };
    crate::skip(&missing);
    None
}

/// Returns an interpreter that has NumPy: Debian's, or the first in the PATH. Skips and returns `None` without one.
pub fn python_with_numpy() -> Option<PathBuf> {
    let has_numpy = |python: &PathBuf| {
        Command::new(python).args(["-c", "import numpy"]).output().is_ok_and(|output| output.status.success())
    };
    // A first interpreter in the PATH that is not Debian's has not Debian's packages.
    let candidates = [Some(PathBuf::from("/usr/bin/python3")), machine::programs::find("python3")];
    let found = candidates.into_iter().flatten().find(has_numpy);
    if found.is_none() {
        crate::skip(&format!("there is no Python with NumPy: {} python3-numpy", crate::INSTALL));
    }
    found
}
