//! Display width and wrapping of text, and removal of control characters.
//!
//! Names come from other people's files. A control character in one could move the cursor, change the
//! title or, through an answer of the terminal, type something. So all output goes through [`visible`],
//! which escapes such characters as JSON does (`\u001b`): a JSON document keeps its meaning.

use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// Returns the text with control characters escaped; line ends stay.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push('\n'),
            hidden if is_obeyed(hidden) => {
                write!(shown, "\\u{:04x}", u32::from(hidden)).expect("strings take everything");
            }
            other => shown.push(other),
        }
    }
    shown
}

/// Returns true for characters that a terminal interprets: controls, direction marks, and invisible ones.
fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The columns that a line takes on a terminal.
pub(super) fn display_width(line: &str) -> usize {
    UnicodeWidthStr::width(line)
}

/// Splits a text into pieces of at most this many columns, wherever that is: a word that is too long for its
/// column is shown whole.
pub(super) fn split(text: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for character in text.chars() {
        let piece = pieces.last_mut().expect("there is one");
        piece.push(character);
        if display_width(piece) > width && piece.chars().count() > 1 {
            piece.pop();
            pieces.push(character.to_string());
        }
    }
    pieces
}

/// Wraps a sentence at spaces into pieces of at most `width` columns, if its words allow. Later pieces
/// are indented by two more columns.
pub fn wrap(line: &str, width: usize) -> Vec<String> {
    broken(line, width, "", |rest| rest.split(' ').collect())
}

/// Wraps a command so that a shell reads it unchanged: at spaces outside quotes, with a backslash at the
/// end of each line but the last.
pub(super) fn wrap_command(line: &str, width: usize) -> Vec<String> {
    broken(line, width, " \\", words_of_command)
}

/// Splits a command into its words, with their quotes.
fn words_of_command(command: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    let at_spaces = |character: char| {
        let is_space = character == ' ' && !is_quoted && !is_escaped;
        is_quoted ^= character == '\'' && !is_escaped;
        is_escaped = character == '\\' && !is_quoted && !is_escaped;
        is_space
    };
    command.split(at_spaces).collect()
}

fn broken<'a>(
    line: &'a str,
    width: usize,
    ending: &str,
    words: impl FnOnce(&'a str) -> Vec<&'a str>,
) -> Vec<String> {
    if display_width(line) <= width {
        return vec![line.to_owned()];
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    let mut lines = Vec::new();
    let mut current = " ".repeat(indent);
    let mut is_begun = false;
    for word in words(&line[indent..]) {
        let needed = display_width(&current) + 1 + display_width(word) + display_width(ending);
        if is_begun && needed > width {
            lines.push(format!("{}{ending}", current.trim_end()));
            current = " ".repeat(indent + 2);
            is_begun = false;
        }
        if is_begun {
            current.push(' ');
        }
        current.push_str(word);
        is_begun = true;
    }
    lines.push(current.trim_end().to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_a_terminal_obeys() {
        let hostile = "a\u{1b}]0;title\u{7}\u{9b}31m\r\t\u{202e}b\n";
        let shown = visible(hostile);
        assert_eq!(shown, "a\\u001b]0;title\\u0007\\u009b31m\\u000d\\u0009\\u202eb\n");
        let document = serde_json::to_string(&hostile).expect("text serialises");
        let read: String = serde_json::from_str(&visible(&document)).expect("it is JSON still");
        assert_eq!(read, hostile);
    }

    #[test]
    fn lines_are_broken_at_spaces_and_say_all() {
        let line = "  a sentence of several words, and one_that_is_very_long_indeed at its end";
        for width in 12..80 {
            let pieces = wrap(line, width);
            let joined = pieces.iter().map(|piece| piece.trim()).collect::<Vec<_>>().join(" ");
            assert_eq!(joined, line.trim(), "{width}");
            let is_long = |piece: &&String| display_width(piece) > width && piece.trim().contains(' ');
            assert_eq!(pieces.iter().find(is_long), None, "{width}");
        }
    }

    #[test]
    fn a_shell_reads_a_broken_command_as_it_was() {
        assert_eq!(wrap_command("ls a b", 5), ["ls \\", "  a \\", "  b"]);
        let command = r"printf '%s|' plain 'two  words and more' 'it'\''s one word' -- 'a  b'";
        let run = |script: &str| {
            let output = std::process::Command::new("sh").args(["-c", script]).output().expect("a shell");
            String::from_utf8(output.stdout).expect("text")
        };
        let expected = "plain|two  words and more|it's one word|--|a  b|";
        assert_eq!(run(command), expected);
        for width in 6..70 {
            assert_eq!(run(&wrap_command(command, width).join("\n")), expected, "{width}");
        }
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(
            (display_width("日本"), split("日本語", 5)),
            (4, vec!["日本".to_owned(), "語".to_owned()])
        );
    }
}
