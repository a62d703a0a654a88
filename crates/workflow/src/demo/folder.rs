//! The folder of a demo: what may be replaced in it, and what is written to it.

use super::cluster::{DemoCluster, TRACE_FOLDER, is_demo_file};
use crate::files::write_result;
use crate::observer::{Notice, ProgressObserver};
use crate::text::plural;
use model::OperationError;
use std::fs;
use std::path::Path;

/// The presence of this file says that a demo was written to a folder; it lists what may be replaced.
const MARKER: &str = ".tailwright-demo";

/// Writes a cluster of `count` workloads with its device profile and traces to a folder that is empty or has an
/// earlier demo, which is replaced. The same seed gives the same cluster.
///
/// # Errors
///
/// When the folder holds something else or cannot be written.
pub fn write_demo(
    folder: &Path,
    seed: u64,
    count: u32,
    observer: &dyn ProgressObserver,
) -> Result<(), OperationError> {
    prepare(folder)?;
    let cluster = DemoCluster::new(seed, count);
    write_result(&folder.join(MARKER), &cluster.files().join("\n"), "demo")?;
    cluster.write(folder, observer)?;
    let place = folder.display();
    observer.notice(Notice::Done(format!(
        "wrote {place} with {} (seed {seed})",
        plural(count, "generated trace")
    )));
    Ok(())
}

/// Makes the folder, or empties that of an earlier demo of what the demo wrote.
fn prepare(folder: &Path) -> Result<(), OperationError> {
    let failed = |error: std::io::Error| {
        OperationError::machine(format_args!(
            "{}: cannot be the folder of the demo: {error}",
            folder.display()
        ))
        .hint("choose another folder with --dir")
    };
    let is_occupied = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => return Err(failed(error)),
    };
    if is_occupied {
        let Ok(list) = fs::read_to_string(folder.join(MARKER)) else {
            return Err(OperationError::input(format_args!(
                "{}: the folder holds something else; expected an empty folder or an earlier demo",
                folder.display()
            ))
            .hint("choose another folder with --dir"));
        };
        // Only names that a demo gives are followed, whatever the list says.
        for file in list.lines().filter(|file| is_demo_file(file)) {
            match fs::remove_file(folder.join(file)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
    }
    fs::create_dir_all(folder.join(TRACE_FOLDER)).map_err(failed)
}
