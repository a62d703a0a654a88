//! Lines of replies to text and meta commands.

use super::expect::{Code, Head, Item, Kind};
use super::{number, words};
use crate::read::{Hash, at_most};
use crate::{Limits, Malformed};

/// The head of the reply, or part of a reply, that begins with `line`, which has its end.
pub(super) fn read(line: &[u8], limits: &Limits) -> Result<Head, Malformed> {
    let mut rest = words(line);
    let first = rest.next().unwrap_or(b"");
    let mut data = None;
    let kind = match first {
        b"VALUE" => {
            data = Some(number(rest.nth(2), "length in a VALUE line")?);
            Kind::Value
        }
        b"VA" => {
            data = Some(number(rest.next(), "length in a VA line")?);
            Kind::Meta(Code::Va, opaque(rest))
        }
        b"HD" => Kind::Meta(Code::Hd, opaque(rest)),
        b"EN" => Kind::Meta(Code::En, opaque(rest)),
        b"NS" => Kind::Meta(Code::Ns, opaque(rest)),
        b"EX" => Kind::Meta(Code::Ex, opaque(rest)),
        b"NF" => Kind::Meta(Code::Nf, opaque(rest)),
        b"MN" => Kind::Meta(Code::Mn, None),
        b"ME" => Kind::Meta(Code::Me, None),
        b"END" => Kind::End,
        b"STAT" | b"ITEM" | b"PREFIX" => Kind::Item(Item::Stat),
        b"mg" => Kind::Item(Item::Mg),
        b"ERROR" | b"ERROR:" | b"CLIENT_ERROR" | b"SERVER_ERROR" => Kind::Error,
        word if word.starts_with(b"key=") => Kind::Item(Item::Key),
        _ => Kind::Other,
    };
    let data = match data {
        Some(bytes) => at_most("memcached value in bytes", limits.message.0, bytes)? + 2,
        None => 0,
    };
    Ok(Head { kind, error: kind == Kind::Error, head: line.len(), len: line.len() as u64 + data })
}

fn opaque<'a>(flags: impl Iterator<Item = &'a [u8]>) -> Option<u64> {
    flags.filter_map(|flag| flag.strip_prefix(b"O")).next().map(Hash::of)
}
