//! Traces whose format is detected, compressed or not.

#![no_main]

use fuzz::exercise;

libfuzzer_sys::fuzz_target!(|content: &[u8]| {
    for lenient in [false, true] {
        exercise(content, None, lenient);
    }
});
