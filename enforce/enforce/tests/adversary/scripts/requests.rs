//! Requests that cost more, or less, than they appear to.

use super::{on_threads, pipeline, pipelines};
use crate::caller::{BLOCK, Caller};
use crate::ground::{GOLD, stranger};
use crate::speech::put;
use crate::trial::Scene;
use Protocol::{Memcached, Nbd, Nfs};
use std::time::Duration;
use wire::Protocol;
use wire::nbd::protocol::{CMD_CACHE, CMD_WRITE_ZEROES};

/// Almost 4 GiB.
const HUGE: u32 = 0xffff_f000;

pub(super) fn huge_zeroes(scene: &Scene<'_>) {
    pipelines(scene, Nbd, stranger(1), (4, 32), |caller| {
        let kind = if caller.place.is_multiple_of(2) { CMD_WRITE_ZEROES } else { CMD_CACHE };
        caller.command(kind, HUGE);
    });
}

/// 200 reads at a time, all with one identifier; the proxy may drop repetitions.
pub(super) fn one_xid(scene: &Scene<'_>) {
    on_threads(scene, 1, |_| {
        let Ok(mut caller) = Caller::connect(&scene.ground.fronts, Nfs, stranger(1), b'f') else { return };
        let _ = caller.stream.set_read_timeout(Some(Duration::from_millis(20)));
        for turn in 0.. {
            for offset in 0..200 {
                caller.call(|calls, handle| calls.read(turn, handle, offset * 4096, BLOCK));
            }
            if scene.is_over() || caller.send().is_err() {
                return;
            }
            while !scene.is_over() && caller.reply().is_ok() {}
        }
    });
}

/// Calls that arrive byte by byte.
pub(super) fn fragments(scene: &Scene<'_>) {
    pipelines(scene, Nfs, stranger(1), (4, 32), |caller| {
        let mut rest = std::mem::take(&mut caller.out);
        caller.read(BLOCK);
        let whole = std::mem::take(&mut caller.out);
        let last = whole.len() - 1;
        for (at, byte) in whole.iter().enumerate().skip(4) {
            rest.extend([if at == last { 0x80 } else { 0 }, 0, 0, 1, *byte]);
        }
        caller.out = rest;
    });
}

/// Sends an NFSv4.2 COMPOUND that sets a handle, performs `operations`, and reads with `read`.
pub fn compound(caller: &mut Caller, operations: &[u32], read: u32, count: u32) {
    caller.place += 1;
    let mut body = Vec::new();
    let xid = u32::try_from(caller.place).expect("few calls");
    let number = u32::try_from(operations.len()).expect("few") / 2;
    put(&mut body, &[xid, 0, 2, 100_003, 4, 1, 0, 0, 0, 0, 0, 2, 2 + number]);
    put(&mut body, &[22, u32::try_from(caller.handle.len()).expect("short")]);
    body.extend(&caller.handle);
    body.resize(body.len().next_multiple_of(4), 0);
    put(&mut body, operations);
    put(&mut body, &[read, 0, 0, 0, 0, 0, 0, count]);
    put(&mut caller.out, &[u32::try_from(body.len()).expect("short") | 1 << 31]);
    caller.out.extend(body);
}

pub(super) fn read_plus(scene: &Scene<'_>) {
    pipelines(scene, Nfs, stranger(1), (4, 32), |caller| compound(caller, &[], 68, 64 << 10));
}

/// GETXATTR of an empty name, which no decoder of version 4.1 knows.
pub(super) fn unknown_operation(scene: &Scene<'_>) {
    pipelines(scene, Nfs, stranger(1), (4, 32), |caller| compound(caller, &[72, 0], 25, 64 << 10));
}

pub(super) fn getattr_flood(scene: &Scene<'_>) {
    pipelines(scene, Nfs, stranger(1), (4, 32), Caller::sync);
}

pub(super) fn flush_flood(scene: &Scene<'_>) {
    pipelines(scene, Nbd, stranger(1), (4, 32), Caller::sync);
}

pub(super) fn large_values(scene: &Scene<'_>) {
    pipelines(scene, Memcached, stranger(1), (4, 250), |caller| caller.read(1 << 20));
}

pub(super) fn multi_gets(scene: &Scene<'_>) {
    pipelines(scene, Memcached, stranger(1), (4, 4), |caller| {
        caller.place += 1;
        let keys: Vec<Vec<u8>> =
            (0..250).map(|number| format!("f{}.100", caller.place * 1000 + number).into_bytes()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        wire::memcached::client::get(&mut caller.out, &keys);
    });
}

pub(super) fn tiny_pipeline(scene: &Scene<'_>) {
    pipelines(scene, Nbd, stranger(1), (4, 4096), |caller| caller.read(1));
}

pub(super) fn tiny_pipeline_memcached(scene: &Scene<'_>) {
    pipelines(scene, Memcached, stranger(1), (4, 4096), |caller| caller.read(1));
}

/// The workload itself makes requests that are refused, on another connection, while others flood.
fn beside_flood(scene: &Scene<'_>, protocol: Protocol, ask: impl Fn(&mut Caller) + Sync) {
    on_threads(scene, 5, |number| {
        while !scene.is_over() {
            if number > 0 {
                let _ = pipeline(scene, protocol, stranger(1), 32, &|caller: &mut Caller| caller.read(BLOCK));
            } else {
                let _ = ask_now_and_then(scene, protocol, &ask);
            }
        }
    });
}

fn ask_now_and_then(
    scene: &Scene<'_>,
    protocol: Protocol,
    ask: &impl Fn(&mut Caller),
) -> std::io::Result<()> {
    let mut caller = Caller::connect(&scene.ground.fronts, protocol, GOLD, b'g')?;
    while !scene.is_over() {
        ask(&mut caller);
        caller.send()?;
        // With exhausted limits it may never be answered.
        scene.pause(Duration::from_millis(100));
    }
    Ok(())
}

pub(super) fn own_huge_reads(scene: &Scene<'_>) {
    beside_flood(scene, Nfs, |caller| {
        caller.place += 1;
        let xid = u32::try_from(caller.place).expect("few calls");
        caller.call(|calls, _| calls.read(xid, b"bad", 0, u32::MAX));
    });
}

pub(super) fn own_huge_zeroes(scene: &Scene<'_>) {
    beside_flood(scene, Nbd, |caller| {
        let kind = if caller.place.is_multiple_of(2) { CMD_WRITE_ZEROES } else { CMD_CACHE };
        caller.command(kind, HUGE);
    });
}
