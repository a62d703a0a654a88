//! NBD from the middle of a connection on: what was negotiated is seen from what is said.

use units::Bytes;
use wire::nbd::{Framing, NbdParser};
use wire::{Extent, ParseStep, ParserLimits, ProtocolParser, ReplyHead};

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn parser() -> NbdParser {
    NbdParser::within_connection(ParserLimits::NBD)
}

fn reply(parser: &mut NbdParser, bytes: &[u8]) -> (ReplyHead, Extent) {
    match parser.next_reply(bytes) {
        Ok(ParseStep::Message { message, extent }) => (message, extent),
        other => panic!("{other:?}"),
    }
}

const READ: [u32; 7] = [0x2560_9513, 0, 0, 7, 0, 0, 512];

#[test]
fn simple_replies_with_data() {
    let mut parser = parser();
    assert!(parser.next_request(&words(&READ)).is_ok());
    let (head, extent) = reply(&mut parser, &words(&[0x6744_6698, 0, 0, 7]));
    assert_eq!((head.id, head.is_solicited, extent.len, extent.last), (7, true, Bytes(16 + 512), true));
    assert_eq!(parser.in_flight(), 0);
}

#[test]
fn chunks_of_replies_to_earlier_requests_are_unsolicited() {
    let mut parser = parser();
    assert!(parser.next_request(&words(&READ)).is_ok());
    for (cookie, is_solicited) in [(6, false), (7, true)] {
        let chunk = words(&[0x668e_33ef, 0x0001_0001, 0, cookie, 8 + 512, 0, 0]);
        let (head, extent) = reply(&mut parser, &chunk);
        assert_eq!((head.id, head.is_solicited), (u64::from(cookie), is_solicited));
        assert_eq!((extent.len, extent.last), (Bytes(20 + 8 + 512), true));
    }
    assert_eq!(parser.in_flight(), 0);
    assert!(parser.next_reply(&words(&[0x6744_6698, 0, 0, 5])).is_err(), "its length is not known");
}

#[test]
fn extended_headers() {
    let mut parser = parser();
    assert!(parser.next_request(&words(&[0x21e4_1c71, 0, 0, 7, 0, 0, 0, 512])).is_ok());
    assert_eq!(parser.framing(), Framing::Extended);
    assert!(parser.next_request(&words(&READ)).is_err());
}
