//! The verbs `apply` and `proxy`: arguments and text.

// `cli::terminal` is the only place that prints.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod apply;
pub mod proxy;

operation::documents! {
    apply::ApplyDocument<'_>: "apply", 1;
    apply::FeaturesDocument<'_>: "kernel-features", 1;
    proxy::ProxyCountersDocument<'_>: "proxy-counters", 1;
    proxy::ProxyStatusDocument<'_>: "proxy-status", 1;
}
