//! memcached's text commands over UDP: each request is a datagram with a frame header, each reply one or
//! several.
//!
//! The frame header (`protocol.txt` of memcached) consists of four numbers of 16 bits: number of the
//! request, position of the datagram in the message, number of datagrams of the message, and 0.

use super::client_codec::{ClientCodec, Decoded, IoRequest, ReplyStatus};
use super::memcached::{TextCommands, interpret_text};
use super::memcached_key::KeyFormat;
use std::collections::BTreeMap;

/// Bytes of the frame header of a datagram.
const HEADER: usize = 8;
/// Bytes before each whole reply in the input: the low 32 bits of the request's number, and the length of the reply.
const REPLY_HEAD: usize = 8;
/// Maximum number of datagrams of a reply: memcached puts 1,400 bytes into each, and values have at most
/// 60,000.
const PARTS_MAX: u16 = 64;
/// Maximum length in bytes of a datagram of a reply in several parts.
const PART_SIZE_MAX: usize = 2048;
/// Maximum number of incomplete replies that are kept. A server sends the parts of a reply one after the
/// other.
const PARTIAL_MAX: usize = 256;

/// Gets and sets values of a workload by UDP.
#[derive(Debug)]
pub(crate) struct MemcachedUdpCodec {
    commands: TextCommands,
    /// The number of the request that was encoded last.
    newest: u64,
    /// The datagrams of replies that are not complete, by the low 16 bits of the request's number.
    partial: BTreeMap<u16, PartialReplyParts>,
}

/// Datagrams of a reply, by their position.
#[derive(Debug)]
struct PartialReplyParts {
    parts: Vec<Option<Vec<u8>>>,
    missing: usize,
}

impl MemcachedUdpCodec {
    pub(crate) fn new(keys: KeyFormat) -> Self {
        Self { commands: TextCommands::new(keys), newest: 0, partial: BTreeMap::new() }
    }

    /// The low 32 bits of the number of the newest request with these low 16 bits.
    fn number(&self, low: u16) -> u32 {
        let since = low_16(self.newest).wrapping_sub(low);
        low_32(self.newest.wrapping_sub(since.into()))
    }

    /// Drops the oldest incomplete reply if one with the number `low` needs room.
    fn make_room(&mut self, low: u16) {
        if self.partial.len() < PARTIAL_MAX || self.partial.contains_key(&low) {
            return;
        }
        let age = |low: &u16| low_16(self.newest).wrapping_sub(*low);
        if let Some(oldest) = self.partial.keys().copied().max_by_key(age) {
            self.partial.remove(&oldest);
        }
    }

    /// Ignores anything that is not a datagram of a reply, because any host can send datagrams.
    fn accept_datagram(&mut self, datagram: &[u8], input: &mut Vec<u8>) {
        let Some((header, part)) = datagram.split_first_chunk::<HEADER>() else { return };
        let [low, position, count] = [0, 2, 4].map(|at| u16::from_be_bytes([header[at], header[at + 1]]));
        if position >= count || count > PARTS_MAX {
            return;
        }
        if count == 1 {
            return self.append_reply(input, low, [part].into_iter());
        }
        if part.len() > PART_SIZE_MAX {
            return;
        }
        self.make_room(low);
        let empty = || PartialReplyParts { parts: vec![None; count.into()], missing: count.into() };
        let partial = self.partial.entry(low).or_insert_with(empty);
        if partial.parts.len() != usize::from(count) {
            // One of the two is not from the server, and it is unknown which.
            *partial = empty();
        }
        let Some(place) = partial.parts.get_mut(usize::from(position)) else { return };
        if place.replace(part.to_vec()).is_none() {
            partial.missing -= 1;
        }
        if partial.missing == 0
            && let Some(whole) = self.partial.remove(&low)
        {
            self.append_reply(input, low, whole.parts.iter().flatten().map(Vec::as_slice));
        }
    }

    fn append_reply<'a>(&self, input: &mut Vec<u8>, low: u16, parts: impl Iterator<Item = &'a [u8]>) {
        let start = input.len();
        input.extend(self.number(low).to_le_bytes());
        input.extend([0; 4]);
        parts.for_each(|part| input.extend_from_slice(part));
        let length =
            u32::try_from(input.len() - start - REPLY_HEAD).expect("at most 2^32 bytes in 2^16 datagrams");
        input[start + 4..start + REPLY_HEAD].copy_from_slice(&length.to_le_bytes());
    }
}

impl ClientCodec for MemcachedUdpCodec {
    fn encode(
        &mut self,
        out: &mut Vec<u8>,
        id: u64,
        request: IoRequest,
        payload: &[u8],
    ) -> Result<(), String> {
        let low = low_16(id);
        self.newest = id;
        self.partial.remove(&low);
        for number in [low, 0, 1, 0] {
            out.extend(number.to_be_bytes());
        }
        self.commands.append(out, request, payload);
        Ok(())
    }

    fn converts(&self) -> bool {
        true
    }

    fn accept(&mut self, datagram: &[u8], input: &mut Vec<u8>, _: &mut Vec<u8>) -> Result<(), String> {
        self.accept_datagram(datagram, input);
        Ok(())
    }

    fn decode(&mut self, input: &[u8]) -> Result<Decoded, String> {
        let Some((head, rest)) = input.split_first_chunk::<REPLY_HEAD>() else {
            return Ok(Decoded::NeedMore(REPLY_HEAD));
        };
        let [id, length] =
            [0, 4].map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
        let reply = &rest[..length as usize];
        let line = reply.windows(2).position(|bytes| bytes == b"\r\n").map_or(reply.len(), |at| at + 2);
        Ok(Decoded::Reply { len: REPLY_HEAD + reply.len(), id, payload_start: REPLY_HEAD + line })
    }

    fn interpret<'a>(&self, request: IoRequest, reply: &'a [u8], payload_start: usize) -> ReplyStatus<'a> {
        interpret_text(request, &reply[REPLY_HEAD..], payload_start - REPLY_HEAD)
    }
}

fn low_16(number: u64) -> u16 {
    u16::try_from(number & u64::from(u16::MAX)).expect("16 bits")
}

fn low_32(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).expect("32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Op;
    use proptest::prelude::*;

    fn codec_after(newest: u64) -> MemcachedUdpCodec {
        let mut codec = MemcachedUdpCodec::new(KeyFormat::new("w", None));
        let request = IoRequest { op: Op::Read, size: 3, address: 1 };
        let mut out = Vec::new();
        codec.encode(&mut out, newest, request, &[]).expect("it is encoded");
        assert!(out[HEADER..].starts_with(b"get tw:w:") && out.ends_with(b":3:1\r\n"));
        assert_eq!(out[..HEADER], [low_16(newest).to_be_bytes(), [0, 0], [0, 1], [0, 0]].concat());
        codec
    }

    fn datagram(id: u16, position: u16, count: u16, part: &[u8]) -> Vec<u8> {
        let header = [id, position, count, 0].map(u16::to_be_bytes).concat();
        [header.as_slice(), part].concat()
    }

    fn value_of(codec: &mut MemcachedUdpCodec, input: &[u8]) -> (u32, Vec<u8>) {
        let request = IoRequest { op: Op::Read, size: 3, address: 1 };
        let Ok(Decoded::Reply { len, id, payload_start }) = codec.decode(input) else { panic!("a reply") };
        match codec.interpret(request, &input[..len], payload_start) {
            ReplyStatus::Done(value) => (id, value.into_owned()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn parts_of_a_reply_may_come_in_any_order_and_twice() {
        let mut codec = codec_after(0x1_0002);
        let whole = b"VALUE k 0 3\r\nabc\r\nEND\r\n";
        let mut input = Vec::new();
        // The reply to the newest request in three datagrams, that to one before the numbers wrapped in one.
        for (position, part) in [(2, &whole[17..]), (0, &whole[..5]), (0, &whole[..5])] {
            codec.accept_datagram(&datagram(2, position, 3, part), &mut input);
        }
        assert!(input.is_empty());
        codec.accept_datagram(&datagram(0xffff, 0, 1, whole), &mut input);
        codec.accept_datagram(&datagram(2, 1, 3, &whole[5..17]), &mut input);
        assert_eq!(value_of(&mut codec, &input), (0xffff, b"abc".to_vec()));
        let next = REPLY_HEAD + whole.len();
        assert_eq!(value_of(&mut codec, &input[next..]), (0x1_0002, b"abc".to_vec()));
        assert_eq!(codec.decode(&input[2 * next..]), Ok(Decoded::NeedMore(REPLY_HEAD)));
    }

    /// Memory stays bounded with parts of replies to requests that were never sent, and the reply to a
    /// sent one is found.
    #[test]
    fn parts_of_strangers_are_forgotten() {
        let mut codec = codec_after(9);
        let mut input = Vec::new();
        for id in 10..60_000 {
            codec.accept_datagram(&datagram(id, 0, 64, &[0; 1400]), &mut input);
        }
        codec.accept_datagram(&datagram(9, 0, 64, b"of a stranger"), &mut input);
        assert!(codec.partial.len() <= PARTIAL_MAX);
        let whole = b"VALUE k 0 3\r\nabc\r\nEND\r\n";
        codec.accept_datagram(&datagram(9, 0, 2, &whole[..9]), &mut input);
        codec.accept_datagram(&datagram(9, 1, 2, &whole[9..]), &mut input);
        assert_eq!(value_of(&mut codec, &input), (9, b"abc".to_vec()));
    }

    proptest! {
        /// For arbitrary input, every byte of `input` belongs to a complete reply, and nothing panics.
        #[test]
        fn arbitrary_datagrams(
            datagrams in prop::collection::vec(
                (any::<[u8; 2]>(), 0u16..4, 0u16..4, prop::collection::vec(any::<u8>(), 0..40)), 0..60),
            raw in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            let mut codec = codec_after(7);
            let mut input = Vec::new();
            codec.accept_datagram(&raw, &mut input);
            for (id, position, count, part) in datagrams {
                let id = u16::from_be_bytes(id) % 3;
                codec.accept_datagram(&datagram(id, position, count, &part), &mut input);
            }
            let mut rest = input.as_slice();
            while !rest.is_empty() {
                let Ok(Decoded::Reply { len, payload_start, .. }) = codec.decode(rest) else { panic!("a reply") };
                for op in [Op::Read, Op::Write] {
                    let _ = codec.interpret(IoRequest { op, size: 3, address: 0 }, &rest[..len], payload_start);
                }
                rest = &rest[len..];
            }
        }
    }
}
