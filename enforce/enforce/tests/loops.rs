//! A proxy whose bytes other threads move: the bytes of real servers stay whole and in order, whatever their length
//! and however slowly clients read, and the proxy ends when it is told to.

mod proxy;

use enforce::storage::ProxyOptions;
use proxy::{Running, Server, deployment, profile};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Starts a proxy with two loops.
fn with_loops(protocol: &str, server: SocketAddr, fields: &str) -> Running {
    let options = ProxyOptions::new("ssd", deployment(protocol, server, fields, ""), None, profile());
    Running::start(ProxyOptions { loops: 2, ..options })
}

/// Returns a value that no other client or round has.
fn value(client: usize, round: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|place| b'a' + u8::try_from((place / 7 + client * 5 + round) % 26).expect("a letter"))
        .collect()
}

/// Stores and reads values of one client, several requests at a time.
fn store_and_read(mut stream: TcpStream, client: usize) {
    for round in 0..8 {
        // From a byte to more than a window.
        let len = [1, 100, 4000, 70_000, 300_000][(client + round) % 5];
        let value = value(client, round, len);
        let mut requests = format!("set k{client} 0 0 {len}\r\n").into_bytes();
        requests.extend(&value);
        requests.extend(format!("\r\nget k{client}\r\nget k{client}\r\n").bytes());
        let mut expected = b"STORED\r\n".to_vec();
        for _ in 0..2 {
            expected.extend(format!("VALUE k{client} 0 {len}\r\n").bytes());
            expected.extend(&value);
            expected.extend(b"\r\nEND\r\n");
        }
        let mut reader = stream.try_clone().expect("a socket");
        let sender = std::thread::spawn(move || {
            stream.write_all(&requests).expect("the proxy reads");
            stream
        });
        if client.is_multiple_of(4) {
            std::thread::sleep(Duration::from_millis(30));
        }
        let mut answer = vec![0; expected.len()];
        reader.read_exact(&mut answer).expect("the proxy answers");
        assert!(answer == expected, "client {client}, round {round}: other bytes than stored");
        stream = sender.join().expect("it sends");
    }
}

#[test]
fn values_of_many_clients_stay_whole() {
    let Some(server) = Server::memcached() else { return };
    let proxy = with_loops("memcached", server.address, "outstanding = 64");
    std::thread::scope(|scope| {
        for client in 0..24 {
            let stream = proxy.connect();
            scope.spawn(move || store_and_read(stream, client));
        }
    });
    let report = proxy.drain();
    let snapshot = &report.snapshot;
    assert_eq!((snapshot.cut, snapshot.outstanding, snapshot.buffered_bytes), (0, 0, 0));
}

/// A client that has sent its last request, and reads the answer late, gets all of it.
#[test]
fn a_late_reader_gets_the_last_bytes() {
    let Some(server) = Server::memcached() else { return };
    let proxy = with_loops("memcached", server.address, "");
    let mut client = proxy.connect();
    let value = value(0, 0, 900_000);
    client.write_all(b"set k 0 0 900000\r\n").unwrap();
    client.write_all(&value).unwrap();
    client.write_all(b"\r\nget k\r\n").unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    let expected = [b"STORED\r\nVALUE k 0 900000\r\n".as_slice(), &value, b"\r\nEND\r\n"].concat();
    assert!(answer == expected, "{} bytes instead of {}", answer.len(), expected.len());
}

#[test]
fn it_ends_when_told_to() {
    let Some(server) = Server::memcached() else { return };
    let proxy = with_loops("memcached", server.address, "");
    let mut idle = proxy.connect();
    idle.write_all(b"mn\r\n").unwrap();
    idle.read_exact(&mut [0; 4]).unwrap();
    let report = proxy.stop();
    assert_eq!(idle.read(&mut [0]).unwrap(), 0, "its connection is closed");
    assert_eq!(report.snapshot.outstanding, 0);
}
