//! Texts of pages: durations, shares, and parts of addresses.

use plot::Unit;

pub(super) fn time(seconds: f64) -> String {
    Unit::Seconds.format(seconds)
}

pub(super) fn percent(share: f64) -> String {
    Unit::Percent.format((share * 1e4).round() / 1e4)
}

/// Writes a part of a query.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped += &format!("%{byte:02X}");
        }
    }
    escaped
}
