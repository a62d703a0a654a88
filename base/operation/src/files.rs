//! Reading texts that the user named, and writing files so that they are whole or not there.

use machine::whole_file::{self, WholeFile};
use model::OperationError;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Instant;
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

/// Writes a file that is rewritten repeatedly during a run. Readers always find it complete; after a crash of
/// the machine an older version or none may be present.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write_repeated(path: &Path, text: &str, what: &str) -> Result<(), OperationError> {
    whole_file::write_unsynced(path, text.as_bytes()).map_err(|error| cannot_write(path, what, &error))
}

/// As [`write_repeated`], without waiting for the reader of a pipe that was last read at an instant, or soon after it.
///
/// # Errors
///
/// When the file cannot be written. A pipe that has had no reader for a short time is left out this time: then false.
pub fn write_repeated_now(
    path: &Path,
    text: &str,
    what: &str,
    last_read: Instant,
) -> Result<bool, OperationError> {
    match whole_file::write_unsynced_now(path, text.as_bytes()) {
        Ok(()) => Ok(true),
        Err(error)
            if error.kind() == io::ErrorKind::NotConnected
                && last_read.elapsed() < whole_file::READER_PATIENCE =>
        {
            Ok(false)
        }
        Err(error) => Err(cannot_write(path, what, &error)),
    }
}

/// Checks that a result file can be written, where one is asked for, before it takes long to have a result.
///
/// # Errors
///
/// When the file could not be written now.
pub fn check_writable(path: Option<&Path>, what: &str) -> Result<(), OperationError> {
    path.map_or(Ok(()), |path| whole_file::check(path).map_err(|error| cannot_write(path, what, &error)))
}

/// Checks that a result does not take the place of what is read, or of another result; `-` among these is what the standard
/// input is redirected from. A result `-` is no file, and what goes to a terminal, a pipe or another character device takes
/// no place.
///
/// # Errors
///
/// When `result`, which is to be written, and another path are one file or folder, also by links.
pub fn check_apart<'a>(
    result: Option<&Path>,
    others: impl IntoIterator<Item = Option<&'a Path>>,
) -> Result<(), OperationError> {
    let Some(result) = result.filter(|path| *path != Path::new("-") && takes_a_place(path)) else {
        return Ok(());
    };
    if others.into_iter().flatten().all(|other| !is_same_place(other, result)) {
        return Ok(());
    }
    Err(place_taken(result))
}

/// The error of a result that would take the place of another file of the command.
pub fn place_taken(result: &Path) -> OperationError {
    OperationError::input(format_args!(
        "{}: expected another file for the result, this one has another use in the same command",
        result.display()
    ))
    .hint("give the result a name of its own")
}

/// Returns true if output at a path is persistent: in a file, a folder or on a disk.
fn takes_a_place(path: &Path) -> bool {
    path.metadata().map_or(true, |found| {
        let kind = found.file_type();
        kind.is_file() || kind.is_dir() || kind.is_block_device()
    })
}

/// Path of the file that the standard input is redirected from.
const STANDARD_INPUT: &str = "/dev/stdin";

/// Returns true if two paths lead to one file or folder, which need not exist.
fn is_same_place(other: &Path, one: &Path) -> bool {
    let other = if other == Path::new("-") { Path::new(STANDARD_INPUT) } else { other };
    let identity = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    match (identity(one), identity(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => place(one) == place(other),
        _ => false,
    }
}

/// Returns the canonical location of a file, which need not exist: the same for all paths that lead there. A
/// path that cannot be resolved stays as it is.
fn place(path: &Path) -> PathBuf {
    let end = whole_file::follow_links(path).unwrap_or_else(|_| path.to_owned());
    let folder = match end.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    match (folder.canonicalize(), end.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => end,
    }
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
        .hint(writing_hint(error))
}

/// Returns the remedy for a result that cannot be written.
fn writing_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotConnected | io::ErrorKind::BrokenPipe => {
            "let the reader of the pipe run until all is written, or write to a file"
        }
        _ => "check that the folder exists, its permissions and the space left",
    }
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

    /// Returns the error of a failed write.
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
