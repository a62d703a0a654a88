//! What the targets share.

#[path = "../../crates/trace/tests/common/exercise.rs"]
mod exercise;

pub use exercise::exercise;

#[path = "../../crates/wire/tests/common/mod.rs"]
mod common;
#[path = "../../crates/wire/tests/common/exercise.rs"]
mod wire;

pub use wire::exercise as exercise_wire;

#[path = "../../crates/wire/tests/common/conversation.rs"]
mod conversation;
#[path = "../../crates/wire/tests/common/talk/mod.rs"]
mod talk;

pub use conversation::exercise_conversation;

#[path = "../../crates/gat/tests/common/mod.rs"]
mod tag_headers;

pub use tag_headers::exercise as exercise_tag_headers;
