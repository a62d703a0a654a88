//! File lengths. A long file hides a concept that wants its own.

use crate::workspace::RustFile;

/// Files with more lines are mentioned, because they may want a split.
const LINES_WARN: usize = 400;
/// Files with more lines are refused.
const LINES_MAX: usize = 800;

/// Complains about files beyond the limit, and mentions those near it.
pub(crate) fn check(sources: &[RustFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in sources {
        let lines = source.text.lines().count();
        if lines > LINES_MAX {
            complaints
                .push(format!("{}: {lines} lines, at most {LINES_MAX}; split it by concept", source.path));
        } else if lines > LINES_WARN {
            eprintln!("tidy: note: {}: {lines} lines; think of a split by concept", source.path);
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_stands_at_its_line() {
        let source = |lines: usize| [RustFile { path: "x.rs".to_owned(), text: "\n".repeat(lines) }];
        assert_eq!(check(&source(LINES_MAX)).len(), 0);
        assert_eq!(check(&source(LINES_MAX + 1)).len(), 1);
    }
}
