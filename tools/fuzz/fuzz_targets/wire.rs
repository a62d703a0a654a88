//! Both directions of NFS, NBD and memcached connections. The first byte chooses protocol and limits, then each byte
//! says who speaks and how long the piece is that follows it.

#![no_main]

use fuzz::exercise_wire;

libfuzzer_sys::fuzz_target!(|content: &[u8]| exercise_wire(content));
