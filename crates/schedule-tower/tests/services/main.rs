//! Real services of axum with the layers, over HTTP/1.1 and HTTP/2: who is served when, and that permits end with the
//! response, whatever ends it.

mod layers;
mod order;
mod permits;
mod server;
mod storm;
