//! The system of the program: its connections belong to the engine's thread, or to loops.

use super::linux::{LinuxStream, LinuxSystem};
use super::listener::FrontListener;
use super::loops::{LoopThreads, LoopedStream, LoopedSystem};
use super::system::{ProxyStream, StreamInterest, StreamToken, System, SystemEvent};
use std::io::{self, IoSlice};
use std::net::{SocketAddr, TcpStream};

/// The system of the program.
#[derive(Debug)]
pub(super) enum MachineSystem {
    /// One thread does all.
    Direct(LinuxSystem),
    Looped(Box<LoopedSystem<LinuxSystem, LoopThreads>>),
}

/// A connection of the program.
#[derive(Debug)]
pub(super) enum MachineStream {
    Direct(LinuxStream),
    Looped(LoopedStream<LinuxStream>),
}

/// Evaluates an expression for the value of either variant.
macro_rules! either {
    ($either:expr, $name:ident => $value:expr) => {
        match $either {
            Self::Direct($name) => $value,
            Self::Looped($name) => $value,
        }
    };
}

impl MachineSystem {
    /// Returns true if the connections belong to loops, which do not give them back.
    pub(super) fn has_loops(&self) -> bool {
        matches!(self, Self::Looped(_))
    }

    /// Returns the fronts with their listeners; none once the proxy drains.
    pub(super) fn fronts(&self) -> &[FrontListener] {
        match self {
            Self::Direct(system) => system.fronts(),
            Self::Looped(system) => system.accepting_system().fronts(),
        }
    }

    /// Returns the stream of a connection of another proxy, to a client or to the server behind a front.
    pub(super) fn adopt(&mut self, socket: TcpStream, front: usize, is_to_server: bool) -> MachineStream {
        match self {
            Self::Direct(system) => MachineStream::Direct(system.adopt(socket, front, is_to_server)),
            Self::Looped(system) => {
                MachineStream::Looped(system.adopt_with(|system| system.adopt(socket, front, is_to_server)))
            }
        }
    }
}

impl MachineStream {
    /// Returns the socket; none if it belongs to a loop.
    pub(super) fn socket(&self) -> Option<&TcpStream> {
        match self {
            Self::Direct(stream) => Some(stream.socket()),
            Self::Looped(_) => None,
        }
    }
}

impl ProxyStream for MachineStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(self, stream => stream.read(buffer))
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        either!(self, stream => stream.write_vectored(pieces))
    }

    fn shutdown_write(&mut self) -> io::Result<()> {
        either!(self, stream => stream.shutdown_write())
    }

    fn finish_connecting(&mut self) -> io::Result<()> {
        either!(self, stream => stream.finish_connecting())
    }
}

impl System for MachineSystem {
    type Stream = MachineStream;

    fn now(&self) -> u64 {
        either!(self, system => system.now())
    }

    fn accept(&mut self, front: usize) -> io::Result<(MachineStream, SocketAddr)> {
        Ok(match self {
            Self::Direct(system) => {
                let (stream, peer) = system.accept(front)?;
                (MachineStream::Direct(stream), peer)
            }
            Self::Looped(system) => {
                let (stream, peer) = system.accept(front)?;
                (MachineStream::Looped(stream), peer)
            }
        })
    }

    fn restore_reserve(&mut self) -> bool {
        either!(self, system => system.restore_reserve())
    }

    fn clients_max(&self) -> u64 {
        either!(self, system => system.clients_max())
    }

    fn report_clients(&mut self, are_reported: bool) {
        either!(self, system => system.report_clients(are_reported));
    }

    fn may_share(&self, front: usize) -> bool {
        either!(self, system => system.may_share(front))
    }

    fn connect(&mut self, front: usize, client: Option<SocketAddr>) -> io::Result<MachineStream> {
        Ok(match self {
            Self::Direct(system) => MachineStream::Direct(system.connect(front, client)?),
            Self::Looped(system) => MachineStream::Looped(system.connect(front, client)?),
        })
    }

    fn watch(
        &mut self,
        stream: &mut MachineStream,
        token: StreamToken,
        interest: StreamInterest,
    ) -> io::Result<()> {
        match (self, stream) {
            (Self::Direct(system), MachineStream::Direct(stream)) => system.watch(stream, token, interest),
            (Self::Looped(system), MachineStream::Looped(stream)) => system.watch(stream, token, interest),
            _ => unreachable!("a stream belongs to its system"),
        }
    }

    fn unwatch(&mut self, stream: &mut MachineStream) {
        match (self, stream) {
            (Self::Direct(system), MachineStream::Direct(stream)) => system.unwatch(stream),
            (Self::Looped(system), MachineStream::Looped(stream)) => system.unwatch(stream),
            _ => unreachable!("a stream belongs to its system"),
        }
    }

    fn wait(
        &mut self,
        until: Option<u64>,
        outstanding: u32,
        events: &mut Vec<SystemEvent>,
    ) -> io::Result<()> {
        either!(self, system => system.wait(until, outstanding, events))
    }

    fn stop_listening(&mut self) {
        either!(self, system => system.stop_listening());
    }
}
