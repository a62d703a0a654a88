//! A recording as a trace: see [`crate::recording`].

use super::source::{SourceError, TraceSource};
use crate::error::{TraceErrorKind, TracePosition};
use crate::recording::{ArrivalOrder, RecordingRows, RowError};
use crate::selection::{RequestParties, RequestSelector, TraceSelection, recorded_server};
use model::Request;
use std::collections::BTreeMap;

pub(super) struct RecordingSource {
    rows: RecordingRows,
    selector: RequestSelector,
    order: ArrivalOrder<()>,
}

impl RecordingSource {
    pub(super) fn new(rows: RecordingRows, selection: &TraceSelection) -> Self {
        Self { rows, selector: RequestSelector::new(selection), order: ArrivalOrder::default() }
    }
}

impl TraceSource for RecordingSource {
    fn next(&mut self) -> Result<Option<Request>, SourceError> {
        loop {
            if let Some(first) = self.order.pop() {
                return Ok(Some(first.request));
            }
            if self.order.has_ended() {
                return Ok(None);
            }
            let Self { rows, selector, order } = self;
            let taken = rows.next(|row| {
                // Every row takes part in the order of time, whosever it is.
                let server = recorded_server(&row.workload);
                let parties = RequestParties { workload: &row.workload, client: &row.client, server };
                if selector.admits(parties)? {
                    order.push(row.request, row.answered, ())?;
                }
                Ok(())
            });
            match taken {
                Ok(Some(())) => {}
                Ok(None) => {
                    self.order.end();
                    self.selector.finish().map_err(|kind| SourceError::fatal(TracePosition::File, kind))?;
                }
                Err(error) => return Err(source_error(error)),
            }
        }
    }

    fn position(&self) -> TracePosition {
        self.rows.position()
    }

    fn ignored(&self) -> u64 {
        0
    }

    fn owners(&self) -> Option<&BTreeMap<String, u64>> {
        Some(self.selector.counts())
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.order.late() > 0 {
            remarks.push(format!(
                "{} took more than 10s and stand at a later arrival than they had",
                units::plural(self.order.late(), "request")
            ));
        }
        if self.rows.cut() > 0 {
            remarks.push(format!(
                "end early, as their writer did: {}; what was answered in its last second is not there",
                units::plural(self.rows.cut(), "segment")
            ));
        }
        remarks
    }

    fn fraction(&self) -> Option<f64> {
        self.rows.fraction()
    }
}

fn source_error(error: RowError) -> SourceError {
    let RowError { segment, position, kind, is_recoverable } = error;
    // Which workload is meant concerns the whole recording, and does not become clearer with the next line.
    if matches!(kind, TraceErrorKind::SeveralWorkloads { .. } | TraceErrorKind::SeveralServers { .. }) {
        return SourceError::fatal(TracePosition::File, kind);
    }
    SourceError { position, kind, is_recoverable, file: segment }
}
