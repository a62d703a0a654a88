//! Sets up the connections of one workload, for any protocol.

use super::dialer::Dialer;
use super::http::{HttpPlace, alpn};
use super::ready_connection::{ConnectionSocket, ReadyConnection};
use super::stream::SetupStream;
use super::{http, nbd, nfs};
use crate::address_space::AddressSpace;
use crate::codec::{EchoCodec, KeyFormat, MemcachedCodec, MemcachedUdpCodec};
use crate::target::{HttpVersion, LoadTarget, MemcachedTransport};
use crate::tls::TlsClient;
use crate::workload::LoadWorkload;
use model::OperationError;
use std::net::SocketAddr;

/// Parameters for setting up a connection of a workload, at the start and after a loss.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    pub(crate) workload_name: String,
    /// Target inside of TLS, if there is any.
    target: LoadTarget,
    tls: Option<TlsClient>,
    dialer: Dialer,
}

impl Connector {
    /// Reads the certificates that the workload trusts, if it uses TLS.
    pub(crate) fn new(workload: &LoadWorkload) -> Result<Self, OperationError> {
        let tls = match &workload.target {
            LoadTarget::Tls { name, check, target } => Some(TlsClient::new(name, check, offered(target))),
            _ => None,
        };
        let about = |error: OperationError| error.about(format_args!("workload {}", workload.name));
        Ok(Self {
            workload_name: workload.name.clone(),
            target: workload.target.inside_tls().clone(),
            tls: tls.transpose().map_err(about)?,
            dialer: Dialer::new(workload.client.clone()),
        })
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
    ) -> Result<(SetupStream, MemcachedCodec), OperationError> {
        let stream = self.open(server).map_err(|error| self.about_workload(error))?;
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
                let space = AddressSpace::Keys(*keys);
                if *transport == MemcachedTransport::Udp {
                    let socket = ConnectionSocket::Datagrams(self.dialer.dial_udp(*server)?);
                    let codec = Box::new(MemcachedUdpCodec::new(format));
                    return Ok(ReadyConnection { socket, tls: None, codec, space });
                }
                let SetupStream { socket, tls } = self.open(*server)?;
                let codec = Box::new(MemcachedCodec::new(format));
                Ok(ReadyConnection { socket: ConnectionSocket::Stream(socket), tls, codec, space })
            }
            LoadTarget::Http { server, host, path, version } => {
                let place = HttpPlace { server: *server, host, path };
                http::connect(self.open(*server)?, place, *version)
            }
            LoadTarget::Grpc { server, host, path, message } => {
                let place = HttpPlace { server: *server, host, path };
                http::connect_grpc(self.open(*server)?, place, message)
            }
            LoadTarget::Echo { server } => {
                let SetupStream { socket, tls } = self.open(*server)?;
                let codec = Box::new(EchoCodec::default());
                let socket = ConnectionSocket::Stream(socket);
                Ok(ReadyConnection { socket, tls, codec, space: AddressSpace::Nothing })
            }
            LoadTarget::Tls { .. } => unreachable!("TLS is around a target, once"),
        }
    }

    /// Opens a stream to a server, by TLS if the workload uses it.
    fn open(&self, server: SocketAddr) -> Result<SetupStream, OperationError> {
        let mut socket = self.dialer.dial(server)?;
        let tls = self.tls.as_ref().map(|tls| tls.handshake(&mut socket)).transpose()?;
        Ok(SetupStream { socket, tls })
    }

    fn about_workload(&self, error: OperationError) -> OperationError {
        error.about(format_args!("workload {}", self.workload_name))
    }
}

/// The protocols that are offered to a server by TLS.
fn offered(target: &LoadTarget) -> &'static [&'static [u8]] {
    match target {
        LoadTarget::Http { version, .. } => alpn(*version),
        LoadTarget::Grpc { .. } => alpn(HttpVersion::Two),
        _ => &[],
    }
}
