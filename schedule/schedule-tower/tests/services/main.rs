//! Real services of axum and tonic with the layers, over HTTP/1.1 and HTTP/2: the order of service, and
//! the end of permits with the response, however it ends.

mod grpc;
mod layers;
mod order;
mod permits;
mod policy;
mod server;
mod storm;
