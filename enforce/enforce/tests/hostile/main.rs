//! A fault on one connection affects only that connection: an honest client beside it gets all of its
//! answers, with the contents that it has written.

#![allow(unreachable_pub, reason = "modules of one program")]

mod arbitrary;
mod clients;
#[path = "../../benches/soak/codec.rs"]
mod codec;
mod files;
mod honest;
mod interleaved;
#[path = "../../benches/soak/ledger.rs"]
#[allow(dead_code, reason = "the soak uses the rest")]
mod ledger;
#[path = "../mini/mod.rs"]
mod mini;
#[path = "../proxy/mod.rs"]
mod proxy;
mod servers;
mod unanswered;
