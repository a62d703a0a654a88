//! Connections that are ready for requests: connected, shaken hands, mounted. Blocking, with time limits, before the
//! clock starts or in a thread of its own.

mod memcached;
mod nbd;
mod nfs;
mod socket;

pub(crate) use memcached::{block, store};

use crate::speak::{Http, Memcached, Speak};
use crate::{Origin, Target, Workload};
use model::OperationError;
use std::net::TcpStream;
use std::time::Duration;

/// Longest wait for a connection, and for an answer while it is set up.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is needed to set up a connection of a workload, at the start and again.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) name: String,
    target: Target,
    origin: Origin,
}

/// What requests may address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// A file or device of so many bytes, in multiples of a block.
    Bytes {
        len: u64,
        block: u64,
        is_writable: bool,
        /// What one connection wrote is read on all others at once.
        is_coherent: bool,
    },
    /// Keys per size.
    Keys(u32),
    /// One path.
    Path,
}

/// A connection that is ready.
pub(crate) struct Opened {
    /// Non-blocking.
    pub(crate) stream: TcpStream,
    pub(crate) speaker: Box<dyn Speak>,
    pub(crate) space: Space,
}

impl Site {
    pub(crate) fn of(workload: &Workload) -> Self {
        let (name, target, origin) =
            (workload.name.clone(), workload.target.clone(), workload.origin.clone());
        Self { name, target, origin }
    }

    /// Moves the calling thread to where the workload comes from.
    pub(crate) fn enter(&self) -> Result<(), OperationError> {
        let Some(netns) = &self.origin.netns else { return Ok(()) };
        machine::netns::enter(netns).map_err(|error| {
            OperationError::machine(format_args!("network namespace {netns} cannot be entered: {error}"))
                .hint("`ip netns list` shows those that exist; entering one takes root")
                .about(format_args!("workload {}", self.name))
        })
    }

    /// Sets up one connection.
    pub(crate) fn open(&self) -> Result<Opened, OperationError> {
        let opened = match &self.target {
            Target::Nfs { server, export, file, size } => nfs::open(self, *server, export, file, *size),
            Target::Nbd { server, export } => nbd::open(self, *server, export),
            Target::Memcached { server, keys } => self.connect(*server).map(|stream| {
                let speaker = Box::new(Memcached::new(self.prefix()));
                Opened { stream, speaker, space: Space::Keys(*keys) }
            }),
            Target::Http { server, path } => self.connect(*server).map(|stream| {
                let speaker = Box::new(Http::new(server.to_string(), path.clone()));
                Opened { stream, speaker, space: Space::Path }
            }),
        };
        let opened = opened.map_err(|fault| fault.about(format_args!("workload {}", self.name)))?;
        let ready = opened.stream.set_nodelay(true).and_then(|()| opened.stream.set_nonblocking(true));
        ready.map_err(|error| {
            OperationError::machine(error)
                .hint("the connection was lost at once")
                .about(format_args!("workload {}", self.name))
        })?;
        Ok(opened)
    }

    fn connect(&self, server: std::net::SocketAddr) -> Result<TcpStream, OperationError> {
        socket::connect(self.origin.bind, server, PATIENCE).map_err(|error| {
            let from = self.origin.bind.map(|bind| format!(" from {bind}")).unwrap_or_default();
            let place =
                self.origin.netns.as_ref().map(|name| format!(" in namespace {name}")).unwrap_or_default();
            let hint = "is the server running, and does it listen on this address?";
            OperationError::machine(format_args!("{server} cannot be reached{from}{place}: {error}"))
                .hint(hint)
        })
    }

    /// What keys begin with: those of two workloads differ.
    fn prefix(&self) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let name = self.name.bytes().take(60).map(|byte| if plain(byte) { char::from(byte) } else { '.' });
        let sum = self.name.bytes().fold(0u64, |sum, byte| arrivals::split_seed(sum, byte.into()));
        format!("tw:{}:{sum:x}", name.collect::<String>())
    }
}
