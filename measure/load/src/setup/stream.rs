//! A blocking connection while it is set up, with or without TLS.

use super::dialer;
use crate::tls::TlsSession;
use std::net::TcpStream;

/// A connection on which everything waits, within the time limits of [`super::Dialer`].
pub(crate) struct SetupStream {
    pub(super) socket: TcpStream,
    pub(super) tls: Option<TlsSession>,
}

impl SetupStream {
    /// Sends all of `bytes`.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Some(tls) = &mut self.tls else { return dialer::send(&mut self.socket, bytes) };
        let mut sealed = Vec::new();
        tls.seal(bytes, &mut sealed)?;
        dialer::send(&mut self.socket, &sealed)
    }

    /// Waits for bytes and appends them to `input`. The end of the stream is an error.
    pub(super) fn receive(&mut self, input: &mut Vec<u8>) -> Result<(), String> {
        let Some(tls) = &mut self.tls else { return dialer::receive(&mut self.socket, input) };
        let len_before = input.len();
        // The first bytes may have arrived with the end of the handshake.
        tls.open(&[], input)?;
        while input.len() == len_before {
            let mut received = Vec::new();
            dialer::receive(&mut self.socket, &mut received)?;
            tls.open(&received, input)?;
        }
        Ok(())
    }
}
