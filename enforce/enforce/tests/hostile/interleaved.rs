//! Conversations of several connections, cut into pieces anywhere and sent in any order.

use crate::codec::Protocol;
use crate::honest::{answer, handshake, mini, proxy_before};
use crate::mini::Mini;
use crate::proxy::Running;
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;

/// Servers and proxies for all cases.
static GROUND: Mutex<Vec<(Mini, Running)>> = Mutex::new(Vec::new());

/// Requests (kind, size) and lengths of the pieces of one connection.
type Plan = (Vec<(u8, u16)>, Vec<usize>);

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let requests = prop::collection::vec((any::<u8>(), 0..3000u16), 1..12);
    let pieces = prop::collection::vec(1usize..900, 1..8);
    prop::collection::vec((requests, pieces), 1..5)
}

/// Sends the data of each connection piece by piece, in the order of `turns`.
fn send(streams: &mut [TcpStream], said: &[Vec<u8>], plans: &[Plan], turns: &[usize]) {
    let mut sent = vec![0; said.len()];
    let mut turns = turns.iter().copied().cycle();
    let mut pieces: Vec<_> = plans.iter().map(|(_, pieces)| pieces.iter().copied().cycle()).collect();
    while sent.iter().zip(said).any(|(sent, said)| *sent < said.len()) {
        let turn = turns.next().unwrap_or(0);
        let open = (0..said.len()).map(|step| (turn + step) % said.len()).find(|i| sent[*i] < said[*i].len());
        let index = open.expect("one has more to say");
        let end = (sent[index] + pieces[index].next().unwrap_or(1)).min(said[index].len());
        streams[index].write_all(&said[index][sent[index]..end]).unwrap();
        sent[index] = end;
    }
}

fn content(index: usize, request: usize, size: u16) -> Vec<u8> {
    let seed = index * 31 + request * 7;
    (0..usize::from(size)).map(|at| ((at + seed) % 251).to_le_bytes()[0]).collect()
}

/// Returns requests to memcached on three keys, all of them written first, and every byte of the answers.
fn script(index: usize, requests: &[(u8, u16)]) -> (Vec<u8>, Vec<u8>) {
    let mut said = Vec::new();
    let mut answers = Vec::new();
    let mut values = vec![Vec::new(); 3];
    let first = [(0, 5), (3, 5), (6, 5)];
    for (number, &(what, size)) in first.iter().chain(requests).enumerate() {
        let key = usize::from(what / 3 % 3);
        if what % 3 == 2 {
            said.extend(format!("get c{index}k{key}\r\n").bytes());
            answers.extend(format!("VALUE c{index}k{key} 0 {}\r\n", values[key].len()).bytes());
            answers.extend(&values[key]);
            answers.extend(b"\r\nEND\r\n");
            continue;
        }
        values[key] = content(index, number, size);
        let (quiet, answer) = if what % 3 == 0 { ("", &b"STORED\r\n"[..]) } else { (" noreply", &b""[..]) };
        said.extend(format!("set c{index}k{key} 0 0 {size}{quiet}\r\n").bytes());
        said.extend(&values[key]);
        said.extend(b"\r\n");
        answers.extend(answer);
    }
    // Without an answer behind it, a last write might happen in the next case.
    said.extend(b"mn\r\n");
    answers.extend(b"MN\r\n");
    (said, answers)
}

fn in_order(proxy: &Running, plans: &[Plan], turns: &[usize]) {
    let scripts: Vec<_> =
        plans.iter().enumerate().map(|(index, (requests, _))| script(index, requests)).collect();
    let said: Vec<Vec<u8>> = scripts.iter().map(|(said, _)| said.clone()).collect();
    let mut streams: Vec<TcpStream> = plans.iter().map(|_| proxy.connect()).collect();
    send(&mut streams, &said, plans, turns);
    for (stream, (_, expected)) in streams.iter_mut().zip(&scripts) {
        let mut found = vec![0; expected.len()];
        stream.read_exact(&mut found).unwrap();
        assert!(found == *expected, "every answer in its place");
    }
}

/// Writes, then reads after the writes' answers.
fn in_any_order(proxy: &Running, protocol: Protocol, plans: &[Plan], turns: &[usize]) {
    let owners = 0..u32::try_from(plans.len()).unwrap();
    let (mut streams, mut codecs): (Vec<_>, Vec<_>) =
        owners.map(|owner| handshake(proxy, protocol, owner)).unzip();
    for reads in [false, true] {
        let mut said = Vec::new();
        let mut expected = Vec::new();
        for (index, (requests, _)) in plans.iter().enumerate() {
            let mut out = Vec::new();
            let mut answers = Vec::new();
            for (number, (_, size)) in requests.iter().enumerate() {
                let data = content(index, number, *size);
                let id = match reads {
                    true => codecs[index].read(&mut out, number, data.len()),
                    false => codecs[index].write(&mut out, number, &data),
                };
                answers.push((id, data));
            }
            said.push(out);
            expected.push(answers);
        }
        send(&mut streams, &said, plans, turns);
        for ((stream, codec), mut expected) in streams.iter_mut().zip(&mut codecs).zip(expected) {
            while !expected.is_empty() {
                let (id, found) = answer(stream, codec);
                let place = expected.iter().position(|(asked, _)| *asked == id).expect("it was asked for");
                let (_, data) = expected.remove(place);
                assert!(!reads || found == Some(data), "what was written is read");
            }
        }
    }
}

proptest! {
    #[test]
    fn every_answer_arrives(what in 0usize..3, plans in plans(), turns in prop::collection::vec(0usize..5, 1..20)) {
        let protocols = [Protocol::Memcached, Protocol::Nbd, Protocol::Nfs];
        let mut ground = GROUND.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while ground.len() < 3 {
            let protocol = protocols[ground.len()];
            let server = mini(protocol);
            let proxy = proxy_before(&server, protocol, "outstanding = 3");
            ground.push((server, proxy));
        }
        match what {
            0 => in_order(&ground[0].1, &plans, &turns),
            what => in_any_order(&ground[what].1, protocols[what], &plans, &turns),
        }
    }
}
