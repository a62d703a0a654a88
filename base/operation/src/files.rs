//! Reading of user-named text files, and writing of files whole or not at all.

use machine::whole_file::{self, WholeFile};
use model::OperationError;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{fmt, fs, io};

/// Reads a text file that the user named, standard input for `-`; `what` describes it in errors.
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

/// Writes a result file, whole or not at all; `what` describes it in errors.
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

/// As [`write_repeated`], but never waits for the reader of a pipe. `last_read` is the time of the last
/// write that succeeded. For [`whole_file::READER_PATIENCE`] after it, a write to a pipe without a reader is
/// skipped, and false returned.
///
/// # Errors
///
/// When the file cannot be written, or the pipe has had no reader for longer than that.
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

/// Checks before a long run that its result file, if requested, can be written.
///
/// # Errors
///
/// When the file could not be written now.
pub fn check_writable(path: Option<&Path>, what: &str) -> Result<(), OperationError> {
    path.map_or(Ok(()), |path| whole_file::check(path).map_err(|error| cannot_write(path, what, &error)))
}

/// Refuses a folder for results that holds something: what an earlier run has written there would stay beside them. `what`
/// describes the results in errors.
///
/// # Errors
///
/// When the folder has an entry, or cannot be read.
pub fn check_empty_folder(folder: Option<&Path>, what: &str) -> Result<(), OperationError> {
    let Some(folder) = folder else { return Ok(()) };
    match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(false) => Ok(()),
        Ok(true) => Err(OperationError::input(format_args!(
            "{}: the folder holds something; expected an empty folder, or none",
            folder.display()
        ))
        .hint(format_args!("{what} of an earlier run would stay there: name another folder, or remove it"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => {
            let wrong = format_args!("{}: cannot be the folder of {what}: {error}", folder.display());
            Err(OperationError::input(wrong).hint("name another folder"))
        }
    }
}

/// Checks that a result would not replace an input or another result. `-` among the others stands for the
/// file that standard input is redirected from. Output to `-`, a terminal, a pipe or another character
/// device replaces nothing.
///
/// # Errors
///
/// When `result` and another path lead to the same file or folder, also by links.
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

/// Returns the error for a result that would replace another file of the command.
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

/// Writes a result file if one is requested; its text is built only then. The caller reports the error
/// after its other output.
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

/// A result file that is written incrementally and appears whole or not at all. Dropping it without
/// [`Self::finish`] removes the partial file.
#[derive(Debug)]
pub struct GrowingFile {
    path: PathBuf,
    what: &'static str,
    content: io::BufWriter<fs::File>,
    whole: WholeFile,
}

impl GrowingFile {
    /// Creates the file; `what` describes it in errors.
    ///
    /// # Errors
    ///
    /// When the file cannot be created.
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
    /// When the rest cannot be written or the file cannot be renamed.
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
