//! Names by which a scenario refers to its parts.

/// Checks that all names differ.
///
/// # Errors
/// With the first repeated name in alphabetical order; `what` describes the names.
pub(crate) fn check_unique<'a>(names: impl Iterator<Item = &'a str>, what: &str) -> Result<(), String> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two {what} have the name '{}'", pair[0])),
        None => Ok(()),
    }
}
