//! Members of W3C `baggage` headers, as bytes: their boundaries, their keys, and keys that other decoders
//! might take for ours.
//!
//! Members cannot contain commas, quoted or not, so a list is split at every comma (W3C Baggage §3.2.1).

/// Maximum length of a header value that we write, bytes (W3C Baggage §3.3.2).
pub(crate) const BYTES_MAX: usize = 8192;
/// Maximum number of members that we write: the limit of earlier drafts, which OpenTelemetry's libraries
/// keep.
pub(crate) const MEMBERS_MAX: usize = 180;

/// Iterates over the members of several header values in order, without the white space around them;
/// empty ones are skipped.
pub(crate) fn members<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> impl Iterator<Item = &'a [u8]> {
    let pieces = values.into_iter().flat_map(|value| value.split(|byte| *byte == b','));
    pieces.map(trim).filter(|member| !member.is_empty())
}

/// Splits a member into its key, and its value without properties; `None` without an equals sign.
pub(crate) fn key_and_value(member: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = member.iter().position(|byte| *byte == b'=')?;
    let value = member[equals + 1..].split(|byte| *byte == b';').next().unwrap_or_default();
    Some((trim(&member[..equals]), trim(value)))
}

/// Returns true if some decoder might take the member for one with this key, which is lower-case.
///
/// Libraries decode percent and plus signs in keys, then trim white space by their own definition, and
/// encode the key again when they pass it on: `%20tailwright%2Dstart` leaves OpenTelemetry for Python as
/// `tailwright-start`. Keys encoded in several layers are also found.
pub(crate) fn may_be_taken_for(member: &[u8], key: &[u8]) -> bool {
    let end = member.iter().position(|byte| matches!(byte, b'=' | b';')).unwrap_or(member.len());
    let raw = trim(&member[..end]);
    if raw.eq_ignore_ascii_case(key) {
        return true;
    }
    let plain = raw.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    !plain && decoded_fully(raw).eq_ignore_ascii_case(key)
}

/// Decodes all layers of percent signs, and trims every byte that some library trims.
///
/// A single pass: a decoded byte may complete the code before it. Codes do not overlap, so their order
/// does not matter, and the work is linear in the length.
fn decoded_fully(raw: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(raw.len());
    for byte in raw {
        text.push(*byte);
        while let [.., b'%', high, low] = text[..]
            && let Some(decoded) = hex_byte(&[high, low])
        {
            text.truncate(text.len() - 3);
            text.push(decoded);
        }
    }
    let is_kept = |byte: &u8| byte.is_ascii_graphic() && *byte != b'+';
    text.retain(is_kept);
    text
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()
}

/// Trims the white space that RFC 9110 allows around members.
pub(crate) fn trim(bytes: &[u8]) -> &[u8] {
    let is_other = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let Some(begin) = bytes.iter().position(is_other) else { return &[] };
    let end = bytes.iter().rposition(is_other).map_or(begin, |last| last + 1);
    &bytes[begin..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slow reference: layer by layer.
    fn decoded_layer_by_layer(raw: &[u8]) -> Vec<u8> {
        let mut text = raw.to_vec();
        loop {
            let mut decoded = Vec::new();
            let mut rest = &text[..];
            while let Some((first, behind)) = rest.split_first() {
                let hex = behind.get(..2).filter(|_| *first == b'%').and_then(hex_byte);
                decoded.push(hex.unwrap_or(*first));
                rest = if hex.is_some() { &behind[2..] } else { behind };
            }
            if decoded.len() == text.len() {
                text.retain(|byte| byte.is_ascii_graphic() && *byte != b'+');
                return text;
            }
            text = decoded;
        }
    }

    proptest! {
        #[test]
        fn all_layers_at_once(text in "([%2345a]|%25|%[0-7][0-9a-f]|.){0,40}") {
            prop_assert_eq!(decoded_fully(text.as_bytes()), decoded_layer_by_layer(text.as_bytes()));
        }
    }

    /// Layer by layer this would take a week.
    #[test]
    fn ten_megabytes_of_layers() {
        let key = format!("%{}74ailwright-start", "25".repeat(5_000_000));
        assert!(may_be_taken_for(key.as_bytes(), b"tailwright-start"));
    }
}
