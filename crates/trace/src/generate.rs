//! Synthetic request streams: an arrival [`RateProcess`], sizes and directions, a seed.
//!
//! Processes are those of the crate `arrivals`. Sizes and directions are drawn independently of arrivals and of each other; generated requests have
//! no offsets and no response times.

pub use arrivals::{ArrivalTimes, MmppState, ParameterError as GenerateError, RateProcess};

use arrivals::split_seed;
use model::{Op, Request};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use units::{Bytes, Nanos};

/// Sizes with their weights.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeMix(Vec<(Bytes, f64)>);

impl SizeMix {
    /// Every request of the same size.
    pub fn fixed(size: Bytes) -> Self {
        Self(vec![(size, 1.0)])
    }

    /// Sizes with weights, which need not add up to one.
    ///
    /// # Errors
    /// When there is no size or a weight is not positive.
    pub fn new(weighted: Vec<(Bytes, f64)>) -> Result<Self, GenerateError> {
        GenerateError::require(!weighted.is_empty(), || "expected at least one size".to_owned())?;
        weighted.iter().try_for_each(|(_, weight)| GenerateError::positive("weight of a size", *weight))?;
        Ok(Self(weighted))
    }

    /// Mean size in bytes.
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

/// A whole synthetic stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Synthetic {
    /// When requests arrive.
    pub process: RateProcess,
    /// How large they are.
    pub sizes: SizeMix,
    /// Probability that a request is a read, 0 to 1.
    pub read_share: f64,
    /// Requests arrive before this time.
    pub duration: Nanos,
    /// Same seed, same stream.
    pub seed: u64,
}

impl Synthetic {
    /// The requests.
    ///
    /// # Errors
    /// When a parameter is out of its range.
    pub fn requests(&self) -> Result<impl Iterator<Item = Request> + Send + use<>, GenerateError> {
        let share = self.read_share;
        GenerateError::require((0.0..=1.0).contains(&share), || {
            format!("expected a read share from 0 to 1, found {share}")
        })?;
        let arrivals = self.process.arrivals(self.seed)?;
        // Directions and sizes have a generator of their own, so that they do not change the arrivals.
        let mut random = StdRng::seed_from_u64(split_seed(self.seed, u64::MAX));
        let (sizes, duration) = (self.sizes.clone(), self.duration);
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
