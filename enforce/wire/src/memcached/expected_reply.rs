//! Matching of replies with requests.

use super::barrier::{BARRIER_OPAQUE, BINARY_NOOP};
use std::num::NonZeroU64;

/// Expected reply to a request in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectedReply {
    /// Any number of values, then `END`.
    Values,
    /// One line of text, but not the version.
    Line,
    /// The line `VERSION` with its number.
    Version,
    /// Any number of lines of one kind, then their end.
    List(ListItem),
    /// One line of a list without an end.
    Item(ListItem),
    /// One reply to a meta command.
    Meta {
        command: MetaCommand,
        /// The request suppresses the usual reply.
        quiet: bool,
        /// Hash of the opaque value that the reply repeats, if the request has one.
        opaque: Option<NonZeroU64>,
    },
    /// A binary reply with this opcode (that of the loud form) and opaque value.
    Binary { opcode: u8, opaque: u32 },
    /// The version, which was asked for in place of a text command. The client is answered this.
    OwnLine(OwnLine),
    /// The no-op that was sent in place of a binary command. The client is told that its command is unknown.
    OwnBinary { opcode: u8, opaque: u32 },
}

/// Answer to a command that the server does not see: what memcached 1.6 would say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnLine {
    /// The name of the command, or the number of its words.
    Error,
    /// A word of the command.
    BadLine,
    /// More than 16 flags of a meta command.
    TooManyFlags,
    /// A line that memcached would not read to its end.
    TooLong,
    /// A command that the proxy cannot follow.
    Watch,
    /// No answer to an erroneous command with `noreply`.
    Nothing,
}

impl OwnLine {
    pub(super) fn bytes(self) -> &'static [u8] {
        match self {
            Self::Error => b"ERROR\r\n",
            Self::BadLine => b"CLIENT_ERROR bad command line format\r\n",
            Self::TooManyFlags => b"CLIENT_ERROR options flags too long\r\n",
            Self::TooLong => b"CLIENT_ERROR line too long\r\n",
            Self::Watch => b"CLIENT_ERROR watch is refused: connect without the proxy\r\n",
            Self::Nothing => b"",
        }
    }
}

/// Lines before the end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListItem {
    /// A line of `stats`, which begins with `STAT`, `ITEM` or `PREFIX`.
    Stat,
    /// A line of `lru_crawler metadump`, which begins with `key=`.
    Key,
    /// A line of `lru_crawler mgdump`, which begins with `mg`. The list ends with `EN`.
    Mg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetaCommand {
    Get,
    Set,
    Delete,
    Arithmetic,
    Noop,
    Debug,
}

/// Two-letter code at the start of a reply to a meta command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetaCode {
    Va,
    Hd,
    En,
    Ns,
    Ex,
    Nf,
    Mn,
    Me,
}

/// Contents of a reply's head, in any dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemcachedReply {
    pub(super) kind: ReplyKind,
    pub(super) is_error: bool,
    /// Number of bytes parsed.
    pub(super) head: usize,
    /// Length of the whole reply, or part of a reply, bytes.
    pub(super) len: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyKind {
    /// The line `VALUE` and its data.
    Value,
    /// The line `END`, behind values or a list.
    End,
    ListItem(ListItem),
    /// One of the lines `ERROR`, `CLIENT_ERROR` and `SERVER_ERROR`.
    Error,
    /// A meta reply with a hash of its opaque value, if it has one.
    Meta(MetaCode, Option<NonZeroU64>),
    /// The line `VERSION` with its number.
    Version,
    /// Any line of text that is none of the others.
    OtherLine,
    Binary {
        opcode: u8,
        opaque: u32,
        /// Further messages of the same reply follow.
        more: bool,
    },
}

impl ExpectedReply {
    /// Returns `None` if a reply of this kind is not part of the answer, otherwise true if it completes it.
    pub(super) fn is_completed_by(&self, reply: ReplyKind) -> Option<bool> {
        match (*self, reply) {
            (
                Self::Binary { opcode, opaque },
                ReplyKind::Binary { opcode: reply_opcode, opaque: reply_opaque, more },
            ) => (opcode == reply_opcode && opaque == reply_opaque).then_some(!more),
            (Self::OwnBinary { .. }, ReplyKind::Binary { opcode, opaque, .. }) => {
                (opcode == BINARY_NOOP && opaque == BARRIER_OPAQUE).then_some(true)
            }
            (Self::Binary { .. } | Self::OwnBinary { .. }, _) | (_, ReplyKind::Binary { .. }) => None,
            (_, ReplyKind::Error) => self.may_fail().then_some(true),
            (Self::Values, ReplyKind::Value) => Some(false),
            (Self::Values | Self::List(ListItem::Stat | ListItem::Key), ReplyKind::End) => Some(true),
            (Self::List(ListItem::Mg), ReplyKind::Meta(MetaCode::En, _)) => Some(true),
            (Self::List(item), ReplyKind::ListItem(reply_item)) if item == reply_item => Some(false),
            (Self::Item(item), ReplyKind::ListItem(reply_item)) if item == reply_item => Some(true),
            // A list is answered by one line after `stats reset`, or when the crawler is busy.
            (Self::List(_) | Self::Item(_) | Self::Line, ReplyKind::OtherLine) => Some(true),
            (Self::Version | Self::OwnLine(_), ReplyKind::Version) => Some(true),
            (Self::Meta { command, quiet, opaque }, ReplyKind::Meta(code, reply_opaque)) => {
                // The reply to a miss may omit flags.
                let is_same = reply_opaque == opaque || (reply_opaque.is_none() && code == MetaCode::En);
                (is_same && command.may_reply(code, quiet)).then_some(true)
            }
            _ => None,
        }
    }

    /// Returns true if the request can be answered with an error line, which a no-op cannot.
    pub(super) fn may_fail(&self) -> bool {
        !matches!(self, Self::Meta { command: MetaCommand::Noop, .. } | Self::OwnLine(_))
    }

    /// Returns true if the server hands the connection to its crawler. Requests received behind such a
    /// request stay unread until more bytes arrive.
    pub(super) fn is_dump(&self) -> bool {
        matches!(self, Self::List(ListItem::Key | ListItem::Mg))
    }

    /// Returns true if the request is a barrier: its reply is unmistakable, and follows those of all earlier
    /// requests.
    pub(super) fn is_barrier(&self) -> bool {
        match self {
            Self::Version | Self::OwnLine(_) | Self::OwnBinary { .. } => true,
            Self::Meta { command, .. } => *command == MetaCommand::Noop,
            Self::Binary { opcode, .. } => *opcode == BINARY_NOOP,
            Self::Values | Self::Line | Self::List(_) | Self::Item(_) => false,
        }
    }

    /// Returns the expected replies in words, for error messages.
    pub(super) fn describe(&self) -> &'static str {
        match self {
            Self::Values => "VALUE, END or an error, for get",
            Self::Line => "one line, for a text command",
            Self::Version | Self::OwnLine(_) => "VERSION, for version",
            Self::Item(_) => "one STAT line, for stats",
            Self::List(ListItem::Stat) => "STAT lines and END, for stats",
            Self::List(_) => "items and their end, for lru_crawler",
            Self::Meta { .. } => "a meta code of the first request not answered, with its opaque value",
            Self::Binary { .. } | Self::OwnBinary { .. } => {
                "opcode and opaque value of the first request not answered"
            }
        }
    }
}

impl MetaCommand {
    /// Returns true if a reply to this command can have this code. Quiet commands suppress the usual result.
    fn may_reply(self, code: MetaCode, quiet: bool) -> bool {
        match (self, code) {
            (Self::Get, MetaCode::Va | MetaCode::Hd)
            | (Self::Noop, MetaCode::Mn)
            | (Self::Debug, MetaCode::Me | MetaCode::En) => true,
            (Self::Set | Self::Arithmetic, MetaCode::Ns | MetaCode::Ex) | (Self::Delete, MetaCode::Ex) => {
                true
            }
            (Self::Set | Self::Delete | Self::Arithmetic, MetaCode::Nf) => true,
            (Self::Get, MetaCode::En) => !quiet,
            (Self::Set | Self::Delete, MetaCode::Hd) => !quiet,
            // memcached 1.6 answers a quiet `ma` if it creates the value.
            (Self::Arithmetic, MetaCode::Hd | MetaCode::Va) => true,
            _ => false,
        }
    }
}
