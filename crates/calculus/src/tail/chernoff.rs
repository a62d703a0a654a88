//! Chernoff's bound on a lattice.

use super::Atom;

/// Terms of a moment generating function that are e^−NEGLIGIBLE times the largest value's are not computed one
/// by one.
const NEGLIGIBLE: f64 = 50.0;

/// `ln E e^{θX}`, without overflow; at most 1e-20 times the probability of the largest value above it.
pub(super) fn log_mgf(law: &[Atom], theta: f64) -> f64 {
    let Some(top) = law.last() else { return 0.0 };
    let mut sum = 0.0;
    for atom in law.iter().rev() {
        let below = theta * (top.work - atom.work);
        if below > NEGLIGIBLE {
            // All the rest together has at most probability 1.
            sum += (-NEGLIGIBLE).exp();
            break;
        }
        sum += atom.probability * (-below).exp();
    }
    theta * top.work + sum.ln()
}

/// `P(X ≥ m·step) ≤ min(1, min_θ exp(Λ(θ) − θ·m·step))` for every m; zero above `max`. Λ − θy is convex in θ
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
