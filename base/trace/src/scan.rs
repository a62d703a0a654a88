//! Parses numbers and fields from bytes without converting them to strings: parsing dominates the cost of reading.

/// The fields of one line, separated by single bytes.
#[derive(Debug, Clone)]
pub(crate) struct DelimitedFields<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> DelimitedFields<'a> {
    pub(crate) fn new(line: &'a [u8], separator: u8) -> Self {
        Self { rest: Some(line), separator }
    }
}

impl<'a> Iterator for DelimitedFields<'a> {
    type Item = &'a [u8];
    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        // DelimitedFields are short: a plain loop beats a vectorised search that has to be set up.
        match rest.iter().position(|&byte| byte == self.separator) {
            Some(end) => {
                self.rest = Some(&rest[end + 1..]);
                Some(&rest[..end])
            }
            None => {
                self.rest = None;
                Some(rest)
            }
        }
    }
}

/// The words of one line, separated by runs of blanks.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty())
}

/// Parses a decimal integer. `None` if `text` is empty, contains anything but digits, or exceeds `u64`.
#[inline]
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    // Nineteen digits cannot overflow, so the common case needs no checks.
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let mut value = 0u64;
    for &byte in &text[..text.len().min(19)] {
        value = value * 10 + digit(byte)?;
    }
    match text.get(19) {
        Some(&byte) => value.checked_mul(10)?.checked_add(digit(byte)?),
        None => Some(value),
    }
}

/// Parses a hexadecimal integer after `0x`, of at most 16 digits.
#[inline]
pub(crate) fn hexadecimal(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X"))?;
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0u64, |value, &byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => return None,
        };
        Some(value << 4 | u64::from(digit))
    })
}

/// Parses a decimal number such as `12`, `0.55` or `.5` exactly, in units of `10^-places`; digits beyond `places`
/// round to nearest, half up. Signs and exponents are not accepted.
#[inline]
pub(crate) fn fixed_point(text: &[u8], places: usize) -> Option<u64> {
    let (whole, fraction) = match text.iter().position(|&byte| byte == b'.') {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &text[text.len()..]),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = if whole.is_empty() { 0 } else { decimal(whole)? };
    for place in 0..places {
        value = value.checked_mul(10)?.checked_add(fraction.get(place).map_or(Some(0), |&b| digit(b))?)?;
    }
    let beyond = fraction.get(places..).unwrap_or(&[]);
    for &byte in beyond {
        digit(byte)?;
    }
    let round_up = beyond.first().is_some_and(|&byte| byte >= b'5');
    value.checked_add(u64::from(round_up))
}

#[inline]
fn digit(byte: u8) -> Option<u64> {
    let value = byte.wrapping_sub(b'0');
    (value < 10).then_some(u64::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_at_the_edges() {
        assert_eq!(decimal(b"0"), Some(0));
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        for bad in
            ["", "18446744073709551616", "99999999999999999999", "-1", "1.", " 1", "000000000000000000001"]
        {
            assert_eq!(decimal(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn hexadecimals_at_the_edges() {
        assert_eq!(hexadecimal(b"0x00001000"), Some(4096));
        assert_eq!(hexadecimal(b"0xffffFFFFffffFFFF"), Some(u64::MAX));
        for bad in ["", "0x", "1000", "0x1g", "0x10000000000000000"] {
            assert_eq!(hexadecimal(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn fixed_point_is_exact_and_rounds_to_nearest() {
        for (text, value) in [
            ("0.551706", 551_706_000),
            ("12", 12_000_000_000),
            (".5", 500_000_000),
            ("1.", 1_000_000_000),
            ("0.0000000014", 1),
            ("0.0000000015", 2),
            ("18446744073.709551615", u64::MAX),
        ] {
            assert_eq!(fixed_point(text.as_bytes(), 9), Some(value), "{text}");
        }
        for bad in ["", ".", "-1", "1e3", "1.2.3", "18446744073.709551616", "1.0000000000x"] {
            assert_eq!(fixed_point(bad.as_bytes(), 9), None, "{bad}");
        }
    }
}
