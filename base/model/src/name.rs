//! Names of workloads, servers and classes in files of every kind.

/// Description of a valid name, for messages.
pub const NAME_EXPECTED: &str = "expected a name in one line that is not empty";

/// Returns true for a name that is legible in tables: not blank, and one line without control characters.
pub fn is_usable_name(name: &str) -> bool {
    !name.trim().is_empty() && !name.chars().any(char::is_control)
}
