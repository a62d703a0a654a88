//! However the bytes of a conversation arrive, the same messages are recognised in it, and they are the ones that
//! were put there: at once, byte by byte, in random pieces, and cut off anywhere.

mod common;
#[path = "common/conversation.rs"]
mod conversation;
#[path = "common/talk/mod.rs"]
mod talk;

use common::{Side, Watch, pass};
use conversation::try_all;
use proptest::prelude::*;
use talk::Choice;

fn choices() -> impl Strategy<Value = Vec<Choice>> {
    proptest::collection::vec((any::<u8>(), 0..3000u16, any::<u8>()), 0..12)
}

fn pieces() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(1..200usize, 1..20)
}

proptest! {
    #[test]
    fn rpc(choices in choices(), pieces in pieces(), at: usize, with: u8) {
        try_all(Watch::rpc, &talk::rpc(&choices), &pieces, at, with);
    }

    #[test]
    fn nbd(choices in choices(), pieces in pieces(), at: usize, with: u8) {
        try_all(Watch::nbd, &talk::nbd(&choices), &pieces, at, with);
    }

    #[test]
    fn memcached(choices in choices(), pieces in pieces(), at: usize, with: u8) {
        try_all(Watch::memcached, &talk::memcached(&choices), &pieces, at, with);
    }

    #[test]
    fn http(choices in choices(), pieces in pieces(), at: usize, with: u8) {
        try_all(Watch::http, &talk::http(&choices), &pieces, at, with);
    }

    #[test]
    fn resp(choices in choices(), pieces in pieces(), at: usize, with: u8) {
        try_all(Watch::resp, &talk::resp(&choices), &pieces, at, with);
        try_all(Watch::resp_of_a_proxy, &talk::resp(&choices), &pieces, at, with);
    }
}

#[test]
fn the_export_is_known_when_it_is_granted() {
    let script = talk::nbd(&[(0, 0, 0)]);
    let mut watch = Watch::nbd();
    let (last, before) = script.talk.split_last().unwrap();
    pass(&mut watch, &before.to_vec(), &[]).unwrap();
    assert_eq!(watch.wire.export_name(), None);
    watch.feed(Side::Server, &last.1).unwrap();
    assert_eq!(watch.wire.export_name(), Some(&b"disk"[..]));
}
