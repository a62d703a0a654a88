//! Invariants under arbitrary input, shared by the property tests and the fuzz targets.

use std::path::Path;
use trace::{OpenOptions, TraceFormat};
use units::Nanos;

/// Reads all of `content`, arbitrary bytes: requests or an error, never a panic. Returns the number of
/// requests before the end or the error.
#[allow(unreachable_pub, reason = "a test includes this file as a module, the fuzz crate re-exports it")]
pub fn exercise(content: &[u8], format: Option<TraceFormat>, lenient: bool) -> u64 {
    let options = OpenOptions { format, lenient, sort_window: usize::from(lenient) * 3 };
    let Ok(reader) = trace::read_bytes(content.to_vec(), Path::new("fuzz"), &options) else {
        return 0;
    };
    let mut last = Nanos::ZERO;
    let mut count = 0;
    for request in reader {
        match request {
            Ok(request) => {
                assert!(request.arrival >= last, "arrivals never decrease");
                last = request.arrival;
                count += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty() && !error.hint().is_empty());
                break;
            }
        }
    }
    count
}
