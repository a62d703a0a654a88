//! The error of this crate: position in the file, expectation, and remedy.

use crate::TraceFormat;
use std::fmt;
use std::path::{Path, PathBuf};

/// A trace cannot be read or written. `Display` gives the position and what was expected there, and
/// [`TraceError::hint`] the remedy.
#[derive(Debug)]
pub struct TraceError(Box<Details>);

#[derive(Debug)]
struct Details {
    file: PathBuf,
    position: TracePosition,
    kind: TraceErrorKind,
}

/// Position of an error in a trace file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracePosition {
    /// The error concerns the file as a whole.
    File,
    /// The number of a line of a text format, from 1, counted after decompression.
    Line(u64),
    /// The number of a record of a binary format, from 1.
    Record(u64),
}

/// Defect of a trace.
#[derive(Debug)]
pub enum TraceErrorKind {
    /// The operating system refused the access: not found, no permission, device error.
    Io(std::io::Error),
    /// A line or record does not follow its format.
    Malformed {
        /// Requirement of the format, completing "expected …".
        expected: &'static str,
        /// Beginning of the text found.
        found: String,
    },
    /// A request arrives before its predecessor.
    Unsorted {
        /// Arrival of the previous request, ns since the file's own origin.
        previous_ns: u64,
        /// Arrival of the request itself, ns since the file's own origin.
        arrival_ns: u64,
    },
    /// The file ends inside a line, record or compressed block, or compressed data is damaged.
    Truncated(String),
    /// The file does not contain a single request.
    Empty,
    /// The requests carry no times.
    Untimed,
    /// The content matches none of the known formats.
    UnknownFormat,
    /// The content is recognised, and is no trace of requests.
    Unreadable {
        /// Content of the file, a clause.
        what: &'static str,
        /// Remedy, a sentence.
        remedy: &'static str,
    },
    /// The requests are of several workloads, and none was named.
    SeveralWorkloads {
        /// The workload of the first request.
        first: String,
        /// The workload of a later one.
        second: String,
    },
    /// The requests of the client that was named are those of several servers.
    SeveralServers {
        /// Requested client.
        client: String,
        /// Server of its first request.
        first: String,
        /// Server of a later one.
        second: String,
    },
    /// No request is of the workload or client that was named.
    NoSuchWorkload {
        /// Requested name.
        name: String,
        /// Known workloads or clients, separated by commas.
        known: String,
    },
    /// A workload or client was named, but the format does not distinguish them.
    NotSplit(TraceFormat),
    /// The format does not support the operation; the text says which, after the format's name.
    Unsupported(TraceFormat, &'static str),
}

impl TraceError {
    pub(crate) fn new(file: &Path, position: TracePosition, kind: TraceErrorKind) -> Self {
        Self(Box::new(Details { file: file.to_owned(), position, kind }))
    }

    /// Returns the defect of the trace.
    pub fn kind(&self) -> &TraceErrorKind {
        &self.0.kind
    }

    /// Returns the position of the error in the file.
    pub fn position(&self) -> TracePosition {
        self.0.position
    }

    /// Returns the path of the file, as given when the file was opened.
    pub fn file(&self) -> &Path {
        &self.0.file
    }

    /// Returns the remedy for the user, as a sentence.
    pub fn hint(&self) -> String {
        match &self.0.kind {
            TraceErrorKind::Io(error) => match error.kind() {
                std::io::ErrorKind::NotFound => "check the path".to_owned(),
                std::io::ErrorKind::PermissionDenied => "check the permissions of the file".to_owned(),
                std::io::ErrorKind::ResourceBusy => "end the other process, or name another folder".to_owned(),
                std::io::ErrorKind::NotConnected | std::io::ErrorKind::BrokenPipe => {
                    "let the reader of the pipe run until all is written, or write to a file".to_owned()
                }
                std::io::ErrorKind::StorageFull => "free some space or write elsewhere".to_owned(),
                _ => "check the path and the device below it".to_owned(),
            },
            TraceErrorKind::Malformed { .. } => {
                "correct the file, name its format with --format, or skip and count what is malformed with \
                 --lenient"
                    .to_owned()
            }
            TraceErrorKind::Unsorted { .. } => {
                "sort the file by arrival time, restore the order of nearly sorted files with --sort-window \
                 N (requests), or skip and count what is out of order with --lenient"
                    .to_owned()
            }
            TraceErrorKind::Truncated(_) => {
                "copy the file again; --lenient keeps what can be read before the damage".to_owned()
            }
            TraceErrorKind::Empty => "check that this is the file you meant, and its --format".to_owned(),
            TraceErrorKind::Untimed => {
                "record the log with fio 3.31 or later (version 3 has times), or accept every request at \
                 time zero with --lenient"
                    .to_owned()
            }
            TraceErrorKind::UnknownFormat => {
                format!("name the format with --format, one of {}", TraceFormat::names())
            }
            TraceErrorKind::Unreadable { remedy, .. } => (*remedy).to_owned(),
            TraceErrorKind::SeveralWorkloads { first, .. } => {
                let file = self.0.file.display();
                format!(
                    "name one, such as '{file}#{first}', or take all as one trace with '{file}#*'; `tailwright trace \
                     split {file} -o FOLDER` writes a trace of each"
                )
            }
            TraceErrorKind::SeveralServers { client, first, .. } => {
                let file = self.0.file.display();
                format!(
                    "each server has a trace of its own: name one, such as '{file}#client={client}@{first}'; \
                     `tailwright trace split {file} --by client -o FOLDER` writes all"
                )
            }
            TraceErrorKind::NoSuchWorkload { known, .. } if known.is_empty() => {
                "no request in it says so".to_owned()
            }
            TraceErrorKind::NoSuchWorkload { known, .. } => format!("there are: {known}"),
            TraceErrorKind::NotSplit(_) => {
                "leave out # and what is behind it; recordings, observations, block traces and captures of tcpdump say whose \
                 requests are"
                    .to_owned()
            }
            TraceErrorKind::Unsupported(..) => {
                format!("choose another format, one of {}", TraceFormat::names_written())
            }
        }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details { file, position, kind } = &*self.0;
        write!(f, "{}", file.display())?;
        match position {
            TracePosition::File => {}
            TracePosition::Line(line) => write!(f, ", line {line}")?,
            TracePosition::Record(record) => write!(f, ", record {record}")?,
        }
        match kind {
            TraceErrorKind::Io(error) => write!(f, ": {error}"),
            TraceErrorKind::Malformed { expected, found } => {
                write!(f, ": expected {expected}, found '{found}'")
            }
            TraceErrorKind::Unsorted { previous_ns, arrival_ns } => write!(
                f,
                ": expected arrivals that do not decrease, found {arrival_ns} ns after {previous_ns} ns"
            ),
            TraceErrorKind::Truncated(what) => write!(f, ": the file is cut off or damaged: {what}"),
            TraceErrorKind::Empty => write!(f, ": the trace is empty: expected at least one read or write"),
            TraceErrorKind::Untimed => {
                write!(f, ": expected arrival times, but a version 2 iolog without wait records has none")
            }
            TraceErrorKind::UnknownFormat => {
                write!(f, ": cannot tell the format from the first lines: expected a trace of requests")
            }
            TraceErrorKind::Unreadable { what, .. } => write!(f, ": {what}"),
            TraceErrorKind::SeveralWorkloads { first, second } => {
                write!(f, ": expected requests of one workload, found '{first}' and '{second}'")
            }
            TraceErrorKind::SeveralServers { client, first, second } => {
                write!(f, ": expected requests of '{client}' at one server, found '{first}' and '{second}'")
            }
            TraceErrorKind::NoSuchWorkload { name, .. } => {
                write!(f, ": expected requests of '{name}', found none")
            }
            TraceErrorKind::NotSplit(format) => {
                write!(f, ": {format} does not say which workload or client a request belongs to")
            }
            TraceErrorKind::Unsupported(format, what) => write!(f, ": {format} {what}"),
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            TraceErrorKind::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// Returns the beginning of `bytes` as text for an error message, with control characters replaced.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    const LONGEST: usize = 80;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST)]);
    let mut text: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if bytes.len() > LONGEST {
        text.push('…');
    }
    text
}
