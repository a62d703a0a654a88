//! Connections that are ready for requests: connected, negotiated, mounted. Everything here blocks, with
//! time limits, either before the clock starts or in a thread of its own.

mod connector;
mod dialer;
mod http;
mod memcached;
mod nbd;
mod nfs;
mod ready_connection;
mod stream;

pub(crate) use connector::Connector;
pub(crate) use dialer::{Dialer, receive, send};
pub(crate) use memcached::{StoredValues, store_values};
pub(crate) use nbd::connect as connect_nbd;
pub(crate) use ready_connection::{ConnectionSocket, ReadyConnection};
