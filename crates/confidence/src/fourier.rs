//! The discrete Fourier transform of a power of two of values.

use std::f64::consts::TAU;
use std::ops::{Add, Mul, Sub};

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Complex {
    pub(crate) re: f64,
    pub(crate) im: f64,
}

impl Complex {
    pub(crate) fn conjugate(self) -> Self {
        Self { re: self.re, im: -self.im }
    }
}

impl Add for Complex {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }
}

impl Sub for Complex {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { re: self.re - other.re, im: self.im - other.im }
    }
}

impl Mul for Complex {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
}

/// Replaces the values x by Σ_t x(t)·e^(−2πi·kt/n), the radix-2 way.
///
/// # Panics
/// Unless the number of values is a power of two.
pub(crate) fn transform(values: &mut [Complex]) {
    let count = values.len();
    assert!(count.is_power_of_two(), "a power of two of values");
    if count == 1 {
        return;
    }
    let unused_bits = usize::BITS - count.trailing_zeros();
    for index in 0..count {
        let reversed = index.reverse_bits() >> unused_bits;
        if index < reversed {
            values.swap(index, reversed);
        }
    }
    let roots: Vec<Complex> = (0..count / 2).map(|k| root_of_unity(k, count)).collect();
    let mut half = 1;
    while half < count {
        let step = count / (2 * half);
        for block in values.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for ((a, b), root) in low.iter_mut().zip(high).zip(roots.iter().step_by(step)) {
                let turned = *b * *root;
                (*a, *b) = (*a + turned, *a - turned);
            }
        }
        half *= 2;
    }
}

fn root_of_unity(k: usize, n: usize) -> Complex {
    let (sin, cos) = (TAU * k as f64 / n as f64).sin_cos();
    Complex { re: cos, im: -sin }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    #[test]
    fn it_is_the_sum_that_defines_it() {
        let mut random = StdRng::seed_from_u64(1);
        for count in [1, 2, 8, 64] {
            let mut value = || random.random::<f64>();
            let values: Vec<Complex> = (0..count).map(|_| Complex { re: value(), im: value() }).collect();
            let mut transformed = values.clone();
            transform(&mut transformed);
            for (k, found) in transformed.iter().enumerate() {
                let terms = values.iter().enumerate().map(|(t, x)| *x * root_of_unity(k * t % count, count));
                let expected = terms.fold(Complex::default(), Complex::add);
                let error = *found - expected;
                assert!(error.re.abs() + error.im.abs() < 1e-9, "{count} {k}: {found:?} {expected:?}");
            }
        }
    }
}
