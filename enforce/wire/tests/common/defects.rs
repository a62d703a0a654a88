//! Tables of malformed conversations, and what is said about each.

use super::common::{Side, Watch};

pub(super) const CLIENT: Side = Side::Client;
pub(super) const SERVER: Side = Side::Server;

/// What is wrong with a conversation; all but its last turn is right.
fn defect(mut watch: Watch, talk: &[(Side, &[u8])]) -> String {
    let ((side, last), before) = talk.split_last().unwrap();
    for (side, said) in before {
        watch.feed(*side, said).expect("well-formed so far");
    }
    watch.feed(*side, last).expect_err("malformed").to_string()
}

/// What is said, and what is wrong with the last of it.
pub(super) type Row<'a> = (&'a [(Side, &'a [u8])], &'a str);

pub(super) fn table(new: impl Fn() -> Watch, rows: &[Row<'_>]) {
    for (talk, expected) in rows {
        assert_eq!(defect(new(), talk), *expected);
    }
}
