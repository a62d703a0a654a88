//! Ids of spans and traces in the forms in which writers give one and the same id.
//!
//! Ids are 64 or 128 random bits. As hexadecimal digits they have no case; Jaeger's tools write them with and without
//! leading zeros; a parent of zeros, or one of the words for nothing, is none. Writers that serialise
//! protocol buffers without the exception for ids give them in base 64.

/// Words of databases and exporters for a value that is absent.
const ABSENT: [&str; 6] = ["null", "none", "nil", "nan", "\\n", "-"];
/// Digits of a span id, the shorter kind. Fewer zeros may be an id of its own, such as a counter's first.
const SPAN_ID_DIGITS: usize = 16;

/// Returns the id in lower case, if it is hexadecimal.
pub(super) fn canonical(id: &str) -> Box<str> {
    let is_hexadecimal = id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hexadecimal { id.to_ascii_lowercase().into() } else { id.into() }
}

/// Returns the id in lower case without leading zeros, as Jaeger compares them.
pub(super) fn canonical_of_jaeger(id: &str) -> Box<str> {
    let id = canonical(id);
    let digits = id.trim_start_matches('0');
    if digits.is_empty() { "0".into() } else { digits.into() }
}

/// Returns true if the text in the place of a parent's id says that there is none.
pub(super) fn is_absent(id: &str) -> bool {
    let is_zero = id.len() >= SPAN_ID_DIGITS && id.bytes().all(|byte| byte == b'0');
    let is_zero_in_base_64 = id.len() == 12 && id.trim_end_matches('=').bytes().all(|byte| byte == b'A');
    id.is_empty() || is_zero || is_zero_in_base_64 || ABSENT.contains(&id.to_ascii_lowercase().as_str())
}
