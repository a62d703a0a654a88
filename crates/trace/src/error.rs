//! What can be wrong with a trace: where, what was expected, and what the user can do.

use crate::Format;
use std::fmt;
use std::path::{Path, PathBuf};

/// A trace that cannot be read or written. `Display` says where and what was expected,
/// [`TraceError::hint`] what to do.
#[derive(Debug)]
pub struct TraceError(Box<Details>);

#[derive(Debug)]
struct Details {
    file: PathBuf,
    place: Place,
    kind: ErrorKind,
}

/// Where in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    File,
    /// A line of a text format, from 1, counted after decompression.
    Line(u64),
    /// A record of a binary format, from 1.
    Record(u64),
}

/// What is wrong.
#[derive(Debug)]
pub enum ErrorKind {
    /// The operating system refused: not found, no permission, device error.
    Io(std::io::Error),
    /// A line or record does not follow its format.
    Malformed {
        /// What the format has there; completes "expected …".
        expected: &'static str,
        /// The beginning of what was found.
        found: String,
    },
    /// A request arrives before its predecessor.
    Unsorted {
        /// Arrival of the request before it in ns, in the file's own origin.
        previous_ns: u64,
        /// Its arrival in ns, in the file's own origin.
        arrival_ns: u64,
    },
    /// The file ends inside a line, record or compressed block, or compressed data is damaged.
    Truncated(String),
    /// There is not one request in the file.
    Empty,
    /// The requests carry no times.
    Untimed,
    /// The content is none of the known formats.
    UnknownFormat,
    /// The format cannot do what was asked.
    Unsupported(Format, &'static str),
}

impl TraceError {
    /// An error in `file` at `place`.
    pub(crate) fn new(file: &Path, place: Place, kind: ErrorKind) -> Self {
        Self(Box::new(Details { file: file.to_owned(), place, kind }))
    }

    /// What is wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Where in the file.
    pub fn place(&self) -> Place {
        self.0.place
    }

    /// The file as it was named when opened.
    pub fn file(&self) -> &Path {
        &self.0.file
    }

    /// What to do about it, as a sentence for the user.
    pub fn hint(&self) -> String {
        match &self.0.kind {
            ErrorKind::Io(error) => match error.kind() {
                std::io::ErrorKind::NotFound => "check the path".to_owned(),
                std::io::ErrorKind::PermissionDenied => "check the permissions of the file".to_owned(),
                std::io::ErrorKind::StorageFull => "free some space or write elsewhere".to_owned(),
                _ => "check the path and the device below it".to_owned(),
            },
            ErrorKind::Malformed { .. } => {
                "correct the file, name its format with --format, or skip and count what is malformed with \
                 --lenient"
                    .to_owned()
            }
            ErrorKind::Unsorted { .. } => {
                "sort the file by arrival time, restore the order of nearly sorted files with --sort-window \
                 N (requests), or skip and count what is out of order with --lenient"
                    .to_owned()
            }
            ErrorKind::Truncated(_) => {
                "copy the file again; --lenient keeps what can be read before the damage".to_owned()
            }
            ErrorKind::Empty => "check that this is the file you meant, and its --format".to_owned(),
            ErrorKind::Untimed => {
                "record the log with fio 3.31 or later (version 3 has times), or accept every request at \
                 time zero with --lenient"
                    .to_owned()
            }
            ErrorKind::UnknownFormat => format!("name the format with --format, one of {}", Format::names()),
            ErrorKind::Unsupported(..) => format!("choose another format, one of {}", Format::names()),
        }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details { file, place, kind } = &*self.0;
        write!(f, "{}", file.display())?;
        match place {
            Place::File => {}
            Place::Line(line) => write!(f, ", line {line}")?,
            Place::Record(record) => write!(f, ", record {record}")?,
        }
        match kind {
            ErrorKind::Io(error) => write!(f, ": {error}"),
            ErrorKind::Malformed { expected, found } => write!(f, ": expected {expected}, found '{found}'"),
            ErrorKind::Unsorted { previous_ns, arrival_ns } => write!(
                f,
                ": expected arrivals that do not decrease, found {arrival_ns} ns after {previous_ns} ns"
            ),
            ErrorKind::Truncated(what) => write!(f, ": the file is cut off or damaged: {what}"),
            ErrorKind::Empty => write!(f, ": the trace is empty: expected at least one read or write"),
            ErrorKind::Untimed => {
                write!(f, ": expected arrival times, but a version 2 iolog without wait records has none")
            }
            ErrorKind::UnknownFormat => {
                write!(f, ": cannot tell the format from the first lines: expected a trace of requests")
            }
            ErrorKind::Unsupported(format, what) => write!(f, ": {format} {what}"),
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            ErrorKind::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// The beginning of `bytes` as text for an error message, control characters replaced.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    const LONGEST: usize = 80;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST)]);
    let mut text: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if bytes.len() > LONGEST {
        text.push('…');
    }
    text
}
