//! Many connections.

use super::on_threads;
use crate::caller::{BLOCK, Caller};
use crate::ground::stranger;
use crate::trial::Scene;
use std::io::Write;
use std::time::Duration;
use testkit::connect_from;
use wire::Protocol::Nbd;

/// Connects, makes one request, and leaves.
pub(super) fn churn(scene: &Scene<'_>) {
    on_threads(scene, 4, |_| {
        while !scene.is_over() {
            let Ok(mut caller) = Caller::connect(&scene.ground.fronts, Nbd, stranger(1), b'f') else {
                continue;
            };
            caller.read(BLOCK);
            let _ = (caller.send(), caller.reply());
        }
    });
}

/// Opens as many connections as possible from this many addresses, and sends `said` on each.
fn occupy(scene: &Scene<'_>, count: u8, said: &[u8]) {
    let mut kept = Vec::new();
    for number in (0..1024).map(|turn| turn % u32::from(count)) {
        let from = stranger(u8::try_from(number).expect("below a byte"));
        if let Ok(mut stream) = connect_from(from, scene.ground.fronts.of(Nbd)) {
            let _ = stream.write_all(said);
            kept.push(stream);
        }
    }
    scene.pause(Duration::from_millis(100));
    scene.set_ready();
    while !scene.is_over() {
        scene.pause(Duration::from_millis(10));
    }
}

pub(super) fn idle_connections(scene: &Scene<'_>) {
    occupy(scene, 1, b"");
}

/// No address has many of the connections.
pub(super) fn idle_from_everywhere(scene: &Scene<'_>) {
    occupy(scene, 250, b"");
}

/// With half an option sent.
pub(super) fn half_open(scene: &Scene<'_>) {
    occupy(scene, 1, b"\0\0\0\x03IHAVEOPT\0\0");
}

/// 3,000 clients at a time, most of which find no place; the priority client was connected before.
pub(super) fn turned_away(scene: &Scene<'_>) {
    scene.set_ready();
    // By then the priority client is connected.
    scene.pause(Duration::from_millis(100));
    on_threads(scene, 2, |number| {
        let from = stranger(u8::try_from(number).expect("few"));
        while !scene.is_over() {
            let kept: Vec<_> = (0..1500)
                .take_while(|_| !scene.is_over())
                .filter_map(|_| connect_from(from, scene.ground.fronts.of(Nbd)).ok())
                .collect();
            drop(kept);
        }
    });
}
