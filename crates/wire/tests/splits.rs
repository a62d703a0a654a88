//! However the bytes of a conversation arrive, the same messages are recognised in it, and they are the ones that
//! were put there: at once, byte by byte, in random pieces, and cut off anywhere.

mod common;
#[path = "common/talk/mod.rs"]
mod talk;

use common::{Side, Talk, Watch, pass};
use proptest::prelude::*;
use talk::{Script, choices, found};

fn all_ways(new: fn() -> Watch, script: &Script, pieces: &[usize]) {
    let mut whole = new();
    pass(&mut whole, &script.talk, &[]).unwrap();
    assert_eq!(found(&whole.events), script.found);
    assert!(whole.is_drained(), "nothing is left over");
    for pieces in [&[1][..], pieces] {
        let mut other = new();
        pass(&mut other, &script.talk, pieces).unwrap();
        assert_eq!(other.events, whole.events, "in pieces of {pieces:?}");
        assert!(other.is_drained());
    }
}

/// What was recognised before the end is the same as with the rest behind it.
fn cut_off(new: fn() -> Watch, script: &Script, at: usize) {
    let mut whole = new();
    pass(&mut whole, &script.talk, &[]).unwrap();
    let mut left = at % (script.talk.iter().map(|(_, said)| said.len()).sum::<usize>() + 1);
    let mut part: Talk = Vec::new();
    for (side, said) in &script.talk {
        let here = left.min(said.len());
        left -= here;
        part.push((*side, said[..here].to_vec()));
    }
    let mut prefix = new();
    pass(&mut prefix, &part, &[]).unwrap();
    assert_eq!(prefix.events[..], whole.events[..prefix.events.len()]);
}

/// One byte other than it was: an error or other messages, never a panic or a broken promise.
fn damaged(new: fn() -> Watch, script: &Script, at: usize, with: u8) {
    let mut talk = script.talk.clone();
    let mut place = at % talk.iter().map(|(_, said)| said.len()).sum::<usize>().max(1);
    for (_, said) in &mut talk {
        if let Some(byte) = said.get_mut(place) {
            *byte ^= with;
            break;
        }
        place -= said.len();
    }
    let _ = pass(&mut new(), &talk, &[]);
}

fn try_all(new: fn() -> Watch, script: &Script, pieces: &[usize], at: usize, with: u8) {
    all_ways(new, script, pieces);
    cut_off(new, script, at);
    damaged(new, script, at, with);
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
