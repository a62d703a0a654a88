//! Clients that stop in the middle, go away, or are slow; policies that change.

use super::on_threads;
use crate::caller::{BLOCK, Caller};
use crate::ground::{stranger, usual_policy};
use crate::proxy::policy;
use crate::trial::Scene;
use rustix::net::sockopt::set_socket_linger;
use std::io::{self, Read, Write};
use std::time::Duration;
use wire::Protocol::{self, Memcached, Nbd, Nfs};

fn connect(scene: &Scene<'_>, protocol: Protocol, number: u8) -> io::Result<Caller> {
    Caller::connect(&scene.ground.fronts, protocol, stranger(number), b'f')
}

/// 900 connections with 256 requests each hang up at once.
pub(super) fn hang_up(scene: &Scene<'_>) {
    while !scene.is_over() {
        // Done first: otherwise their handshakes would wait behind the requests of the others.
        let mut callers: Vec<Caller> = (0..900)
            .take_while(|_| !scene.is_over())
            .filter_map(|number| connect(scene, Nbd, u8::try_from(number % 200).expect("small")).ok())
            .collect();
        for caller in &mut callers {
            (0..256).for_each(|_| caller.read(BLOCK));
            let _ = caller.send();
        }
        scene.set_ready();
        scene.pause(Duration::from_millis(150));
        for caller in &callers {
            let _ = set_socket_linger(&caller.stream, Some(Duration::ZERO));
        }
        drop(callers);
        scene.pause(Duration::from_millis(400));
    }
}

/// Writes of 8 MiB that stop after a quarter, on 16 connections, repeatedly.
fn stop_in_writes(scene: &Scene<'_>, protocol: Protocol, size: usize, sent: usize) {
    on_threads(scene, 16, |_| {
        while !scene.is_over() {
            let Ok(mut caller) = connect(scene, protocol, 1) else { continue };
            caller.write(&vec![7; size]);
            let _ = caller.stream.write_all(&caller.out[..sent]);
            scene.pause(Duration::from_millis(300));
        }
    });
}

pub(super) fn half_writes(scene: &Scene<'_>) {
    stop_in_writes(scene, Nbd, 8 << 20, 2 << 20);
}

/// An NFS record has 4 MiB at most.
pub(super) fn half_writes_nfs(scene: &Scene<'_>) {
    stop_in_writes(scene, Nfs, 3 << 20, 2 << 20);
}

/// Requests much data, reads a little of it, and resets the connection.
pub(super) fn resets_in_replies(scene: &Scene<'_>) {
    on_threads(scene, 8, |_| {
        while !scene.is_over() {
            let Ok(mut caller) = connect(scene, Nbd, 1) else { continue };
            (0..16).for_each(|_| caller.read(256 << 10));
            let _ = (caller.send(), caller.stream.read(&mut [0; 1000]));
            let _ = set_socket_linger(&caller.stream, Some(Duration::ZERO));
        }
    });
}

/// Reads no replies.
pub(super) fn slow_readers(scene: &Scene<'_>) {
    on_threads(scene, 16, |number| {
        let mut kept = Vec::new();
        while !scene.is_over() {
            if let Ok(mut caller) = connect(scene, Nbd, u8::try_from(number).expect("few")) {
                (0..64).for_each(|_| caller.read(1 << 20));
                let _ = caller.send();
                kept.push(caller);
            }
            scene.pause(Duration::from_millis(250));
        }
    });
}

/// Connections that request much data, read nothing, and are replaced by others before they are cut off.
pub(super) fn stallers(scene: &Scene<'_>) {
    on_threads(scene, 32, |number| {
        let number = u8::try_from(number).expect("few");
        while !scene.is_over() {
            let Ok(mut caller) = connect(scene, Nbd, number) else { continue };
            (0..64).for_each(|_| caller.read(1 << 20));
            let _ = caller.send();
            scene.pause(Duration::from_millis(40));
            let _ = set_socket_linger(&caller.stream, Some(Duration::ZERO));
        }
    });
}

/// Values that arrive in small pieces.
pub(super) fn slow_writers(scene: &Scene<'_>) {
    on_threads(scene, 16, |_| {
        while !scene.is_over() {
            let _ = write_slowly(scene);
        }
    });
}

fn write_slowly(scene: &Scene<'_>) -> io::Result<()> {
    let mut caller = connect(scene, Memcached, 1)?;
    caller.write(&vec![7; 3 << 20]);
    let (fast, slow) = caller.out.split_at(2 << 20);
    caller.stream.write_all(fast)?;
    for piece in slow.chunks(10_000) {
        if scene.is_over() {
            break;
        }
        caller.stream.write_all(piece)?;
        scene.pause(Duration::from_millis(20));
    }
    Ok(())
}

/// A flood, and another policy every 10 ms.
pub(super) fn policy_changes(scene: &Scene<'_>) {
    on_threads(scene, 5, |number| {
        let mut turn = 0;
        while !scene.is_over() {
            if number > 0 {
                let read = |caller: &mut Caller| caller.read(BLOCK);
                let _ = super::pipeline(scene, Nbd, stranger(1), 32, &read);
                continue;
            }
            turn += 1;
            let other = policy(&[("gold", turn % 3, &[(0.99, 0.3)]), ("bronze", 4, &[])]);
            let next = if turn % 2 == 0 { usual_policy() } else { other };
            scene.ground.handle.configure(Some(next), None).expect("it is a policy");
            scene.pause(Duration::from_millis(10));
        }
    });
}
