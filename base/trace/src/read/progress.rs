//! Progress of reading a file, in bytes before decompression.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes read from a file so far, and its length.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadProgress {
    read: Arc<AtomicU64>,
    total: Option<u64>,
}

impl ReadProgress {
    /// Begins at zero; `total` is `None` for a stream of unknown length.
    pub(super) fn out_of(total: Option<u64>) -> Self {
        Self { read: Arc::default(), total }
    }

    /// Counts the bytes read from `stream`.
    pub(super) fn count(&self, stream: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        Box::new(CountedReader { inner: stream, read: Arc::clone(&self.read) })
    }

    /// Returns the share read so far, from 0 to 1; `None` if the length is unknown or zero.
    pub(super) fn fraction(&self) -> Option<f64> {
        let total = self.total.filter(|&total| total > 0)?;
        Some((self.read.load(Ordering::Relaxed) as f64 / total as f64).min(1.0))
    }
}

struct CountedReader {
    inner: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for CountedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
