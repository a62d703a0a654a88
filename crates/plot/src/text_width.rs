//! Estimates the width of text. The reader's fonts are unknown; the estimates are on the wide side of common sans-serif
//! fonts.

/// The font size of all text inside a chart, in pixels.
pub(crate) const FONT_PX: f64 = 12.0;

/// The estimated width of bold text in pixels.
pub(crate) fn bold_width(text: &str) -> f64 {
    width(text) * 1.12
}

/// The estimated width of text in pixels.
pub(crate) fn width(text: &str) -> f64 {
    text.chars().map(em).sum::<f64>() * FONT_PX
}

/// Shortens `text` to at most `room` pixels by replacing its end by an ellipsis; at least one character remains.
pub(crate) fn fit(text: &str, room: f64) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut used = em('…') * FONT_PX;
    let mut short = String::new();
    for c in text.chars() {
        used += em(c) * FONT_PX;
        if used > room && !short.is_empty() {
            break;
        }
        short.push(c);
    }
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

/// The estimated width of a character as a share of the font size.
fn em(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.32,
        'f' | 't' | 'r' | ' ' | '(' | ')' | '[' | ']' | '/' | '-' => 0.40,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' | '—' => 0.95,
        'A'..='Z' => 0.70,
        c if (c as u32) < 0x0300 => 0.62,
        // Combining marks take no room of their own.
        '\u{0300}'..='\u{036F}' => 0.0,
        c if (c as u32) < 0x1100 => 0.70,
        _ => 1.05,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_stays_and_long_text_ends_in_an_ellipsis() {
        assert_eq!(fit("server 1", 100.0), "server 1");
        let long = "a-very-long-workload-name-that-never-ends".repeat(5);
        let short = fit(&long, 100.0);
        assert!(short.ends_with('…') && width(&short) <= 100.0 && short.chars().count() > 8, "{short}");
        assert_eq!(fit("日本語", 1.0), "日…");
        assert_eq!(fit("", 0.0), "");
    }
}
