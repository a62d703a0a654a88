//! Destination of a trace.

use crate::trace_files::error::TraceFileError;
use model::{OperationError, Request};
use operation::files::check_writable;
use operation::{Notice, ProgressObserver};
use std::path::{Path, PathBuf};
use trace::{TraceError, TraceFormat, TraceWriter};
use units::plural;

/// A trace file to write.
#[derive(Debug, Clone)]
pub struct TraceOutput {
    /// The file; `-` is the standard output.
    pub path: PathBuf,
    /// The format, instead of the one that the file name says.
    pub format: Option<TraceFormat>,
}

impl TraceOutput {
    fn resolve_format(&self) -> Result<TraceFormat, OperationError> {
        let name = self.path.to_string_lossy();
        self.format.or_else(|| TraceFormat::from_file_name(&name)).ok_or_else(|| {
            OperationError::input(format!("{name}: the name does not say which format to write"))
                .hint(format!("add --as FORMAT, one of {}", TraceFormat::names_written()))
        })
    }

    /// Writes all of `requests`, and tells the observer how many they were.
    pub(super) fn write(
        &self,
        requests: impl Iterator<Item = Result<Request, TraceError>>,
        observer: &dyn ProgressObserver,
    ) -> Result<(), TraceFileError> {
        let format = self.resolve_format()?;
        check_writable(Some(self.path.as_path()).filter(|path| *path != Path::new("-")), "trace")?;
        let mut writer = TraceWriter::create(&self.path, format).map_err(TraceFileError::Output)?;
        for request in requests {
            writer.write(&request?).map_err(TraceFileError::Output)?;
        }
        let count = writer.finish().map_err(TraceFileError::Output)?;
        observer.notice(Notice::Done(format!(
            "wrote {} to {}",
            plural(count, "request"),
            self.path.display()
        )));
        Ok(())
    }
}
