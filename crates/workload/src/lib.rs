//! Characterises a request stream: what burst (r-b) curves it has at every stage that it passes.

pub mod burst;
