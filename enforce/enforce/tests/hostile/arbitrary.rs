//! Arbitrary input from both sides: the proxy continues, and keeps no state of it.

use crate::codec::Protocol;
use crate::honest::{PROTOCOLS, wait_for_status};
use crate::proxy::{Running, apart, deployment, profile};
use enforce::storage::ProxyOptions;
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Mutex;
use std::time::Duration;
use wire::memcached::client as memcached;
use wire::nbd::client as nbd;
use wire::nbd::protocol::{OPTION_REPLY_MAGIC, SIMPLE_REPLY_MAGIC};
use wire::rpc::client::{CallEncoder, Credentials, StableHow};

/// Listeners and proxies for all cases.
static GROUND: Mutex<Vec<(TcpListener, Running)>> = Mutex::new(Vec::new());

/// Sender, kind and amount of data.
type Word = (bool, u8, u16, Vec<u8>);

fn words() -> impl Strategy<Value = Vec<Word>> {
    let noise = prop::collection::vec(any::<u8>(), 0..20);
    prop::collection::vec((any::<bool>(), any::<u8>(), any::<u16>(), noise), 0..25)
}

fn be(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Mostly valid input of a client.
fn client(protocol: Protocol, what: u8, size: u16, noise: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let data = vec![what; size.into()];
    let id = u32::from(what % 8);
    match (protocol, what / 8 % 8) {
        (_, 0) => return noise.to_vec(),
        (Protocol::Memcached, 1 | 2) => memcached::get(&mut out, &[b"a", b"b"]),
        (Protocol::Memcached, 3) => {
            memcached::set(&mut out, b"a", 0, 0, &data, memcached::Confirmation::Reply);
        }
        (Protocol::Memcached, 4) => {
            memcached::set(&mut out, b"a", 0, 0, &data, memcached::Confirmation::NoReply);
        }
        (Protocol::Memcached, 5) => memcached::meta_get(&mut out, b"a", &["v", "q"]),
        (Protocol::Memcached, _) => memcached::noop(&mut out),
        (Protocol::Nbd, 1) => out = be(&[u32::from(what % 4)]),
        (Protocol::Nbd, 2) => out = [b"IHAVEOPT", &be(&[1, 0])[..]].concat(),
        (Protocol::Nbd, 3) => out = [b"IHAVEOPT", &be(&[id, 0])[..]].concat(),
        (Protocol::Nbd, 4 | 5) => nbd::read(&mut out, id.into(), 0, size.into()),
        (Protocol::Nbd, 6) => nbd::write(&mut out, id.into(), 0, &data),
        (Protocol::Nbd, _) => nbd::disconnect(&mut out, id.into()),
        (Protocol::Nfs, 1 | 2) => {
            CallEncoder::new(&mut out, Credentials::None).read(id, b"h", 0, size.into());
        }
        (Protocol::Nfs, 3) => {
            CallEncoder::new(&mut out, Credentials::None).write(id, b"h", 0, StableHow::FileSync, &data);
        }
        (Protocol::Nfs, 4) => CallEncoder::new(&mut out, Credentials::None).mount(id, noise),
        (Protocol::Nfs, 5) => CallEncoder::new(&mut out, Credentials::None).null(id),
        // The answer to a callback, in two fragments.
        (Protocol::Nfs, 6) => {
            out = [be(&[24, id, 1, 0, 0, 0, 0]), be(&[1 << 31 | u32::from(size)]), data].concat();
        }
        (Protocol::Nfs, _) => out = [&be(&[u32::from(size)])[..], noise].concat(),
    }
    out
}

/// Mostly valid input of a server.
fn server(protocol: Protocol, what: u8, size: u16, noise: &[u8]) -> Vec<u8> {
    let data = vec![what; size.into()];
    let id = u32::from(what % 8);
    match (protocol, what / 8 % 8) {
        (_, 0) => noise.to_vec(),
        (Protocol::Memcached, 1 | 2) => b"END\r\n".to_vec(),
        (Protocol::Memcached, 3) => {
            [format!("VALUE a 0 {size}\r\n").as_bytes(), &data, b"\r\nEND\r\n"].concat()
        }
        (Protocol::Memcached, 4 | 5) => b"STORED\r\n".to_vec(),
        (Protocol::Memcached, 6) => b"SERVER_ERROR no\r\n".to_vec(),
        (Protocol::Memcached, _) => b"MN\r\n".to_vec(),
        (Protocol::Nbd, 1) => b"NBDMAGICIHAVEOPT\0\x03".to_vec(),
        (Protocol::Nbd, 2) => vec![0; 10],
        (Protocol::Nbd, 3) => [&OPTION_REPLY_MAGIC.to_be_bytes()[..], &be(&[id, 1, 0])].concat(),
        (Protocol::Nbd, _) => [be(&[SIMPLE_REPLY_MAGIC, u32::from(what / 8 % 2), 0, id]), data].concat(),
        (Protocol::Nfs, _) => {
            let body = [be(&[id, 1, 0, 0, 0, 0, u32::from(what / 8 % 2)]), data].concat();
            [be(&[1 << 31 | u32::try_from(body.len()).unwrap()]), body].concat()
        }
    }
}

fn ground() -> Vec<(TcpListener, Running)> {
    let one = |protocol: Protocol| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let deployment =
            deployment(protocol.name(), listener.local_addr().unwrap(), "outstanding = 3\nbatch = 4", "");
        // Each connection to the server is that of one client.
        (listener, Running::start(ProxyOptions::new("ssd", apart(deployment), None, profile())))
    };
    PROTOCOLS.map(one).into()
}

/// Reads the available bytes, without waiting for more.
fn drink(stream: &mut TcpStream) {
    stream.set_nonblocking(true).unwrap();
    let mut piece = [0; 65536];
    while stream.read(&mut piece).is_ok_and(|read| read > 0) {}
    stream.set_nonblocking(false).unwrap();
}

proptest! {
    #[test]
    fn nothing_is_left_over(what in 0usize..3, words in words(), end in 0u8..4) {
        let mut ground = GROUND.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if ground.is_empty() {
            *ground = self::ground();
        }
        let protocol = PROTOCOLS[what];
        let (listener, proxy) = &ground[what];
        let mut near = proxy.connect();
        let (mut far, _) = listener.accept().unwrap();
        for stream in [&near, &far] {
            stream.set_nodelay(true).unwrap();
            // One side may block on the other, which does not read.
            stream.set_write_timeout(Some(Duration::from_millis(20))).unwrap();
        }
        for (is_client, what, size, noise) in &words {
            let said = match is_client {
                true => client(protocol, *what, *size, noise),
                false => server(protocol, *what, *size, noise),
            };
            // Either may have been cut off.
            let _ = if *is_client { near.write_all(&said) } else { far.write_all(&said) };
            drink(&mut near);
            drink(&mut far);
        }
        match end {
            0 => drop(near.shutdown(Shutdown::Write)),
            1 => rustix::net::sockopt::set_socket_linger(&near, Some(Duration::ZERO)).unwrap(),
            2 => drop(far.shutdown(Shutdown::Write)),
            _ => {}
        }
        drop((near, far));
        let left = wait_for_status(proxy, "an end", |snapshot| snapshot.connections == 0);
        prop_assert_eq!((left.waiting, left.outstanding, left.buffered_bytes), (0, 0, 0));
    }
}
