//! The binary formats.

#![no_main]

use tailwright_fuzz::exercise;
use tailwright_trace::Format;

libfuzzer_sys::fuzz_target!(|content: &[u8]| {
    for format in [Format::Vscsi, Format::Parquet] {
        for lenient in [false, true] {
            exercise(content, Some(format), lenient);
        }
    }
});
