//! The comments of a Rust or C file.
//!
//! Tokens do not have them, so this reads characters: it knows strings, characters and raw strings well enough not to
//! find comments in them. Line comments below each other are one comment.

/// A comment without its marks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    /// Line on which it begins, from 1.
    pub(crate) line: usize,
    /// Its lines, trimmed.
    pub(crate) text: String,
}

/// Returns the comments of a file in their order.
pub(crate) fn comments(text: &str) -> Vec<Comment> {
    let mut scan = CommentScan { text, at: 0, line: 1, code_on_line: false, found: Vec::new(), open: None };
    while let Some(next) = scan.rest().chars().next() {
        scan.step(next);
    }
    scan.found
}

/// A line comment that the next line may continue.
struct OpenComment {
    mark: &'static str,
    last_line: usize,
}

struct CommentScan<'a> {
    text: &'a str,
    /// Byte that is read next.
    at: usize,
    line: usize,
    /// Something other than white space stands before `at` on this line.
    code_on_line: bool,
    found: Vec<Comment>,
    open: Option<OpenComment>,
}

impl<'a> CommentScan<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self, bytes: usize) {
        self.line += self.rest()[..bytes].matches('\n').count();
        self.at += bytes;
        self.code_on_line = true;
    }

    fn step(&mut self, next: char) {
        let rest = self.rest();
        if rest.starts_with("//") {
            self.line_comment();
        } else if rest.starts_with("/*") {
            self.block_comment();
        } else if let Some(length) = literal_length(rest, self.text[..self.at].chars().next_back()) {
            self.skip(length);
        } else {
            self.at += next.len_utf8();
            if next == '\n' {
                self.line += 1;
                self.code_on_line = false;
            } else if !next.is_whitespace() {
                self.code_on_line = true;
            }
        }
    }

    fn line_comment(&mut self) {
        let whole = self.rest().split('\n').next().unwrap_or_default();
        let mark = ["///", "//!", "//"].into_iter().find(|mark| whole.starts_with(mark)).unwrap_or("//");
        let text = whole[mark.len()..].trim();
        let continues = self
            .open
            .as_ref()
            .is_some_and(|open| open.mark == mark && open.last_line + 1 == self.line && !self.code_on_line);
        match self.found.last_mut().filter(|_| continues) {
            Some(comment) => {
                comment.text.push('\n');
                comment.text.push_str(text);
            }
            None => self.found.push(Comment { line: self.line, text: text.to_owned() }),
        }
        let is_trailing = self.code_on_line;
        self.open = (!is_trailing).then_some(OpenComment { mark, last_line: self.line });
        self.skip(whole.len());
    }

    fn block_comment(&mut self) {
        let rest = self.rest();
        let length = block_length(rest);
        let inner = rest[..length].trim_start_matches(['/', '*', '!']).trim_end_matches(['/', '*']);
        let lines: Vec<&str> = inner.lines().map(|line| line.trim().trim_start_matches('*').trim()).collect();
        self.found.push(Comment { line: self.line, text: lines.join("\n").trim().to_owned() });
        self.open = None;
        self.skip(length);
    }
}

/// The bytes of the block comment that the text begins with, comments inside it included.
fn block_length(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            return at;
        }
    }
    at
}

/// The bytes of the string or character that the text begins with, if it begins with one.
fn literal_length(text: &str, before: Option<char>) -> Option<usize> {
    if text.starts_with('"') {
        return Some(quoted_length(text, '"'));
    }
    if text.starts_with('\'') {
        return character_length(text);
    }
    let is_word = before.is_some_and(|before| before.is_alphanumeric() || before == '_');
    let raw = ["r", "br", "cr"].into_iter().find_map(|prefix| text.strip_prefix(prefix));
    raw.filter(|_| !is_word).and_then(|raw| raw_length(text, raw))
}

/// Returns the length of a raw string in bytes; `raw` is the text after its prefix.
fn raw_length(text: &str, raw: &str) -> Option<usize> {
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    let content = raw[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let content_length = content.find(&end).map_or(content.len(), |at| at + end.len());
    Some(text.len() - content.len() + content_length)
}

/// The bytes of a character, or none for a lifetime.
fn character_length(text: &str) -> Option<usize> {
    let mut characters = text.char_indices().skip(1);
    let (_, first) = characters.next()?;
    let (after, second) = characters.next()?;
    if first == '\\' {
        return Some(quoted_length(text, '\''));
    }
    (second == '\'').then_some(after + 1)
}

/// The bytes up to the closing quotation mark.
fn quoted_length(text: &str, mark: char) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if is_escaped {
            is_escaped = false;
        } else if character == '\\' {
            is_escaped = true;
        } else if character == mark {
            return at + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        comments(text).into_iter().map(|comment| (comment.line, comment.text)).collect()
    }

    fn one(line: usize, text: &str) -> Vec<(usize, String)> {
        vec![(line, text.to_owned())]
    }

    #[test]
    fn lines_below_each_other_are_one_comment() {
        assert_eq!(found("a;\n/// One\n/// two.\nb;"), one(2, "One\ntwo."));
        assert_eq!(found("//! One\n\n//! two").len(), 2);
        assert_eq!(found("/// One\n// two").len(), 2);
        assert_eq!(found("a; // one\n// two\n// three").len(), 2);
        assert_eq!(found("// one\na; // two").len(), 2);
    }

    #[test]
    fn block_comments_nest_and_lose_their_stars() {
        assert_eq!(found("a\n/* one\n * two /* three */ four\n */ b"), one(2, "one\ntwo /* three */ four"));
        assert_eq!(found("/** one */"), one(1, "one"));
        assert_eq!(found("/* one"), one(1, "one"));
    }

    #[test]
    fn literals_have_no_comments() {
        for code in [
            r#""// \" //""#,
            r##"r#"" // "#"##,
            r#"br"\" ; r"//""#,
            "'\"'; '\\''; '\\u{1f}'; '/'",
            "fn f<'a>(a: &'a str) -> &'a str",
            "r#type / 2; x.r / 3",
        ] {
            assert_eq!(found(&format!("{code}; // end")), one(1, "end"), "{code}");
        }
        assert_eq!(found("\"a\nb\"; // end"), one(2, "end"));
    }
}
