//! Clients that break the protocol, read nothing, stop in the middle, hang up or stay silent.

use crate::codec::{ClientCodec, Protocol};
use crate::honest::{
    HonestClient, PROTOCOLS, answer, beside_honest_clients, drain_empty, handshake, mini, proxy_before,
    read_to_end, wait_for_status,
};
use crate::mini::Mini;
use crate::proxy::{Running, deployment, profile, say};
use enforce::storage::{Proxy, ProxyOptions};
use rustix::net::sockopt::set_socket_linger;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use wire::nbd::protocol::REQUEST_MAGIC;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The head of an NBD command.
fn command(kind: u16, len: u32) -> Vec<u8> {
    [&words(&[REQUEST_MAGIC])[..], &[0, 0], &kind.to_be_bytes(), &[0; 16], &len.to_be_bytes()].concat()
}

/// Returns invalid input, first on a connection and after a handshake.
fn wrong(protocol: Protocol) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let option = |len: u32| [&[0, 0, 0, 3][..], b"IHAVEOPT", &words(&[7, len])].concat();
    let call = |rest: &[u32]| {
        let body = words(&[&[9, 0, 2, 100_003, 3, 6], rest].concat());
        [words(&[1 << 31 | u32::try_from(body.len()).unwrap()]), body].concat()
    };
    // A valid call, byte by byte, without an end.
    let head = words(&[9, 0, 2, 100_003, 3, 0, 0, 0, 0, 0]);
    let flood = head.iter().chain(&[0; 5000]).flat_map(|byte| [0, 0, 0, 1, *byte]).collect();
    match protocol {
        Protocol::Nbd => (
            vec![option(u32::MAX), option(70_000), words(&[77]), [0; 200].to_vec()],
            vec![vec![0xff; 50], [command(0, 10), vec![0; 28]].concat()],
        ),
        Protocol::Memcached => (
            vec![
                b"mg ".iter().chain(&[b'k'; 70_000]).copied().collect(),
                b"get".iter().chain(&[b' '; 70_000]).copied().collect(),
                vec![0x80; 24],
            ],
            vec![b"\r\n\r\n\0\0\n".iter().chain(&[b'k'; 70_000]).copied().collect()],
        ),
        Protocol::Nfs => (
            vec![
                words(&[u32::MAX]),
                words(&[5 << 28]),
                vec![0; 4 * 5000],
                flood,
                call(&[0, 1 << 30]),
                call(&[0, 0, 0, 0, 1 << 30]),
                words(&[1 << 31 | 4, 7]),
                b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            ],
            vec![words(&[1 << 31 | 12, 5, 7, 2])],
        ),
    }
}

#[test]
fn who_breaks_the_protocol_is_cut_off_alone() {
    for protocol in PROTOCOLS {
        let server = mini(protocol);
        let proxy = proxy_before(&server, protocol, "outstanding = 2");
        let (first, later) = wrong(protocol);
        let count = beside_honest_clients(&proxy, protocol, || {
            for said in &first {
                let mut stream = proxy.connect();
                // The connection may be cut off before everything is sent.
                let _ = stream.write_all(said);
                read_to_end(&mut stream);
            }
            for said in &later {
                let (mut stream, mut codec) = handshake(&proxy, protocol, 7);
                let mut out = Vec::new();
                for block in 0..20 {
                    codec.read(&mut out, block, 4096);
                }
                out.extend(said);
                let _ = stream.write_all(&out);
                read_to_end(&mut stream);
            }
            first.len() + later.len()
        });
        assert_eq!(drain_empty(proxy), count as u64, "{protocol:?}");
    }
}

#[test]
fn a_client_that_takes_nothing_gives_the_device_back() {
    let server = Mini::memcached();
    let proxy = proxy_before(&server, Protocol::Memcached, "outstanding = 2");
    let value = vec![b'v'; 200_000];
    let mut stream = proxy.connect();
    let set = [b"set big 0 0 200000\r\n", &value[..], b"\r\n"].concat();
    assert_eq!(say(&mut stream, &set, b"\r\n"), b"STORED\r\n");
    const GETS: usize = 300;
    stream.write_all(&b"get big\r\n".repeat(GETS)).unwrap();
    let snapshot = beside_honest_clients(&proxy, Protocol::Memcached, || {
        wait_for_status(&proxy, "its requests to leave the queue", |snapshot| {
            snapshot.buffered_bytes > 256 << 10 && snapshot.waiting + snapshot.outstanding <= 3
        })
    });
    assert!(snapshot.buffered_bytes < 2 << 20 && snapshot.released == 0, "{snapshot:?}");
    // It was slow, not invalid: it gets all answers.
    stream.shutdown(Shutdown::Write).unwrap();
    let one = [b"VALUE big 0 200000\r\n", &value[..], b"\r\nEND\r\n"].concat();
    assert!(read_to_end(&mut stream) == one.repeat(GETS));
    assert_eq!(drain_empty(proxy), 0);
}

/// Returns a large write, the length of its first part, and true if it is answered.
fn large(protocol: Protocol, codec: &mut ClientCodec, data: &[u8], answered: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if answered {
        codec.write(&mut out, 1, data);
    } else {
        assert_eq!(protocol, Protocol::Memcached);
        out = format!("set w7-b1 0 0 {} noreply\r\n", data.len()).into_bytes();
        out.extend_from_slice(data);
        out.extend(b"\r\n");
    }
    out
}

#[test]
fn a_write_that_stops_in_the_middle_holds_up_nobody() {
    let cases = [
        (Protocol::Nbd, true),
        (Protocol::Memcached, true),
        (Protocol::Memcached, false),
        (Protocol::Nfs, true),
    ];
    for (protocol, answered) in cases {
        let server = mini(protocol);
        let proxy = proxy_before(&server, protocol, "outstanding = 1");
        let (mut stream, mut writer) = handshake(&proxy, protocol, 7);
        let data: Vec<u8> =
            (0..3_000_000u32).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
        let said = large(protocol, &mut writer, &data, answered);
        let (now, later) = said.split_at(2_000_000);
        stream.write_all(now).unwrap();
        wait_for_status(&proxy, "what was sent", |snapshot| snapshot.connections == 1);
        let snapshot = beside_honest_clients(&proxy, protocol, || proxy.remote.status().expect("it runs"));
        assert_eq!(snapshot.released, 0, "it has no place at the device: {snapshot:?}");
        // It continues where it stopped.
        stream.write_all(later).unwrap();
        if answered {
            answer(&mut stream, &mut writer);
        }
        let mut reader = handshake(&proxy, protocol, 7);
        if !answered {
            // Without an answer, only its own connection shows that the write has happened.
            reader = (stream.try_clone().unwrap(), ClientCodec::memcached(7));
        }
        let mut out = Vec::new();
        reader.1.read(&mut out, 1, data.len());
        reader.0.write_all(&out).unwrap();
        assert!(answer(&mut reader.0, &mut reader.1).1 == Some(data), "{protocol:?}");
        // And one that never continues.
        let (mut torn, mut writer) = handshake(&proxy, protocol, 8);
        torn.write_all(&large(protocol, &mut writer, &[1; 3_000_000], true)[..1_500_000]).unwrap();
        beside_honest_clients(&proxy, protocol, || drop(torn));
        drop((stream, reader));
        drain_empty(proxy);
    }
}

#[test]
fn an_answer_that_the_server_has_not_asked_for_is_refused() {
    let server = Mini::nfs();
    let proxy = proxy_before(&server, Protocol::Nfs, "");
    let (mut stream, mut codec) = handshake(&proxy, Protocol::Nfs, 7);
    let mut out = Vec::new();
    codec.read(&mut out, 0, 1000);
    stream.write_all(&out).unwrap();
    assert_eq!(answer(&mut stream, &mut codec).1, Some(vec![0; 1000]));
    // A reply as to a callback would bypass the queue.
    stream.write_all(&words(&[1 << 31 | 24, 5, 1, 0, 0, 0, 0])).unwrap();
    assert_eq!(read_to_end(&mut stream), b"");
    assert_eq!(drain_empty(proxy), 1);
}

#[test]
fn who_hangs_up_by_half_gets_all_answers() {
    for protocol in PROTOCOLS {
        let server = mini(protocol);
        let proxy = proxy_before(&server, protocol, "outstanding = 3");
        let (mut stream, mut codec) = handshake(&proxy, protocol, 7);
        // More than a connection may have outstanding; answers that exceed the sockets' buffers.
        let mut out = Vec::new();
        let requests = 3500;
        let ids: Vec<u64> = (0..requests).map(|n| codec.read(&mut out, n % 50, 4096)).collect();
        let mut writer = stream.try_clone().unwrap();
        let wrote = std::thread::spawn(move || {
            writer.write_all(&out).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut answered: Vec<u64> = ids.iter().map(|_| answer(&mut stream, &mut codec).0).collect();
        wrote.join().unwrap();
        if protocol != Protocol::Memcached {
            answered.sort_unstable();
        }
        assert_eq!(answered, ids);
        assert_eq!(read_to_end(&mut stream), b"");
        assert_eq!(drain_empty(proxy), 0, "{protocol:?}");
    }
}

#[test]
fn what_waits_of_a_client_that_has_gone_is_taken_back() {
    let server = Mini::memcached();
    let proxy = proxy_before(&server, Protocol::Memcached, "outstanding = 2");
    let mut stream = proxy.connect();
    stream.write_all(&b"get hold\r\n".repeat(20)).unwrap();
    wait_for_status(&proxy, "a queue", |snapshot| (snapshot.waiting, snapshot.outstanding) == (18, 2));
    set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
    // The device's work for it still counts.
    wait_for_status(&proxy, "the queue to go", |snapshot| (snapshot.waiting, snapshot.outstanding) == (0, 2));
    server.store.open();
    wait_for_status(&proxy, "the slots", |snapshot| (snapshot.outstanding, snapshot.connections) == (0, 0));
    assert_eq!(server.store.seen.load(SeqCst), 2);
    HonestClient::new(&proxy, Protocol::Memcached, 1).round(200);
    drain_empty(proxy);
}

#[test]
fn breaking_the_protocol_frees_no_slot() {
    let server = Mini::memcached();
    let proxy = proxy_before(&server, Protocol::Memcached, "outstanding = 2");
    let mut stream = proxy.connect();
    stream.write_all(&b"get hold\r\n".repeat(5)).unwrap();
    wait_for_status(&proxy, "a queue", |snapshot| snapshot.outstanding == 2);
    stream.write_all(&[b'x'; 70_000]).unwrap();
    // Its requests stay, and so does their place in the queue.
    for _ in 0..20 {
        let snapshot = wait_for_status(&proxy, "the queue", |snapshot| snapshot.waiting == 3);
        assert_eq!(snapshot.outstanding, 2);
    }
    server.store.open();
    let heard = read_to_end(&mut stream);
    let farewell = b"CLIENT_ERROR memcached line in bytes: at most 65536, found 65537\r\n";
    assert_eq!(heard, [&b"END\r\n".repeat(5)[..], farewell].concat(), "requests before it are answered");
    assert_eq!(drain_empty(proxy), 1);
}

#[test]
fn who_says_nothing_is_kept_and_counted() {
    let server = Mini::memcached();
    let mut options =
        ProxyOptions::new("ssd", deployment("memcached", server.address, "", ""), None, profile());
    options.connections_max = 200;
    let proxy = Running::start(options);
    let mut honest = HonestClient::new(&proxy, Protocol::Memcached, 1);
    // Three quarters of the places are free to all; of the rest an address that has half of all gets
    // none.
    let mut silent: Vec<TcpStream> = (0..149).map(|_| proxy.connect()).collect();
    wait_for_status(&proxy, "connections", |snapshot| snapshot.connections == 150);
    for _ in 0..20 {
        assert_eq!(read_to_end(&mut proxy.connect()), b"", "one too many");
    }
    honest.round(300);
    drop(silent.pop());
    wait_for_status(&proxy, "a place", |snapshot| snapshot.connections <= 149);
    HonestClient::new(&proxy, Protocol::Memcached, 2).round(100);
    honest.round(300);
    drop((honest, silent));
    assert_eq!(drain_empty(proxy), 0);
}

#[test]
fn commands_do_not_overtake_the_handshake() {
    let server = Mini::nbd();
    let clients = "[[client]]\nworkload = \"one\"\nhost = \"here\"\naddress = [\"127.0.0.1\"]";
    let deployment = deployment("nbd", server.address, "", clients);
    let policy = crate::proxy::policy(&[("one", 0, &[])]);
    let proxy = Running::start(ProxyOptions::new("ssd", deployment, Some(policy), profile()));
    // An option EXPORT_NAME cannot be refused and is not delayed. There are more handshakes than control
    // requests are dispatched at once.
    let hello = [&words(&[3])[..], b"IHAVEOPT", &words(&[1, 0])].concat();
    let said = [hello, [command(0, 512), command(2, 0)].concat()].concat();
    let mut streams: Vec<TcpStream> = (0..50).map(|_| proxy.connect()).collect();
    for stream in &mut streams {
        stream.write_all(&said).unwrap();
    }
    for stream in &mut streams {
        assert_eq!(read_to_end(stream).len(), 18 + 10 + 16 + 512);
    }
    assert_eq!(drain_empty(proxy), 0);
}

/// The proxy learns of both in one round: it has stopped listening when it handles the event of the
/// connection.
#[test]
fn a_client_that_comes_with_the_order_to_drain_ends_nothing() {
    let deployment = deployment("memcached", testkit::free_address(), "", "");
    let proxy = Proxy::bind(ProxyOptions::new("ssd", deployment, None, profile())).unwrap();
    proxy.handle().drain();
    let _client = TcpStream::connect(proxy.addresses()[0]).unwrap();
    assert_eq!(proxy.run().unwrap().snapshot.connections, 0);
}
