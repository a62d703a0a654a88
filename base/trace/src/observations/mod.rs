//! Files of observations: Parquet with a row per request.
//!
//! | column | type | |
//! |---|---|---|
//! | `workload` | string | |
//! | `op` | string | `read` or `write` |
//! | `size_bytes` | integer | payload |
//! | `intended_ns` | integer | does not decrease |
//! | `sent_ns` | integer | |
//! | `outcome` | string | `done`, `failed` or `lost` |
//! | `end_ns` | integer or null | null if lost |
//! | `stage_NAME_ns` | integer | time in each stage that was taken, in path order |
//!
//! All instants count from one origin. A file may have further columns ([`FurtherColumn`]), which reading
//! skips.

mod read;
mod write;

use crate::error::TraceError;
use model::Observations;
use std::path::Path;
pub use write::{ColumnValues, FurtherColumn, write, write_with};

/// Reads a file of observations, or the folder of a recording, whose stages are `proxy` and `server`. Workloads are
/// numbered in the order in which they appear.
///
/// # Errors
/// When the file cannot be read, lacks a column, or contains an invalid row; the error gives the row and
/// what was expected.
pub fn read(path: &Path) -> Result<Observations, TraceError> {
    if path.is_dir() { crate::recording::read_observations(path) } else { read::read_file(path) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TraceErrorKind;
    use model::{Observation, Observations, Op, RequestOutcome};
    use units::{Bytes, Nanos};

    fn observation(workload: u32, intended: u64, outcome: RequestOutcome) -> Observation {
        Observation {
            workload,
            op: if workload == 0 { Op::Read } else { Op::Write },
            size: Bytes(4096),
            intended: Nanos(intended),
            sent: Nanos(intended + 1),
            outcome,
        }
    }

    fn three_observations() -> Observations {
        Observations {
            workloads: vec!["web".to_owned(), "mail".to_owned()],
            stages: vec!["storage".to_owned(), "network".to_owned()],
            requests: vec![
                observation(0, 5, RequestOutcome::Done(Nanos(10))),
                observation(1, 5, RequestOutcome::Lost),
                observation(0, 7, RequestOutcome::Failed(Nanos(9))),
            ],
            stage_times: (1..=6).map(Nanos).collect(),
        }
    }

    #[test]
    fn observations_survive_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("observations.parquet");
        for observations in [three_observations(), Observations::default()] {
            write(&path, &observations).unwrap();
            assert_eq!(read(&path).unwrap(), observations);
        }
    }

    #[test]
    fn further_columns_change_nothing_that_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("observations.parquet");
        let texts = ["10.0.0.1:5", "[::1]:7", "10.0.0.1:5"].map(str::to_owned).to_vec();
        let further = [
            FurtherColumn { name: "client", values: ColumnValues::Texts(texts) },
            FurtherColumn { name: "unix_ns", values: ColumnValues::Integers(vec![1, u64::MAX, 3]) },
        ];
        write_with(&path, &three_observations(), &further).unwrap();
        assert_eq!(read(&path).unwrap(), three_observations());
    }

    #[test]
    fn errors_say_which_row() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("observations.parquet");
        let mut unsorted = three_observations();
        unsorted.requests.swap(0, 2);
        write(&path, &unsorted).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("record 2"));
        let mut early = three_observations();
        early.requests[0].outcome = RequestOutcome::Done(Nanos(1));
        write(&path, &early).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("record 1"));
        std::fs::write(&path, b"PAR1 not at all PAR1").unwrap();
        assert!(read(&path).is_err());
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(read(&path).unwrap_err().kind(), TraceErrorKind::Io(_)));
    }

    #[test]
    fn damage_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("observations.parquet");
        write(&path, &three_observations()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x41;
            std::fs::write(&path, &damaged).unwrap();
            // A change of a byte is either detected or changes a value, but never causes a panic.
            drop(read(&path));
        }
    }
}
