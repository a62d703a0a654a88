//! Servers that refuse, hang up, break off, send garbage or nothing.

use crate::codec::Protocol;
use crate::honest::{beside_honest_clients, drain_empty, proxy_apart, read_to_end, wait_for_status};
use crate::mini::Mini;
use crate::proxy::{Running, apart, deployment, profile, say};
use enforce::storage::ProxyOptions;
use std::io::{Read, Write};
use std::net::TcpListener;

const MEMCACHED: Protocol = Protocol::Memcached;

#[test]
fn a_server_that_breaks_off_costs_one_connection() {
    let server = Mini::memcached();
    let proxy = proxy_apart(&server, MEMCACHED, "outstanding = 2");
    let keys = ["close", "reset", "garbage", "twice", "half"];
    beside_honest_clients(&proxy, MEMCACHED, || {
        for key in keys.iter().cycle().take(50) {
            let mut stream = proxy.connect();
            stream.write_all(format!("get {key}\r\nget none\r\nget none\r\n").as_bytes()).unwrap();
            let said = read_to_end(&mut stream);
            match *key {
                // Bytes of the server are passed on before they are checked.
                "half" => assert_eq!(said, b"VALUE half 0 1000\r\nonly a part"),
                "close" | "reset" => assert_eq!(said, b""),
                _ => {}
            }
        }
    });
    // "twice" answers the requests that follow, so it is detected at the third or when the server is
    // gone.
    assert!(drain_empty(proxy) >= 40);
}

#[test]
fn what_is_never_answered_does_not_hold_the_device_for_ever() {
    let server = Mini::memcached();
    let proxy = proxy_apart(&server, MEMCACHED, "outstanding = 2");
    let mut streams = [proxy.connect(), proxy.connect()];
    for stream in &mut streams {
        stream.write_all(&b"get never\r\n".repeat(3)).unwrap();
    }
    wait_for_status(&proxy, "both slots", |snapshot| snapshot.outstanding == 2);
    beside_honest_clients(&proxy, MEMCACHED, || {
        wait_for_status(&proxy, "slots to be given back", |snapshot| snapshot.released >= 2)
    });
    drop(streams);
    drain_empty(proxy);
}

#[test]
fn a_server_that_is_not_there_is_asked_again_by_the_next_client() {
    let address = testkit::free_address();
    let proxy = Running::plain("memcached", address);
    for _ in 0..20 {
        let mut stream = proxy.connect();
        let _ = stream.write_all(b"get none\r\n");
        assert_eq!(read_to_end(&mut stream), b"");
    }
    let server = Mini::memcached_at(address);
    beside_honest_clients(&proxy, MEMCACHED, || server.store.await_seen(100));
    assert_eq!(drain_empty(proxy), 20);
}

#[test]
fn a_server_that_does_not_hang_up_is_left() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let hosts = apart(deployment("memcached", listener.local_addr().unwrap(), "", ""));
    let proxy = Running::start(ProxyOptions::new("ssd", hosts, None, profile()));
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
        (stream, said)
    });
    drop(proxy.connect());
    let (stream, said) = server.join().unwrap();
    assert_eq!(said, b"");
    assert_eq!(drain_empty(proxy), 0);
    drop(stream);
}

#[test]
fn draining_loses_no_answer() {
    let server = Mini::memcached();
    let proxy = proxy_apart(&server, MEMCACHED, "outstanding = 20");
    let mut stream = proxy.connect();
    let set = [b"set big 0 0 200000\r\n", &[b'v'; 200_000][..], b"\r\n"].concat();
    assert_eq!(say(&mut stream, &set, b"\r\n"), b"STORED\r\n");
    stream.write_all(&[&b"get big\r\n".repeat(10)[..], b"get hold\r\n"].concat()).unwrap();
    wait_for_status(&proxy, "the last", |snapshot| (snapshot.waiting, snapshot.outstanding) == (0, 1));
    proxy.remote.drain();
    // No longer accepted.
    stream.write_all(&b"get big\r\n".repeat(100)).unwrap();
    proxy.remote.status().unwrap();
    server.store.open();
    while proxy.remote.status().is_ok() {
        std::thread::yield_now();
    }
    let one = [b"VALUE big 0 200000\r\n", &[b'v'; 200_000][..], b"\r\nEND\r\n"].concat();
    let expected = [&one.repeat(10)[..], b"END\r\n"].concat();
    let mut said = vec![0; expected.len()];
    stream.read_exact(&mut said).unwrap();
    assert!(said == expected);
}
