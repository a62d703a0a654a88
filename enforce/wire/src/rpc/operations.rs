//! XDR layout of the arguments of NFSv4 operations, so that they can be skipped: RFC 7531 (NFSv4.0), RFC 5662
//! (NFSv4.1), RFC 7863 (NFSv4.2) and RFC 8276 (extended attributes). Reads and writes are in `compound`.

use super::record::RecordReader;
use crate::fields::{HeadError, check_at_most};
use ArgumentPart::{Array, Fixed, Opaque, Union, Words};

/// Part of an operation's arguments.
#[derive(Debug)]
pub(super) enum ArgumentPart {
    /// A number of bytes without a length.
    Fixed(u32),
    /// A length, and that many bytes with padding: names, owners, attribute values.
    Opaque,
    /// A count, and that many words: bitmaps.
    Words,
    /// A count, and that many repetitions of the parts.
    Array(&'static [ArgumentPart]),
    /// A discriminant that selects the following parts; others have none.
    Union(&'static [(u32, &'static [ArgumentPart])]),
}

/// Attributes to set or compare: a bitmap and their values.
const ATTRIBUTES: [ArgumentPart; 2] = [Words, Opaque];
/// Type of file for CREATE: the numbers of a device, or the text of a link.
const CREATED_TYPE: ArgumentPart = Union(&[(3, &[Fixed(8)]), (4, &[Fixed(8)]), (5, &[Opaque])]);
/// Owner of a new lock with its open state, or a known owner.
const LOCKER: ArgumentPart = Union(&[(0, &[Fixed(20)]), (1, &[Fixed(32), Opaque])]);
/// Creation mode of OPEN.
const OPEN_HOW: ArgumentPart = Union(&[(
    1,
    &[Union(&[(0, &ATTRIBUTES), (1, &ATTRIBUTES), (2, &[Fixed(8)]), (3, &[Fixed(8), Words, Opaque])])],
)]);
/// Object of OPEN: a name, a delegation, or the current file.
const OPEN_CLAIM: ArgumentPart =
    Union(&[(0, &[Opaque]), (1, &[Fixed(4)]), (2, &[Fixed(16), Opaque]), (3, &[Opaque]), (5, &[Fixed(16)])]);
/// Credentials of callbacks.
const CALLBACK_SECURITY: ArgumentPart =
    Array(&[Union(&[(1, &[Fixed(4), Opaque, Fixed(8), Words]), (6, &[Fixed(4), Opaque, Opaque])])]);
/// State protection of EXCHANGE_ID.
const STATE_PROTECTION: ArgumentPart =
    Union(&[(1, &[Words, Words]), (2, &[Words, Words, Array(&[Opaque]), Array(&[Opaque]), Fixed(8)])]);
/// Location of a server: a name, a URL, or a network with an address.
const SERVER_PLACE: ArgumentPart = Union(&[(1, &[Opaque]), (2, &[Opaque]), (3, &[Opaque, Opaque])]);

/// Arguments of COPY after the length: order, synchrony, and the source's servers.
pub(super) const END_OF_COPY: &[ArgumentPart] = &[Fixed(8), Array(&[SERVER_PLACE])];
/// Arguments of WRITE_SAME after the length: positions of block number and pattern within a block, and the
/// pattern.
pub(super) const END_OF_WRITE_SAME: &[ArgumentPart] = &[Fixed(20), Opaque];

/// Returns the arguments of an operation that neither reads nor writes; `None` if its number is in no RFC.
#[rustfmt::skip]
pub(super) fn arguments(operation: u32) -> Option<&'static [ArgumentPart]> {
    Some(match operation {
        // ACCESS, OPENATTR, SECINFO_NO_NAME and RECLAIM_COMPLETE
        3 | 19 | 52 | 58 => &[Fixed(4)],
        // CLOSE and OPEN_CONFIRM: a state and a sequence number in either order
        4 | 20 => &[Fixed(20)],
        // COMMIT
        5 => &[Fixed(12)],
        // CREATE
        6 => &[CREATED_TYPE, Opaque, Words, Opaque],
        // DELEGPURGE, RENEW and DESTROY_CLIENTID
        7 | 30 | 57 => &[Fixed(8)],
        // DELEGRETURN, FREE_STATEID, OFFLOAD_CANCEL and OFFLOAD_STATUS; DESTROY_SESSION
        8 | 45 | 66 | 67 | 44 => &[Fixed(16)],
        // GETATTR
        9 => &[Words],
        // GETFH, LOOKUPP, PUTPUBFH, PUTROOTFH and READLINK
        10 | 16 | 23 | 24 | 27 => &[],
        // LINK, LOOKUP, REMOVE, SECINFO, GETXATTR and REMOVEXATTR
        11 | 15 | 28 | 33 | 72 | 75 => &[Opaque],
        // LOCK
        12 => &[Fixed(24), LOCKER],
        // LOCKT
        13 => &[Fixed(28), Opaque],
        // LOCKU
        14 => &[Fixed(40)],
        // NVERIFY and VERIFY
        17 | 37 => &ATTRIBUTES,
        // OPEN
        18 => &[Fixed(20), Opaque, OPEN_HOW, OPEN_CLAIM],
        // OPEN_DOWNGRADE
        21 => &[Fixed(28)],
        // SEEK
        69 => &[Fixed(28)],
        // READDIR
        26 => &[Fixed(24), Words],
        // RENAME and SET_SSV
        29 | 54 => &[Opaque, Opaque],
        // SETATTR
        34 => &[Fixed(16), Words, Opaque],
        // SETCLIENTID
        35 => &[Fixed(8), Opaque, Fixed(4), Opaque, Opaque, Fixed(4)],
        // SETCLIENTID_CONFIRM
        36 => &[Fixed(16)],
        // RELEASE_LOCKOWNER
        39 => &[Fixed(8), Opaque],
        // BACKCHANNEL_CTL
        40 => &[Fixed(4), CALLBACK_SECURITY],
        // BIND_CONN_TO_SESSION
        41 => &[Fixed(24)],
        // EXCHANGE_ID
        42 => &[Fixed(8), Opaque, Fixed(4), STATE_PROTECTION, Array(&[Opaque, Opaque, Fixed(12)])],
        // CREATE_SESSION: each of the two channels has six words and up to one more
        43 => &[Fixed(16), Fixed(24), Words, Fixed(24), Words, Fixed(4), CALLBACK_SECURITY],
        // GET_DIR_DELEGATION
        46 => &[Fixed(4), Words, Fixed(24), Words, Words],
        // GETDEVICEINFO
        47 => &[Fixed(24), Words],
        // GETDEVICELIST
        48 => &[Fixed(24)],
        // LAYOUTCOMMIT
        49 => &[Fixed(36), Union(&[(1, &[Fixed(8)])]), Union(&[(1, &[Fixed(12)])]), Fixed(4), Opaque],
        // LAYOUTGET
        50 => &[Fixed(56)],
        // LAYOUTRETURN
        51 => &[Fixed(12), Union(&[(1, &[Fixed(32), Opaque])])],
        // SEQUENCE
        53 => &[Fixed(32)],
        // TEST_STATEID
        55 => &[Array(&[Fixed(16)])],
        // WANT_DELEGATION
        56 => &[Fixed(4), Union(&[(1, &[Fixed(4)])])],
        // COPY_NOTIFY
        61 => &[Fixed(16), SERVER_PLACE],
        // IO_ADVISE
        63 => &[Fixed(32), Words],
        // LAYOUTERROR
        64 => &[Fixed(32), Array(&[Fixed(24)])],
        // LAYOUTSTATS
        65 => &[Fixed(84), Opaque],
        // SETXATTR
        73 => &[Fixed(4), Opaque, Opaque],
        // LISTXATTRS
        74 => &[Fixed(12)],
        _ => return None,
    })
}

pub(super) fn skip(record: &mut RecordReader<'_>, parts: &'static [ArgumentPart]) -> Result<(), HeadError> {
    const FIELD: &str = "arguments of an NFSv4 operation";
    for part in parts {
        match part {
            Fixed(bytes) => record.skip(FIELD, *bytes)?,
            Opaque => record.skip_opaque(FIELD, u32::MAX)?,
            Words => {
                let words = record.u32(FIELD)?;
                check_at_most(FIELD, (u32::MAX / 4).into(), words.into())?;
                record.skip(FIELD, words * 4)?;
            }
            Array(items) => {
                for _ in 0..record.u32(FIELD)? {
                    skip(record, items)?;
                }
            }
            Union(arms) => {
                let chosen = record.u32(FIELD)?;
                if let Some((_, parts)) = arms.iter().find(|(number, _)| *number == chosen) {
                    skip(record, parts)?;
                }
            }
        }
    }
    Ok(())
}
