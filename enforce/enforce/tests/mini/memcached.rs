//! memcached's text and meta commands, as far as tests use them. Some keys make it misbehave.

use super::Store;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering::SeqCst;

pub(super) fn serve(stream: &mut TcpStream, store: &Store) -> io::Result<()> {
    let mut input = BufReader::new(stream.try_clone()?);
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return stream.shutdown(Shutdown::Write);
        }
        if line == "version\r\n" {
            // The proxy's own, behind requests without a reply.
            stream.write_all(b"VERSION 1.6\r\n")?;
            continue;
        }
        store.seen.fetch_add(1, SeqCst);
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words[..] {
            ["get", "never"] => continue,
            ["get", "close"] => return stream.shutdown(Shutdown::Both),
            ["get", "reset"] => {
                rustix::net::sockopt::set_socket_linger(&*stream, Some(std::time::Duration::ZERO))?;
                return Ok(());
            }
            ["get", "garbage"] => vec![0xfe; 300],
            ["get", "twice"] => b"END\r\nEND\r\n".to_vec(),
            ["get", "half"] => {
                stream.write_all(b"VALUE half 0 1000\r\nonly a part")?;
                return stream.shutdown(Shutdown::Both);
            }
            ["get", key] => {
                if key == "hold" {
                    store.hold();
                }
                value(store, key, "VALUE ", " 0", "END\r\n")
            }
            ["mg", key, "v"] => value(store, key, "VA", "", "EN\r\n"),
            ["mn"] => b"MN\r\n".to_vec(),
            ["ms", key, len] => set(store, &mut input, key, len, b"HD\r\n")?,
            ["set", key, _, _, len] => set(store, &mut input, key, len, b"STORED\r\n")?,
            ["set", key, _, _, len, "noreply"] => set(store, &mut input, key, len, b"")?,
            _ => b"ERROR\r\n".to_vec(),
        };
        stream.write_all(&answer)?;
    }
}

fn set(store: &Store, input: &mut impl Read, key: &str, len: &str, said: &[u8]) -> io::Result<Vec<u8>> {
    let mut data = super::take(input, len.parse::<usize>().map_err(io::Error::other)? + 2)?;
    data.truncate(data.len() - 2);
    if !store.drops_write() {
        store.values.lock().unwrap().insert(key.as_bytes().to_vec(), data);
    }
    Ok(said.to_vec())
}

/// `head`, the key in classic commands, flags, length, value; `end` behind it, or alone.
fn value(store: &Store, key: &str, head: &str, flags: &str, end: &str) -> Vec<u8> {
    let data = store.values.lock().unwrap().get(key.as_bytes()).cloned();
    let Some(data) = data else { return end.as_bytes().to_vec() };
    let data = store.read(data);
    let classic = head == "VALUE ";
    let name = if classic { key } else { "" };
    let mut out = format!("{head}{name}{flags} {}\r\n", data.len()).into_bytes();
    out.extend(&data);
    out.extend(b"\r\n");
    out.extend(if classic { end.as_bytes() } else { b"" });
    out
}
