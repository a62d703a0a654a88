//! A survey with its audit, which text, document and page show.

use limits::{Audit, Survey};

/// Survey with its audit.
pub(crate) struct AuditedSurvey<'a> {
    pub(crate) survey: &'a Survey,
    pub(crate) audit: &'a Audit,
}
