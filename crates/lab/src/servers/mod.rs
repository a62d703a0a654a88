//! Real servers as children in network namespaces: started, known to be ready, ended without remains.
//!
//! Each server is the first process of a process namespace of its own: when it is killed, everything that it started
//! is. Its output goes to a log file, whose end is quoted when it does not become ready. With real-time priority
//! where the machine allows it, because servers of a latency test otherwise wait for whatever else runs (tens of
//! milliseconds on a small virtual machine).

mod ready;
mod service;
mod start;

pub use service::{Http, Memcached, NFS_EXPORT, Nbd, Nfs, Service, Ssd};
pub use start::{Lifetime, Place, Running, is_running, kill, may_be_realtime, started_at};
