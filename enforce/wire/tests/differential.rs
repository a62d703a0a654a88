//! The parsers beside real servers: odd and ordinary requests go to memcached, nbdkit and nfs-ganesha, cut at random
//! places, and what the server answered, read by a few lines of code here, is compared with what the parser makes of
//! it: the same messages, and an answer or silence per request. Where a server is missing, its test skips loudly.

mod common;
#[path = "differential/corpus.rs"]
mod corpus;
#[path = "common/ganesha.rs"]
mod ganesha;
#[path = "differential/memcached_binary.rs"]
mod memcached_binary;
#[path = "common/memcached_server.rs"]
mod memcached_server;
#[path = "differential/memcached_text.rs"]
mod memcached_text;
#[path = "differential/nbd.rs"]
mod nbd;
#[path = "common/nbd_server.rs"]
mod nbd_server;
#[path = "differential/nfs.rs"]
mod nfs;

#[test]
fn memcached_text_requests() {
    memcached_text::one_by_one();
}

#[test]
fn memcached_text_pipelines() {
    memcached_text::pipelined();
}

#[test]
fn memcached_binary_requests() {
    memcached_binary::one_by_one();
}

#[test]
fn nbd_conversations() {
    nbd::conversations();
}

#[test]
fn nfs_calls() {
    ganesha::in_namespaces("nfs_calls", nfs::calls);
}
