//! Number-and-suffix text, shared by every unit.

/// Splits `"1.5 ms"` into `(1.5, "ms")`. `None` when there is no leading finite, non-negative number.
pub(crate) fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let digits = |c: char| c.is_ascii_digit() || c == '.' || c == '_';
    let mut end = text.find(|c| !digits(c)).unwrap_or(text.len());
    // An exponent belongs to the number only when digits follow it: `1e3` does, `1exa` does not.
    let rest = &text[end..];
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let len = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
        if len > 0 {
            end = text.len() - unsigned.len() + len;
        }
    }
    let number: f64 = text[..end].replace('_', "").parse().ok()?;
    (number.is_finite() && number >= 0.0).then(|| (number, text[end..].trim()))
}

/// Rounds to the nearest integer, `None` when it does not fit a `u64`.
pub(crate) fn to_u64(value: f64) -> Option<u64> {
    let rounded = value.round();
    // 2^64 is exactly representable, so the comparison itself is exact.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (0.0..18_446_744_073_709_551_616.0).contains(&rounded).then_some(rounded as u64)
}

/// Prints with at most `digits` significant digits and no trailing zeros.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    // The logarithm of a finite number is between -324 and 309.
    #[allow(clippy::cast_possible_truncation)]
    let magnitude = value.abs().log10().floor() as i64;
    let decimals = usize::try_from(digits as i64 - 1 - magnitude).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
