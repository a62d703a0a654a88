//! Limits that other programs enforce: what is set today, and whether it adds up.
//!
//! Reading order: [`FoundLimit`] is a row of what is set; [`READERS`] turn files into rows ([`survey()`]); [`audit()`]
//! adds them up against a device.
//!
//! Not covered: what traffic really does with the limits, which `observe` and `verify` see.

mod audit;
mod export;
mod gather;
mod limit;
mod readers;
mod survey;
mod throttle;
mod tree;

pub use audit::{
    Audit, AuditSettings, AuditVerdict, ParentSum, PlaceSum, SizeRange, SizeSum, UncoveredReservation, audit,
};
pub use export::{
    DRIVERS, EXPORT_FORMATS, Export, ExportFormat, ExportSettings, ExportedBound, ExportedFile, export,
};
pub use gather::{survey, survey_of};
pub use limit::{
    Direction, FoundLimit, LimitKind, LimitUnit, Origin, Resource, StatedCapacity, UnlimitedTenant,
};
pub use readers::{READERS, Reader};
pub use survey::{SourceText, Survey, UnknownKey, Unreadable};
