//! Which replies can answer which requests.

/// The binary protocol's no-op.
const NOOP: u8 = 0x0a;

/// What an outstanding request is to be answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expect {
    /// Values and END.
    Values,
    /// One line.
    Line,
    /// Lines and END.
    Lines(Item),
    /// One meta reply.
    Meta {
        command: Meta,
        quiet: bool,
        /// Hash of the opaque value.
        opaque: Option<u64>,
    },
    /// A binary reply with this opcode (that of the loud form) and opaque value.
    Binary { opcode: u8, opaque: u32, quiet: bool },
}

/// What lines before END begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// `stats`: `STAT`, `ITEM`, `PREFIX`.
    Stat,
    /// `lru_crawler metadump`: `key=`.
    Key,
    /// `lru_crawler mgdump`: `mg`, up to `EN`.
    Mg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meta {
    Get,
    Set,
    Delete,
    Arithmetic,
    Noop,
    Debug,
}

/// Two letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    Va,
    Hd,
    En,
    Ns,
    Ex,
    Nf,
    Mn,
    Me,
}

/// What the head of a reply shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) error: bool,
    /// Bytes that were looked at.
    pub(super) head: usize,
    /// All bytes.
    pub(super) len: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `VALUE` and its data.
    Value,
    /// `END`.
    End,
    Item(Item),
    /// `ERROR` and the like.
    Error,
    Meta(Code, Option<u64>),
    /// Any other line.
    Other,
    Binary {
        opcode: u8,
        opaque: u32,
        more: bool,
    },
}

impl Expect {
    /// Whether `head` answers this: then whether the answer is complete.
    pub(super) fn answered_by(&self, head: &Head) -> Option<bool> {
        match (*self, head.kind) {
            (Self::Binary { opcode, opaque, .. }, Kind::Binary { opcode: of, opaque: given, more }) => {
                (opcode == of && opaque == given).then_some(!more)
            }
            (Self::Binary { .. }, _) | (_, Kind::Binary { .. }) => None,
            (_, Kind::Error) => self.may_fail().then_some(true),
            (Self::Values, Kind::Value) => Some(false),
            (Self::Values | Self::Lines(Item::Stat | Item::Key), Kind::End) => Some(true),
            (Self::Lines(Item::Mg), Kind::Meta(Code::En, _)) => Some(true),
            (Self::Lines(item), Kind::Item(of)) if item == of => Some(false),
            // `stats reset`, or a crawler that is busy.
            (Self::Lines(_) | Self::Line, Kind::Other) => Some(true),
            (Self::Meta { command, quiet, opaque }, Kind::Meta(code, given)) => {
                // A miss may leave flags out.
                let same = given == opaque || (given.is_none() && code == Code::En);
                (same && command.says(code, quiet)).then_some(true)
            }
            _ => None,
        }
    }

    /// A no-op does not.
    pub(super) fn may_fail(&self) -> bool {
        !matches!(self, Self::Meta { command: Meta::Noop, .. })
    }

    /// Answered when everything before it is done, and marked beyond doubt.
    pub(super) fn is_barrier(&self) -> bool {
        matches!(self, Self::Meta { command: Meta::Noop, .. } | Self::Binary { opcode: NOOP, .. })
    }

    /// Silent about the usual result. A reply that is given to it could be that of a later request.
    pub(super) fn may_be_silent(&self) -> bool {
        matches!(self, Self::Meta { quiet: true, .. } | Self::Binary { quiet: true, .. })
    }

    /// For messages.
    pub(super) fn words(&self) -> &'static str {
        match self {
            Self::Values => "VALUE, END or an error, for get",
            Self::Line => "one line, for a text command",
            Self::Lines(Item::Stat) => "STAT lines and END, for stats",
            Self::Lines(_) => "items and their end, for lru_crawler",
            Self::Meta { .. } => "a meta code of the first request not answered, with its opaque value",
            Self::Binary { .. } => "opcode and opaque value of the first request not answered",
        }
    }
}

impl Meta {
    /// Whether a reply to this command can have this code; `quiet` ones are silent about the usual result.
    fn says(self, code: Code, quiet: bool) -> bool {
        match (self, code) {
            (Self::Get, Code::Va | Code::Hd)
            | (Self::Noop, Code::Mn)
            | (Self::Debug, Code::Me | Code::En) => true,
            (Self::Set | Self::Arithmetic, Code::Ns | Code::Ex) | (Self::Delete, Code::Ex) => true,
            (Self::Set, Code::Nf) => true,
            (Self::Get, Code::En) => !quiet,
            (Self::Set | Self::Delete | Self::Arithmetic, Code::Hd) => !quiet,
            (Self::Arithmetic, Code::Va) => !quiet,
            (Self::Delete | Self::Arithmetic, Code::Nf) => true,
            _ => false,
        }
    }
}
