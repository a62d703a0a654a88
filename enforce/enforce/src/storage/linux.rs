//! The machine that the proxy runs on: sockets, `epoll` and the monotonic clock, behind [`System`].

use super::busy_poll::BusyPoll;
use super::connector::BegunConnection;
use super::control::CommandWaker;
use super::descriptors::{self, DescriptorReserve};
use super::event_token::{self, EventSource};
use super::listener::FrontListener;
use super::proxy_header;
use super::reserved_ports::PortLease;
use super::system::{ProxyStream, StreamInterest, StreamToken, System, SystemEvent};
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::net::sockopt;
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Instant;

/// Maximum number of events per round, of which the engine handles the most urgent.
const EVENTS_PER_ROUND: usize = 512;
const HUNG_UP: epoll::EventFlags = epoll::EventFlags::HUP.union(epoll::EventFlags::ERR);

/// Sockets, `epoll` and the clock of this machine.
#[derive(Debug)]
pub(super) struct LinuxSystem {
    epoll: OwnedFd,
    listeners: Vec<FrontListener>,
    waker: CommandWaker,
    busy_poll: BusyPoll,
    started: Instant,
    reserve: DescriptorReserve,
    /// Local address that accepted the latest client; announced to the server.
    accepted_at: Option<SocketAddr>,
}

/// A TCP connection, with its registration in `epoll`.
#[derive(Debug)]
pub(super) struct LinuxStream {
    socket: TcpStream,
    is_watched: bool,
    /// PROXY header to send to the server before the client's first byte.
    announcement: Vec<u8>,
    /// Port below 1024 held by the connection, if the server requires one.
    _port: Option<PortLease>,
}

impl LinuxStream {
    pub(super) fn socket(&self) -> &TcpStream {
        &self.socket
    }
}

impl LinuxSystem {
    /// Creates a system with these listeners and the waker for commands of other threads.
    ///
    /// # Errors
    /// When the process may open no more files.
    pub(super) fn new(
        listeners: Vec<FrontListener>,
        waker: CommandWaker,
        busy_poll_max_ns: u64,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(
            &epoll,
            waker.descriptor(),
            epoll::EventData::new_u64(event_token::WAKER),
            epoll::EventFlags::IN,
        )?;
        for (number, front) in listeners.iter().enumerate() {
            let token = epoll::EventData::new_u64(event_token::listener_token(number));
            epoll::add(&epoll, &front.listener, token, epoll::EventFlags::IN)?;
        }
        // On a single CPU the polled event cannot occur while the proxy polls.
        let has_one_cpu = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1);
        Ok(Self {
            reserve: DescriptorReserve::new(&epoll),
            epoll,
            listeners,
            waker,
            busy_poll: BusyPoll::new(if has_one_cpu { 0 } else { busy_poll_max_ns }),
            started: Instant::now(),
            accepted_at: None,
        })
    }

    /// Returns the listening addresses.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|front| front.listener.local_addr().ok()).collect()
    }

    /// Returns the fronts with their listeners; none once the proxy drains.
    pub(super) fn fronts(&self) -> &[FrontListener] {
        &self.listeners
    }

    /// Returns the stream of a connection of another proxy, to a client or to the server behind a front.
    pub(super) fn adopt(&mut self, socket: TcpStream, front: usize, is_to_server: bool) -> LinuxStream {
        let front = self.listeners.get_mut(front).filter(|_| is_to_server);
        let port = front.and_then(|front| front.connector.lease_again(&socket));
        LinuxStream { socket, is_watched: false, announcement: Vec::new(), _port: port }
    }

    fn event(&self, token: u64, flags: epoll::EventFlags) -> SystemEvent {
        match EventSource::from_token(token) {
            EventSource::Waker => {
                self.waker.reset();
                SystemEvent::Orders
            }
            EventSource::Listener(number) => SystemEvent::Incoming(number),
            EventSource::Stream(token) => SystemEvent::Stream {
                token,
                readable: flags.contains(epoll::EventFlags::IN),
                writable: flags.contains(epoll::EventFlags::OUT),
                hung_up: flags.intersects(HUNG_UP),
            },
        }
    }
}

impl System for LinuxSystem {
    type Stream = LinuxStream;

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn accept(&mut self, front: usize) -> io::Result<(LinuxStream, SocketAddr)> {
        let Some(front) = self.listeners.get(front) else { return Err(io::ErrorKind::WouldBlock.into()) };
        let (socket, peer) = self.reserve.open(|| front.listener.accept())?;
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        // Detects a client whose machine has disappeared, so that its session is released eventually.
        sockopt::set_socket_keepalive(&socket, true)?;
        if front.connector.announces {
            // A front may listen at all addresses of the host, so the socket's own address is read.
            self.accepted_at = Some(socket.local_addr()?);
        }
        Ok((LinuxStream { socket, is_watched: false, announcement: Vec::new(), _port: None }, peer))
    }

    fn restore_reserve(&mut self) -> bool {
        self.reserve.restore(&self.epoll)
    }

    fn clients_max(&self) -> u64 {
        descriptors::clients_max()
    }

    fn report_clients(&mut self, are_reported: bool) {
        let flags = if are_reported { epoll::EventFlags::IN } else { epoll::EventFlags::empty() };
        for (number, front) in self.listeners.iter().enumerate() {
            let token = epoll::EventData::new_u64(event_token::listener_token(number));
            // The listener was registered, so this cannot fail.
            let _ = epoll::modify(&self.epoll, &front.listener, token, flags);
        }
    }

    fn may_share(&self, front: usize) -> bool {
        self.listeners.get(front).is_some_and(|front| front.connector.may_share())
    }

    fn connect(&mut self, front: usize, client: Option<SocketAddr>) -> io::Result<LinuxStream> {
        let front = self.listeners.get_mut(front).ok_or(io::ErrorKind::NotConnected)?;
        let announcement = match (client, self.accepted_at.filter(|_| front.connector.announces)) {
            (Some(client), Some(address)) => proxy_header::on_behalf_of(client, address),
            _ => Vec::new(),
        };
        let BegunConnection { socket, port } = self.reserve.open(|| front.connector.begin(client))?;
        socket.set_nodelay(true)?;
        Ok(LinuxStream { socket, is_watched: false, announcement, _port: port })
    }

    fn watch(
        &mut self,
        stream: &mut LinuxStream,
        token: StreamToken,
        interest: StreamInterest,
    ) -> io::Result<()> {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, interest.readable);
        flags.set(epoll::EventFlags::OUT, interest.writable);
        let token = epoll::EventData::new_u64(event_token::stream_token(token));
        if stream.is_watched {
            epoll::modify(&self.epoll, &stream.socket, token, flags)?;
        } else {
            epoll::add(&self.epoll, &stream.socket, token, flags)?;
            stream.is_watched = true;
        }
        Ok(())
    }

    fn unwatch(&mut self, stream: &mut LinuxStream) {
        if std::mem::take(&mut stream.is_watched) {
            // The socket was registered, so this cannot fail.
            let _ = epoll::delete(&self.epoll, &stream.socket);
        }
    }

    /// Waits for events. Polls while that pays, then sleeps.
    fn wait(
        &mut self,
        until: Option<u64>,
        outstanding: u32,
        events: &mut Vec<SystemEvent>,
    ) -> io::Result<()> {
        let begun = self.now();
        let is_look = until.is_some_and(|until| until <= begun);
        let poll_until = begun + self.busy_poll.duration_ns(outstanding);
        let mut clock = begun;
        loop {
            let left = until.map(|until| until.saturating_sub(clock));
            let is_polling = clock < poll_until;
            let timeout = if is_polling { Some(0) } else { left };
            let timeout = timeout.map(timespec);
            let mut room = [const { MaybeUninit::uninit() }; EVENTS_PER_ROUND];
            let ready: &[epoll::Event] = match epoll::wait(&self.epoll, &mut room, timeout.as_ref()) {
                Ok((ready, _)) => ready,
                Err(rustix::io::Errno::INTR) => &[],
                Err(error) => return Err(error.into()),
            };
            clock = self.now();
            events.extend(ready.iter().map(|event| self.event(event.data.u64(), event.flags)));
            if !ready.is_empty() || !is_polling || left == Some(0) {
                if !is_look {
                    self.busy_poll.learn(clock - begun);
                }
                return Ok(());
            }
            // A thread waiting for this CPU may be the one that causes the event.
            std::thread::yield_now();
        }
    }

    fn stop_listening(&mut self) {
        self.listeners.clear();
    }
}

impl ProxyStream for LinuxStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.read(buffer)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.socket.write_vectored(pieces)
    }

    fn shutdown_write(&mut self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)
    }

    fn finish_connecting(&mut self) -> io::Result<()> {
        sockopt::socket_error(&self.socket).and_then(|result| result)?;
        // The send buffer of a new connection has space for a few dozen bytes, so this cannot block.
        self.socket.write_all(&std::mem::take(&mut self.announcement))
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
    }
}
