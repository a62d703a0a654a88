//! The names of operations in trace files.

use model::Op;

/// The name that this crate writes.
pub(crate) fn name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
    }
}

/// Understands `read`, `write`, `r`, `w`, `get` and `put` in any case.
#[inline]
pub(crate) fn from_name(text: &[u8]) -> Option<Op> {
    const NAMES: [(&[u8], Op); 6] = [
        (b"read", Op::Read),
        (b"write", Op::Write),
        (b"r", Op::Read),
        (b"w", Op::Write),
        (b"get", Op::Read),
        (b"put", Op::Write),
    ];
    NAMES.iter().find(|(name, _)| text.eq_ignore_ascii_case(name)).map(|(_, op)| *op)
}
