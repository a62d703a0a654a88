//! The discrete Fourier transform.

use rustfft::FftPlanner;

pub(crate) type Complex = rustfft::num_complex::Complex<f64>;

/// Replaces the values x by Σ_t x(t)·e^(−2πi·kt/n).
pub(crate) fn transform(values: &mut [Complex]) {
    FftPlanner::new().plan_fft_forward(values.len()).process(values);
}
