//! Sets up the connections of one workload, for any protocol.

use super::dialer::Dialer;
use super::ready_connection::{ConnectionSocket, ReadyConnection};
use super::{nbd, nfs};
use crate::address_space::AddressSpace;
use crate::codec::{ClientCodec, EchoCodec, HttpCodec, KeyFormat, MemcachedCodec, MemcachedUdpCodec};
use crate::target::{LoadTarget, MemcachedTransport};
use crate::workload::LoadWorkload;
use model::OperationError;
use std::net::{SocketAddr, TcpStream};

/// Parameters for setting up a connection of a workload, at the start and after a loss.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    pub(crate) workload_name: String,
    target: LoadTarget,
    dialer: Dialer,
}

impl Connector {
    pub(crate) fn new(workload: &LoadWorkload) -> Self {
        Self {
            workload_name: workload.name.clone(),
            target: workload.target.clone(),
            dialer: Dialer::new(workload.client.clone()),
        }
    }

    /// Moves the calling thread to the network namespace of the workload.
    pub(crate) fn enter_namespace(&self) -> Result<(), OperationError> {
        let Some(netns) = self.dialer.netns() else { return Ok(()) };
        machine::netns::enter(netns).map_err(|error| {
            OperationError::machine(format_args!("network namespace {netns} cannot be entered: {error}"))
                .hint("`ip netns list` shows those that exist; entering one takes root")
                .about(format_args!("workload {}", self.workload_name))
        })
    }

    /// Sets up one connection.
    pub(crate) fn connect(&self) -> Result<ReadyConnection, OperationError> {
        let connection = self.negotiate().map_err(|error| self.about_workload(error))?;
        connection.socket.set_immediate().map_err(|error| {
            self.about_workload(OperationError::machine(error).hint("the connection was lost at once"))
        })?;
        Ok(connection)
    }

    /// Sets up a blocking connection on which the values of a memcached workload can be stored.
    pub(super) fn connect_to_store(
        &self,
        server: SocketAddr,
        keys: KeyFormat,
    ) -> Result<(TcpStream, MemcachedCodec), OperationError> {
        let stream = self.dialer.dial(server).map_err(|error| self.about_workload(error))?;
        Ok((stream, MemcachedCodec::new(keys)))
    }

    fn negotiate(&self) -> Result<ReadyConnection, OperationError> {
        match &self.target {
            LoadTarget::Nfs { server, export, file, size } => {
                nfs::connect(&self.dialer, *server, export, file, *size)
            }
            LoadTarget::Nbd { server, export } => nbd::connect(&self.dialer, *server, export),
            LoadTarget::Memcached { server, transport, keys, key_size } => {
                let format = KeyFormat::new(&self.workload_name, *key_size);
                let (socket, codec): (_, Box<dyn ClientCodec>) = match transport {
                    MemcachedTransport::Tcp => (self.dial(*server)?, Box::new(MemcachedCodec::new(format))),
                    MemcachedTransport::Udp => {
                        let socket = ConnectionSocket::Datagrams(self.dialer.dial_udp(*server)?);
                        (socket, Box::new(MemcachedUdpCodec::new(format)))
                    }
                };
                Ok(ReadyConnection { socket, codec, space: AddressSpace::Keys(*keys) })
            }
            LoadTarget::Http { server, path } => {
                let codec = Box::new(HttpCodec::new(server.to_string(), path.clone()));
                Ok(ReadyConnection { socket: self.dial(*server)?, codec, space: AddressSpace::Nothing })
            }
            LoadTarget::Echo { server } => {
                let codec = Box::new(EchoCodec::default());
                Ok(ReadyConnection { socket: self.dial(*server)?, codec, space: AddressSpace::Nothing })
            }
        }
    }

    fn dial(&self, server: SocketAddr) -> Result<ConnectionSocket, OperationError> {
        self.dialer.dial(server).map(ConnectionSocket::Stream)
    }

    fn about_workload(&self, error: OperationError) -> OperationError {
        error.about(format_args!("workload {}", self.workload_name))
    }
}
