//! Both directions of NFS, NBD and memcached connections. The first byte chooses protocol and limits;
//! then each byte chooses the side that sends, and the length of the piece that follows.

#![no_main]

use fuzz::exercise_wire;

libfuzzer_sys::fuzz_target!(|content: &[u8]| exercise_wire(content));
