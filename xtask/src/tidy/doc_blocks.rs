//! Doc comments say something. A block is what one item has of `///` lines, or a file of `//!` lines.
//!
//! Blocks of at most `WORDS_SHORT` words repeat the name that they stand above: a sentence says more, and
//! nothing says it shorter. Blocks that begin with a bare preposition are counted, not refused.

use crate::syntax::{CodeFile, Spot, line_of};
use syn::visit::Visit;
use syn::{AttrStyle, Attribute, Expr, Lit, Meta};

/// So few words are no sentence.
const WORDS_SHORT: usize = 3;

const PREPOSITIONS: [&str; 40] = [
    "about", "above", "across", "after", "against", "along", "among", "around", "as", "at", "before",
    "behind", "below", "beside", "between", "beyond", "by", "during", "for", "from", "in", "inside", "into",
    "of", "on", "out", "outside", "over", "per", "since", "through", "to", "towards", "under", "until",
    "via", "with", "within", "without", "upon",
];

/// A doc comment of one item.
pub(crate) struct DocBlock {
    pub(crate) spot: Spot,
    /// The text in one line.
    pub(crate) text: String,
}

impl DocBlock {
    pub(crate) fn is_short(&self) -> bool {
        words(&self.text).count() <= WORDS_SHORT
    }

    pub(crate) fn starts_with_preposition(&self) -> bool {
        words(&self.text).next().is_some_and(|word| PREPOSITIONS.contains(&word.to_lowercase().as_str()))
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric))
}

/// The doc comments of a file.
pub(crate) fn blocks(file: &CodeFile) -> Vec<DocBlock> {
    let mut pieces = DocPieces::default();
    pieces.visit_file(&file.syntax);
    pieces.found.sort_by_key(|piece| piece.line);
    let mut found: Vec<DocBlock> = Vec::new();
    let mut last: Option<DocPiece> = None;
    for piece in pieces.found {
        match found.last_mut() {
            Some(block) if last.is_some_and(|last| continues(&last, &piece, &file.text)) => {
                block.text.push(' ');
                block.text.push_str(&piece.text);
            }
            _ => {
                let spot = Spot { path: file.path.clone(), line: piece.line };
                found.push(DocBlock { spot, text: piece.text.clone() });
            }
        }
        last = Some(piece);
    }
    found
}

/// Complains about blocks that are no sentence.
pub(crate) fn check(code: &[CodeFile]) -> Vec<String> {
    let short = code.iter().flat_map(blocks).filter(DocBlock::is_short);
    short
        .map(|block| {
            format!(
                "{}: the doc comment '{}' has at most {WORDS_SHORT} words, expected a sentence; write one, \
                 or none if the name says it",
                block.spot, block.text
            )
        })
        .collect()
}

/// One line or comment, which is one `#[doc]` attribute.
struct DocPiece {
    line: usize,
    line_last: usize,
    inner: bool,
    text: String,
}

/// Whether both pieces belong to the same item: only attributes and comments are between them.
fn continues(last: &DocPiece, piece: &DocPiece, text: &str) -> bool {
    let between = text.lines().skip(last.line_last).take(piece.line.saturating_sub(last.line_last + 1));
    last.inner == piece.inner
        && last.line_last < piece.line
        && between.map(str::trim).all(|line| line.starts_with("#[") || line.starts_with("//"))
}

#[derive(Default)]
struct DocPieces {
    found: Vec<DocPiece>,
}

impl<'ast> Visit<'ast> for DocPieces {
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let Meta::NameValue(pair) = &attribute.meta else { return };
        let (true, Expr::Lit(literal)) = (pair.path.is_ident("doc"), &pair.value) else { return };
        if let Lit::Str(text) = &literal.lit {
            self.found.push(DocPiece {
                line: line_of(attribute.pound_token.span),
                line_last: text.span().end().line,
                inner: matches!(attribute.style, AttrStyle::Inner(_)),
                text: text.value().split_whitespace().collect::<Vec<_>>().join(" "),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::literal;

    fn of(text: &str) -> Vec<DocBlock> {
        literal(&[("lib.rs", text)]).iter().flat_map(blocks).collect()
    }

    #[test]
    fn a_block_is_what_one_item_has() {
        let found = of(
            "//! A\n//! header.\n\n/// One\n/// two.\n#[inline]\n/// Three.\nfn a() {}\n/// Four.\nfn b() {}",
        );
        let seen: Vec<_> = found.iter().map(|block| (block.spot.line, block.text.as_str())).collect();
        assert_eq!(seen, [(1, "A header."), (4, "One two. Three."), (9, "Four.")]);
    }

    #[test]
    fn sentences_pass() {
        let code = literal(&[("lib.rs", "/// Four words and a\n/// line.\nstruct A {\n    b: u8,\n}")]);
        assert_eq!(check(&code), [""; 0]);
    }

    #[test]
    fn three_words_are_refused() {
        for text in ["\n/// The `a` itself.\nfn a() {}", "\nenum A {\n/// The\n/// b —\nB }"] {
            assert_eq!(check(&literal(&[("lib.rs", text)])).len(), 1, "{text}");
        }
        assert!(check(&literal(&[("lib.rs", "\n/// An a.\nfn a() {}")]))[0].contains("lib.rs:2: "));
    }

    #[test]
    fn prepositions_are_known_as_words() {
        let starts = |text: &str| of(&format!("/// {text}\nfn a() {{}}"))[0].starts_with_preposition();
        assert!(starts("Of all of them the first.") && starts("Per second and server."));
        assert!(!starts("Office hours of all servers.") && !starts("The one of all."));
    }
}
