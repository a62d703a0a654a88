//! Commands that a proxy answers in the server's place, and the words of these answers.

use crate::ProtocolError;

/// Command that a proxy sends in place of one that it refuses. A server answers an unknown command by exactly one error at
/// once, whatever the state of the connection: without a login, and within a transaction, which then cannot be executed
/// without the refused command. PING and its like would be queued there, and answered by EXEC.
pub(super) const STAND_IN: &[u8] = b"*1\r\n$18\r\ntailwright.refused\r\n";

/// Reason for a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// Messages follow that answer no command, in RESP2 without a mark.
    Messages,
    /// The connection becomes a stream between servers.
    Stream,
    /// Commands stay without replies, so that none is known to be complete.
    Silence,
    /// The command may wait without end, and would have a place at the device for that time.
    Waits,
    /// All clients of the server wait.
    Pause,
    /// The options are too long to find out whether it waits.
    Options,
}

/// A refused command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refusal {
    command: &'static str,
    reason: Reason,
}

impl Refusal {
    /// XREAD or XREADGROUP that waits, or may wait.
    pub(super) fn of_stream_read(reason: Reason) -> Self {
        Self { command: "XREAD or XREADGROUP with BLOCK", reason }
    }

    /// Answer to the client.
    pub(super) fn answer(self) -> Vec<u8> {
        let why = match self.reason {
            Reason::Messages => "its messages answer no request",
            Reason::Stream => "a stream would follow, not replies",
            Reason::Silence => "without replies no request is known to be complete",
            Reason::Waits => "it may wait without end, and no limit holds what waits at the server",
            Reason::Pause => "the clients of all workloads would wait",
            Reason::Options => "its options are longer than 4096 bytes",
        };
        let command = self.command;
        format!("-ERR {command} is not passed on by this proxy: {why}; connect to the server\r\n")
            .into_bytes()
    }

    /// The error for an observer, which cannot count replies behind such a command. Commands that wait are answered in
    /// their turn.
    pub(super) fn error(self) -> Option<ProtocolError> {
        let what = "a RESP command without one reply";
        let remedy = "observe such connections without a protocol";
        let has_one_reply = matches!(self.reason, Reason::Waits | Reason::Pause | Reason::Options);
        (!has_one_reply).then_some(ProtocolError::Unsupported { what, remedy })
    }
}

/// Returns the refusal of a command with this name and first argument, both in lower case.
pub(super) fn refusal_of(name: &[u8], argument: Option<&[u8]>) -> Option<Refusal> {
    let (command, reason) = match name {
        b"subscribe" => ("SUBSCRIBE", Reason::Messages),
        b"psubscribe" => ("PSUBSCRIBE", Reason::Messages),
        b"ssubscribe" => ("SSUBSCRIBE", Reason::Messages),
        b"unsubscribe" => ("UNSUBSCRIBE", Reason::Messages),
        b"punsubscribe" => ("PUNSUBSCRIBE", Reason::Messages),
        b"sunsubscribe" => ("SUNSUBSCRIBE", Reason::Messages),
        b"monitor" => ("MONITOR", Reason::Messages),
        b"sync" => ("SYNC", Reason::Stream),
        b"psync" => ("PSYNC", Reason::Stream),
        b"replconf" => ("REPLCONF", Reason::Stream),
        b"client" if argument == Some(b"reply") => ("CLIENT REPLY", Reason::Silence),
        b"client" if argument == Some(b"pause") => ("CLIENT PAUSE", Reason::Pause),
        b"blpop" => ("BLPOP", Reason::Waits),
        b"brpop" => ("BRPOP", Reason::Waits),
        b"blmove" => ("BLMOVE", Reason::Waits),
        b"brpoplpush" => ("BRPOPLPUSH", Reason::Waits),
        b"blmpop" => ("BLMPOP", Reason::Waits),
        b"bzpopmin" => ("BZPOPMIN", Reason::Waits),
        b"bzpopmax" => ("BZPOPMAX", Reason::Waits),
        b"bzmpop" => ("BZMPOP", Reason::Waits),
        b"wait" => ("WAIT", Reason::Waits),
        b"waitaof" => ("WAITAOF", Reason::Waits),
        _ => return None,
    };
    Some(Refusal { command, reason })
}

/// Reader of the options of XREAD and XREADGROUP, which stand in front of STREAMS and its keys.
#[derive(Debug, Default)]
pub(super) struct StreamOptions {
    /// Words that belong to the option in front of them.
    owned: u32,
}

/// Meaning of a word to [`StreamOptions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamOption {
    /// The command waits for new entries.
    Block,
    /// Keys follow.
    Streams,
    Other,
}

impl StreamOptions {
    /// Takes the next word, which is `None` if it is too long for an option.
    pub(super) fn take(&mut self, word: Option<&[u8]>) -> StreamOption {
        if self.owned > 0 {
            self.owned -= 1;
            return StreamOption::Other;
        }
        match word.map(<[u8]>::to_ascii_lowercase).as_deref() {
            Some(b"block") => return StreamOption::Block,
            Some(b"streams") => return StreamOption::Streams,
            Some(b"count") => self.owned = 1,
            Some(b"group") => self.owned = 2,
            _ => {}
        }
        StreamOption::Other
    }
}
