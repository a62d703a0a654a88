//! Laws that hold for any header values, shared by tests and the fuzz target.

use gat::{HeaderChange, ReceivedTag, RequestTag, TagCodec};

/// Splits arbitrary bytes into header values at line ends, and checks all laws on them.
#[allow(unreachable_pub, reason = "tests include this file as a module, the fuzz crate re-exports it")]
pub fn exercise(content: &[u8]) {
    let values: Vec<&[u8]> = content.split(|byte| *byte == b'\n').collect();
    for codec in [TagCodec::baggage(), TagCodec::header("x-request-start").unwrap()] {
        check(&codec, &values);
    }
}

fn check(codec: &TagCodec, values: &[&[u8]]) {
    let tag = RequestTag { start_ns: u64::MAX, deadline_ns: Some(1) };
    let stripped = stripped(codec, values);
    assert!(!codec_says(codec, &stripped), "nothing of ours is left");
    assert_eq!(again(codec, &stripped), stripped, "stripping twice is stripping once");
    let written = codec.write(values.iter().copied(), tag);
    assert_eq!(codec.read([&written.value[..]]), ReceivedTag::Tagged(tag), "what is written is read");
    assert!(written.value.len() <= 8192 && count(&written.value) <= 180, "limits hold");
    if codec.header_name() == "baggage" {
        check_others(&stripped, &written.value, written.members_dropped);
    }
    for decode in [as_python_does, as_node_does] {
        assert!(!keys(&stripped).iter().any(|key| is_ours(&decode(key))), "no library sees one of ours");
    }
}

/// Checks that all other members are behind our two, in order, except those dropped from the end.
fn check_others(stripped: &[Vec<u8>], written: &[u8], dropped: usize) {
    let others = split(stripped);
    let kept: Vec<Vec<u8>> = split(&[written.to_vec()]).split_off(2);
    assert_eq!(kept, others[..others.len() - dropped]);
    assert!(dropped == 0 || written.len() + 1 + others[kept.len()].len() > 8192 || kept.len() + 2 == 180);
}

fn stripped(codec: &TagCodec, values: &[&[u8]]) -> Vec<Vec<u8>> {
    match codec.strip(values.iter().copied()) {
        HeaderChange::Keep => values.iter().map(|value| value.to_vec()).collect(),
        HeaderChange::Remove => Vec::new(),
        HeaderChange::Replace(value) => vec![value],
    }
}

fn again(codec: &TagCodec, values: &[Vec<u8>]) -> Vec<Vec<u8>> {
    stripped(codec, &values.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn codec_says(codec: &TagCodec, values: &[Vec<u8>]) -> bool {
    codec.header_name() == "baggage" && codec.read(values.iter().map(Vec::as_slice)) != ReceivedTag::Untagged
}

/// The slow reference of the codec's splitting: one text, cut at commas, trimmed, without empty pieces.
fn split(values: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let text: String = values.join(&b',').iter().map(|byte| char::from(*byte)).collect();
    let pieces =
        text.split(',').map(|piece| piece.trim_matches([' ', '\t'])).filter(|piece| !piece.is_empty());
    pieces.map(|piece| piece.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect()).collect()
}

fn count(value: &[u8]) -> usize {
    split(&[value.to_vec()]).len()
}

/// Returns the text before the first equals sign of each member.
fn keys(values: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let key = |member: &Vec<u8>| member.split(|byte| *byte == b'=').next().unwrap_or_default().to_vec();
    split(values).iter().map(key).collect()
}

fn is_ours(key: &str) -> bool {
    key == TagCodec::START_KEY || key == TagCodec::DEADLINE_KEY
}

/// Decodes a key like OpenTelemetry for Python: `unquote_plus(key.strip(" \t")).strip()`.
fn as_python_does(key: &[u8]) -> String {
    let text = String::from_utf8_lossy(key).replace('+', " ");
    let is_space = |c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c);
    percent_decoded(text.trim_matches([' ', '\t'])).trim_matches(is_space).to_owned()
}

/// Decodes a key like OpenTelemetry for Node: `decodeURIComponent(key.trim())`.
fn as_node_does(key: &[u8]) -> String {
    percent_decoded(String::from_utf8_lossy(key).trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}'))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let hex = rest.get(1..3).filter(|_| rest[0] == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        let hex = hex.filter(|hex| !hex.starts_with('+')).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(hex.unwrap_or(rest[0]));
        rest = &rest[if hex.is_some() { 3 } else { 1 }..];
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
