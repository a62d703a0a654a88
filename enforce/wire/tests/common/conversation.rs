//! What a well-formed conversation must pass, however its bytes arrive; shared by the laws of `splits` and a fuzz target.

use super::common::{Talk, Watch, pass};
use super::talk::{self, Choice, Script, found};

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

/// All of this with one conversation.
#[allow(unreachable_pub, reason = "tests and the fuzz crate include this file as a module")]
pub fn try_all(new: fn() -> Watch, script: &Script, pieces: &[usize], at: usize, with: u8) {
    all_ways(new, script, pieces);
    cut_off(new, script, at);
    damaged(new, script, at, with);
}

/// A conversation that bytes choose: the protocol, where it is damaged and cut, the lengths of pieces, and its messages.
#[allow(unreachable_pub, dead_code, reason = "as above")]
pub fn exercise_conversation(content: &[u8]) {
    let Some((&[protocol, at, with, pieces], content)) = content.split_first_chunk() else { return };
    let choices: Vec<Choice> = content
        .chunks_exact(4)
        .take(40)
        .map(|bytes| (bytes[0], u16::from_be_bytes([bytes[1] & 7, bytes[2]]), bytes[3]))
        .collect();
    let (new, script): (fn() -> Watch, Script) = match protocol % 6 {
        0 => (Watch::rpc, talk::rpc(&choices)),
        1 => (Watch::nbd, talk::nbd(&choices)),
        2 => (Watch::http, talk::http(&choices)),
        3 => (Watch::resp, talk::resp(&choices)),
        4 => (Watch::resp_of_a_proxy, talk::resp(&choices)),
        _ => (Watch::memcached, talk::memcached(&choices)),
    };
    let at = usize::from(at) * 37;
    try_all(new, &script, &[usize::from(pieces) + 1, usize::from(with) + 1], at, with);
}
