//! Latency objectives and their written form.

use crate::Op;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{SeqAccess, Visitor};
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

/// An SLO of all requests of a workload, or of its reads or writes alone.
/// Written `99.9% < 200ms`, `99.9% of reads < 200ms` or `99.9% of writes < 200ms`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// The percentile and the latency.
    pub slo: Slo,
    /// The direction of the requests that it is about; `None` if it is about all.
    pub requests: Option<Op>,
}

impl Objective {
    /// True if the objective is about requests of this direction.
    pub fn is_about(&self, op: Op) -> bool {
        self.requests.is_none_or(|requests| requests == op)
    }
}

impl From<Slo> for Objective {
    fn from(slo: Slo) -> Self {
        Self { slo, requests: None }
    }
}

/// Names of directions in the written form.
const DIRECTIONS: [(&str, Op); 2] = [("reads", Op::Read), ("writes", Op::Write)];

impl FromStr for Objective {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let Some((percentile, rest)) = text.split_once(" of ") else {
            return text.parse::<Slo>().map(Self::from);
        };
        let error = || ParseError::new(text, "'of reads' or 'of writes', such as '99.9% of reads < 200ms'");
        let (requests, latency) = rest.split_once('<').ok_or_else(error)?;
        let direction = DIRECTIONS.into_iter().find(|(name, _)| *name == requests.trim());
        let (_, op) = direction.ok_or_else(error)?;
        Ok(Self { slo: format!("{percentile} <{latency}").parse()?, requests: Some(op) })
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Slo { percentile, latency } = self.slo;
        match DIRECTIONS.into_iter().find(|(_, op)| Some(*op) == self.requests) {
            Some((name, _)) => f.pad(&format!("{percentile} of {name} < {latency}")),
            None => self.slo.fmt(f),
        }
    }
}

impl Serialize for Objective {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Objective {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Objective {
    fn schema_name() -> Cow<'static, str> {
        "Objective".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A percentile and a latency, of all requests or of those of a direction, such as 99.9% < 200ms or 99.9% of reads < 200ms.",
        })
    }
}

/// The SLOs of a workload: one of all its requests, then any others. Written as one SLO, or as a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SloList {
    /// The first SLO of all requests.
    pub(crate) first: Slo,
    /// The others, in their order.
    pub(crate) further: Vec<Objective>,
}

impl SloList {
    /// Takes the first SLO of all requests out of a list.
    fn new(mut objectives: Vec<Objective>) -> Result<Self, String> {
        for (number, objective) in objectives.iter().enumerate() {
            if objectives[..number].contains(objective) {
                return Err(format!("the SLO '{objective}' is there twice"));
            }
        }
        let first = objectives.iter().position(|objective| objective.requests.is_none()).ok_or(
            "no SLO is about all requests: expected one without 'of reads' and 'of writes', such as '99.9% < 1s'",
        )?;
        Ok(Self { first: objectives.remove(first).slo, further: objectives })
    }
}

impl Serialize for SloList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.further.is_empty() {
            return self.first.serialize(serializer);
        }
        serializer.collect_seq([self.first.into()].iter().chain(&self.further))
    }
}

impl<'de> Deserialize<'de> for SloList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SloListVisitor)
    }
}

struct SloListVisitor;

impl<'de> Visitor<'de> for SloListVisitor {
    type Value = SloList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an SLO such as \"99.9% < 200ms\", or a list of them")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SloList, E> {
        let objective = text.parse().map_err(E::custom)?;
        SloList::new(vec![objective]).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<SloList, A::Error> {
        let mut objectives = Vec::new();
        while let Some(objective) = list.next_element()? {
            objectives.push(objective);
        }
        SloList::new(objectives).map_err(serde::de::Error::custom)
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
    #[test]
    fn objectives_of_a_direction_are_read_and_printed() {
        for (text, requests) in [
            ("99.9% < 200ms", None),
            ("99.9% of reads < 200ms", Some(Op::Read)),
            ("50% of writes < 5ms", Some(Op::Write)),
        ] {
            let objective: Objective = text.parse().unwrap();
            assert_eq!((objective.requests, objective.to_string().as_str()), (requests, text));
        }
        assert_eq!("p99 of reads <= 1.5s".parse::<Objective>().unwrap().to_string(), "99% of reads < 1.5s");
        for bad in ["99% of read < 1s", "99% of < 1s", "99% of reads", "of reads < 1s", "99% of reads > 1s"] {
            assert!(bad.parse::<Objective>().is_err(), "{bad}");
        }
        let [reads, all] = ["99% of reads < 1s", "99% < 1s"].map(|text| text.parse::<Objective>().unwrap());
        assert!(reads.is_about(Op::Read) && !reads.is_about(Op::Write) && all.is_about(Op::Write));
    }

    #[test]
    fn lists_of_slos_have_one_of_all_requests() {
        let read = |text: &str| serde_json::from_str::<SloList>(text).map_err(|error| error.to_string());
        let one = read(r#""99.9% < 200ms""#).unwrap();
        assert_eq!(serde_json::to_string(&one).unwrap(), r#""99.9% < 200ms""#);
        let several = read(r#"["99% of reads < 5ms", "99.9% < 200ms", "50% < 2ms"]"#).unwrap();
        assert_eq!(several.first.to_string(), "99.9% < 200ms");
        let written = serde_json::to_string(&several).unwrap();
        assert_eq!(written, r#"["99.9% < 200ms","99% of reads < 5ms","50% < 2ms"]"#);
        assert_eq!(read(&written).unwrap(), several);
        for (bad, why) in [
            (r#""99% of reads < 5ms""#, "no SLO is about all requests"),
            ("[]", "no SLO is about all requests"),
            (r#"["99% < 5ms", "50% < 2ms", "99% < 5ms"]"#, "'99% < 5ms' is there twice"),
            (r#"["99% < 5ms", 5]"#, "expected a string"),
            ("5", "expected an SLO such as"),
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }
}
