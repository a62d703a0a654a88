//! Workloads by the names that people type.

use model::OperationError;

/// Names that are suggested instead of a mistyped one, at most.
const SUGGESTED_MAX: usize = 5;

/// The position of the workload of this name.
///
/// # Errors
///
/// When no workload has the name; the hint has the names that are closest to it.
pub fn find_workload(name: &str, names: &[&str]) -> Result<usize, OperationError> {
    names.iter().position(|known| *known == name).ok_or_else(|| unknown(name, names))
}

fn unknown(given: &str, names: &[&str]) -> OperationError {
    let mut close: Vec<(usize, &str)> = names.iter().map(|name| (distance(given, name), *name)).collect();
    close.sort_by_key(|(distance, _)| *distance);
    let close: Vec<&str> = close.into_iter().take(SUGGESTED_MAX).map(|(_, name)| name).collect();
    OperationError::input(format_args!("there is no workload '{given}' among {}", names.len()))
        .hint(format_args!("did you mean {}?", close.join(", ")))
}

/// Levenshtein's distance, ignoring case.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.to_lowercase().chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_by_hand() {
        for (a, b, expected) in [("C7", "c7", 0), ("mail", "mali", 2), ("", "abc", 3), ("web", "web-1", 2)] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
