//! The binary formats.

#![no_main]

use fuzz::exercise;
use trace::TraceFormat;

libfuzzer_sys::fuzz_target!(|content: &[u8]| {
    for format in [TraceFormat::Vscsi, TraceFormat::Parquet] {
        for lenient in [false, true] {
            exercise(content, Some(format), lenient);
        }
    }
});
