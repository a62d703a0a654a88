//! Rounds: each has every arm once, in an order that chance decides, and figures are medians over rounds.

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;

/// The arms of every round in their order, all rounds one after the other.
pub(crate) fn order(arms: usize, rounds: usize, seed: u64) -> Vec<usize> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut all = Vec::new();
    for _ in 0..rounds {
        let mut round: Vec<usize> = (0..arms).collect();
        round.shuffle(&mut random);
        all.extend(round);
    }
    all
}

/// The median of some figure over rounds, with the least and the largest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RoundFigure {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl RoundFigure {
    /// The figure of these rounds; `None` without any.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let upper = *values.get(values.len() / 2)?;
        let median = f64::midpoint(upper, values[(values.len() - 1) / 2]);
        Some(Self { median, least: values[0], most: values[values.len() - 1] })
    }

    /// As text, with three digits each.
    pub(crate) fn text(self) -> String {
        format!("{} ({} to {})", short(self.median), short(self.least), short(self.most))
    }
}

/// A number with about three digits.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Arguments of a benchmark: words after `--`, as `--name value`.
#[derive(Debug)]
pub(crate) struct BenchArguments(Vec<String>);

impl BenchArguments {
    /// The arguments of this program.
    pub(crate) fn read() -> Self {
        Self(std::env::args().skip(1).filter(|word| word != "--bench").collect())
    }

    /// The value of an option, or a default where it is not given.
    ///
    /// # Panics
    /// When it is given and not of its kind.
    pub(crate) fn value<T: std::str::FromStr>(&self, name: &str, default: T) -> T {
        let Some(place) = self.0.iter().position(|word| word == name) else { return default };
        let text = self.0.get(place + 1).unwrap_or_else(|| panic!("{name}: expected a value"));
        text.parse().unwrap_or_else(|_| panic!("{name}: '{text}' is not a value of it"))
    }

    /// The comma-separated words of an option; none where it is not given, which stands for all.
    pub(crate) fn words(&self, name: &str) -> Vec<String> {
        let text: String = self.value(name, String::new());
        text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    /// Returns true if an option's list contains a word.
    pub(crate) fn asks_for(&self, name: &str, word: &str) -> bool {
        let words = self.words(name);
        words.is_empty() || words.iter().any(|asked| asked == word)
    }
}
