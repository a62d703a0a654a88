//! The text format of OpenMetrics 1.0.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns the output of the collector, with `# EOF` at the end.
///
/// # Panics
/// When the collector fails to write to memory.
pub fn exposition(collector: impl Collector) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(collector));
    let mut text = String::new();
    encode(&mut text, &registry).expect("a text takes everything");
    text
}
