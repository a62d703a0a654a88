//! The requests of a workload on streams, and the judgement of their responses.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, TE, USER_AGENT};
use http::{Method, Request, Response, StatusCode, Uri};
use model::Op;
use std::borrow::Cow;

/// Length of what stands before a message of gRPC: a flag for compression, and the length.
const PREFIX: usize = 5;
const AGENT: HeaderValue = HeaderValue::from_static("tailwright");
const GRPC: &str = "application/grpc";
/// Names of the statuses of gRPC, by number.
const GRPC_STATUSES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The requests of a workload.
#[derive(Debug)]
pub(crate) enum Exchange {
    /// GET and PUT of a path.
    Http { get: Request<()>, put: Request<()> },
    /// A unary call with the same message each time, behind its prefix.
    Grpc { call: Request<()>, message: Bytes },
}

impl Exchange {
    /// GET and PUT of a path.
    pub(crate) fn http(scheme: &str, host: &str, path: &str) -> Result<Self, String> {
        let uri = uri(scheme, host, path)?;
        let with = |method| {
            let mut request = Request::new(());
            *request.method_mut() = method;
            *request.uri_mut() = uri.clone();
            request.headers_mut().insert(USER_AGENT, AGENT);
            request
        };
        Ok(Self::Http { get: with(Method::GET), put: with(Method::PUT) })
    }

    /// Calls of `/package.Service/Method`.
    pub(crate) fn grpc(scheme: &str, host: &str, path: &str, message: &[u8]) -> Result<Self, String> {
        let mut call = Request::new(());
        *call.method_mut() = Method::POST;
        *call.uri_mut() = uri(scheme, host, path)?;
        let headers = call.headers_mut();
        headers.insert(TE, HeaderValue::from_static("trailers"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
        headers.insert(USER_AGENT, AGENT);
        let length = u32::try_from(message.len()).map_err(|_| "a message of more than 4 GiB".to_owned())?;
        let mut whole = vec![0];
        whole.extend(length.to_be_bytes());
        whole.extend(message);
        Ok(Self::Grpc { call, message: whole.into() })
    }

    /// Returns the head of a request, and its body if it has one.
    pub(super) fn request(&self, op: Op, payload: &[u8]) -> (Request<()>, Option<Bytes>) {
        match self {
            Self::Grpc { call, message } => (call.clone(), Some(message.clone())),
            Self::Http { get, .. } if op == Op::Read => (get.clone(), None),
            Self::Http { put, .. } => {
                let mut put = put.clone();
                put.headers_mut().insert(CONTENT_LENGTH, payload.len().into());
                (put, Some(Bytes::copy_from_slice(payload)))
            }
        }
    }

    /// Begins to judge a response by its head.
    pub(super) fn judge(&self, response: &Response<impl Sized>) -> Verdict {
        let grpc = matches!(self, Self::Grpc { .. });
        Verdict {
            status: response.status(),
            grpc: grpc.then(|| GrpcReply {
                has_type: content_type(response.headers()).is_some_and(|found| found.starts_with(GRPC)),
                // A call that fails at once has its status here, and no trailers.
                outcome: grpc_outcome(response.headers()),
                ..GrpcReply::default()
            }),
        }
    }
}

fn uri(scheme: &str, host: &str, path: &str) -> Result<Uri, String> {
    let uri = Uri::builder().scheme(scheme).authority(host).path_and_query(path).build();
    uri.map_err(|error| format!("{host}{path}: {error}"))
}

fn content_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(CONTENT_TYPE)?.to_str().ok()
}

/// Judges a response as its parts arrive.
#[derive(Debug)]
pub(super) struct Verdict {
    status: StatusCode,
    /// Present for calls of gRPC.
    grpc: Option<GrpcReply>,
}

#[derive(Debug, Default)]
struct GrpcReply {
    has_type: bool,
    /// The prefix of the message, as far as it has arrived.
    prefix: [u8; PREFIX],
    received: u64,
    /// The status, once the server has sent it.
    outcome: Option<Result<(), String>>,
}

impl Verdict {
    pub(super) fn add_data(&mut self, data: &[u8]) {
        let Some(reply) = &mut self.grpc else { return };
        let filled = usize::try_from(reply.received).unwrap_or(PREFIX).min(PREFIX);
        for (place, byte) in reply.prefix[filled..].iter_mut().zip(data) {
            *place = *byte;
        }
        reply.received += data.len() as u64;
    }

    pub(super) fn add_trailers(&mut self, trailers: &HeaderMap) {
        if let Some(reply) = &mut self.grpc {
            reply.outcome = grpc_outcome(trailers).or(reply.outcome.take());
        }
    }

    /// Returns the result of the response, which is complete; an error says why it is no success.
    pub(super) fn finish(&self) -> Result<(), String> {
        let status = self.status.as_u16();
        let Some(reply) = &self.grpc else {
            let is_success = (200..400).contains(&status);
            return if is_success {
                Ok(())
            } else {
                Err(format!("the server answered with status {status}"))
            };
        };
        if status != 200 {
            return Err(format!("the server answered with the HTTP status {status}, where gRPC has 200"));
        }
        if !reply.has_type {
            return Err("the server's answer is not of the type application/grpc".to_owned());
        }
        reply
            .outcome
            .clone()
            .ok_or_else(|| "the server's answer ended without a grpc-status".to_owned())??;
        reply.check_message()
    }
}

impl GrpcReply {
    /// Checks that the response has one whole message.
    fn check_message(&self) -> Result<(), String> {
        let [compressed, length @ ..] = self.prefix;
        if compressed != 0 {
            return Err("the server compressed its message without being asked to".to_owned());
        }
        let expected = PREFIX as u64 + u64::from(u32::from_be_bytes(length));
        if self.received != expected {
            return Err(format!(
                "expected one message: the server sent {} bytes, where its message says {expected}",
                self.received
            ));
        }
        Ok(())
    }
}

/// Reads the result of a call; `None` if it is not there.
fn grpc_outcome(headers: &HeaderMap) -> Option<Result<(), String>> {
    let status = headers.get("grpc-status")?.to_str().unwrap_or("?");
    if status == "0" {
        return Some(Ok(()));
    }
    let name = status.parse().ok().and_then(|number: usize| GRPC_STATUSES.get(number));
    let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
    let message = headers.get("grpc-message").map(|message| String::from_utf8_lossy(message.as_bytes()));
    let message = message.filter(|message| !message.is_empty());
    let message = message.map(|message: Cow<'_, str>| format!(": {message}")).unwrap_or_default();
    Some(Err(format!("the server answered with grpc-status {status}{name}{message}")))
}
