//! Placeholders in generated files: a value that the program does not know is `CHANGE`. A file that still
//! contains some is refused, with a list of all of them.

use model::OperationError;
use std::path::Path;

/// Placeholder for a value that the user must fill in.
pub const MARK: &str = "CHANGE";

/// Refuses a TOML file that contains a placeholder outside comments.
pub fn refuse_marks(path: &Path, text: &str) -> Result<(), OperationError> {
    let marked: Vec<String> = (1..)
        .zip(text.lines())
        .map(|(number, line): (usize, &str)| (number, value_of(line)))
        .filter(|(_, value)| has_mark(value))
        .map(|(number, value)| format!("\n  line {number}: {}", value.trim()))
        .collect();
    if marked.is_empty() {
        return Ok(());
    }
    let places = units::plural(marked.len(), "place");
    Err(OperationError::input(format_args!(
        "{}: {places} marked {MARK}, expected what belongs there:{}",
        path.display(),
        marked.concat()
    ))
    .hint("the text behind CHANGE, or the comment beside it, says what that is"))
}

/// Returns a line without the comment at its end.
fn value_of(line: &str) -> &str {
    if line.trim_start().starts_with('#') { "" } else { line.split(" # ").next().unwrap_or_default() }
}

/// Returns true if the mark occurs as a separate word.
fn has_mark(value: &str) -> bool {
    value.split(|c: char| !c.is_alphanumeric()).any(|word| word == MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_marks_are_said_at_once_and_comments_are_none() {
        let text = "# CHANGE\nname = \"CHANGE\" # CHANGE\nx = 1 # CHANGE\nd = { CHANGE = \"1Gbps\" }\nEXCHANGES = 1\n";
        let error = refuse_marks(Path::new("hosts.toml"), text).expect_err("two are left");
        let expected = "hosts.toml: 2 places marked CHANGE, expected what belongs there:\n  line 2: name = \"CHANGE\"\n  \
                        line 4: d = { CHANGE = \"1Gbps\" }";
        assert_eq!(error.message, expected);
        assert_eq!(refuse_marks(Path::new("x"), "a = 1"), Ok(()));
    }
}
