//! Requests that a server refuses, directly and through the proxy: what the server answers and survives, the proxy
//! answers and survives, and whatever came before a broken request is answered.

mod conversation;
mod memcached;
#[path = "../proxy/mod.rs"]
mod proxy;
mod resp;

use conversation::{connect, hear};
use enforce::storage::ProxyOptions;
use proxy::{Running, Server};
use std::io::{Read, Write};
use std::time::Duration;

/// Keys that are not there cost as much as others: by the profile of the tests a millisecond for each, of which half a
/// second is allowed per second. The machine can only make it slower.
#[test]
fn lookups_of_missing_keys_keep_the_limit() {
    let keys: String = (0..800).map(|number| format!(" none{number}")).collect();
    // 800 keys in parts of 64, whose first key costs an eighth of a millisecond; the last may begin on credit.
    missing_keys("memcached", Server::memcached(), &format!("get{keys}\r\nmn\r\n"), "END\r\nMN\r\n");
    // Commands of Redis are not split.
    let keys: Vec<String> = (0..832).map(|number| format!(" none{number}")).collect();
    let said: String = keys.chunks(64).map(|keys| format!("MGET{}\r\n", keys.concat())).collect();
    let nothing = format!("*64\r\n{}", "$-1\r\n".repeat(64)).repeat(13);
    missing_keys("resp", Server::redis(), &format!("{said}PING\r\n"), &format!("{nothing}+PONG\r\n"));
}

fn missing_keys(protocol: &str, server: Option<Server>, said: &str, expected: &str) {
    let Some(server) = server else { return };
    let clients = "[[client]]\nworkload = \"w\"\nhost = \"here\"";
    let deployment = proxy::deployment(protocol, server.address, "over = \"queue\"", clients);
    let policy = proxy::policy(&[("w", 0, &[(0.5, 0.1)])]);
    let proxy = Running::start(ProxyOptions::new("ssd", deployment, Some(policy), proxy::profile()));
    let mut stream = connect(proxy.connect());
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let begin = std::time::Instant::now();
    stream.write_all(said.as_bytes()).unwrap();
    let mut heard = Vec::new();
    hear(&mut stream, &mut heard, &expected.as_bytes()[expected.len() - 4..]).unwrap();
    assert_eq!(String::from_utf8_lossy(&heard), expected);
    let least = (0.8 - 13.0 * 0.9 / 1000.0 - 0.1 - 0.064) / 0.5;
    assert!(begin.elapsed().as_secs_f64() >= least, "{protocol}: {:?} for {least} s", begin.elapsed());
}

/// Requests of NBD in front of garbage are answered, and so is a read that is larger than the usual 32 MiB.
#[test]
fn nbd_requests_before_garbage_are_answered() {
    let Some(server) = Server::nbdkit("memory 128M") else { return };
    let proxy = Running::plain("nbd", server.address);
    let mut stream = proxy::nbd(proxy.address, "");
    let mut request = Vec::new();
    (0..100).for_each(|cookie| wire::nbd::client::read(&mut request, cookie, 0, 512));
    wire::nbd::client::read(&mut request, 100, 0, 48 << 20);
    request.extend([0; 28]);
    stream.write_all(&request).unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    assert_eq!(heard.len(), 101 * 16 + 100 * 512 + (48 << 20), "every read is answered before the end");
}
