//! Escapes text for the content and the double-quoted attributes of HTML and SVG.
//!
//! Names come from users' files. Characters that XML 1.0 forbids (section 2.2: most controls, U+FFFE,
//! U+FFFF) become U+FFFD, so that a page stays well-formed for any name.

/// Replaces the five markup characters by entities, and characters that XML forbids by U+FFFD.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\t' | '\n' => safe.push(c),
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => safe.push('\u{FFFD}'),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(escape("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
        assert_eq!(escape("plain ünïcode 日本 🚀"), "plain ünïcode 日本 🚀");
        assert_eq!(escape("a\u{0}b\u{1b}c\u{FFFF}\td"), "a\u{FFFD}b\u{FFFD}c\u{FFFD}\td");
    }

    proptest::proptest! {
        #[test]
        fn a_parser_reads_back_what_was_written(text in "\\PC*") {
            let document = format!("<t a=\"{0}\">{0}</t>", escape(&text));
            let tree = roxmltree::Document::parse(&document).unwrap();
            let root = tree.root_element();
            let expected = text.replace(['\u{FFFE}', '\u{FFFF}'], "\u{FFFD}");
            proptest::prop_assert_eq!(root.text().unwrap_or(""), expected.as_str());
            proptest::prop_assert_eq!(root.attribute("a").unwrap(), expected.as_str());
        }
    }
}
