//! The endpoint that `--listen` opens for scrapers of Prometheus.

use crate::terminal::{Talk, talk};
use metrics::{EndpointLimits, MetricsEndpoint};
use model::OperationError;
use std::net::SocketAddr;

/// Parses the address of `--listen`.
///
/// # Errors
/// If the text is not an IP address with a port; names are not resolved.
pub fn scrape_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("expected IP:PORT, such as 127.0.0.1:9464, found '{text}'"))
}

/// Opens the endpoint of `--listen` and prints its address.
///
/// # Errors
/// When the address cannot be bound.
pub fn open_endpoint(
    address: SocketAddr,
    page: impl Fn() -> String + Send + Sync + 'static,
) -> Result<MetricsEndpoint, OperationError> {
    let endpoint = MetricsEndpoint::open(address, EndpointLimits::default(), page).map_err(|error| {
        OperationError::machine(format_args!("--listen {address}: {error}"))
            .hint("choose another port, or end the program that has this one; `ss -ltnp` names it")
    })?;
    if !address.ip().is_loopback() {
        talk(
            Talk::Warning,
            format_args!(
                "whoever reaches {} reads the metrics: there is neither a password nor encryption; 127.0.0.1 is for \
             this machine alone",
                endpoint.address()
            ),
        );
    }
    talk(Talk::Plain, format_args!("metrics: http://{}/metrics", endpoint.address()));
    Ok(endpoint)
}
