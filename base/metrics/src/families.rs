//! Families of metrics with labels, as collectors encode them.

use crate::buckets::ExponentialCounts;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use std::fmt;

/// Metadata of a family of metrics.
#[derive(Debug, Clone, Copy)]
pub struct MetricFamily<'a> {
    /// The name without its unit and the endings of its type.
    pub name: &'a str,
    /// Description of the measured quantity, a sentence without a full stop.
    pub help: &'a str,
    /// The unit of the values, which becomes part of the name.
    pub unit: Option<&'a Unit>,
}

impl<'f> MetricFamily<'f> {
    /// Histograms of times, each with its labels.
    ///
    /// # Errors
    /// When the encoder fails.
    pub fn encode_times<'a, const N: usize>(
        self,
        encoder: &mut DescriptorEncoder<'_>,
        series: impl IntoIterator<Item = ([(&'a str, String); N], &'a ExponentialCounts)>,
    ) -> fmt::Result {
        let mut family = self.begin(encoder, MetricType::Histogram)?;
        for (labels, times) in series {
            let labels = labels.map(escaped);
            let buckets = times.buckets();
            let sum = times.sum_seconds();
            let mut one = family.encode_family(&labels)?;
            one.encode_histogram::<NoLabelSet>(sum, times.count(), &buckets, None)?;
        }
        Ok(())
    }

    /// Counters that one label tells apart, by its values.
    ///
    /// # Errors
    /// When the encoder fails.
    pub fn encode_counts(
        self,
        encoder: &mut DescriptorEncoder<'_>,
        label: &str,
        counts: impl IntoIterator<Item = (String, u64)>,
    ) -> fmt::Result {
        let mut family = self.begin(encoder, MetricType::Counter)?;
        for (value, count) in counts {
            let labels = [(label, value)].map(escaped);
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, u64, u64>(&count, None)?;
        }
        Ok(())
    }

    /// A counter without labels.
    ///
    /// # Errors
    /// When the encoder fails.
    pub fn encode_count(self, encoder: &mut DescriptorEncoder<'_>, count: u64) -> fmt::Result {
        self.begin(encoder, MetricType::Counter)?.encode_counter::<NoLabelSet, u64, u64>(&count, None)
    }

    /// Counters that are not whole numbers, each with its labels.
    ///
    /// # Errors
    /// When the encoder fails.
    pub fn encode_sums<'a, const N: usize>(
        self,
        encoder: &mut DescriptorEncoder<'_>,
        series: impl IntoIterator<Item = ([(&'a str, String); N], f64)>,
    ) -> fmt::Result {
        let mut family = self.begin(encoder, MetricType::Counter)?;
        for (labels, sum) in series {
            family.encode_family(&labels.map(escaped))?.encode_counter::<NoLabelSet, f64, f64>(&sum, None)?;
        }
        Ok(())
    }

    /// A counter that is not a whole number, without labels.
    ///
    /// # Errors
    /// When the encoder fails.
    pub fn encode_sum(self, encoder: &mut DescriptorEncoder<'_>, sum: f64) -> fmt::Result {
        self.begin(encoder, MetricType::Counter)?.encode_counter::<NoLabelSet, f64, f64>(&sum, None)
    }

    /// Gauges, each with its labels.
    ///
    /// # Errors
    /// When the encoder fails.
    pub fn encode_gauges<'a, const N: usize>(
        self,
        encoder: &mut DescriptorEncoder<'_>,
        series: impl IntoIterator<Item = ([(&'a str, String); N], f64)>,
    ) -> fmt::Result {
        let mut family = self.begin(encoder, MetricType::Gauge)?;
        for (labels, value) in series {
            family.encode_family(&labels.map(escaped))?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// A gauge without labels, which has no value as long as that is not known.
    ///
    /// # Errors
    /// When the encoder fails.
    pub fn encode_gauge(self, encoder: &mut DescriptorEncoder<'_>, value: Option<f64>) -> fmt::Result {
        let mut gauge = self.begin(encoder, MetricType::Gauge)?;
        value.map_or(Ok(()), |value| gauge.encode_gauge(&value))
    }

    fn begin<'e>(
        self,
        encoder: &'e mut DescriptorEncoder<'_>,
        kind: MetricType,
    ) -> Result<MetricEncoder<'e>, fmt::Error>
    where
        'f: 'e,
    {
        encoder.encode_descriptor(self.name, self.help, self.unit, kind)
    }
}

/// Escapes a label value. The encoder writes values verbatim, and the format requires escapes for three
/// characters (OpenMetrics 1.0, ABNF of `escaped-string`).
fn escaped((name, value): (&str, String)) -> (&str, String) {
    (name, value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// The version of the program, as an information without a value.
///
/// # Errors
/// When the encoder fails.
pub fn encode_version(encoder: &mut DescriptorEncoder<'_>, version: &str) -> fmt::Result {
    let family = MetricFamily { name: "tailwright_build", help: "Which version runs", unit: None };
    family.begin(encoder, MetricType::Info)?.encode_info(&[("version", version)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::collector::Collector;

    #[derive(Debug)]
    struct OneCount(&'static str);

    impl Collector for OneCount {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            let family = MetricFamily { name: "seen", help: "How often", unit: None };
            family.encode_counts(&mut encoder, "by", [(self.0.to_owned(), 3)])
        }
    }

    #[test]
    fn values_of_labels_are_escaped() {
        for (value, written) in [("a", "a"), ("a\"}\\\nb", "a\\\"}\\\\\\nb"), ("é {x=\"", "é {x=\\\"")] {
            let page = crate::exposition(OneCount(value));
            let line = format!("seen_total{{by=\"{written}\"}} 3");
            assert!(page.lines().any(|found| found == line), "{line}: {page}");
        }
    }
}
