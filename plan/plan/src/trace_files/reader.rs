//! Reads a trace and reports progress.

use crate::trace_files::error::TraceFileError;
use model::Request;
use operation::{Notice, ProgressObserver, TaskProgress};
use std::path::Path;
use trace::{OpenOptions, TraceError, TracePlace, TraceReader};
use units::plural;

/// Requests between two updates of the progress.
const UPDATE_EVERY: u32 = 1 << 15;

/// A reader that reports its progress, and in the end what was passed over.
pub(super) struct ObservedReader<'a> {
    pub(super) reader: TraceReader,
    observer: &'a dyn ProgressObserver,
    task: Option<Box<dyn TaskProgress + 'a>>,
    since_update: u32,
}

impl<'a> ObservedReader<'a> {
    /// Opens a trace whose reading is a task of this name.
    pub(super) fn open(
        path: &Path,
        options: &OpenOptions,
        task: &str,
        observer: &'a dyn ProgressObserver,
    ) -> Result<Self, TraceFileError> {
        let reader = trace::open(path, options)?;
        let task = reader.fraction().map(|_| observer.begin(task, 100, "%"));
        Ok(Self { reader, observer, task, since_update: 0 })
    }

    /// Opens one of many traces, which are no tasks of their own.
    pub(super) fn open_one_of_many(
        place: &TracePlace,
        options: &OpenOptions,
        observer: &'a dyn ProgressObserver,
    ) -> Result<Self, TraceFileError> {
        Ok(Self { reader: trace::open_place(place, options)?, observer, task: None, since_update: 0 })
    }
}

impl Drop for ObservedReader<'_> {
    fn drop(&mut self) {
        self.task = None;
        let file = self.reader.file().display();
        let reader = &self.reader;
        if reader.skipped() > 0 {
            let skipped = plural(reader.skipped(), "malformed or out-of-order request");
            self.observer.notice(Notice::Done(format!("{file}: skipped {skipped}")));
        }
        for remark in reader.remarks() {
            self.observer.notice(Notice::Warning(format!("{file}: {remark}")));
        }
        if reader.ignored() > 0 {
            let ignored = plural(reader.ignored(), "record");
            self.observer.notice(Notice::Done(format!("{file}: ignored {ignored}, neither read nor write")));
        }
    }
}

impl Iterator for ObservedReader<'_> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.since_update += 1;
        if self.since_update == UPDATE_EVERY {
            self.since_update = 0;
            if let Some(task) = &self.task {
                let share = self.reader.fraction().unwrap_or(0.0);
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a percentage of a share between 0 and 1"
                )]
                task.update((share * 100.0) as u64, 100);
            }
        }
        self.reader.next()
    }
}
