//! A proxy of one connection that recognises what passes.

#![allow(unreachable_pub)]

use super::common::{Side, Watch};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use wire::RequestClass;

/// Both kinds of sockets.
pub trait Duplex: Read + Write + Send + 'static {
    fn twin(&self) -> Self;
    fn end(&self);
    /// In both directions, so that nobody waits for what will not come.
    fn cut(&self);
}

macro_rules! duplex {
    ($socket:ty) => {
        impl Duplex for $socket {
            fn twin(&self) -> Self {
                self.try_clone().unwrap()
            }
            fn end(&self) {
                let _ = self.shutdown(Shutdown::Write);
            }
            fn cut(&self) {
                let _ = self.shutdown(Shutdown::Both);
            }
        }
    };
}

duplex!(UnixStream);
duplex!(TcpStream);

pub struct Relay {
    up: JoinHandle<u64>,
    down: JoinHandle<u64>,
    watch: Arc<Mutex<Watch>>,
}

impl Relay {
    /// From `near`, the client, to `far`, the server, and back.
    pub fn start<S: Duplex>(near: S, far: S, watch: Watch) -> Self {
        let watch = Arc::new(Mutex::new(watch));
        let up = forward(near.twin(), far.twin(), Side::Client, watch.clone());
        let down = forward(far, near, Side::Server, watch.clone());
        Self { up, down, watch }
    }

    /// Waits for both ends; every byte must have been in a frame.
    pub fn finish(self) -> Watch {
        let bytes = self.up.join().unwrap() + self.down.join().unwrap();
        let watch = Arc::into_inner(self.watch).unwrap().into_inner().unwrap();
        assert!(watch.is_drained(), "nothing is left over");
        assert_eq!(watch.passed, bytes, "every byte is accounted for");
        watch
    }
}

/// One direction: what is read is recognised first, then passed on.
fn forward<S: Duplex>(mut from: S, mut to: S, side: Side, watch: Arc<Mutex<Watch>>) -> JoinHandle<u64> {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 100_000];
        let mut count = 0;
        loop {
            let read = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            count += read as u64;
            let fed = watch.lock().map(|mut watch| watch.feed(side, &buffer[..read]));
            if !matches!(fed, Ok(Ok(()))) {
                from.cut();
                to.cut();
                panic!("what {side:?} says is not well-formed: {fed:?}");
            }
            if to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        to.end();
        count
    })
}

/// Bytes read and written by the requests of all connections.
pub fn moved(watches: &[Watch]) -> (u64, u64) {
    let requests = watches.iter().flat_map(Watch::requests);
    requests.fold((0, 0), |(read, written), request| match request.class {
        RequestClass::Read(bytes) => (read + bytes.0, written),
        RequestClass::Write(bytes) => (read, written + bytes.0),
        RequestClass::Control => (read, written),
    })
}
