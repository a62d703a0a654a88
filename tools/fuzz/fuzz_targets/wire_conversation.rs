//! Well-formed conversations of NFS, NBD, memcached, HTTP and RESP: the bytes choose the messages, and where the conversation is
//! cut into pieces, cut off and damaged. The same messages are recognised however they arrive.

#![no_main]

use fuzz::exercise_conversation;

libfuzzer_sys::fuzz_target!(|content: &[u8]| exercise_conversation(content));
