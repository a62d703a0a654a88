//! Parsing that several readers share.

/// Returns the beginning of a text, which is enough to recognise most formats.
pub(super) fn head(text: &str) -> &str {
    let end = (0..=text.len().min(4096)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// Parses a positive number.
pub(super) fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)
}
