//! Policies that scenarios name: of a storage server, or for the SLOs of classes.

use ::model::Policy;
use std::path::Path;

/// The policy in a file; an error says which file and what is wrong with it.
pub(crate) fn read_policy(path: &Path) -> Result<Policy, String> {
    let origin = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{origin}: cannot read the policy: {error}"))?;
    Policy::from_json(&text).map_err(|error| format!("{origin}: {error}"))
}
