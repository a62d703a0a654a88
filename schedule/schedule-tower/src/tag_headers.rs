//! Tags in the header maps of the crate `http`.

use gat::{HeaderChange, ReceivedTag, RequestTag, TagCodec};
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Reads the tag from the headers.
pub(crate) fn read(codec: &TagCodec, headers: &HeaderMap) -> ReceivedTag {
    codec.read(values(headers, codec.header_name()))
}

/// Writes this tag into the headers, in place of any other.
pub(crate) fn write(codec: &TagCodec, headers: &mut HeaderMap, tag: RequestTag) {
    let written = codec.write(values(headers, codec.header_name()), tag).value;
    let others = other_spellings(codec, headers);
    others.into_iter().for_each(|name| strip_name(codec, headers, &name));
    headers.insert(own_name(codec), value(&written));
}

/// Removes tags, and everything that might be taken for one.
pub(crate) fn strip(codec: &TagCodec, headers: &mut HeaderMap) {
    let names = other_spellings(codec, headers).into_iter().chain([own_name(codec)]);
    names.for_each(|name| strip_name(codec, headers, &name));
}

fn strip_name(codec: &TagCodec, headers: &mut HeaderMap, name: &HeaderName) {
    let change = codec.strip(values(headers, name.as_str()));
    match change {
        HeaderChange::Keep => {}
        HeaderChange::Remove => {
            headers.remove(name);
        }
        HeaderChange::Replace(kept) => {
            headers.insert(name, value(&kept));
        }
    }
}

/// Returns header names that some gateway takes for ours.
fn other_spellings(codec: &TagCodec, headers: &HeaderMap) -> Vec<HeaderName> {
    let own = codec.header_name();
    let others = headers.keys().filter(|name| name.as_str() != own && codec.is_named(name.as_str()));
    others.cloned().collect()
}

fn values<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a [u8]> {
    headers.get_all(name).into_iter().map(HeaderValue::as_bytes).collect()
}

fn own_name(codec: &TagCodec) -> HeaderName {
    let name = HeaderName::from_bytes(codec.header_name().as_bytes());
    name.expect("the codec's name is of letters, digits, '-', '_' and '.'")
}

fn value(bytes: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(bytes).expect("it is made of digits and of values that were valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_members_and_headers_stay() {
        let codec = TagCodec::baggage();
        let mut headers = HeaderMap::new();
        for value in ["user=7,tailwright-start=1", "%74ailwright-start=2,mode=fast"] {
            headers.append("baggage", HeaderValue::from_static(value));
        }
        headers.insert("accept", HeaderValue::from_static("*/*"));
        write(&codec, &mut headers, RequestTag::starting_at(5));
        assert_eq!(headers.get_all("baggage").iter().count(), 1);
        assert_eq!(headers["baggage"], "tailwright-start=5,user=7,mode=fast");
        assert_eq!(read(&codec, &headers), ReceivedTag::Tagged(RequestTag::starting_at(5)));
        strip(&codec, &mut headers);
        assert_eq!(
            (&headers["baggage"], &headers["accept"]),
            (&"user=7,mode=fast".parse().unwrap(), &"*/*".parse().unwrap())
        );
    }

    #[test]
    fn other_spellings_go() {
        let codec = TagCodec::header("x-request-start").expect("it is a name");
        let mut headers = HeaderMap::new();
        headers.insert("x_request_start", HeaderValue::from_static("1"));
        write(&codec, &mut headers, RequestTag { start_ns: 5, deadline_ns: Some(7) });
        assert_eq!(headers.len(), 1);
        assert_eq!(headers["x-request-start"], "5;deadline=7");
        strip(&codec, &mut headers);
        assert!(headers.is_empty());
    }
}
