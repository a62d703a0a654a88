//! A virtual environment of Python with OpenTelemetry and the binding of `schedule/bindings/python`, made once and kept.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What `build_venv.sh` says when the packages cannot be had.
const NO_PACKAGES: i32 = 3;
/// What it says when Python cannot make an environment.
const NO_VENV: i32 = 4;

/// The folder with the programs of the environment, which is made in `folder`; none, aloud, where it cannot be made.
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
