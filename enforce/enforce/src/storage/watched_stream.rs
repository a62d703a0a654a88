//! A connection and its registration with the system.

use super::system::{ProxyStream, StreamInterest, StreamToken, System};
use std::io;

/// A connection and its registration with the system.
#[derive(Debug)]
pub(super) struct WatchedStream<C> {
    /// The connection; `None` once closed.
    pub(super) stream: Option<C>,
    /// Registered interest, if any.
    pub(super) watched: Option<StreamInterest>,
    /// The peer has hung up, and the stream is not registered until the session needs it: level-triggered
    /// polling would report the hang-up in every round.
    pub(super) is_set_aside: bool,
}

impl<C> WatchedStream<C> {
    pub(super) fn new(stream: Option<C>) -> Self {
        Self { stream, watched: None, is_set_aside: false }
    }
}

impl<C: ProxyStream> WatchedStream<C> {
    /// Updates the registration if the interest has changed.
    pub(super) fn watch(
        &mut self,
        system: &mut impl System<Stream = C>,
        token: StreamToken,
        interest: StreamInterest,
    ) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        // A stream that was set aside after a hang-up stays so until the session needs it.
        let is_same = self.watched.unwrap_or_default() == interest;
        if is_same && (self.watched.is_some() || self.is_set_aside) {
            return Ok(());
        }
        system.watch(stream, token, interest)?;
        (self.watched, self.is_set_aside) = (Some(interest), false);
        Ok(())
    }

    /// Stops watching a connection that has hung up, until the session needs it.
    pub(super) fn set_aside(&mut self, system: &mut impl System<Stream = C>) {
        if let Some(stream) = &mut self.stream {
            system.unwatch(stream);
            (self.watched, self.is_set_aside) = (None, true);
        }
    }
}

/// Result of one read.
pub(super) enum ReadOutcome {
    Bytes(usize),
    EndOfStream,
    Nothing,
}

pub(super) fn read_once(stream: &mut impl ProxyStream, scratch: &mut [u8]) -> io::Result<ReadOutcome> {
    match stream.read(scratch) {
        Ok(0) => Ok(ReadOutcome::EndOfStream),
        Ok(count) => Ok(ReadOutcome::Bytes(count)),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(ReadOutcome::Nothing),
            _ => Err(error),
        },
    }
}
