//! Fields of a scenario that are text with a grammar of its own.

use crate::discipline_text::parse_discipline;
use ::discipline::serve::DisciplineSpec;
use arrivals::{ArrivalPattern, TimeDistribution};
use serde::{Deserialize, Deserializer, de::Error};
use sim::engine::LatencyStatistic;
use units::{Nanos, Percentile};

/// A field of a scenario whose value is read from text.
#[derive(Debug, Clone)]
pub(crate) struct TextField<T>(pub(crate) T);

/// A value that is read from text.
pub(crate) trait ReadText: Sized {
    /// Reads the value; an error says what was expected.
    fn read(text: &str) -> Result<Self, String>;
}

impl<'de, T: ReadText> Deserialize<'de> for TextField<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        T::read(&text).map(TextField).map_err(D::Error::custom)
    }
}

impl ReadText for DisciplineSpec {
    fn read(text: &str) -> Result<Self, String> {
        parse_discipline(text)
    }
}

impl ReadText for ArrivalPattern {
    fn read(text: &str) -> Result<Self, String> {
        text.parse::<Self>().map_err(|error| format!("arrivals '{text}', {error}"))
    }
}

impl ReadText for TimeDistribution {
    fn read(text: &str) -> Result<Self, String> {
        text.parse::<Self>().map_err(|error| format!("law '{text}', {error}"))
    }
}

/// Lead of a clock, nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Skew(pub(crate) i64);

impl ReadText for Skew {
    fn read(text: &str) -> Result<Self, String> {
        let (sign, size) = match text.trim().strip_prefix('-') {
            Some(size) => (-1, size),
            None => (1, text),
        };
        let size = size.parse::<Nanos>().map_err(|error| error.to_string())?;
        let size = i64::try_from(size.0).map_err(|_| format!("'{text}' is too long for a skew"))?;
        Ok(Self(sign * size))
    }
}

impl ReadText for LatencyStatistic {
    fn read(text: &str) -> Result<Self, String> {
        let percent = text.trim().strip_prefix('p').and_then(|number| number.parse().ok());
        match (text.trim(), percent.and_then(Percentile::new)) {
            ("mean", _) => Ok(Self::Mean),
            (_, Some(percentile)) => Ok(Self::Percentile(percentile)),
            _ => Err(format!("expected mean or a percentile such as p99, found '{text}'")),
        }
    }
}
