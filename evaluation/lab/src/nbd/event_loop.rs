//! The thread of the server: it sleeps until a socket is ready or a request is complete at the device.

use super::config::{ConnectionLog, NbdServerConfig};
use super::connection::{ClientConnection, ConnectionEnd, DeviceTask};
use super::sparse_volume::SparseVolume;
use crate::device::EmulatedSsd;
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

/// The epoll tokens. Connections have theirs counted from [`FIRST_CONNECTION`] and never reused, so that an event or a
/// completion for a connection that was closed finds none.
const LISTENER: u64 = 0;
const STOP: u64 = 1;
const FIRST_CONNECTION: u64 = 2;
/// The largest number of connected clients; more wait to be accepted.
const CONNECTIONS_MAX: usize = 1000;
/// Bytes read from a connection at a time, limited so that one client does not delay the others.
const READ_MAX: usize = 128 << 10;
/// Events fetched from epoll at a time.
const EVENTS_MAX: usize = 256;

/// A request at the device. Ordered by the instant of completion, and then by submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ScheduledCompletion {
    instant: Nanos,
    submission: u64,
    connection: u64,
    /// The number of the command in its connection.
    task: u64,
}

/// The server's sockets, its device, and the volumes.
pub(super) struct DeviceEventLoop {
    epoll: OwnedFd,
    listener: TcpListener,
    /// True if epoll watches the listener.
    is_accepting: bool,
    /// Kept open as long as epoll watches it.
    _stop: OwnedFd,
    config: NbdServerConfig,
    device: EmulatedSsd,
    /// The bytes of the exports, in their order.
    volumes: Vec<SparseVolume>,
    connections: BTreeMap<u64, ClientConnection>,
    next_connection: u64,
    completions: BinaryHeap<Reverse<ScheduledCompletion>>,
    submissions: u64,
    /// The zero of the device's clock.
    start: Instant,
    scratch: Vec<u8>,
    log: ConnectionLog,
}

impl DeviceEventLoop {
    /// Watches the listener, and `stop`, which ends the loop when it becomes readable.
    pub(super) fn new(
        listener: TcpListener,
        stop: OwnedFd,
        config: NbdServerConfig,
        log: ConnectionLog,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, &stop, EventData::new_u64(STOP), EventFlags::IN)?;
        Ok(Self {
            epoll,
            listener,
            is_accepting: true,
            _stop: stop,
            device: EmulatedSsd::new(config.model),
            volumes: config.exports.iter().map(|_| SparseVolume::default()).collect(),
            connections: BTreeMap::new(),
            next_connection: FIRST_CONNECTION,
            completions: BinaryHeap::new(),
            submissions: 0,
            start: Instant::now(),
            scratch: vec![0; READ_MAX],
            log,
            config,
        })
    }

    /// Serves until it is stopped.
    pub(super) fn run(mut self) -> io::Result<()> {
        // Timers of ordinary threads fire up to 50 µs late unless the thread asks for less. A refusal costs only that.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_MAX);
        loop {
            self.sleep()?;
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&Timespec::default())) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.complete_due();
            for event in events.drain(..) {
                match event.data.u64() {
                    STOP => return Ok(()),
                    LISTENER => self.accept()?,
                    id => self.handle_event(id, event.flags),
                }
            }
        }
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.start.elapsed().as_nanos()).expect("a server runs less than 584 years"))
    }

    /// Sleeps until a socket is ready or the next completion is due, less the time to spin; for ever when the device is
    /// idle.
    fn sleep(&self) -> io::Result<()> {
        let timeout = self.completions.peek().map(|Reverse(next)| {
            let wait = next.instant.saturating_sub(self.now()).saturating_sub(self.config.spin);
            Timespec::try_from(Duration::from_nanos(wait.0)).expect("584 years fit")
        });
        if timeout == Some(Timespec::default()) {
            return Ok(());
        }
        // On older kernels the timeout of epoll_wait is in milliseconds; that of ppoll is in nanoseconds on all.
        match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Answers the requests that are complete by now.
    fn complete_due(&mut self) {
        let now = self.now();
        while let Some(&Reverse(next)) = self.completions.peek()
            && next.instant <= now
        {
            self.completions.pop();
            // A client that hung up is not answered; the device was busy with its requests all the same.
            let Some(connection) = self.connections.get_mut(&next.connection) else { continue };
            connection.complete(next.task, &mut self.volumes);
            self.advance(next.connection, Ok(()));
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        while self.connections.len() < CONNECTIONS_MAX {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    // Replies are small and must not wait for acknowledgements. A refusal costs only latency.
                    let _ = stream.set_nodelay(true);
                    let id = self.next_connection;
                    self.next_connection += 1;
                    epoll::add(&self.epoll, &stream, EventData::new_u64(id), EventFlags::empty())?;
                    self.connections.insert(id, ClientConnection::new(stream));
                    self.advance(id, Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The client hung up before accept, or descriptors ran out: present clients go on.
                Err(error) => {
                    (self.log)(&format!("a client was not let in: {error}"));
                    if error.kind() == io::ErrorKind::ConnectionAborted {
                        continue;
                    }
                    break;
                }
            }
        }
        self.set_accepting(false)
    }

    /// Watches the listener or leaves new clients in its backlog.
    fn set_accepting(&mut self, is_accepting: bool) -> io::Result<()> {
        if self.is_accepting != is_accepting {
            self.is_accepting = is_accepting;
            let interest = if is_accepting { EventFlags::IN } else { EventFlags::empty() };
            epoll::modify(&self.epoll, &self.listener, EventData::new_u64(LISTENER), interest)?;
        }
        Ok(())
    }

    fn handle_event(&mut self, id: u64, flags: EventFlags) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let received = if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
            Err(ConnectionEnd::Broken("it hung up".to_owned()))
        } else if flags.contains(EventFlags::IN) {
            connection.receive(&mut self.scratch)
        } else {
            Ok(())
        };
        self.advance(id, received);
    }

    /// Advances a connection as far as possible, unless `previous` has ended it, and closes it at its
    /// end.
    fn advance(&mut self, id: u64, previous: Result<(), ConnectionEnd>) {
        let now = self.now();
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let device = &mut self.device;
        let completions = &mut self.completions;
        let submissions = &mut self.submissions;
        let mut submit = |task: DeviceTask| {
            *submissions += 1;
            completions.push(Reverse(ScheduledCompletion {
                instant: device.submit(now, task.op, task.size),
                submission: *submissions,
                connection: id,
                task: task.number,
            }));
        };
        let advanced = previous.and_then(|()| connection.advance(&self.config.exports, &mut submit));
        let end = match advanced {
            Ok(()) if connection.is_finished() => ConnectionEnd::Finished,
            Ok(()) => match self.update_interest(id) {
                Ok(()) => return,
                Err(error) => ConnectionEnd::Broken(error.to_string()),
            },
            Err(end) => end,
        };
        self.close(id, &end);
    }

    /// Tells epoll which events the connection waits for now.
    fn update_interest(&mut self, id: u64) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        let wanted = connection.wanted_events();
        if wanted != connection.interest {
            epoll::modify(&self.epoll, &connection.stream, EventData::new_u64(id), wanted)?;
            connection.interest = wanted;
        }
        Ok(())
    }

    fn close(&mut self, id: u64, end: &ConnectionEnd) {
        let Some(mut connection) = self.connections.remove(&id) else { return };
        match end {
            // The reply to an ABORT may still be unsent; the client need not wait for it.
            ConnectionEnd::Finished => drop(connection.send()),
            ConnectionEnd::Broken(reason) => {
                let peer =
                    connection.stream.peer_addr().map_or_else(|_| "gone".to_owned(), |peer| peer.to_string());
                (self.log)(&format!("connection from {peer}: {reason}"));
            }
        }
        // This closes the descriptor, which removes it from epoll.
        drop(connection);
        if let Err(error) = self.set_accepting(true) {
            (self.log)(&format!("no more clients are let in: {error}"));
        }
    }
}
