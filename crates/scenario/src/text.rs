//! Fields of a scenario that are text with a grammar of its own.

use crate::discipline::kind;
use crate::times::Times;
use ::discipline::serve::Kind;
use arrivals::{ArrivalPattern, TimeDistribution};
use serde::{Deserialize, Deserializer, de::Error};
use sim::engine::LatencyStatistic;
use units::{Nanos, Percentile};

/// A value that is read from text.
#[derive(Debug, Clone)]
pub(crate) struct Text<T>(pub(crate) T);

/// Reads itself; an error says what was expected.
pub(crate) trait Read: Sized {
    fn read(text: &str) -> Result<Self, String>;
}

impl<'de, T: Read> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        T::read(&text).map(Text).map_err(D::Error::custom)
    }
}

impl Read for Kind {
    fn read(text: &str) -> Result<Self, String> {
        kind(text)
    }
}

impl Read for ArrivalPattern {
    fn read(text: &str) -> Result<Self, String> {
        text.parse::<Self>().map_err(|error| format!("arrivals '{text}', {error}"))
    }
}

impl Read for TimeDistribution {
    fn read(text: &str) -> Result<Self, String> {
        text.parse::<Self>().map_err(|error| format!("law '{text}', {error}"))
    }
}

/// What a request needs at a step.
#[derive(Debug, Clone)]
pub(crate) enum Service {
    /// With a probability above 0.
    Draw(f64, Times),
    Skip,
}

impl Read for Service {
    fn read(text: &str) -> Result<Self, String> {
        if text.trim() == "skip" {
            return Ok(Self::Skip);
        }
        let share =
            text.split_once('%').and_then(|(share, law)| Some((share.trim().parse::<f64>().ok()?, law)));
        match share {
            Some((percent, law)) if percent > 0.0 && percent <= 100.0 => {
                Ok(Self::Draw(percent / 100.0, Times::read(law)?))
            }
            Some(_) => Err(format!("service '{text}', expected a share above 0% and at most 100%")),
            None => Times::read(text).map(|times| Self::Draw(1.0, times)),
        }
    }
}

/// How far a clock is ahead, nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Skew(pub(crate) i64);

impl Read for Skew {
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

impl Read for LatencyStatistic {
    fn read(text: &str) -> Result<Self, String> {
        let percent = text.trim().strip_prefix('p').and_then(|number| number.parse().ok());
        match (text.trim(), percent.and_then(Percentile::new)) {
            ("mean", _) => Ok(Self::Mean),
            (_, Some(percentile)) => Ok(Self::Percentile(percentile)),
            _ => Err(format!("expected mean or a percentile such as p99, found '{text}'")),
        }
    }
}
