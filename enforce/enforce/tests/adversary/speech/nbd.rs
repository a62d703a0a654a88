//! NBD, fixed newstyle with simple replies. The first letter of the export is the tag.

use super::{DeviceRequest, Heard, ReplyBytes, ServerSpeech, data_head, long, place, put, word};
use wire::nbd::protocol::{
    CMD_DISC, CMD_READ, CMD_WRITE, EINVAL, OPTION_REPLY_MAGIC, REP_ERR_UNSUP, SIMPLE_REPLY_MAGIC,
};

pub const GREETING: &[u8] = b"NBDMAGICIHAVEOPT\0\x03";
/// Maximum payload; larger reads and writes are refused, as by many servers.
const PAYLOAD_MAX: usize = 32 << 20;
/// Has flags; supports flush, FUA, trim, zeroes, cache.
const FLAGS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 8 | 1 << 10;

/// Phase of a connection.
#[derive(Debug, Default)]
pub enum NbdSpeech {
    #[default]
    Flags,
    Options,
    Requests(u8),
}

fn option_reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut out = OPTION_REPLY_MAGIC.to_be_bytes().to_vec();
    put(&mut out, &[option, kind, u32::try_from(data.len()).expect("short")]);
    out.extend(data);
    out
}

impl NbdSpeech {
    fn option(&mut self, input: &[u8]) -> Heard {
        if input.len() < 16 || input.len() < 16 + word(input, 12) as usize {
            return Heard::Incomplete;
        }
        let option = word(input, 8);
        let used = 16 + word(input, 12) as usize;
        if option != 7 {
            return Heard::Answer(used, option_reply(option, REP_ERR_UNSUP, &[]));
        }
        let tag = if word(input, 16) > 0 { input[20] } else { b'?' };
        *self = Self::Requests(tag);
        let mut export = vec![0, 0];
        export.extend((1u64 << 60).to_be_bytes());
        export.extend(FLAGS.to_be_bytes());
        Heard::Answer(used, [option_reply(7, 3, &export), option_reply(7, 1, &[])].concat())
    }

    fn request(tag: u8, input: &[u8]) -> Heard {
        if input.len() < 28 {
            return Heard::Incomplete;
        }
        let kind = u16::from_be_bytes([input[6], input[7]]);
        let offset = long(input, 16);
        let len = word(input, 24) as usize;
        let writes = kind == CMD_WRITE;
        if kind == CMD_DISC || (writes && len > PAYLOAD_MAX) {
            return Heard::Over;
        }
        let used = 28 + if writes { len } else { 0 };
        if input.len() < used {
            return Heard::Incomplete;
        }
        let refused = kind == CMD_READ && len > PAYLOAD_MAX;
        let mut head = Vec::new();
        put(&mut head, &[SIMPLE_REPLY_MAGIC, if refused { EINVAL } else { 0 }]);
        head.extend(&input[8..16]);
        let mut reply = ReplyBytes::short(head);
        if kind == CMD_READ && !refused {
            let data = data_head(offset, len);
            reply.filling = len - data.len();
            reply.head.extend(data);
        }
        let bytes = if writes || (kind == CMD_READ && !refused) { len as u64 } else { 0 };
        let place = place(tag, offset);
        Heard::Request(used, DeviceRequest { tag, place, accesses: u64::from(!refused), bytes, reply })
    }
}

impl ServerSpeech for NbdSpeech {
    fn hear(&mut self, input: &[u8]) -> Heard {
        match self {
            Self::Flags if input.len() < 4 => Heard::Incomplete,
            Self::Flags => {
                *self = Self::Options;
                Heard::Answer(4, Vec::new())
            }
            Self::Options => self.option(input),
            Self::Requests(tag) => Self::request(*tag, input),
        }
    }
}
