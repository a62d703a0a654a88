//! The loop: sleep until somebody says something or the device is done with something.

use super::connection::{Connection, End, Task};
use super::store::Store;
use super::{Config, Log};
use crate::device::Device;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::net::TcpListener;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use units::Nanos;

const LISTENER: u64 = 0;
const STOP: u64 = 1;
/// Clients at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 1000;
/// Taken from a connection at a time, so that one does not keep the others waiting.
const PIECE: usize = 128 << 10;

pub(super) struct Loop {
    epoll: OwnedFd,
    listener: TcpListener,
    accepts: bool,
    /// Held open as long as epoll watches it.
    _stop: OwnedFd,
    config: Config,
    device: Device,
    stores: Vec<Store>,
    connections: BTreeMap<u64, Connection>,
    next: u64,
    /// When what is done: the instant, a number that keeps the order of submission, the connection, its task.
    done: BinaryHeap<Reverse<(Nanos, u64, u64, u64)>>,
    submitted: u64,
    start: Instant,
    scratch: Vec<u8>,
    log: Log,
}

impl Loop {
    pub(super) fn new(listener: TcpListener, stop: OwnedFd, config: Config, log: Log) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, &stop, EventData::new_u64(STOP), EventFlags::IN)?;
        Ok(Self {
            epoll,
            listener,
            accepts: true,
            _stop: stop,
            device: Device::new(config.model),
            stores: config.exports.iter().map(|_| Store::default()).collect(),
            connections: BTreeMap::new(),
            next: STOP + 1,
            done: BinaryHeap::new(),
            submitted: 0,
            start: Instant::now(),
            scratch: vec![0; PIECE],
            log,
            config,
        })
    }

    pub(super) fn run(mut self) -> io::Result<()> {
        // Timers of ordinary threads are late by 50 µs unless they ask not to be. Without it they are late.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut events: Vec<Event> = Vec::with_capacity(256);
        loop {
            self.sleep()?;
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&Timespec::default())) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.complete();
            for event in events.drain(..) {
                match event.data.u64() {
                    STOP => return Ok(()),
                    LISTENER => self.accept()?,
                    id => self.serve(id, event.flags),
                }
            }
        }
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.start.elapsed().as_nanos()).expect("a server runs less than 584 years"))
    }

    /// Until somebody says something or it is nearly time for the next completion; for ever with nothing to do.
    fn sleep(&self) -> io::Result<()> {
        let wait = self.done.peek().map(|Reverse((at, ..))| {
            let wait = at.saturating_sub(self.now()).saturating_sub(self.config.spin);
            Timespec::try_from(Duration::from_nanos(wait.0)).expect("584 years fit")
        });
        if wait == Some(Timespec::default()) {
            return Ok(());
        }
        // The timeout of epoll_wait is in milliseconds on older kernels, that of ppoll is not on any.
        match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], wait.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Answers what is done by now.
    fn complete(&mut self) {
        let now = self.now();
        while let Some(&Reverse((at, _, id, task))) = self.done.peek()
            && at <= now
        {
            self.done.pop();
            // A client that hung up takes its requests with it; the device was busy with them all the same.
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            connection.finish(task, &mut self.stores);
            self.proceed(id, Ok(()));
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        while self.connections.len() < CONNECTIONS_MAX {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    // Replies are small and never waited with.
                    let _ = stream.set_nodelay(true);
                    let id = self.next;
                    self.next += 1;
                    epoll::add(&self.epoll, &stream, EventData::new_u64(id), EventFlags::empty())?;
                    self.connections.insert(id, Connection::new(stream));
                    self.proceed(id, Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // A client that was gone before it was let in, or no descriptor left: those who are here go on.
                Err(error) => {
                    (self.log)(&format!("a client was not let in: {error}"));
                    if error.kind() == io::ErrorKind::ConnectionAborted {
                        continue;
                    }
                    break;
                }
            }
        }
        self.let_in(false)
    }

    /// Whether newcomers are looked at.
    fn let_in(&mut self, accepts: bool) -> io::Result<()> {
        if self.accepts != accepts {
            self.accepts = accepts;
            let interest = if accepts { EventFlags::IN } else { EventFlags::empty() };
            epoll::modify(&self.epoll, &self.listener, EventData::new_u64(LISTENER), interest)?;
        }
        Ok(())
    }

    fn serve(&mut self, id: u64, flags: EventFlags) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let received = if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
            Err(End::Broken("it hung up".to_owned()))
        } else if flags.contains(EventFlags::IN) {
            connection.receive(&mut self.scratch)
        } else {
            Ok(())
        };
        self.proceed(id, received);
    }

    /// What a connection can do next, after what was done last; and its end, if it comes to that.
    fn proceed(&mut self, id: u64, so_far: Result<(), End>) {
        let now = self.now();
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let (device, done, submitted) = (&mut self.device, &mut self.done, &mut self.submitted);
        let mut give = |task: Task| {
            *submitted += 1;
            done.push(Reverse((device.submit(now, task.op, task.size), *submitted, id, task.number)));
        };
        let exports = &self.config.exports;
        let step = so_far.and_then(|()| connection.go_on(exports, &mut give));
        let end = match step {
            Ok(()) if connection.is_over() => End::Done,
            Ok(()) => match self.watch(id) {
                Ok(()) => return,
                Err(error) => End::Broken(error.to_string()),
            },
            Err(end) => end,
        };
        self.close(id, &end);
    }

    /// Brings what epoll watches for up to date.
    fn watch(&mut self, id: u64) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        let wanted = connection.wanted();
        if wanted != connection.interest {
            epoll::modify(&self.epoll, &connection.stream, EventData::new_u64(id), wanted)?;
            connection.interest = wanted;
        }
        Ok(())
    }

    fn close(&mut self, id: u64, end: &End) {
        let Some(mut connection) = self.connections.remove(&id) else { return };
        match end {
            // The answer to a last word, if there is one.
            End::Done => drop(connection.send()),
            End::Broken(reason) => {
                let peer =
                    connection.stream.peer_addr().map_or_else(|_| "gone".to_owned(), |peer| peer.to_string());
                (self.log)(&format!("connection from {peer}: {reason}"));
            }
        }
        // The descriptor is closed, which removes it from epoll.
        drop(connection);
        if let Err(error) = self.let_in(true) {
            (self.log)(&format!("no more clients are let in: {error}"));
        }
    }
}
