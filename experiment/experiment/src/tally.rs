//! Periods with a knob on against periods with it off, round by round.
//!
//! A round has one period of each arm in random order: the knob off, and on with each of its values. If a
//! value has no effect, the sign of the difference between its period and the one without is a fair coin,
//! for any drift of the load and any dependence between periods. [`SymmetryTest`] holds its level even if
//! it is checked after every round, so an experiment ends as soon as it can. With several values, the
//! probability of error is divided among them.

use crate::latency_window::{PERCENTILES, PeriodResult};
use confidence::{SymmetryTest, needed_for_symmetry, shift_estimate, shift_interval};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Verdict about a value of a knob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KnobVerdict {
    /// The percentile is lower with it.
    Helps,
    /// The percentile is higher with it.
    Harms,
    /// Neither was shown.
    NotShown,
}

/// Change of one statistic between periods with the knob off and on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct StatisticShift {
    /// Median over periods with the knob off.
    pub off: f64,
    /// Median over periods with the knob on.
    pub on: f64,
    /// Estimated difference within a round.
    #[serde(rename = "difference")]
    pub shift: f64,
    /// Estimated difference ÷ value with the knob off in the same round; at least −1 for non-negative
    /// statistics. `None` if no round has a positive value off, or if its sign differs from that of `shift`.
    #[schemars(description = "Difference ÷ value off of the same round; null if meaningless.")]
    pub relative: Option<f64>,
    /// Lower end of the confidence interval of the difference; JSON has null for an infinite one.
    #[schemars(with = "Option<f64>", description = "Null if unbounded.")]
    pub low: f64,
    /// Upper end of the interval.
    #[schemars(with = "Option<f64>")]
    pub high: f64,
}

impl StatisticShift {
    /// Returns the shift in a unit of which the present one is `unit`.
    fn scaled(&self, unit: f64) -> Self {
        Self {
            off: self.off * unit,
            on: self.on * unit,
            shift: self.shift * unit,
            relative: self.relative,
            low: self.low * unit,
            high: self.high * unit,
        }
    }
}

/// Comparison of one value of a knob with the knob off.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct KnobComparison {
    #[schemars(with = "String", extend("enum" = ["helps", "harms", "not_shown"]))]
    pub verdict: KnobVerdict,
    /// Capital gained by betting that the value has an effect; JSON has null for an infinite one.
    #[schemars(with = "Option<f64>", description = "Null if infinite.")]
    pub evidence: f64,
    /// Evidence required for a verdict.
    pub evidence_needed: f64,
    /// Smallest difference that would have been detected, given the variation between rounds; `None` if none
    /// would have been.
    #[serde(rename = "visible_s", serialize_with = "in_seconds")]
    pub visible_ns: Option<f64>,
    /// True if the arrival rate changed with the knob on, at the same confidence.
    #[serde(rename = "load_changed")]
    pub changes_load: bool,
    /// Percentile under test, nanoseconds; the interval has the requested confidence. JSON has seconds.
    #[serde(serialize_with = "shift_in_seconds")]
    pub tested: StatisticShift,
    /// Mean latency, nanoseconds.
    #[serde(rename = "mean", serialize_with = "shift_in_seconds")]
    pub mean_ns: StatisticShift,
    /// Latencies at [`PERCENTILES`], nanoseconds.
    #[serde(rename = "percentiles", serialize_with = "by_percentile")]
    #[schemars(with = "BTreeMap<String, StatisticShift>")]
    pub percentiles_ns: [StatisticShift; PERCENTILES.len()],
    /// Arrival rate, requests per second.
    #[serde(rename = "requests_per_second")]
    pub rate: StatisticShift,
    /// CPU time per request, nanoseconds; `None` if unknown.
    #[serde(rename = "cpu_per_request", serialize_with = "known_shift_in_seconds")]
    pub cpu_per_request_ns: Option<StatisticShift>,
    /// Energy per request, joules; `None` if unknown.
    pub energy_per_request_j: Option<StatisticShift>,
}

fn in_seconds<S: Serializer>(nanoseconds: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    nanoseconds.map(|nanoseconds| nanoseconds * 1e-9).serialize(serializer)
}

fn shift_in_seconds<S: Serializer>(shift: &StatisticShift, serializer: S) -> Result<S::Ok, S::Error> {
    shift.scaled(1e-9).serialize(serializer)
}

fn known_shift_in_seconds<S: Serializer>(
    shift: &Option<StatisticShift>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    shift.map(|shift| shift.scaled(1e-9)).serialize(serializer)
}

fn by_percentile<S: Serializer>(
    shifts: &[StatisticShift; PERCENTILES.len()],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let named = PERCENTILES.iter().zip(shifts);
    let named: BTreeMap<String, StatisticShift> =
        named.map(|(percent, shift)| (format!("p{percent}"), shift.scaled(1e-9))).collect();
    named.serialize(serializer)
}

/// Results of complete rounds, with the running tests.
#[derive(Debug, Clone)]
pub struct RoundTally {
    /// By round and arm; the first arm is the knob off.
    rounds: Vec<Vec<PeriodResult>>,
    latency_tests: Vec<SymmetryTest>,
    rate_tests: Vec<SymmetryTest>,
    /// Confidence of each value's test.
    confidence: f64,
}

impl RoundTally {
    /// Creates an empty tally for a number of values, with the joint `confidence` of all verdicts.
    /// # Panics
    /// Unless there is a value and the confidence is strictly between 0 and 1.
    pub fn new(values: usize, confidence: f64) -> Self {
        assert!(values > 0 && confidence > 0.0 && confidence < 1.0, "values and a confidence");
        Self {
            rounds: Vec::new(),
            latency_tests: vec![SymmetryTest::default(); values],
            rate_tests: vec![SymmetryTest::default(); values],
            confidence: 1.0 - (1.0 - confidence) / values as f64,
        }
    }

    /// Adds a round: one result per arm, that of the knob off first.
    ///
    /// # Panics
    /// If an arm has no result.
    pub fn add(&mut self, round: Vec<PeriodResult>) {
        assert_eq!(round.len(), self.latency_tests.len() + 1, "a result for each arm");
        let (off, on) = round.split_first().expect("there is the knob off");
        for ((on, latency), rate) in on.iter().zip(&mut self.latency_tests).zip(&mut self.rate_tests) {
            latency.add(on.tested_ns as f64 - off.tested_ns as f64);
            rate.add(on.rate() - off.rate());
        }
        self.rounds.push(round);
    }

    /// Returns the rounds so far, each with one result per arm.
    pub fn rounds(&self) -> &[Vec<PeriodResult>] {
        &self.rounds
    }

    /// Returns the minimum number of rounds for a verdict.
    pub fn needed(&self) -> usize {
        needed_for_symmetry(self.confidence)
    }

    /// Returns true if every value has a verdict.
    pub fn is_decided(&self) -> bool {
        self.latency_tests.iter().all(|test| test.rejects(self.confidence))
    }

    /// Returns the smallest evidence among values, and the evidence required.
    pub fn least_evidence(&self) -> (f64, f64) {
        let evidence = self.latency_tests.iter().map(SymmetryTest::evidence).fold(f64::INFINITY, f64::min);
        (evidence, 1.0 / (1.0 - self.confidence))
    }

    /// Returns the spread of arrival rates with the knob off: (maximum − minimum) ÷ median.
    pub fn load_spread(&self) -> Option<f64> {
        let rates = self.column(0, &|period| period.rate());
        let [least, .., most] = rates[..] else { return None };
        Some((most - least) / median(&rates)?)
    }

    /// Returns [`StatisticShift::relative`] of the percentile under test, for a value counted from zero.
    pub fn relative_shift(&self, value: usize) -> Option<f64> {
        self.shift(value, &|period| period.tested_ns as f64)?.relative
    }

    /// Compares a value, counted from zero, with the knob off; `None` before the first round.
    pub fn comparison(&self, value: usize) -> Option<KnobComparison> {
        let tested = self.shift(value, &|period| period.tested_ns as f64)?;
        let test = &self.latency_tests[value];
        let verdict = match test.rejects(self.confidence) {
            true if test.is_positive() => KnobVerdict::Harms,
            true => KnobVerdict::Helps,
            false => KnobVerdict::NotShown,
        };
        let reach = (tested.shift - tested.low).max(tested.high - tested.shift);
        let mut percentiles_ns = [tested; PERCENTILES.len()];
        for (index, shift) in percentiles_ns.iter_mut().enumerate() {
            *shift = self.shift(value, &|period| period.percentiles_ns[index] as f64)?;
        }
        Some(KnobComparison {
            verdict,
            tested,
            visible_ns: reach.is_finite().then_some(reach),
            evidence: test.evidence(),
            evidence_needed: 1.0 / (1.0 - self.confidence),
            changes_load: self.rate_tests[value].rejects(self.confidence),
            rate: self.shift(value, &PeriodResult::rate)?,
            mean_ns: self.shift(value, &|period| period.mean_ns)?,
            percentiles_ns,
            cpu_per_request_ns: self.known_shift(value, &PeriodResult::cpu_per_request_ns),
            energy_per_request_j: self.known_shift(value, &PeriodResult::energy_per_request_j),
        })
    }

    /// Returns the shift of a statistic over the rounds in which it is known for both arms; `None` if there
    /// are none.
    fn known_shift(
        &self,
        value: usize,
        statistic: &dyn Fn(&PeriodResult) -> Option<f64>,
    ) -> Option<StatisticShift> {
        let known = |round: &Vec<PeriodResult>| statistic(&round[0]).zip(statistic(&round[value + 1]));
        self.shift_of(self.rounds.iter().filter_map(known).collect())
    }

    fn shift(&self, value: usize, statistic: &dyn Fn(&PeriodResult) -> f64) -> Option<StatisticShift> {
        self.known_shift(value, &|period| Some(statistic(period)))
    }

    /// Returns the shift of pairs (off, on) of the same round.
    fn shift_of(&self, pairs: Vec<(f64, f64)>) -> Option<StatisticShift> {
        let differences: Vec<f64> = pairs.iter().map(|(off, on)| on - off).collect();
        let shift = shift_estimate(&differences)?;
        let relative = relative_shift(&pairs).filter(|relative| relative * shift >= 0.0);
        let (off, on): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let (low, high) = shift_interval(&differences, self.confidence);
        Some(StatisticShift {
            off: median(&ascending(off))?,
            on: median(&ascending(on))?,
            shift,
            relative,
            low,
            high,
        })
    }

    /// Returns a statistic of the periods of an arm, ascending.
    fn column(&self, arm: usize, statistic: &dyn Fn(&PeriodResult) -> f64) -> Vec<f64> {
        ascending(self.rounds.iter().map(|round| statistic(&round[arm])).collect())
    }
}

/// Estimates (on − off) ÷ off over pairs. A median of differences over a median of values would mix rounds:
/// under a changing load it could report a fall by more than 100 %.
fn relative_shift(pairs: &[(f64, f64)]) -> Option<f64> {
    let known = pairs.iter().filter(|(off, _)| *off > 0.0);
    let changes: Vec<f64> = known.map(|(off, on)| (on - off) / off).collect();
    shift_estimate(&changes)
}

fn ascending(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[middle]),
        _ => Some(0.5 * (sorted[middle - 1] + sorted[middle])),
    }
}
