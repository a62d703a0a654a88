//! Listening sockets at the fronts.

use super::connector::ServerConnector;
use super::rules::server_storage;
use crate::deployment::Deployment;
use model::OperationError;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use wire::Protocol;

/// A listener at a front, and the parameters of connections to the server behind it.
#[derive(Debug)]
pub(super) struct FrontListener {
    pub(super) protocol: Protocol,
    /// Address in the hosts file.
    listen: SocketAddr,
    pub(super) listener: TcpListener,
    pub(super) connector: ServerConnector,
}

impl FrontListener {
    /// Listens at all fronts of a server, with the listeners of another proxy if there is one.
    ///
    /// # Errors
    /// When the deployment does not describe the fronts, an address cannot be bound, or the other proxy has other
    /// fronts.
    pub(super) fn bind_all(
        deployment: &Deployment,
        server: &str,
        inherited: Option<InheritedListeners>,
    ) -> Result<Vec<Self>, OperationError> {
        let mut inherited = inherited.map(|InheritedListeners { fronts, listeners }| {
            fronts.into_iter().zip(listeners).collect::<VecDeque<_>>()
        });
        let mut listeners = Vec::new();
        for front in &server_storage(deployment, server)?.front {
            let pairs = front.pairs().map_err(|message| {
                OperationError::input(message).hint("docs/reference/hosts-file.md describes fronts")
            })?;
            for (listen, forward) in pairs {
                let connector = ServerConnector::new(front, forward)?;
                if let Some(inherited) = &mut inherited {
                    let wanted = FrontRecord::new(front.protocol, listen, forward);
                    let (_, listener) = inherited
                        .pop_front()
                        .filter(|(record, _)| *record == wanted)
                        .ok_or_else(other_fronts)?;
                    listeners.push(Self { protocol: front.protocol, listen, listener, connector });
                    continue;
                }
                let listener = listen_at(listen).map_err(|error| {
                    let hint = "is something else listening there, and is the address this host's? Ports below 1024 take root";
                    OperationError::machine(format_args!("{listen}: {error}")).hint(hint)
                })?;
                listeners.push(Self { protocol: front.protocol, listen, listener, connector });
            }
        }
        if inherited.is_some_and(|left| !left.is_empty()) {
            return Err(other_fronts());
        }
        Ok(listeners)
    }
}

impl FrontListener {
    pub(super) fn record(&self) -> FrontRecord {
        FrontRecord::new(self.protocol, self.listen, self.connector.forward)
    }
}

/// A front as one proxy describes it to the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FrontRecord {
    protocol: String,
    listen: SocketAddr,
    forward: SocketAddr,
}

impl FrontRecord {
    fn new(protocol: Protocol, listen: SocketAddr, forward: SocketAddr) -> Self {
        Self { protocol: protocol.row().name.to_owned(), listen, forward }
    }
}

/// Listeners of another proxy, by front.
#[derive(Debug)]
pub(super) struct InheritedListeners {
    pub(super) fronts: Vec<FrontRecord>,
    pub(super) listeners: Vec<TcpListener>,
}

fn other_fronts() -> OperationError {
    OperationError::input("the running proxy has other fronts than the hosts file")
        .hint("stop the running proxy, and start this one without --take-over")
}

fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
