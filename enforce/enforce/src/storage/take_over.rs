//! Conversation in which a new process takes over the listeners and sessions of the running proxy, over its control
//! socket.
//!
//! 1. The new one asks, and gets the listeners. It prepares everything while the running one serves.
//! 2. It says [`READY`]. The running one comes to rest ([`ProxyEngine::hold`](super::ProxyEngine::hold)), and sends its
//!    state and its connections.
//! 3. The new one adopts them, says [`TAKEN`], and serves. The running one ends.
//!
//! The byte [`TAKEN`] decides. If the new one ends or is late before it is sent, the running one goes on. A running one
//! that has waited long enough shuts its side for reading, and then looks once more: by then the kernel has queued the
//! byte, or it refuses the byte, and the new one ends.

use super::control::{HandOver, ProxyHandle, SharedListeners};
use super::handover::{HandOverDocument, VERSION};
use super::listener::{FrontRecord, InheritedListeners};
use model::OperationError;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

/// The new proxy is prepared.
const READY: u8 = b'r';
/// The new proxy serves.
const TAKEN: u8 = b't';
/// Descriptors in a message; the kernel allows 253.
const DESCRIPTORS_PER_MESSAGE: usize = 200;
/// Time for the new proxy to adopt what it got, while neither serves.
const ADOPTION: Duration = Duration::from_secs(2);
/// Maximum length of a line of an answer.
const LINE_MAX: usize = 4 << 20;
/// Maximum length of a document.
const DOCUMENT_MAX: u64 = 4 << 30;

/// An answer of the running proxy: a line, and what it announces behind it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    /// As many listeners follow, and that of the control socket.
    Fronts {
        version: u32,
        fronts: Vec<FrontRecord>,
    },
    /// A document of so many bytes follows, and so many descriptors.
    State {
        bytes: u64,
        descriptors: usize,
    },
    Error {
        message: String,
        hint: String,
    },
}

/// Lets the process at the other end take over. Calls `pass_on` when it does, before the proxy ends.
pub(super) fn serve(
    stream: &UnixStream,
    version: u32,
    shared: Result<SharedListeners, OperationError>,
    proxy: &ProxyHandle,
    control: &UnixListener,
    pass_on: impl FnOnce(),
) {
    if let Err(OperationError { message, hint, .. }) =
        hand_over(stream, version, shared, proxy, control, pass_on)
    {
        eprintln!("proxy: another process has not taken over: {message}");
        let _ = say(stream, &Answer::Error { message, hint: hint.unwrap_or_default() });
    }
}

fn hand_over(
    stream: &UnixStream,
    version: u32,
    shared: Result<SharedListeners, OperationError>,
    proxy: &ProxyHandle,
    control: &UnixListener,
    pass_on: impl FnOnce(),
) -> Result<(), OperationError> {
    if version != VERSION {
        return Err(OperationError::machine(format_args!(
            "the running proxy hands over by version {VERSION}, and the other one asks for {version}"
        ))
        .hint("stop the running proxy, and start this one without --take-over"));
    }
    let (fronts, listeners) = shared?;
    let descriptors = listeners.iter().map(AsFd::as_fd).chain([control.as_fd()]);
    say(stream, &Answer::Fronts { version: VERSION, fronts })
        .and_then(|()| send_descriptors(stream, descriptors))
        .map_err(broken)?;
    match read_byte(stream) {
        Ok(Some(READY)) => {}
        _ => return Err(OperationError::machine("it ended before it was prepared")),
    }
    let HandOver { document, descriptors, decide } = proxy.hand_over()?;
    // Neither serves meanwhile.
    let _ = stream.set_write_timeout(Some(ADOPTION));
    let is_sent = send_state(stream, &document, &descriptors);
    let is_taken = is_sent.is_ok() && is_taken(stream);
    if is_taken {
        pass_on();
    }
    // The proxy has ended if this fails.
    let _ = decide.send(is_taken);
    is_sent.map_err(broken)?;
    if is_taken { Ok(()) } else { Err(OperationError::machine("it ended, or was late, before it served")) }
}

fn send_state(stream: &UnixStream, document: &HandOverDocument, descriptors: &[OwnedFd]) -> io::Result<()> {
    let text = serde_json::to_vec(document)?;
    say(stream, &Answer::State { bytes: text.len() as u64, descriptors: descriptors.len() })?;
    let mut writer = stream;
    writer.write_all(&text)?;
    send_descriptors(stream, descriptors.iter().map(AsFd::as_fd))
}

/// Waits for [`TAKEN`]; afterwards the other process cannot say it any more.
fn is_taken(stream: &UnixStream) -> bool {
    let _ = stream.set_read_timeout(Some(ADOPTION));
    if matches!(read_byte(stream), Ok(Some(TAKEN))) {
        return true;
    }
    let _ = stream.shutdown(Shutdown::Read);
    matches!(read_byte(stream), Ok(Some(TAKEN)))
}

/// A take-over from the running proxy that has begun: it still serves.
#[derive(Debug)]
pub struct TakeOver {
    stream: UnixStream,
    listeners: Option<InheritedListeners>,
    control: Option<UnixListener>,
}

impl TakeOver {
    /// Gets the listeners of the running proxy over this connection to its control socket, after the request.
    pub(super) fn begin(stream: UnixStream) -> Result<Self, OperationError> {
        let Answer::Fronts { fronts, .. } = hear(&stream)? else { return Err(unexpected()) };
        let mut descriptors = receive_descriptors(&stream, fronts.len() + 1).map_err(broken)?;
        let control = descriptors.pop().map(UnixListener::from);
        let listeners = descriptors.into_iter().map(Into::into).collect();
        Ok(Self { stream, listeners: Some(InheritedListeners { fronts, listeners }), control })
    }

    pub(super) fn take_listeners(&mut self) -> Option<InheritedListeners> {
        self.listeners.take()
    }

    /// Takes the listener of the control socket.
    pub(super) fn take_control(&mut self) -> Option<UnixListener> {
        self.control.take()
    }

    /// Lets the running proxy come to rest, and returns its state and connections.
    pub(super) fn state(&self) -> Result<(HandOverDocument, Vec<OwnedFd>), OperationError> {
        let mut stream = &self.stream;
        stream.write_all(&[READY]).map_err(broken)?;
        let Answer::State { bytes, descriptors } = hear(stream)? else { return Err(unexpected()) };
        if bytes > DOCUMENT_MAX {
            return Err(unexpected());
        }
        let mut text = Vec::new();
        stream.take(bytes).read_to_end(&mut text).map_err(broken)?;
        let descriptors = receive_descriptors(stream, descriptors).map_err(broken)?;
        let document = serde_json::from_slice(&text).map_err(|error| {
            OperationError::machine(format_args!("the state of the running proxy cannot be read: {error}"))
                .hint("stop it, and start this one without --take-over")
        })?;
        Ok((document, descriptors))
    }

    /// Ends the running proxy: from now on this one serves.
    pub(super) fn commit(&self) -> Result<(), OperationError> {
        let mut stream = &self.stream;
        stream.write_all(&[TAKEN]).map_err(|_| {
            OperationError::machine("the running proxy serves again, since this one was late")
                .hint("try again when the machine is less busy")
        })
    }
}

fn broken(error: impl Into<io::Error>) -> OperationError {
    let error = error.into();
    OperationError::machine(format_args!("the conversation with the other proxy broke: {error}"))
        .hint("if it has ended, start this one without --take-over")
}

fn unexpected() -> OperationError {
    OperationError::machine("the running proxy does not answer as it should")
        .hint("it may be too old: stop it, and start this one without --take-over")
}

fn say(stream: &UnixStream, answer: &Answer) -> io::Result<()> {
    let mut writer = stream;
    let line = serde_json::to_string(answer)? + "\n";
    writer.write_all(line.as_bytes())
}

/// Reads a line and nothing behind it: descriptors that come with later bytes would be lost.
fn hear(stream: &UnixStream) -> Result<Answer, OperationError> {
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') && line.len() < LINE_MAX {
        line.push(read_byte(stream).map_err(broken)?.ok_or_else(|| broken(io::ErrorKind::UnexpectedEof))?);
    }
    match serde_json::from_slice(&line).map_err(|_| unexpected())? {
        Answer::Error { message, hint } => Err(OperationError::machine(message).hint(hint)),
        answer => Ok(answer),
    }
}

fn read_byte(stream: &UnixStream) -> io::Result<Option<u8>> {
    let mut reader = stream;
    let mut byte = [0];
    Ok((reader.read(&mut byte)? == 1).then_some(byte[0]))
}

fn send_descriptors<'a>(
    stream: &UnixStream,
    descriptors: impl Iterator<Item = BorrowedFd<'a>>,
) -> io::Result<()> {
    let descriptors: Vec<BorrowedFd<'_>> = descriptors.collect();
    for some in descriptors.chunks(DESCRIPTORS_PER_MESSAGE) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_PER_MESSAGE))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let is_pushed = ancillary.push(SendAncillaryMessage::ScmRights(some));
        debug_assert!(is_pushed, "there is space for them");
        sendmsg(stream, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
    }
    Ok(())
}

fn receive_descriptors(stream: &UnixStream, count: usize) -> io::Result<Vec<OwnedFd>> {
    let mut descriptors = Vec::new();
    while descriptors.len() < count {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_PER_MESSAGE))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let mut pieces = [IoSliceMut::new(&mut byte)];
        let received = recvmsg(stream, &mut pieces, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        let before = descriptors.len();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(some) = message {
                descriptors.extend(some);
            }
        }
        if received.bytes == 0 || descriptors.len() == before {
            // Too few descriptors may be open in this process.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(descriptors)
}
