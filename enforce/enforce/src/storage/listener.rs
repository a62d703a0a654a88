//! Listening sockets at the fronts.

use super::connector::ServerConnector;
use super::rules::server_storage;
use crate::deployment::Deployment;
use model::OperationError;
use std::io;
use std::net::{SocketAddr, TcpListener};
use wire::Protocol;

/// A listener at a front, and the parameters of connections to the server behind it.
#[derive(Debug)]
pub(super) struct FrontListener {
    pub(super) protocol: Protocol,
    pub(super) listener: TcpListener,
    pub(super) connector: ServerConnector,
}

impl FrontListener {
    /// Listens at all fronts of a server.
    ///
    /// # Errors
    /// When the deployment does not describe the fronts, or an address cannot be bound.
    pub(super) fn bind_all(deployment: &Deployment, server: &str) -> Result<Vec<Self>, OperationError> {
        let mut listeners = Vec::new();
        for front in &server_storage(deployment, server)?.front {
            let pairs = front.pairs().map_err(|message| {
                OperationError::input(message).hint("docs/reference/hosts-file.md describes fronts")
            })?;
            for (listen, forward) in pairs {
                let listener = listen_at(listen).map_err(|error| {
                    let hint = "is something else listening there, and is the address this host's? Ports below 1024 take root";
                    OperationError::machine(format_args!("{listen}: {error}")).hint(hint)
                })?;
                let connector = ServerConnector::new(front, forward)?;
                listeners.push(Self { protocol: front.protocol, listener, connector });
            }
        }
        Ok(listeners)
    }
}

fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
