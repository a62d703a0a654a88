//! Headers by example: the cases that every language has to get right (`schedule/bindings/cases.json`), limits, names of our own.

use gat::{HeaderChange, ReceivedTag, RequestTag, TagCodec, TagDomain, TagFault};
use serde_json::Value;

/// The text of a case stands for bytes, a character for each.
fn bytes(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).expect("cases are Latin-1")).collect()
}

fn expected_tag(read: &Value) -> Option<RequestTag> {
    let number = |value: &Value| value.as_str().map(|digits| digits.parse().expect("digits"));
    let pair = read.as_array()?;
    Some(RequestTag { start_ns: number(&pair[0])?, deadline_ns: number(&pair[1]) })
}

fn check(case: &Value) {
    let what = &case["what"];
    let values: Vec<Vec<u8>> =
        case["values"].as_array().unwrap().iter().map(|value| bytes(value.as_str().unwrap())).collect();
    let values = || values.iter().map(Vec::as_slice);
    let codec = TagCodec::baggage();
    match (codec.read(values()), expected_tag(&case["read"])) {
        (ReceivedTag::Tagged(tag), expected) => assert_eq!(Some(tag), expected, "{what}"),
        (ReceivedTag::Untagged, _) => assert!(case["read"].is_null(), "{what}"),
        (ReceivedTag::Malformed(_), _) => assert_eq!(case["read"], "malformed", "{what}"),
    }
    let stripped = match codec.strip(values()) {
        HeaderChange::Keep => b"keep".to_vec(),
        HeaderChange::Remove => b"remove".to_vec(),
        HeaderChange::Replace(value) => value,
    };
    assert_eq!(stripped, bytes(case["strip"].as_str().unwrap()), "{what}");
    let written = codec.write(values(), RequestTag::starting_at(1_700_000_000_000_000_000));
    assert_eq!(written.value, bytes(case["written"].as_str().unwrap()), "{what}");
    assert_eq!(written.members_dropped, 0, "{what}");
}

#[test]
fn the_cases_of_all_languages() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../../../schedule/bindings/cases.json")).unwrap();
    assert!(cases.len() > 30);
    cases.iter().for_each(check);
}

#[test]
fn what_does_not_fit_is_dropped_from_the_end_and_counted() {
    let tag = RequestTag::starting_at(7);
    let many = "a=1,".repeat(200);
    let written = TagCodec::baggage().write([many.as_bytes()], tag);
    assert_eq!((written.value.split(|byte| *byte == b',').count(), written.members_dropped), (180, 21));
    let long = format!("small=1,{}=1,last=2", "k".repeat(8192));
    let written = TagCodec::baggage().write([long.as_bytes()], tag);
    assert_eq!((&written.value[..], written.members_dropped), (&b"tailwright-start=7,small=1"[..], 2));
    // "tailwright-start=7" has 18 bytes, the comma one: this fills the header exactly.
    let exact = format!("{}=1", "k".repeat(8192 - 19 - 2));
    let written = TagCodec::baggage().write([exact.as_bytes()], tag);
    assert_eq!((written.value.len(), written.members_dropped), (8192, 0));
}

#[test]
fn keys_and_headers_of_our_own() {
    let codec = TagCodec::baggage_with_keys("gat", "due").unwrap();
    let tag = RequestTag { start_ns: 5, deadline_ns: Some(9) };
    assert_eq!(codec.write([&b"tailwright-start=1"[..]], tag).value, b"gat=5,due=9,tailwright-start=1");
    let header = TagCodec::header("x-request-start").unwrap();
    let value = header.write([&b"1"[..]], tag).value;
    assert_eq!(value, b"5;deadline=9");
    assert_eq!(header.read([&b" 5 ; deadline=9"[..]]), ReceivedTag::Tagged(tag));
    assert_eq!(header.read([&b"5"[..], b"6"]), ReceivedTag::Malformed(TagFault::Conflict));
    assert_eq!(header.read([&b"5;deadline=0"[..]]), ReceivedTag::Malformed(TagFault::OutOfRange));
    assert_eq!(header.read(std::iter::empty()), ReceivedTag::Untagged);
    assert_eq!(header.strip([&b"anything"[..]]), HeaderChange::Remove);
    for bad in ["", "Upper", "a b", "a=b", "é", &"x".repeat(65)] {
        let error = TagCodec::header(bad).unwrap_err().to_string();
        assert!(error.contains("expected 1 to 64 lower-case letters"), "{error}");
        assert!(TagCodec::baggage_with_keys(bad, "due").is_err());
    }
    assert!(TagCodec::baggage_with_keys("due", "due").is_err() && TagCodec::header("baggage").is_err());
}

#[test]
fn gateways_that_take_underscores_for_hyphens_are_not_a_way_in() {
    let codec = TagCodec::header("x-request-start").unwrap();
    for name in ["x-request-start", "X-Request-Start", "x_request_start", "X-Request_Start"] {
        assert!(codec.is_named(name), "{name}");
    }
    assert!(!codec.is_named("x-request-star") && !codec.is_named("xrequest-start"));
    assert!(TagCodec::baggage().is_named("Baggage") && !TagCodec::baggage().is_named("baggages"));
}

#[test]
fn the_hosts_of_all_languages() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../../../schedule/bindings/hosts.json")).unwrap();
    assert!(cases.len() > 30);
    for case in &cases {
        let domain = case["patterns"].as_str().unwrap().parse::<TagDomain>();
        assert_eq!(domain.is_err(), case["error"] == true, "{case}");
        if let Ok(domain) = domain {
            assert_eq!(domain.contains(case["host"].as_str().unwrap()), case["contains"] == true, "{case}");
        }
    }
}
