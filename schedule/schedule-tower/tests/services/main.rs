//! Real services of axum and tonic with the layers, over HTTP/1.1 and HTTP/2: who is served when, and that permits end with the
//! response, whatever ends it.

mod grpc;
mod layers;
mod order;
mod permits;
mod policy;
mod server;
mod storm;
