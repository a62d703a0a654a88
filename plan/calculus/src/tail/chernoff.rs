//! Chernoff's bound on a lattice.

use super::atom::LawAtom;

/// The relative error that repeated squaring may leave in a sum of exponentials.
const SQUARING: f64 = 1e-7;

/// The logarithm of the moment generating function, `ln E e^{θX}`, for every θ, without overflow, rounded up. Where an
/// exponent is twice another one, its exponentials are squares, which saves much of the time.
pub(super) fn log_mgf(law: &[LawAtom], thetas: &[f64]) -> Vec<f64> {
    let Some(top) = law.last() else { return vec![0.0; thetas.len()] };
    let half: Vec<Option<usize>> =
        thetas.iter().map(|theta| thetas.iter().position(|other| *other * 2.0 == *theta)).collect();
    let mut sums = vec![0.0; thetas.len()];
    let mut powers = vec![0.0; thetas.len()];
    for atom in law {
        let below = top.work - atom.work;
        for (index, theta) in thetas.iter().enumerate() {
            let power = match half[index] {
                Some(half) => powers[half] * powers[half],
                None => f64::exp(-theta * below),
            };
            powers[index] = power;
            sums[index] += atom.probability * power;
        }
    }
    sums.iter().zip(thetas).map(|(sum, theta): (&f64, _)| theta * top.work + sum.ln() + SQUARING).collect()
}

/// Chernoff's bound `P(X ≥ m·step) ≤ min(1, min_θ exp(Λ(θ) − θ·m·step))` for every m; zero above `max`. Λ − θy is convex in θ
/// and its minimum moves up with y, so one pass over both suffices.
pub(super) fn tail(thetas: &[f64], log_mgf: &[f64], step: f64, max: f64, tail: &mut [f64]) {
    let mut best = 0;
    for (m, tail) in tail.iter_mut().enumerate() {
        let y = m as f64 * step;
        if y > max {
            *tail = 0.0;
            continue;
        }
        let exponent = |index: usize| log_mgf[index] - thetas[index] * y;
        let mut least = exponent(best);
        while best + 1 < thetas.len() && exponent(best + 1) < least {
            best += 1;
            least = exponent(best);
        }
        *tail = if least < 0.0 { least.exp() } else { 1.0 };
    }
}
