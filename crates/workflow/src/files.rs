//! Reading texts that the user named, and writing files so that they are whole or not there.

use machine::whole_file::{self, WholeFile};
use model::OperationError;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// Reads a text file that the user named; `what` says what it should be, and `-` is standard input.
///
/// # Errors
///
/// When the file cannot be read or is not UTF-8.
pub fn read_text(path: &Path, what: &str) -> Result<String, OperationError> {
    let text =
        if path == Path::new("-") { io::read_to_string(io::stdin()) } else { fs::read_to_string(path) };
    text.map_err(|error| {
        let (fault, hint) = match error.kind() {
            io::ErrorKind::InvalidData => {
                ("it is not UTF-8 text".to_owned(), "check that this is the file you meant")
            }
            io::ErrorKind::IsADirectory => {
                ("expected a file, found a folder".to_owned(), "name the file in it")
            }
            _ => (error.to_string(), "check the path and its permissions"),
        };
        OperationError::input(format_args!("{}: cannot read the {what}: {fault}", path.display())).hint(hint)
    })
}

/// Writes a result file, whole or not at all; `what` says what it is.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write_result(path: &Path, text: &str, what: &str) -> Result<(), OperationError> {
    whole_file::write(path, text.as_bytes()).map_err(|error| cannot_write(path, what, &error))
}

/// Writes a file that is written again and again while a run lasts. Whoever reads it finds it whole; after a crash of the
/// machine an older one or none may be there.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write_repeated(path: &Path, text: &str, what: &str) -> Result<(), OperationError> {
    whole_file::write_unsynced(path, text.as_bytes()).map_err(|error| cannot_write(path, what, &error))
}

/// Checks that a result file can be written, where one is asked for, before it takes long to have a result.
///
/// # Errors
///
/// When the file could not be written now.
pub fn check_writable(path: Option<&Path>, what: &str) -> Result<(), OperationError> {
    path.map_or(Ok(()), |path| whole_file::check(path).map_err(|error| cannot_write(path, what, &error)))
}

/// Checks that a result does not take the place of a file that is read, or of another result; `-` is no file.
///
/// # Errors
///
/// When two of the paths are one file, also by links, of which `result` is to be written.
pub fn check_apart(result: Option<&Path>, others: &[Option<&Path>]) -> Result<(), OperationError> {
    let is_device = |path: &Path| path.metadata().is_ok_and(|found| !found.is_file());
    let Some(result) = result.filter(|path| *path != Path::new("-") && !is_device(path)) else {
        return Ok(());
    };
    if others.iter().flatten().all(|other| place(other) != place(result)) {
        return Ok(());
    }
    Err(OperationError::input(format_args!(
        "{}: expected another file for the result, this one has another use in the same command",
        result.display()
    ))
    .hint("give the result a name of its own"))
}

/// Where a path leads, without links as far as it exists.
fn place(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

/// Writes a result file where one is asked for; its text is made for that only. An error is for the caller to pass on
/// when what else there is to say has been said.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write_wanted(
    path: Option<&Path>,
    what: &str,
    text: impl FnOnce() -> String,
) -> Result<(), OperationError> {
    path.map_or(Ok(()), |path| write_result(path, &text(), what))
}

fn cannot_write(path: &Path, what: &str, error: &io::Error) -> OperationError {
    OperationError::machine(format_args!("{}: cannot write the {what}: {error}", path.display()))
        .hint("check that the folder exists, its permissions and the space left")
}

/// A result file that is written bit by bit and appears whole or not at all. Dropping it without [`Self::finish`] removes
/// what was written.
#[derive(Debug)]
pub struct GrowingFile {
    path: PathBuf,
    what: &'static str,
    content: io::BufWriter<fs::File>,
    whole: WholeFile,
}

impl GrowingFile {
    /// Begins a file; `what` says what it is.
    ///
    /// # Errors
    ///
    /// When it cannot be written here.
    pub fn create(path: &Path, what: &'static str) -> Result<Self, OperationError> {
        WholeFile::create(path)
            .and_then(|whole| Ok((io::BufWriter::new(whole.file.try_clone()?), whole)))
            .map(|(content, whole)| Self { path: path.to_owned(), what, content, whole })
            .map_err(|error| cannot_write(path, what, &error))
    }

    /// The error of whoever could not write.
    pub fn failed(&self, error: impl fmt::Display) -> OperationError {
        cannot_write(&self.path, self.what, &io::Error::other(error.to_string()))
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    ///
    /// When the rest cannot be written or the file not be renamed.
    pub fn finish(self) -> Result<(), OperationError> {
        let Self { path, what, mut content, whole } = self;
        let kept = io::Write::flush(&mut content).and_then(|()| whole.keep());
        kept.map_err(|error| cannot_write(&path, what, &error))
    }
}

impl io::Write for GrowingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.content.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.content.flush()
    }
}
