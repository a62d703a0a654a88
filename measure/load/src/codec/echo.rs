//! Bytes that a server sends back, in order: the null RPC of *Tales of the Tail*, section 3.1.1.
//!
//! A request is `size` bytes that repeat its number, so that bytes of another request are noticed.

use super::client_codec::{ClientCodec, Decoded, IoRequest, ReplyStatus};
use std::borrow::Cow;
use std::collections::VecDeque;

/// A connection to a server that sends back what it receives.
#[derive(Debug, Default)]
pub(crate) struct EchoCodec {
    /// The number and the size of each request in flight, in order.
    in_flight: VecDeque<(u64, usize)>,
}

impl ClientCodec for EchoCodec {
    fn encode(&mut self, out: &mut Vec<u8>, id: u64, request: IoRequest, _: &[u8]) -> Result<(), String> {
        let size = request.size as usize;
        out.extend(message(id).take(size));
        self.in_flight.push_back((id, size));
        Ok(())
    }

    fn decode(&mut self, input: &[u8]) -> Result<Decoded, String> {
        let (number, size) = *self.in_flight.front().ok_or("an answer to what was not asked")?;
        if input.len() < size {
            return Ok(Decoded::NeedMore(size));
        }
        if !input[..size].iter().copied().eq(message(number).take(size)) {
            return Err("the server sent back other bytes than it was sent".to_owned());
        }
        self.in_flight.pop_front();
        let id = u32::try_from(number & u64::from(u32::MAX)).expect("32 bits");
        Ok(Decoded::Reply { len: size, id, payload_start: 0 })
    }

    fn interpret<'a>(&self, _: IoRequest, reply: &'a [u8], _: usize) -> ReplyStatus<'a> {
        ReplyStatus::Done(Cow::Borrowed(reply))
    }
}

/// The endless bytes that a request begins.
fn message(number: u64) -> impl Iterator<Item = u8> {
    number.to_le_bytes().into_iter().cycle()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Op;

    #[test]
    fn what_comes_back_is_what_was_sent_in_order() {
        let request = |size| IoRequest { op: Op::Read, size, address: 0 };
        let mut codec = EchoCodec::default();
        let mut sent = Vec::new();
        for (id, size) in [(0, 3), (1, 20)] {
            codec.encode(&mut sent, id, request(size), &[]).expect("it is encoded");
        }
        assert_eq!((sent.len(), &sent[..4]), (23, [0, 0, 0, 1].as_slice()));
        assert_eq!(codec.decode(&sent[..2]), Ok(Decoded::NeedMore(3)));
        assert_eq!(codec.decode(&sent), Ok(Decoded::Reply { len: 3, id: 0, payload_start: 0 }));
        sent[5] ^= 1;
        assert!(codec.decode(&sent[3..]).expect_err("a byte is damaged").contains("other bytes"));
        sent[5] ^= 1;
        assert_eq!(codec.decode(&sent[3..]), Ok(Decoded::Reply { len: 20, id: 1, payload_start: 0 }));
        assert!(codec.decode(&[0]).is_err());
    }
}
