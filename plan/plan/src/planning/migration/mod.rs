//! From one policy to another: who moves when, at what speed their data is copied, and a policy for every step.
//!
//! `placement::migration` finds the steps. This module matches servers by name, describes copies by bytes, and makes each
//! step a policy that enforcers read.

mod copies;
mod document;
mod fleet;
mod search;
mod stage;

pub use document::{MigrationPlan, MigrationStage, PolicyCopy, PolicyMove, RenamedServer, StageKind};
pub use search::{MigrationQuestion, plan_migration};
