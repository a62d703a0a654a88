//! Requests for the tests of this crate.

use crate::request::{HeldUpTime, ObservedRequest, POINTS, RequestQuality};

/// A request from a client's port to a port of the server that passes the points at these instants.
pub(crate) fn request(client: u16, port: u16, points: [u64; POINTS]) -> ObservedRequest {
    ObservedRequest {
        points,
        first_wire: points[0],
        last_awaited_write: points[6],
        peer: ([10, 0, 0, 1], client).into(),
        port,
        udp: false,
        request_bytes: 1,
        answer_bytes: 7,
        reader: 1,
        writer: 1,
        quality: RequestQuality::default(),
        held_up: HeldUpTime::default(),
    }
}
