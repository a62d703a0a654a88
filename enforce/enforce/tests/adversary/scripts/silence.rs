//! Requests without answers, and answers that are not requests.

use super::on_threads;
use crate::caller::Caller;
use crate::ground::stranger;
use crate::trial::Scene;
use std::io::{self, Write};
use std::time::Duration;
use wire::Protocol::{Memcached, Nfs};

/// Commands that memcached does not answer.
const SILENT: &str =
    "lru mode segmented noreply\r\nlru tune 10 25 0.1 2.0 noreply\r\nslabs automove 1 noreply\r\n";

/// Returns 6 kB of them.
pub fn silent_text() -> Vec<u8> {
    SILENT.repeat(70).into_bytes()
}

fn connect(scene: &Scene<'_>) -> io::Result<Caller> {
    Caller::connect(&scene.ground.fronts, Memcached, stranger(1), b'f')
}

/// Sends the same bytes on one connection after the other; the last stays until the end.
fn say_again(scene: &Scene<'_>, said: &(dyn Fn() -> Vec<u8> + Sync), each: Duration) {
    on_threads(scene, 1, |_| {
        let mut kept = Vec::new();
        while !scene.is_over() {
            if let Ok(mut caller) = connect(scene) {
                let _ = caller.stream.write_all(&said());
                kept.push(caller);
            }
            scene.pause(each);
        }
    });
}

pub(super) fn silent_commands(scene: &Scene<'_>) {
    say_again(scene, &silent_text, Duration::from_millis(400));
}

/// Returns 1,000 quiet gets that miss, and a no-op.
pub fn quiet_gets_text() -> Vec<u8> {
    let mut said: Vec<u8> = (0..1000).flat_map(|key| format!("mg fmiss{key} v q\r\n").into_bytes()).collect();
    said.extend(b"mn\r\n");
    said
}

pub(super) fn quiet_gets(scene: &Scene<'_>) {
    say_again(scene, &quiet_gets_text, Duration::from_millis(100));
}

/// Returns 1,000 sets without replies.
fn noreply_sets_text() -> Vec<u8> {
    let mut said = Vec::new();
    for key in 0..1000 {
        let key = format!("f{key}.100");
        let confirm = wire::memcached::client::Confirmation::NoReply;
        wire::memcached::client::set(&mut said, key.as_bytes(), 0, 0, &[7; 100], confirm);
    }
    said
}

pub(super) fn noreply_sets(scene: &Scene<'_>) {
    say_again(scene, &noreply_sets_text, Duration::from_millis(100));
}

/// An NFS client with a backlog of requests, which the server calls: the answer must not wait behind
/// them.
pub(super) fn callback_behind_backlog(scene: &Scene<'_>) {
    on_threads(scene, 1, |_| {
        let Ok(mut caller) = Caller::connect(&scene.ground.fronts, Nfs, stranger(1), b'f') else { return };
        caller.call(|calls, _| calls.null(0xcb));
        caller.place = 1000;
        for _ in 0..250 {
            caller.read(256 << 10);
        }
        if caller.send().is_err() {
            return;
        }
        while !scene.is_over() && caller.reply().is_ok() {
            caller.read(256 << 10);
            if caller.send().is_err() {
                return;
            }
        }
    });
}
