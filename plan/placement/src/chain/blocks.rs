//! Symmetric positive definite systems that are block-tridiagonal with one bordering variable.

use super::STAGES;

/// The number of variables of one level: rates, then bursts.
pub(super) const WIDTH: usize = 2 * STAGES;
/// The entries of one level in a vector of the system.
pub(super) type NewtonVector = [f64; WIDTH];
/// The entries of one pair of levels in the matrix of the system.
pub(super) type NewtonBlock = [[f64; WIDTH]; WIDTH];

/// The system `[[H, border], [borderᵀ, corner]] · x = [rhs, rhs_corner]`, with H block-tridiagonal: a block for each
/// level, and the objective `t` as the bordering variable.
#[derive(Debug, Clone, Default)]
pub(super) struct NewtonSystem {
    pub(super) diagonal: Vec<NewtonBlock>,
    /// `lower[p]` couples level p (rows) with level p − 1 (columns); `lower[0]` is unused.
    pub(super) lower: Vec<NewtonBlock>,
    pub(super) border: Vec<NewtonVector>,
    pub(super) corner: f64,
    /// The negative gradient by level; after [`Self::solve`], the solution.
    pub(super) rhs: Vec<NewtonVector>,
    /// The negative gradient of the bordering variable; after [`Self::solve`], its solution.
    pub(super) rhs_corner: f64,
}

impl NewtonSystem {
    /// Sets all entries to zero, for this many levels.
    pub(super) fn clear(&mut self, levels: usize) {
        for blocks in [&mut self.diagonal, &mut self.lower] {
            blocks.clear();
            blocks.resize(levels, [[0.0; WIDTH]; WIDTH]);
        }
        for vectors in [&mut self.border, &mut self.rhs] {
            vectors.clear();
            vectors.resize(levels, [0.0; WIDTH]);
        }
        (self.corner, self.rhs_corner) = (0.0, 0.0);
    }

    /// Makes the bordering variable keep its value.
    pub(super) fn hold_border(&mut self) {
        self.border.fill([0.0; WIDTH]);
        self.corner = 1.0;
        self.rhs_corner = 0.0;
    }

    /// Solves in place by block Cholesky; the solution replaces `rhs` and `rhs_corner`.
    /// `None` when the matrix is numerically not positive definite.
    pub(super) fn solve(&mut self) -> Option<()> {
        let levels = self.diagonal.len();
        for p in 0..levels {
            if p > 0 {
                // lower[p] becomes L21 = A21 · L11⁻ᵀ, row by row; then the Schur complement.
                let (before, here) = self.diagonal.split_at_mut(p);
                let factor = &before[p - 1];
                for row in &mut self.lower[p] {
                    forward(factor, row);
                }
                subtract_outer(&mut here[0], &self.lower[p]);
                for vectors in [&mut self.rhs, &mut self.border] {
                    let (before, here) = vectors.split_at_mut(p);
                    subtract_product(&mut here[0], &self.lower[p], &before[p - 1]);
                }
            }
            cholesky(&mut self.diagonal[p])?;
            forward(&self.diagonal[p], &mut self.rhs[p]);
            forward(&self.diagonal[p], &mut self.border[p]);
        }
        let schur = self.corner - dot(&self.border, &self.border);
        if schur <= 0.0 || !schur.is_finite() {
            return None;
        }
        self.rhs_corner = (self.rhs_corner - dot(&self.border, &self.rhs)) / schur;
        self.substitute_back();
        Some(())
    }

    /// Turns the forward-substituted right side into the solution, from the last level to the first.
    fn substitute_back(&mut self) {
        for p in (0..self.diagonal.len()).rev() {
            let mut x = self.rhs[p];
            for (x, border) in x.iter_mut().zip(&self.border[p]) {
                *x -= border * self.rhs_corner;
            }
            if p + 1 < self.diagonal.len() {
                let next = self.rhs[p + 1];
                let lower = &self.lower[p + 1];
                for (row, next) in lower.iter().zip(next) {
                    for (x, l) in x.iter_mut().zip(row) {
                        *x -= l * next;
                    }
                }
            }
            backward(&self.diagonal[p], &mut x);
            self.rhs[p] = x;
        }
    }
}

fn dot(a: &[NewtonVector], b: &[NewtonVector]) -> f64 {
    a.iter().zip(b).flat_map(|(x, y)| x.iter().zip(y)).map(|(x, y)| x * y).sum()
}

/// Replaces the matrix by its lower Cholesky factor; `None` when it is numerically not positive definite.
fn cholesky(a: &mut NewtonBlock) -> Option<()> {
    for i in 0..WIDTH {
        for j in 0..=i {
            let sum = a[i][j] - (0..j).map(|k| a[i][k] * a[j][k]).sum::<f64>();
            if i == j {
                if sum <= 0.0 || !sum.is_finite() {
                    return None;
                }
                a[i][i] = sum.sqrt();
            } else {
                a[i][j] = sum / a[j][j];
            }
        }
    }
    Some(())
}

/// Forward substitution: x ← L⁻¹ x.
fn forward(l: &NewtonBlock, x: &mut NewtonVector) {
    for i in 0..WIDTH {
        for k in 0..i {
            x[i] -= l[i][k] * x[k];
        }
        x[i] /= l[i][i];
    }
}

/// Backward substitution: x ← L⁻ᵀ x.
fn backward(l: &NewtonBlock, x: &mut NewtonVector) {
    for i in (0..WIDTH).rev() {
        for k in i + 1..WIDTH {
            x[i] -= l[k][i] * x[k];
        }
        x[i] /= l[i][i];
    }
}

/// Subtracts an outer product: a ← a − m mᵀ, lower triangle only.
fn subtract_outer(a: &mut NewtonBlock, m: &NewtonBlock) {
    for i in 0..WIDTH {
        for j in 0..=i {
            let sum: f64 = (0..WIDTH).map(|k| m[i][k] * m[j][k]).sum();
            a[i][j] -= sum;
        }
    }
}

/// Subtracts a product: x ← x − m y.
fn subtract_product(x: &mut NewtonVector, m: &NewtonBlock, y: &NewtonVector) {
    for (x, row) in x.iter_mut().zip(m) {
        *x -= row.iter().zip(y).map(|(m, y)| m * y).sum::<f64>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Dense Gaussian elimination with partial pivoting: the slow and obvious judge.
    fn dense(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
        let n = b.len();
        for i in 0..n {
            let pivot = (i..n).max_by(|&x, &y| a[x][i].abs().total_cmp(&a[y][i].abs())).unwrap();
            a.swap(i, pivot);
            b.swap(i, pivot);
            for row in i + 1..n {
                let factor = a[row][i] / a[i][i];
                let upper = a[i].clone();
                a[row].iter_mut().zip(upper).skip(i).for_each(|(x, u)| *x -= factor * u);
                b[row] -= factor * b[i];
            }
        }
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|k| a[i][k] * b[k]).sum();
            b[i] = (b[i] - known) / a[i][i];
        }
        b
    }

    proptest! {
        #[test]
        fn agrees_with_dense_elimination(levels in 1usize..5, seed in prop::collection::vec(-1.0..1.0f64, 400)) {
            let mut values = seed.into_iter().cycle();
            let mut next = || values.next().unwrap();
            let mut system = NewtonSystem::default();
            system.clear(levels);
            let n = levels * WIDTH + 1;
            let mut matrix = vec![vec![0.0; n]; n];
            // Diagonally dominant, hence positive definite.
            for p in 0..levels {
                for i in 0..WIDTH {
                    for j in 0..i {
                        let v = next();
                        (system.diagonal[p][i][j], system.diagonal[p][j][i]) = (v, v);
                    }
                    system.diagonal[p][i][i] = 30.0;
                    system.border[p][i] = next();
                    system.rhs[p][i] = next();
                    if p > 0 {
                        for j in 0..WIDTH { system.lower[p][i][j] = next(); }
                    }
                }
            }
            (system.corner, system.rhs_corner) = (40.0, next());
            for p in 0..levels {
                for i in 0..WIDTH {
                    let row = p * WIDTH + i;
                    for j in 0..WIDTH {
                        matrix[row][p * WIDTH + j] = system.diagonal[p][i][j];
                        if p > 0 {
                            matrix[row][(p - 1) * WIDTH + j] = system.lower[p][i][j];
                            matrix[(p - 1) * WIDTH + j][row] = system.lower[p][i][j];
                        }
                    }
                    (matrix[row][n - 1], matrix[n - 1][row]) = (system.border[p][i], system.border[p][i]);
                }
            }
            matrix[n - 1][n - 1] = system.corner;
            let rhs = system.rhs.iter().flatten().copied().chain([system.rhs_corner]).collect();
            let expected = dense(matrix, rhs);
            system.solve().unwrap();
            let found: Vec<f64> = system.rhs.iter().flatten().copied().chain([system.rhs_corner]).collect();
            for (x, y) in found.iter().zip(&expected) {
                prop_assert!((x - y).abs() < 1e-9, "{x} {y}");
            }
        }
    }
}
