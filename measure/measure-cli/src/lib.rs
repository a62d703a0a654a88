//! The verbs `observe`, `load`, `profile` and `verify`: arguments, text and pages.

// `cli::terminal` is the only place that prints.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod load;
pub mod observe;
pub mod profile;
pub mod verify;

operation::documents! {
    load::text::LoadDocument<'_>: "load", 2;
    observe::text::ObservedDocument<'_>: "observation", 2;
    observe::text::SelfTestDocument: "observation-selftest", 1;
    observe::block::BlockDocument: "block-observation", 2;
    profile::text::DeviceDocument<'_>: "device-measurement", 1;
    profile::disk::DiskDocument: "disk-measurement", 1;
    profile::server::ServerDocument<'_>: "server-measurement", 1;
}
