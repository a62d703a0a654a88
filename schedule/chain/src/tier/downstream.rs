//! Calls of one tier to others, on connections that are kept.

use crate::http;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, PoisonError};

/// Connections to the tiers that are not in use.
#[derive(Debug)]
pub(crate) struct DownstreamCalls {
    tiers: Vec<SocketAddr>,
    idle: Vec<Mutex<Vec<TcpStream>>>,
}

impl DownstreamCalls {
    /// No connections yet to these tiers.
    pub(crate) fn new(tiers: Vec<SocketAddr>) -> Self {
        let idle = tiers.iter().map(|_| Mutex::new(Vec::new())).collect();
        Self { tiers, idle }
    }

    /// Sends a request to a tier and waits for the status of the answer.
    pub(crate) fn call(&self, tier: usize, request: &[u8]) -> io::Result<u16> {
        let idle = self.idle.get(tier).ok_or(io::ErrorKind::NotFound)?;
        let kept = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut stream = match kept {
            Some(stream) => stream,
            None => connect(self.tiers[tier])?,
        };
        let status = http::exchange(&mut stream, request, &mut Vec::new())?;
        idle.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
        Ok(status)
    }
}

/// A connection that sends small messages at once.
pub(crate) fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
