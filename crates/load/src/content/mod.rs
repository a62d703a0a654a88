//! What writes carry, and whether reads bring it back.

mod ledger;
mod pattern;

pub(crate) use ledger::{Ended, Ledger, Units};
pub(crate) use pattern::Pattern;
