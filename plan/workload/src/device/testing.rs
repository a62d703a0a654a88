//! Requests for the tests of device models.

use model::{Op, Request};
use units::{Bytes, Nanos};

pub(super) fn request(op: Op, size: u64) -> Request {
    request_at(op, size, None)
}

pub(super) fn request_at(op: Op, size: u64, offset: Option<u64>) -> Request {
    Request { arrival: Nanos::ZERO, size: Bytes(size), op, offset, response: None }
}
