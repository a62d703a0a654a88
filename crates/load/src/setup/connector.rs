//! Sets up the connections of one workload, whatever its protocol.

use super::dialer::Dialer;
use super::ready_connection::ReadyConnection;
use super::{nbd, nfs};
use crate::address_space::AddressSpace;
use crate::codec::{HttpCodec, MemcachedCodec};
use crate::target::LoadTarget;
use crate::workload::LoadWorkload;
use model::OperationError;

/// What it takes to set up a connection of a workload, at the start and after it was lost.
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
        let stream = &connection.stream;
        stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).map_err(|error| {
            self.about_workload(OperationError::machine(error).hint("the connection was lost at once"))
        })?;
        Ok(connection)
    }

    fn negotiate(&self) -> Result<ReadyConnection, OperationError> {
        match &self.target {
            LoadTarget::Nfs { server, export, file, size } => {
                nfs::connect(&self.dialer, *server, export, file, *size)
            }
            LoadTarget::Nbd { server, export } => nbd::connect(&self.dialer, *server, export),
            LoadTarget::Memcached { server, keys } => {
                let stream = self.dialer.dial(*server)?;
                let codec = Box::new(MemcachedCodec::new(self.key_prefix()));
                Ok(ReadyConnection { stream, codec, space: AddressSpace::Keys(*keys) })
            }
            LoadTarget::Http { server, path } => {
                let stream = self.dialer.dial(*server)?;
                let codec = Box::new(HttpCodec::new(server.to_string(), path.clone()));
                Ok(ReadyConnection { stream, codec, space: AddressSpace::Path })
            }
        }
    }

    fn about_workload(&self, error: OperationError) -> OperationError {
        error.about(format_args!("workload {}", self.workload_name))
    }

    /// What the memcached keys of this workload begin with. Two workloads never share a prefix: the hash of the name
    /// tells apart names that look alike once they are shortened and stripped of unusual characters.
    fn key_prefix(&self) -> String {
        let bytes = self.workload_name.bytes();
        let plain_name: String = bytes.clone().take(60).map(plain_character).collect();
        let hash = bytes.fold(0u64, |hash, byte| arrivals::split_seed(hash, byte.into()));
        format!("tw:{plain_name}:{hash:x}")
    }
}

/// A character that is allowed in memcached keys and easy to type.
fn plain_character(byte: u8) -> char {
    let is_plain = byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if is_plain { char::from(byte) } else { '.' }
}
