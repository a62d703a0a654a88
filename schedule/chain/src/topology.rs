//! Example systems for demonstrations without a file, with a replaceable distribution of their work.

use crate::mode::ScheduleMode;
use arrivals::TimeDistribution;
use model::OperationError;
use scenario::ScenarioDocument;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A system of two tiers on two CPUs, whose requests are of one class or of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemoTopology {
    /// One tier calls the other.
    Chain,
    /// A slow path and a fast one join in a shared tier, which needs half as much work for each request.
    FanIn,
    /// A chain for two classes of requests with different SLOs; one class needs three times as much work.
    TwoClasses,
}

impl DemoTopology {
    /// Returns the modes that demonstrate the purpose of the system.
    pub fn modes(self) -> Vec<ScheduleMode> {
        use ScheduleMode::{DeadlineFirst, Fair, FirstCome, Limited, OldestFirst};
        match self {
            Self::Chain | Self::FanIn => vec![Fair, FirstCome, Limited, OldestFirst],
            Self::TwoClasses => vec![Fair, Limited, OldestFirst, DeadlineFirst],
        }
    }

    /// Returns the scenario with this distribution of work, and this utilisation of its busiest tier.
    ///
    /// # Errors
    /// When the load is out of its range.
    pub fn scenario(self, work: &TimeDistribution, load: f64) -> Result<ScenarioDocument, OperationError> {
        let (path, text) = match self {
            Self::Chain => {
                ("demo --topology chain", include_str!("../../../examples/scenarios/schedule-chain.toml"))
            }
            Self::FanIn => {
                ("demo --topology fan-in", include_str!("../../../examples/scenarios/schedule-fan-in.toml"))
            }
            Self::TwoClasses => (
                "demo --topology two-classes",
                include_str!("../../../examples/scenarios/schedule-deadlines.toml"),
            ),
        };
        let mut document = ScenarioDocument::parse(Path::new(path), text)?;
        let times = |factor: f64| {
            let scaled = work.scaled(factor).map(|work| work.to_string());
            scaled.map_err(|error| OperationError::input(format_args!("the work: {error}")))
        };
        let whole = work.to_string();
        match self {
            Self::Chain => document.set("entry.0.service.*", &whole)?,
            Self::FanIn => {
                document.set("entry.0.service.slow", &whole)?;
                document.set("entry.*.service.shared", &times(0.5)?)?;
            }
            Self::TwoClasses => {
                document.set("entry.interactive.service.*", &whole)?;
                document.set("entry.batch.service.*", &times(3.0)?)?;
            }
        }
        document.set("run.load", &format!("{load:?}"))?;
        Ok(document)
    }
}

impl fmt::Display for DemoTopology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chain => "chain",
            Self::FanIn => "fan-in",
            Self::TwoClasses => "two-classes",
        })
    }
}

impl FromStr for DemoTopology {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Chain, Self::FanIn, Self::TwoClasses]
            .into_iter()
            .find(|topology| topology.to_string() == text)
            .ok_or_else(|| format!("'{text}': expected chain, fan-in or two-classes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_and_load_are_as_asked_for() {
        for law in ["exp(10ms)", "trimodal(90% 5ms, 9% 50ms, 1% 100ms)", "lognormal(mean=10ms, c2=100)"] {
            let work: TimeDistribution = law.parse().unwrap();
            for topology in ["chain", "fan-in", "two-classes"] {
                let topology: DemoTopology = topology.parse().unwrap();
                let case = topology.scenario(&work, 0.7).and_then(|document| document.case()).unwrap();
                for tier in 0..2 {
                    assert!((case.utilisation(tier) - 0.7).abs() < 1e-6, "{law} {topology} {tier}");
                }
            }
        }
        assert!("ring".parse::<DemoTopology>().is_err());
    }
}
