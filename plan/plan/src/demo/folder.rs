//! Directory of a demo: the files that may be replaced, and their joint replacement.

use crate::demo::cluster::{DemoCluster, TRACE_FOLDER, is_demo_file};
use machine::whole_file::{UnfinishedFolder, uninterrupted};
use model::OperationError;
use operation::files::write_result;
use operation::{Notice, ProgressObserver};
use std::path::{Path, PathBuf};
use std::{fs, io};
use units::plural;

/// The presence of this file says that a demo was written to a folder; it lists what may be replaced.
const MARKER: &str = ".tailwright-demo";

/// A demo that is complete but for its plan, in a temporary folder beside its place. Dropping it removes it, and an earlier
/// demo stays as it was.
#[derive(Debug)]
pub struct StagedDemo {
    folder: PathBuf,
    staged: UnfinishedFolder,
    files: Vec<String>,
    earlier: Vec<String>,
    described: String,
}

impl StagedDemo {
    /// Generates a cluster of `count` workloads with its device profile and traces, for a folder that is empty or has an
    /// earlier demo. The same seed gives the same cluster.
    ///
    /// # Errors
    ///
    /// When the folder holds something else or cannot be written.
    pub fn generate(
        folder: &Path,
        seed: u64,
        count: u32,
        observer: &dyn ProgressObserver,
    ) -> Result<Self, OperationError> {
        let earlier = earlier_files(folder)?;
        let made = fs::create_dir_all(folder).and_then(|()| UnfinishedFolder::create(folder, "demo"));
        let staged = made.map_err(|error| unusable(folder, &error))?;
        let traces = staged.path().join(TRACE_FOLDER);
        uninterrupted(|| fs::create_dir(traces)).map_err(|error| unusable(folder, &error))?;
        let cluster = DemoCluster::new(seed, count);
        cluster.write(staged.path(), observer)?;
        let described = format!("{} (seed {seed})", plural(count, "generated trace"));
        Ok(Self { folder: folder.to_owned(), staged, files: cluster.files(), earlier, described })
    }

    /// The folder in which it is now.
    pub fn path(&self) -> &Path {
        self.staged.path()
    }

    /// Moves this demo into place, and removes the files of an earlier one.
    ///
    /// # Errors
    ///
    /// If a file cannot be removed or moved.
    pub fn take_place(self, observer: &dyn ProgressObserver) -> Result<(), OperationError> {
        let Self { folder, staged, files, earlier, described } = self;
        let marker = folder.join(MARKER);
        // A killed exchange leaves files of both.
        write_result(&marker, &[&earlier[..], &files[..]].concat().join("\n"), "demo")?;
        uninterrupted(|| exchange(&folder, &earlier, staged.path(), &files))
            .map_err(|error| unusable(&folder, &error))?;
        write_result(&marker, &files.join("\n"), "demo")?;
        observer.notice(Notice::Done(format!("wrote {} with {described}", folder.display())));
        Ok(())
    }
}

/// Removes the `earlier` files of a folder, and moves the new ones there.
fn exchange(folder: &Path, earlier: &[String], staged: &Path, files: &[String]) -> io::Result<()> {
    // Only names that a demo gives are followed, whatever the list says.
    for file in earlier.iter().filter(|file| is_demo_file(file)) {
        match fs::remove_file(folder.join(file)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::create_dir_all(folder.join(TRACE_FOLDER))?;
    files.iter().try_for_each(|file| fs::rename(staged.join(file), folder.join(file)))
}

/// Returns the files of an earlier demo; none if the directory is empty or missing.
fn earlier_files(folder: &Path) -> Result<Vec<String>, OperationError> {
    let is_occupied = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(unusable(folder, &error)),
    };
    if !is_occupied {
        return Ok(Vec::new());
    }
    match fs::read_to_string(folder.join(MARKER)) {
        Ok(list) => Ok(list.lines().map(str::to_owned).collect()),
        Err(_) => Err(OperationError::input(format_args!(
            "{}: the folder holds something else; expected an empty folder or an earlier demo",
            folder.display()
        ))
        .hint("choose another folder with --dir")),
    }
}

fn unusable(folder: &Path, error: &io::Error) -> OperationError {
    OperationError::machine(format_args!("{}: cannot be the folder of the demo: {error}", folder.display()))
        .hint("choose another folder with --dir")
}
