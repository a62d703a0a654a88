//! Helpers of several tests: arbitrary sorted requests, temporary folders, and round trips of whole
//! traces.

#![allow(dead_code, reason = "each test file uses its own part")]

use model::{Op, Request};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use trace::{OpenOptions, TraceError, TraceFormat, TraceWriter};
use units::{Bytes, Nanos};

/// Sorted requests with ties, gaps, and present and absent optional values.
pub(crate) fn requests(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Request>> {
    let gap = prop_oneof![Just(0), 1u64..1000, 1000u64..10_000_000, Just(3_600_000_000_000)];
    let size = prop_oneof![Just(4096), 0u64..1 << 20, Just(u64::from(u32::MAX))];
    let offset = proptest::option::of(0u64..1 << 48);
    let response = proptest::option::of(0u64..1 << 40);
    let one = (gap, size, any::<bool>(), offset, response);
    proptest::collection::vec(one, len).prop_map(|rows| {
        let mut arrival = 0;
        let request = |(gap, size, read, offset, response): (u64, u64, bool, Option<u64>, Option<u64>)| {
            arrival += gap;
            let op = if read { Op::Read } else { Op::Write };
            let response = response.map(Nanos);
            Request { arrival: Nanos(arrival), size: Bytes(size), op, offset, response }
        };
        rows.into_iter().map(request).collect()
    })
}

/// A temporary folder, which is removed with all its files when it is dropped.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The names of all files in the folder, including hidden ones, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("readable");
        let mut names: Vec<String> =
            entries.map(|e| e.expect("readable").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

pub(crate) fn write(path: &Path, format: TraceFormat, requests: &[Request]) -> Result<u64, TraceError> {
    let mut writer = TraceWriter::create(path, format)?;
    for request in requests {
        writer.write(request)?;
    }
    writer.finish()
}

pub(crate) fn read(path: &Path, options: &OpenOptions) -> Result<Vec<Request>, TraceError> {
    trace::open(path, options)?.collect()
}
