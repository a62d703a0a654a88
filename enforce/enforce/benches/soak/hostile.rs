//! Clients that attack, or that break by accident.

use crate::codec::{ClientCodec, Protocol};
use crate::world::{World, count};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;
use testkit::connect_from;

/// Attacks one after the other, until the end.
pub fn run(world: &World, protocols: &[Protocol], seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    while !world.stopped() {
        let protocol = protocols[random.random_range(0..protocols.len())];
        let proxy = random.random_range(0..world.proxies.len());
        let to = world.proxies[proxy].of(protocol);
        // Half of them connect from the address of a workload's client.
        let from = if random.random_bool(0.5) { [127, 0, 1, 1] } else { [127, 0, 9, 9] };
        if let Ok(stream) = connect_from(Ipv4Addr::from(from), to) {
            count(&world.tally.hostile, 1);
            // Errors are expected: the proxy closes hostile connections.
            let _ = harm(world, stream, protocol, &mut random);
        }
        world.pause(Duration::from_millis(random.random_range(1..60)));
    }
}

fn harm(world: &World, mut stream: TcpStream, protocol: Protocol, random: &mut StdRng) -> io::Result<()> {
    let hold = Duration::from_millis(random.random_range(0..400));
    stream.set_write_timeout(Some(Duration::from_millis(500)))?;
    stream.set_read_timeout(Some(Duration::from_millis(500)))?;
    match random.random_range(0..7) {
        // Connects and disappears.
        0 => return Ok(()),
        1 => {
            let len = random.random_range(1..5000);
            let noise: Vec<u8> = (0..len).map(|_| random.random()).collect();
            stream.write_all(&noise)?;
        }
        2 => stream.write_all(&oversized(protocol))?,
        3 => stream.write_all(&flood(protocol))?,
        4 => return slow(world, stream, protocol, random),
        // Sends valid requests, then garbage, with answers outstanding.
        5 => {
            let (_, said) = requests(&mut stream, protocol, 30)?;
            stream.write_all(&said)?;
            stream.write_all(&[0xff; 100])?;
        }
        // Stops in the middle of a request.
        _ => {
            let (_, said) = requests(&mut stream, protocol, 5)?;
            stream.write_all(&said[..random.random_range(0..said.len())])?;
        }
    }
    world.pause(hold);
    let _ = stream.read(&mut [0; 4096])?;
    Ok(())
}

/// Requests much data and reads little or none of it.
fn slow(world: &World, mut stream: TcpStream, protocol: Protocol, random: &mut StdRng) -> io::Result<()> {
    let (_talk, said) = requests(&mut stream, protocol, 300)?;
    stream.write_all(&said)?;
    for _ in 0..random.random_range(0..10) {
        world.pause(Duration::from_millis(100));
        if stream.read(&mut [0; 1000])? == 0 {
            break;
        }
    }
    Ok(())
}

/// Completes a handshake, and returns large reads that are not sent yet.
fn requests(
    stream: &mut TcpStream,
    protocol: Protocol,
    count: usize,
) -> io::Result<(Option<ClientCodec>, Vec<u8>)> {
    let mut out = Vec::new();
    match protocol {
        Protocol::Nfs => {
            // Reads of an invalid handle.
            for xid in 0..count {
                let xid = u32::try_from(xid).expect("few");
                wire::rpc::client::CallEncoder::new(&mut out, wire::rpc::client::Credentials::None).read(
                    xid,
                    b"nonsense",
                    0,
                    100_000,
                );
            }
            Ok((None, out))
        }
        Protocol::Nbd => {
            let mut codec = ClientCodec::nbd(stream, 0, false)?;
            for block in 0..count {
                codec.read(&mut out, block, 128 << 10);
            }
            Ok((Some(codec), out))
        }
        Protocol::Memcached => {
            let mut codec = ClientCodec::memcached(1);
            for block in 0..count {
                codec.read(&mut out, block / 10 * 100, 0);
            }
            Ok((Some(codec), out))
        }
    }
}

/// Returns a request that announces more than the permitted size.
fn oversized(protocol: Protocol) -> Vec<u8> {
    match protocol {
        Protocol::Nbd => {
            [&3u32.to_be_bytes()[..], b"IHAVEOPT", &[0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff]].concat()
        }
        Protocol::Memcached => [b"set big 0 0 900000000\r\n", &[7; 3_000_000][..]].concat(),
        Protocol::Nfs => 0xffff_ffff_u32.to_be_bytes().to_vec(),
    }
}

/// Returns many small fragments that never complete a request.
fn flood(protocol: Protocol) -> Vec<u8> {
    match protocol {
        Protocol::Nbd => [&3u32.to_be_bytes()[..], &b"IHAVEOPT\0\0\0\x05\0\0\0\0".repeat(40)].concat(),
        Protocol::Memcached => b"get nothing\r\n".repeat(5000),
        Protocol::Nfs => vec![0; 30_000],
    }
}
