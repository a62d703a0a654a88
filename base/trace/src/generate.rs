//! Generates synthetic request streams from an arrival [`RateProcess`], sizes, a share of reads and a seed.
//!
//! The arrival processes are those of the crate `arrivals`. Sizes and directions are drawn independently of arrivals
//! and of each other. Generated requests have no offsets and no response times.

pub use arrivals::{ArrivalTimes, MmppState, ParameterError as GenerateError, RateProcess};

use arrivals::split_seed;
use model::{Op, Request};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use units::{Bytes, Nanos};

/// A distribution of request sizes: sizes with weights.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeMix(Vec<(Bytes, f64)>);

impl SizeMix {
    /// Gives every request the same size.
    pub fn fixed(size: Bytes) -> Self {
        Self(vec![(size, 1.0)])
    }

    /// Gives each size a share of requests in proportion to its weight; weights need not add up to one.
    ///
    /// # Errors
    /// When there is no size or a weight is not positive.
    pub fn new(weighted: Vec<(Bytes, f64)>) -> Result<Self, GenerateError> {
        GenerateError::require(!weighted.is_empty(), || "expected at least one size".to_owned())?;
        weighted.iter().try_for_each(|(_, weight)| GenerateError::positive("weight of a size", *weight))?;
        Ok(Self(weighted))
    }

    /// The mean size in bytes.
    pub fn mean(&self) -> f64 {
        let total: f64 = self.0.iter().map(|(_, weight)| weight).sum();
        self.0.iter().map(|(size, weight)| size.0 as f64 * weight).sum::<f64>() / total
    }

    fn draw(&self, total: f64, random: &mut StdRng) -> Bytes {
        let mut left = random.random::<f64>() * total;
        for (size, weight) in &self.0 {
            left -= weight;
            if left < 0.0 {
                return *size;
            }
        }
        self.0[self.0.len() - 1].0
    }
}

/// The parameters of a synthetic request stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Synthetic {
    /// Arrival process.
    pub process: RateProcess,
    /// The distribution of their sizes.
    pub sizes: SizeMix,
    /// The probability that a request is a read, from 0 to 1.
    pub read_share: f64,
    /// End of the stream: every request arrives before it.
    pub duration: Nanos,
    /// Seed of all random draws: the same seed gives the same stream.
    pub seed: u64,
}

impl Synthetic {
    /// Generates the requests in order of arrival.
    ///
    /// # Errors
    /// When a parameter is out of its range.
    pub fn requests(&self) -> Result<impl Iterator<Item = Request> + Send + use<>, GenerateError> {
        let share = self.read_share;
        GenerateError::require((0.0..=1.0).contains(&share), || {
            format!("expected a read share from 0 to 1, found {share}")
        })?;
        let arrivals = self.process.arrivals(self.seed)?;
        // A separate generator for directions and sizes: drawing them does not change the arrivals.
        let mut random = StdRng::seed_from_u64(split_seed(self.seed, u64::MAX));
        let sizes = self.sizes.clone();
        let duration = self.duration;
        let total = sizes.0.iter().map(|(_, weight)| weight).sum();
        Ok(arrivals.take_while(move |arrival| *arrival < duration).map(move |arrival| Request {
            arrival,
            op: if random.random::<f64>() < share { Op::Read } else { Op::Write },
            size: sizes.draw(total, &mut random),
            offset: None,
            response: None,
        }))
    }
}
