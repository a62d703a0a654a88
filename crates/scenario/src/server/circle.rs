//! A trace as time at each stage, repeated for ever.

use ::model::{Job, PerStage, Stage};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::sync::Arc;
use units::Nanos;

/// Longest period: 36 years, so that a few rounds stay far from overflow.
const LONGEST: f64 = (1u64 << 60) as f64;

/// Jobs in order of arrival, the first at 0, that come again after a period, for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circle {
    jobs: Vec<Job>,
    period: Nanos,
}

impl Circle {
    /// Repeated after one mean gap between arrivals, as predictions have it.
    ///
    /// # Errors
    /// Without jobs at two instants at least, and when one arrives before the one before it.
    pub fn new(mut jobs: Vec<Job>) -> Result<Self, String> {
        let (Some(first), Some(last)) = (jobs.first(), jobs.last()) else {
            return Err("there are no requests".into());
        };
        if jobs.windows(2).any(|pair| pair[1].arrival < pair[0].arrival) {
            return Err("a request arrives before the one before it".into());
        }
        let (origin, span) = (first.arrival, last.arrival.0 - first.arrival.0);
        if span == 0 {
            return Err("expected requests at two instants at least".into());
        }
        let period = Nanos(span + span.div_ceil(jobs.len() as u64 - 1));
        jobs.iter_mut().for_each(|job| job.arrival = job.arrival - origin);
        Ok(Self { jobs, period })
    }

    /// In order of arrival.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// After which the first job comes again.
    pub fn period(&self) -> Nanos {
        self.period
    }

    /// Work per second of a stage, seconds.
    pub fn utilisation(&self, stage: Stage) -> f64 {
        self.jobs.iter().map(|job| job.work[stage].0 as f64).sum::<f64>() / self.period.0 as f64
    }

    /// The same requests at a rate that is higher by a factor.
    pub(crate) fn scaled(&self, factor: f64) -> Result<Self, String> {
        let period = self.period.0 as f64 / factor;
        if !(factor > 0.0 && (1.0..=LONGEST).contains(&period)) {
            return Err(format!("a rate cannot be multiplied by {factor}"));
        }
        // Within bounds: arrivals are before the period's end.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let sooner = |time: Nanos| Nanos((time.0 as f64 / factor) as u64);
        let job = |job: &Job| Job { arrival: sooner(job.arrival), ..*job };
        Ok(Self { jobs: self.jobs.iter().map(job).collect(), period: sooner(self.period) })
    }

    /// A place to begin, uniform over the period.
    pub(crate) fn anywhere(&self, seed: u64) -> Nanos {
        Nanos(StdRng::seed_from_u64(seed).random_range(0..self.period.0))
    }

    /// Position of the first job that arrives at or after `begin`, which counts within the period.
    fn first(&self, begin: Nanos) -> (u64, u64) {
        let begin = begin.0 % self.period.0;
        (self.jobs.partition_point(|job| job.arrival.0 < begin) as u64, begin)
    }

    /// When jobs arrive after `begin`, which becomes 0.
    pub(crate) fn instants_from(self: Arc<Self>, begin: Nanos) -> impl Iterator<Item = Nanos> {
        let (first, begin) = self.first(begin);
        let count = self.jobs.len() as u64;
        (first..).map(move |number| {
            let job = &self.jobs[index(number % count)];
            Nanos(number / count * self.period.0 + job.arrival.0 - begin)
        })
    }

    /// What those jobs need.
    pub(crate) fn jobs_from(self: Arc<Self>, begin: Nanos) -> impl Iterator<Item = PerStage<Nanos>> {
        let (first, _) = self.first(begin);
        let count = self.jobs.len() as u64;
        (first..).map(move |number| self.jobs[index(number % count)].work)
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("an index")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle() -> Arc<Circle> {
        let job = |arrival, work| Job { arrival: Nanos(arrival), work: PerStage::from_fn(|_| Nanos(work)) };
        Arc::new(Circle::new(vec![job(7, 1), job(9, 2), job(13, 3)]).unwrap())
    }

    #[test]
    fn it_goes_round_from_anywhere() {
        // Arrivals 0, 2, 6 and again after 9.
        let from = |begin| circle().instants_from(Nanos(begin)).map(|at| at.0).take(5).collect::<Vec<_>>();
        assert_eq!(from(0), [0, 2, 6, 9, 11]);
        assert_eq!(from(2), [0, 4, 7, 9, 13]);
        assert_eq!(from(7), [2, 4, 8, 11, 13]);
        assert_eq!(from(16), from(7));
        let work = |begin| {
            circle().jobs_from(Nanos(begin)).map(|work| work[Stage::Storage].0).take(4).collect::<Vec<_>>()
        };
        assert_eq!((work(2), work(7)), (vec![2, 3, 1, 2], vec![1, 2, 3, 1]));
    }

    #[test]
    fn a_faster_one_has_the_same_work_in_less_time() {
        let twice = circle().scaled(2.0).unwrap();
        assert_eq!((twice.period(), twice.jobs()[2].arrival), (Nanos(4), Nanos(3)));
        assert!(circle().scaled(0.0).is_err() && circle().scaled(f64::NAN).is_err());
        assert!(circle().scaled(1e12).is_err() && circle().scaled(1e-12).is_ok());
        assert!(Circle::new(Vec::new()).is_err());
    }
}
