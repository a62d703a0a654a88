//! Documents in files of their own that scenarios name: a policy, a device profile.

use ::model::Policy;
use std::path::Path;

/// Reads the policy in a file; an error names the file and its defect.
pub(crate) fn read_policy(path: &Path) -> Result<Policy, String> {
    let text = read_file(path, "policy")?;
    Policy::from_json(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads the text of a file; an error names the file and its purpose.
pub(crate) fn read_file(path: &Path, what: &str) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map_err(|error| format!("{}: cannot read the {what}: {error}", path.display()))
}
