//! NBD: every export is the same volume; simple replies.

use super::{Store, long, take, word};
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering::SeqCst;
use wire::nbd::protocol::{OPTION_REPLY_MAGIC, REP_ERR_UNSUP, SIMPLE_REPLY_MAGIC};

pub(super) fn serve(stream: &mut TcpStream, store: &Store) -> io::Result<()> {
    stream.write_all(b"NBDMAGICIHAVEOPT\0\x03")?;
    take(stream, 4)?;
    loop {
        let head = take(stream, 16)?;
        let option = word(&head, 8);
        take(stream, word(&head, 12))?;
        let reply = |kind: u32, data: &[u8]| {
            let mut out = OPTION_REPLY_MAGIC.to_be_bytes().to_vec();
            let len = u32::try_from(data.len()).unwrap();
            for word in [u32::try_from(option).unwrap(), kind, len] {
                out.extend(word.to_be_bytes());
            }
            [out, data.to_vec()].concat()
        };
        if option == 1 {
            stream.write_all(&[&(1u64 << 30).to_be_bytes()[..], &[0, 1]].concat())?;
            break;
        }
        if option == 7 {
            let export = [&[0, 0][..], &(1u64 << 30).to_be_bytes(), &[0, 1]].concat();
            stream.write_all(&[reply(3, &export), reply(1, &[])].concat())?;
            break;
        }
        stream.write_all(&reply(REP_ERR_UNSUP, &[]))?;
    }
    loop {
        let head = take(stream, 28)?;
        store.seen.fetch_add(1, SeqCst);
        let offset = long(&head, 16);
        let len = word(&head, 24);
        let mut out = SIMPLE_REPLY_MAGIC.to_be_bytes().to_vec();
        out.extend([0; 4]);
        out.extend(&head[8..16]);
        match head[7] {
            0 => out.extend(store.slice(b"", offset, len)),
            1 => store.put(b"", offset, &take(stream, len)?),
            2 => return Ok(()),
            _ => {}
        }
        stream.write_all(&out)?;
    }
}
