//! Seeded hill climbing: tests search for the case that comes closest to a forbidden state.

use rand::SeedableRng as _;
use rand::rngs::StdRng;

/// Effort of a search.
#[derive(Debug, Clone, Copy)]
pub struct Climb {
    /// Number of cases to start from; the seeds are 0, 1, ….
    pub starts: u64,
    /// Number of changes tried from each of them.
    pub steps: usize,
}

impl Climb {
    /// Returns the result and the case that came closest. `start` and `change` make cases, or `None` for
    /// one that does not count; `play` returns the closeness of a case and its result. `None` if no start
    /// makes a case.
    pub fn closest<C, F>(
        self,
        start: impl Fn(&mut StdRng) -> Option<C>,
        change: impl Fn(&C, &mut StdRng) -> Option<C>,
        mut play: impl FnMut(&C) -> (f64, F),
    ) -> Option<(F, C)> {
        let mut best: Option<(f64, F, C)> = None;
        for seed in 0..self.starts {
            let mut random = StdRng::seed_from_u64(seed);
            let Some(mut case) = start(&mut random) else { continue };
            let (mut closeness, mut found) = play(&case);
            for _ in 0..self.steps {
                let Some(other) = change(&case, &mut random) else { continue };
                let (reached, seen) = play(&other);
                if reached >= closeness {
                    (closeness, found, case) = (reached, seen, other);
                }
            }
            if best.as_ref().is_none_or(|(reached, ..)| closeness > *reached) {
                best = Some((closeness, found, case));
            }
        }
        best.map(|(_, found, case)| (found, case))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt as _;

    #[test]
    fn the_top_of_a_hill_is_found() {
        let start = |random: &mut StdRng| Some(random.random_range(-100.0..100.0));
        let change = |x: &f64, random: &mut StdRng| Some(x + random.random_range(-1.0..1.0));
        let (found, x) = Climb { starts: 2, steps: 2000 }
            .closest(start, change, |x: &f64| (-(x - 3.0).abs(), x * x))
            .expect("a case");
        assert!((x - 3.0).abs() < 0.01 && (found - x * x).abs() < 1e-12, "{x}");
        assert!(Climb { starts: 2, steps: 1 }.closest(|_| None, change, |x| (*x, ())).is_none());
    }
}
