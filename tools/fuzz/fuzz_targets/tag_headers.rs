//! Header values that may hold the tag of a request, one a line.

#![no_main]

use fuzz::exercise_tag_headers;

libfuzzer_sys::fuzz_target!(|content: &[u8]| exercise_tag_headers(content));
