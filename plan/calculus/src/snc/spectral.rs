//! The spectral radius of a non-negative matrix, from above.
//!
//! For every positive vector x, max_i (Mx)_i/x_i is at least the spectral radius (Collatz–Wielandt), and
//! M^n 1 ≤ s^n (max x/min x) for that s: the pair bounds E e^{θA} of a Markov chain for *every* n. Noda's
//! iteration finds an x for which the bound is sharp, quadratically fast even where power iteration needs
//! millions of steps, because chains with steps of microseconds hardly ever leave a state. Reducible
//! matrices are perturbed upwards by a trifle to have a positive x; the bound is taken on the original.

/// A small dense square matrix by rows.
#[derive(Debug, Clone, PartialEq)]
pub struct SquareMatrix {
    size: usize,
    entries: Vec<f64>,
}

impl SquareMatrix {
    /// The matrix of the entries `entry(row, column)`.
    pub fn from_fn(size: usize, mut entry: impl FnMut(usize, usize) -> f64) -> Self {
        Self { size, entries: (0..size * size).map(|k| entry(k / size, k % size)).collect() }
    }

    /// The number of rows.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The entry in a row and a column.
    pub fn at(&self, row: usize, column: usize) -> f64 {
        self.entries[row * self.size + column]
    }

    /// The entries of a row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.entries[row * self.size..][..self.size]
    }
}

/// Off-diagonal entries are raised to this part of the largest, to make a reducible matrix irreducible.
const TRIFLE: f64 = 1e-13;

/// An upper bound on the spectral radius of M = I + `excess` ≥ 0, minus one, and ln(max x/min x) of the positive vector x
/// that proves it. `None` for an empty matrix or one with entries that are not
/// finite. Taking M − I keeps the digits of chains whose radius is hardly above one.
pub(crate) fn growth_above_one(excess: &SquareMatrix) -> Option<(f64, f64)> {
    let size = excess.size;
    if size == 0 || excess.entries.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let largest = excess.entries.iter().fold(1e-300, |a: f64, b| a.max(b.abs()));
    let mut vector = vec![1.0; size];
    let mut best = None::<(f64, f64)>;
    for _ in 0..60 {
        let (least, most) = quotients(excess, &vector);
        if best.is_none_or(|(growth, _)| most < growth) {
            best = Some((most, spread(&vector)));
        } else if best.is_some() {
            break;
        }
        if most - least <= 1e-14 * largest {
            break;
        }
        let Some(next) = solve_shifted(excess, most, TRIFLE * largest, &vector) else { break };
        vector = next;
    }
    best
}

/// The least and the largest of (Kx)_i/x_i.
fn quotients(excess: &SquareMatrix, vector: &[f64]) -> (f64, f64) {
    let mut least = f64::INFINITY;
    let mut most = f64::NEG_INFINITY;
    for (i, x) in vector.iter().enumerate() {
        let product: f64 = excess.row(i).iter().zip(vector).map(|(a, x)| a * x).sum();
        least = least.min(product / x);
        most = most.max(product / x);
    }
    (least, most)
}

/// The logarithm of the largest over the least entry.
fn spread(vector: &[f64]) -> f64 {
    let most = vector.iter().copied().fold(0.0, f64::max);
    let least = vector.iter().copied().fold(f64::INFINITY, f64::min);
    (most / least).ln()
}

/// The vector y > 0 with (shift·I − K')y = x, scaled to a largest entry of 1, where K' is K with off-diagonal entries of
/// at least `floor`; `None` when rounding spoils it. The matrix is an M-matrix up to the perturbation, which
/// the shift makes room for.
fn solve_shifted(excess: &SquareMatrix, shift: f64, floor: f64, right: &[f64]) -> Option<Vec<f64>> {
    let n = excess.size;
    let shift = shift + floor * n as f64;
    let mut rows =
        SquareMatrix::from_fn(
            n,
            |i, j| {
                if i == j { shift - excess.at(i, i) } else { -excess.at(i, j).max(floor) }
            },
        );
    let mut solution = right.to_vec();
    for pivot in 0..n {
        let diagonal = rows.at(pivot, pivot);
        if diagonal.is_nan() || diagonal <= 0.0 {
            return None;
        }
        for row in pivot + 1..n {
            let factor = rows.at(row, pivot) / diagonal;
            for column in pivot..n {
                rows.entries[row * n + column] -= factor * rows.at(pivot, column);
            }
            solution[row] -= factor * solution[pivot];
        }
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|column| rows.at(row, column) * solution[column]).sum();
        solution[row] = (solution[row] - known) / rows.at(row, row);
    }
    let most = solution.iter().copied().fold(0.0, f64::max);
    solution.iter_mut().for_each(|v| *v /= most);
    solution.iter().all(|v| v.is_finite() && *v > 0.0).then_some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By squaring: ‖M^(2^k)‖^(1/2^k) for a large k.
    fn by_squaring(matrix: &SquareMatrix) -> f64 {
        let mut power = matrix.clone();
        let mut log_scale = 0.0;
        let mut exponent = 1.0;
        for _ in 0..60 {
            let n = power.size;
            let square =
                SquareMatrix::from_fn(n, |i, j| (0..n).map(|k| power.at(i, k) * power.at(k, j)).sum());
            let scale = square.entries.iter().copied().fold(0.0, f64::max);
            if scale == 0.0 {
                return 0.0;
            }
            power = SquareMatrix::from_fn(n, |i, j| square.at(i, j) / scale);
            exponent *= 2.0;
            log_scale = 2.0 * log_scale + scale.ln();
        }
        (log_scale / exponent).exp()
    }

    fn radius(matrix: &SquareMatrix) -> f64 {
        let excess = SquareMatrix::from_fn(matrix.size, |i, j| matrix.at(i, j) - f64::from(u8::from(i == j)));
        1.0 + growth_above_one(&excess).unwrap().0
    }

    #[test]
    fn known_radii() {
        let cases = [
            (vec![3.0], 3.0),
            (vec![2.0, 1.0, 1.0, 2.0], 3.0),
            // Reducible: triangular, diagonal, and a state that is never entered.
            (vec![2.0, 5.0, 0.0, 1.0], 2.0),
            (vec![2.0, 0.0, 0.0, 7.0], 7.0),
            (vec![0.0, 1.0, 0.0, 1.0], 1.0),
            // Periodic.
            (vec![0.0, 4.0, 1.0, 0.0], 2.0),
        ];
        for (entries, expected) in cases {
            let size = entries.len().isqrt();
            let found = radius(&SquareMatrix { size, entries });
            assert!(
                found >= expected * (1.0 - 1e-12) && found <= expected * (1.0 + 1e-5),
                "{found} {expected}"
            );
        }
        assert_eq!(growth_above_one(&SquareMatrix::from_fn(0, |_, _| 0.0)), None);
        assert_eq!(growth_above_one(&SquareMatrix::from_fn(2, |_, _| f64::NAN)), None);
        assert_eq!(growth_above_one(&SquareMatrix::from_fn(2, |_, _| f64::INFINITY)), None);
    }

    proptest! {
        #[test]
        fn never_below_the_radius_and_close_above(
            size in 1_usize..9,
            entries in prop::collection::vec(prop_oneof![Just(0.0), 0.0..1.0, 0.0..1e-6], 64),
        ) {
            let matrix = SquareMatrix::from_fn(size, |i, j| entries[8 * i + j] + 1e-7);
            let bound = radius(&matrix);
            let exact = by_squaring(&matrix);
            prop_assert!(bound >= exact * (1.0 - 1e-9), "{} {}", bound, exact);
            prop_assert!(bound <= exact * (1.0 + 1e-5) + 1e-9, "{} {}", bound, exact);
        }

        #[test]
        fn the_vector_bounds_every_power(entries in prop::collection::vec(0.0..1.0, 9), power in 1_i32..30) {
            let matrix = SquareMatrix { size: 3, entries };
            let excess = SquareMatrix::from_fn(3, |i, j| matrix.at(i, j) - f64::from(u8::from(i == j)));
            let (growth, spread) = growth_above_one(&excess).unwrap();
            let mut ones = vec![1.0; 3];
            for _ in 0..power {
                ones = (0..3).map(|i| matrix.row(i).iter().zip(&ones).map(|(a, x)| a * x).sum()).collect();
            }
            let most = ones.iter().copied().fold(0.0, f64::max);
            prop_assert!(most <= (1.0 + growth).powi(power) * spread.exp() * (1.0 + 1e-9));
        }
    }
}
