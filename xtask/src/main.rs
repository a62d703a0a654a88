//! Empty so far.
fn main() {}
