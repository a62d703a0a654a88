//! Shared parts of the targets.

#[path = "../../../base/trace/tests/common/exercise.rs"]
mod exercise;

pub use exercise::exercise;

#[path = "../../../enforce/wire/tests/common/mod.rs"]
mod common;
#[path = "../../../enforce/wire/tests/common/exercise.rs"]
mod wire;

pub use wire::exercise as exercise_wire;

#[path = "../../../enforce/wire/tests/common/conversation.rs"]
mod conversation;
#[path = "../../../enforce/wire/tests/common/talk/mod.rs"]
mod talk;

pub use conversation::exercise_conversation;

#[path = "../../../schedule/gat/tests/common/mod.rs"]
mod tag_headers;

pub use tag_headers::exercise as exercise_tag_headers;
