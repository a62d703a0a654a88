//! What the head of a request says, whatever the dialect.

use super::expected_reply::ExpectedReply;
use crate::{ReplyExpectation, RequestClass, RequestRewrite};

/// A request of which the head has been read.
pub(super) struct MemcachedCommand {
    pub(super) class: RequestClass,
    pub(super) reply: ReplyExpectation,
    /// The form of the reply, unless there is none.
    pub(super) expected: ExpectedReply,
    /// Whether the server may hang up instead of answering what comes behind.
    pub(super) ends_connection: bool,
    /// Neither effect nor reply depends on the connection.
    pub(super) is_independent: bool,
    /// The number of keys to look up, at least 1.
    pub(super) keys: u32,
    /// Bytes that a proxy sends in its place.
    pub(super) rewrite: Option<RequestRewrite>,
    /// The length in bytes of what has been read.
    pub(super) head: usize,
    /// The length of the whole request in bytes.
    pub(super) len: u64,
}
