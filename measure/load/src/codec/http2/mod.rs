//! HTTP/2 (RFC 9113) and unary calls of gRPC: many requests at once on one connection, by crate `h2`.
//!
//! `h2` reads and writes a [`Pipe`] in memory and is polled whenever bytes have arrived or a request is to be sent: no
//! runtime, and no task. Streams wake by noting their number, so that a read polls only those that it concerns.

mod exchange;
mod pipe;

use super::client_codec::{ClientCodec, Decoded, IN_FLIGHT_MAX, IoRequest, ReplyStatus};
use bytes::Bytes;
use exchange::Verdict;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream};
use pipe::Pipe;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

pub(crate) use exchange::Exchange;

/// The largest window that the protocol has. Servers must wait for this client's reading only, never for a window.
const WINDOW: u32 = (1 << 31) - 1;
/// Length of the head of a frame.
const FRAME_HEAD: usize = 9;
/// Type of the frame that a server sends first.
const SETTINGS: u8 = 4;
/// Bytes before the text of a reply that [`Http2Codec::accept`] appends: the number of the request, and the length of
/// the text. The text says why the request failed; it is empty after success.
const REPLY_HEAD: usize = 8;

/// One connection, with the streams that wait for the server.
pub(crate) struct Http2Codec {
    exchange: Exchange,
    pipe: Pipe,
    requests: SendRequest<Bytes>,
    connection: Connection<Pipe, Bytes>,
    streams: BTreeMap<u32, OpenStream>,
    woken: Arc<Mutex<Vec<u32>>>,
    /// The beginning of what the server sent, until its settings are complete.
    opening: Option<Vec<u8>>,
    /// True after the server has announced that it takes no new requests, without an error (GOAWAY).
    is_leaving: bool,
    /// The reason that the connection cannot be used any more.
    failure: Option<String>,
}

/// A request whose response is not complete.
struct OpenStream {
    part: ResponsePart,
    waker: Waker,
}

/// The part of a response that comes next.
enum ResponsePart {
    Head(ResponseFuture),
    Body(RecvStream, Verdict),
}

/// Notes the number of a stream on which something happened.
struct StreamWaker {
    id: u32,
    woken: Arc<Mutex<Vec<u32>>>,
}

impl Wake for StreamWaker {
    fn wake(self: Arc<Self>) {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner).push(self.id);
    }
}

impl Http2Codec {
    /// Begins a connection: [`ClientCodec::accept`] of nothing has what is to be sent first.
    pub(crate) fn new(exchange: Exchange) -> Result<Self, String> {
        let pipe = Pipe::default();
        let mut handshake = Box::pin(
            Builder::new()
                .initial_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .initial_max_send_streams(IN_FLIGHT_MAX)
                .enable_push(false)
                .handshake::<_, Bytes>(pipe.clone()),
        );
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(started) = handshake.as_mut().poll(&mut context) else {
            return Err("HTTP/2 cannot be started: nothing was to be waited for".to_owned());
        };
        let (requests, connection) = started.map_err(|error| describe(&error))?;
        Ok(Self {
            exchange,
            pipe,
            requests,
            connection,
            streams: BTreeMap::new(),
            woken: Arc::default(),
            opening: Some(Vec::new()),
            is_leaving: false,
            failure: None,
        })
    }

    /// True once the settings of the server are known, with the number of requests that it takes at once.
    pub(crate) fn is_ready(&self) -> bool {
        self.opening.is_none()
    }

    /// Checks that the server begins as HTTP/2 prescribes, which `h2` would report as a frame that is too large.
    fn check_opening(&mut self, received: &[u8]) -> Result<(), String> {
        let Some(opening) = &mut self.opening else { return Ok(()) };
        opening.extend_from_slice(received);
        let Some((head, payload)) = opening.split_first_chunk::<FRAME_HEAD>() else { return Ok(()) };
        if head[3] != SETTINGS {
            let shown = opening.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
            let shown = String::from_utf8_lossy(&shown[..shown.len().min(60)]).into_owned();
            return Err(format!("the server does not answer by HTTP/2, but with {shown:?}"));
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        if payload.len() >= length {
            self.opening = None;
        }
        Ok(())
    }

    /// Lets `h2` work until nothing is left to do, and appends the replies that became complete.
    fn drive(&mut self, input: &mut Vec<u8>) {
        let mut context = Context::from_waker(Waker::noop());
        while self.failure.is_none() {
            let polled = Pin::new(&mut self.connection).poll(&mut context);
            match (self.requests.poll_ready(&mut context), polled) {
                (_, Poll::Ready(Err(error))) => self.failure = Some(describe(&error)),
                (Poll::Ready(Err(error)), Poll::Pending) if is_farewell(&error) => self.is_leaving = true,
                (ready, Poll::Ready(Ok(()))) => {
                    self.is_leaving |= matches!(ready, Poll::Ready(Err(error)) if is_farewell(&error));
                    self.failure = Some("the server ended the connection".to_owned());
                }
                (Poll::Ready(Err(error)), _) => self.failure = Some(describe(&error)),
                _ => {}
            }
            let woken = std::mem::take(&mut *self.woken.lock().unwrap_or_else(PoisonError::into_inner));
            if woken.is_empty() {
                return;
            }
            for id in woken {
                self.poll_stream(id, input);
            }
        }
    }

    /// Reads what has arrived on a stream. Its window is open again at once.
    fn poll_stream(&mut self, id: u32, input: &mut Vec<u8>) {
        let Some(OpenStream { part, waker }) = self.streams.get_mut(&id) else { return };
        let mut context = Context::from_waker(waker);
        let result = match part.poll(&self.exchange, &mut context) {
            Poll::Pending => return,
            Poll::Ready(Ok(result)) => result,
            Poll::Ready(Err(error)) if error.is_reset() => Err(describe(&error)),
            // The connection has failed, or the server is leaving and has not begun the request: the connection says
            // which of the two.
            Poll::Ready(Err(_)) => {
                self.streams.remove(&id);
                return;
            }
        };
        self.streams.remove(&id);
        let text = result.err().unwrap_or_default();
        input.extend(id.to_le_bytes());
        input.extend(u32::try_from(text.len()).expect("a sentence").to_le_bytes());
        input.extend(text.as_bytes());
    }
}

impl ResponsePart {
    /// Reads as far as the response has arrived. Once it is complete, returns its result: an error of the stream, or
    /// what the response says.
    fn poll(
        &mut self,
        exchange: &Exchange,
        context: &mut Context<'_>,
    ) -> Poll<Result<Result<(), String>, h2::Error>> {
        loop {
            match self {
                Self::Head(response) => {
                    let response = std::task::ready!(Pin::new(response).poll(context))?;
                    let verdict = exchange.judge(&response);
                    *self = Self::Body(response.into_body(), verdict);
                }
                Self::Body(body, verdict) => match std::task::ready!(body.poll_data(context)) {
                    Some(data) => {
                        let data = data?;
                        verdict.add_data(&data);
                        body.flow_control().release_capacity(data.len())?;
                    }
                    None => {
                        if let Some(trailers) = std::task::ready!(body.poll_trailers(context))? {
                            verdict.add_trailers(&trailers);
                        }
                        return Poll::Ready(Ok(verdict.finish()));
                    }
                },
            }
        }
    }
}

impl ClientCodec for Http2Codec {
    fn encode(
        &mut self,
        out: &mut Vec<u8>,
        id: u64,
        request: IoRequest,
        payload: &[u8],
    ) -> Result<(), String> {
        let (head, body) = self.exchange.request(request.op, payload);
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(()) = self.requests.poll_ready(&mut context).map_err(|error| describe(&error))?
        else {
            return Err("more requests at once than the server takes".to_owned());
        };
        let sent = self.requests.send_request(head, body.is_none());
        let (response, mut stream) = sent.map_err(|error| describe(&error))?;
        if let Some(body) = body {
            // What does not fit into the server's window waits in `h2`.
            stream.send_data(body, true).map_err(|error| describe(&error))?;
        }
        let id = u32::try_from(id & u64::from(u32::MAX)).expect("32 bits");
        let waker = Waker::from(Arc::new(StreamWaker { id, woken: self.woken.clone() }));
        let mut part = ResponsePart::Head(response);
        // A stream wakes only after it was polled.
        let _ = part.poll(&self.exchange, &mut Context::from_waker(&waker));
        self.streams.insert(id, OpenStream { part, waker });
        if let Poll::Ready(Err(error)) = Pin::new(&mut self.connection).poll(&mut context) {
            return Err(describe(&error));
        }
        self.pipe.take_to_send(out);
        Ok(())
    }

    fn converts(&self) -> bool {
        true
    }

    fn accept(&mut self, received: &[u8], input: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), String> {
        self.check_opening(received)?;
        self.pipe.push_received(received);
        self.drive(input);
        self.pipe.take_to_send(out);
        match &self.failure {
            // What was not begun before the server left is sent again.
            Some(_) if self.is_closing() => Ok(()),
            Some(why) => Err(why.clone()),
            None => Ok(()),
        }
    }

    fn in_flight_max(&self) -> usize {
        if self.is_leaving { 0 } else { self.connection.max_concurrent_send_streams().min(IN_FLIGHT_MAX) }
    }

    fn decode(&mut self, input: &[u8]) -> Result<Decoded, String> {
        let Some((head, _)) = input.split_first_chunk::<REPLY_HEAD>() else {
            return Ok(Decoded::NeedMore(REPLY_HEAD));
        };
        let [id, length] =
            [0, 4].map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
        Ok(Decoded::Reply { len: REPLY_HEAD + length as usize, id, payload_start: REPLY_HEAD })
    }

    fn interpret<'a>(&self, _: IoRequest, reply: &'a [u8], payload_start: usize) -> ReplyStatus<'a> {
        match &reply[payload_start..] {
            [] => ReplyStatus::Done(Cow::Borrowed(&[])),
            why => ReplyStatus::Failed(String::from_utf8_lossy(why).into_owned()),
        }
    }

    fn takes_requests(&self) -> bool {
        !self.is_leaving
    }

    /// A server that leaves still answers what it has begun.
    fn is_closing(&self) -> bool {
        self.is_leaving && self.streams.is_empty()
    }
}

/// True for the end that a server announces without an error.
fn is_farewell(error: &h2::Error) -> bool {
    error.is_go_away() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR)
}

/// Describes an error of a stream or a connection. Reasons have the names of RFC 9113.
fn describe(error: &h2::Error) -> String {
    match error.reason() {
        Some(reason) if error.is_remote() && error.is_reset() => {
            format!("the server reset the stream: {reason:?}")
        }
        Some(reason) if error.is_remote() => format!("the server ended the connection: {reason:?}"),
        Some(reason) => format!("the server's answer is not HTTP/2: {reason:?}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
