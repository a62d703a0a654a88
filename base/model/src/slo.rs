//! Latency objectives and their written form.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use units::{ParseError, Percentile, Seconds};

/// A tail latency objective: the given percentile of the response time stays below the given latency.
/// Written `99.9% < 200ms`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slo {
    /// Which part of the distribution is promised.
    pub percentile: Percentile,
    /// The promised latency, above 0 and at most `Slo::LATENCY_MAX`.
    pub latency: Seconds,
}

impl Slo {
    /// The longest latency that can be promised: about thirty years, which fit into nanoseconds with all that is added.
    pub(crate) const LATENCY_MAX: Seconds = Seconds(1e9);

    /// The objective, or `None` unless the latency is above 0 and at most `Slo::LATENCY_MAX`.
    pub fn new(percentile: Percentile, latency: Seconds) -> Option<Self> {
        (latency.0 > 0.0 && latency.0 <= Self::LATENCY_MAX.0).then_some(Self { percentile, latency })
    }
}

impl FromStr for Slo {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error =
            || ParseError::new(text, "a percentile and a latency of at most 1e9 s, such as '99.9% < 200ms'");
        let (percentile, latency) = text.split_once('<').ok_or_else(error)?;
        let latency = latency.trim_start_matches('=').trim();
        Self::new(percentile.parse()?, latency.parse()?).ok_or_else(error)
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} < {}", self.percentile, self.latency))
    }
}

impl Serialize for Slo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Slo {
    fn schema_name() -> Cow<'static, str> {
        "Slo".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": "A percentile and a latency, such as 99.9% < 200ms." })
    }
}

impl<'de> Deserialize<'de> for Slo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints_the_written_form() {
        let slo: Slo = "99.9% < 200ms".parse().unwrap();
        assert_eq!((slo.percentile.percent(), slo.latency.0), (99.9, 0.2));
        assert_eq!(slo.to_string(), "99.9% < 200ms");
        assert_eq!("p99 <= 1.5s".parse::<Slo>().unwrap().to_string(), "99% < 1.5s");
        for bad in ["200ms", "99.9% < 0ms", "99.9% > 200ms", "101% < 1s", "99.9% <", "99.9% < 2000000000s"] {
            assert!(bad.parse::<Slo>().is_err(), "{bad}");
        }
    }
}
