//! Estimates the width of text. The reader's fonts are unknown; the estimates are on the wide side of common sans-serif
//! fonts.

/// The font size of all text inside a chart, in pixels.
pub(crate) const FONT_PX: f64 = 12.0;

/// Text is shortened only where it is wider than its room by more than this: sums of widths are not exact.
const TOLERANCE_PX: f64 = 0.01;

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
    if width(text) <= room + TOLERANCE_PX {
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

/// Shortens a name to at most `room` pixels by replacing its middle by an ellipsis: the names of a list often differ only
/// at their ends. At least one character remains at each end, and a name that would be no narrower stays whole.
pub(crate) fn fit_name(name: &str, room: f64) -> String {
    if width(name) <= room + TOLERANCE_PX {
        return name.to_owned();
    }
    let characters = name.chars().collect::<Vec<char>>();
    let room = room - em('…') * FONT_PX;
    let mut head = 0;
    let mut tail = 0;
    let mut used = 0.0;
    while head + tail < characters.len() {
        // The end says more than the beginning where names have one of both in common.
        let from_end = tail <= head;
        let next = if from_end { characters[characters.len() - 1 - tail] } else { characters[head] };
        used += em(next) * FONT_PX;
        if used > room && head > 0 {
            break;
        }
        if from_end { tail += 1 } else { head += 1 }
    }
    let text = |part: &[char]| part.iter().collect::<String>();
    let short = format!("{}…{}", text(&characters[..head]), text(&characters[characters.len() - tail..]));
    if width(&short) < width(name) { short } else { name.to_owned() }
}

/// The estimated width of a character as a share of the font size.
fn em(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.32,
        'f' | 't' | 'r' | ' ' | '(' | ')' | '[' | ']' | '/' | '-' => 0.40,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' | '—' => 0.95,
        '<' | '>' | '=' | '+' | '~' | '#' | '&' => 0.84,
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

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(fit_name("server 1", 100.0), "server 1");
        let long = "team-europe-nightly-aggregation-job-07";
        let short = fit_name(long, 100.0);
        assert!(short.starts_with("team-") && short.ends_with("job-07"), "{short}");
        assert!(width(&short) <= 100.0, "{short}");
        assert_eq!(fit_name("abcde", 0.0), "a…e");
        assert_eq!(fit_name("日本語", 1.0), "日…語");
    }

    #[test]
    fn a_name_stays_whole_where_it_has_room_or_would_be_no_narrower() {
        for name in ["mail", "web-1", "database-1"] {
            assert_eq!(fit_name(name, width(name) + 12.0 - 12.0), name);
            assert_eq!(fit_name(name, width(name) - 1e-9), name);
        }
        assert_eq!(fit_name("abc", 0.0), "abc");
    }
}
