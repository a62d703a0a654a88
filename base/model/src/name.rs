//! Names of workloads, servers and classes in files of every kind.

/// What a name is expected to be, for messages.
pub const NAME_EXPECTED: &str = "expected a name in one line that is not empty";

/// Whether people can tell the name from others in tables: it is not blank, and in one line without control characters.
pub fn is_usable_name(name: &str) -> bool {
    !name.trim().is_empty() && !name.chars().any(char::is_control)
}
