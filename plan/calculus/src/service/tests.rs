use super::*;
use proptest::prelude::*;

fn bucket(burst: f64, rate: f64) -> ArrivalCurve {
    ArrivalCurve::from_limits(&[(rate, burst)])
}

pub(crate) fn any_arrivals() -> impl Strategy<Value = ArrivalCurve> {
    prop::collection::vec((0.05..2.0f64, 0.01..2.0f64), 1..5)
        .prop_map(|limits| ArrivalCurve::from_limits(&limits))
}

fn any_service() -> impl Strategy<Value = ServiceCurve> {
    prop::collection::vec((0.3..3.0f64, 0.0..2.0f64), 1..4).prop_map(|lines| ServiceCurve::largest(&lines))
}

/// Times at which a piecewise-linear result may turn, and between.
fn grid() -> impl Iterator<Item = f64> {
    (0..800).map(|i| f64::from(i) * 0.05)
}

/// Finds by bisection the least time, up to 1,000 s, within which the arrivals may bring this much work.
fn reaches(alpha: &ArrivalCurve, work: f64) -> f64 {
    let mut low = 0.0;
    let mut high = 1000.0;
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if alpha.work_within(middle) < work {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * (1.0 + a.abs())
}

#[test]
fn token_bucket_through_rate_latency() {
    let alpha = bucket(2.0, 0.5);
    let beta = ServiceCurve::rate_latency(1.0, 3.0);
    assert!(close(horizontal_deviation(&alpha, &beta), 5.0));
    let out = output_curve(&alpha, &beta).unwrap();
    assert!(close(out.work_within(0.0), 3.5) && close(out.work_within(4.0), 5.5));
    // Two hops: the burst is paid once.
    let hops = beta.convolve(&ServiceCurve::rate_latency(2.0, 1.0));
    assert!(close(horizontal_deviation(&alpha, &hops), 2.0 / 1.0 + 4.0));
}

#[test]
fn leftovers_of_token_buckets() {
    let beta = ServiceCurve::rate_latency(2.0, 1.0);
    let cross = bucket(3.0, 0.5);
    let left = beta.minus(&cross);
    assert!(close(left.rate(), 1.5) && close(left.latency(), (2.0 + 3.0) / 1.5));
    let theta = 1.0 + 3.0 / 2.0;
    let fifo = beta.minus_fifo(&cross, theta);
    assert!(close(fifo.rate(), 1.5) && close(fifo.latency(), theta) && fifo.jump() < 1e-9);
    // One hop, FIFO: at θ = the delay of both together, the flow has exactly that delay.
    let own = bucket(1.0, 0.7);
    let both = horizontal_deviation(&ArrivalCurve::sum([&own, &cross]), &beta);
    assert!(close(both, 1.0 + 4.0 / 2.0));
    assert!(close(horizontal_deviation(&own, &beta.minus_fifo(&cross, both)), both));
}

#[test]
fn overload_and_silence() {
    let beta = ServiceCurve::rate_latency(1.0, 1.0);
    assert_eq!(horizontal_deviation(&bucket(1.0, 1.5), &beta), f64::INFINITY);
    assert!(output_curve(&bucket(1.0, 1.5), &beta).is_none());
    assert!(beta.minus(&bucket(0.0, 1.0)).is_none());
    assert!(ServiceCurve::rate_latency(0.0, 1.0).is_none());
    assert!(beta.convolve(&ServiceCurve::none()).is_none());
    assert_eq!(horizontal_deviation(&ArrivalCurve::zero(), &beta), 0.0);
    assert!(close(horizontal_deviation(&bucket(1.0, 1.0), &beta), 2.0));
}

proptest! {
    #[test]
    fn the_largest_is_the_largest_everywhere(lines in prop::collection::vec((0.3..3.0f64, 0.0..2.0f64), 1..5)) {
        let curve = ServiceCurve::largest(&lines);
        for t in grid() {
            let expected = lines.iter().map(|&(r, l)| r * (t - l)).fold(0.0, f64::max);
            prop_assert!(close(curve.work_within(t), expected));
            let again = curve.lines().iter().map(|&(r, l)| r * (t - l)).fold(0.0, f64::max);
            prop_assert!(close(again, expected));
        }
    }

    #[test]
    fn leftover_is_the_difference(alpha in any_arrivals(), beta in any_service()) {
        let left = beta.minus(&alpha);
        for t in grid() {
            let expected = (beta.work_within(t) - alpha.work_within(t)).max(0.0);
            if left.is_none() {
                prop_assert!(alpha.sustained_rate() >= beta.rate() * (1.0 - 1e-9));
            } else {
                prop_assert!(close(left.work_within(t), expected), "{} {} {}", t, left.work_within(t), expected);
            }
        }
    }

    #[test]
    fn fifo_leftover_is_below_the_difference(alpha in any_arrivals(), beta in any_service(), theta in 0.0..5.0f64) {
        let left = beta.minus_fifo(&alpha, theta);
        let mut before = 0.0;
        for t in grid() {
            let value = left.work_within(t);
            let exact = if t > theta { (beta.work_within(t) - alpha.work_within(t - theta)).max(0.0) } else { 0.0 };
            prop_assert!(value <= exact + 1e-9 && value >= before - 1e-12, "{} {} {}", t, value, exact);
            before = value;
        }
        if !left.is_none() {
            // Far out it is the difference itself.
            let exact = beta.work_within(1e4) - alpha.work_within(1e4 - theta);
            prop_assert!(close(left.work_within(1e4), exact));
        }
    }

    #[test]
    fn convolution_is_the_infimum(one in any_service(), two in any_service()) {
        let both = one.convolve(&two);
        for t in grid().step_by(16) {
            // The least of a convex function lies at a corner of either.
            let corners = one.corners().map(|c| c.0).chain(two.corners().map(|c| t - c.0)).chain([0.0, t]);
            let split = |s: f64| one.work_within(s) + two.work_within(t - s);
            let expected = corners.filter(|s| (0.0..=t).contains(s)).map(split).fold(f64::INFINITY, f64::min);
            prop_assert!(close(both.work_within(t), expected), "{} {}", both.work_within(t), expected);
        }
    }

    #[test]
    fn the_deviation_is_the_largest_distance(alpha in any_arrivals(), beta in any_service()) {
        let across = horizontal_deviation(&alpha, &beta);
        if alpha.sustained_rate() > beta.rate() {
            prop_assert!(across.is_infinite());
            return Ok(());
        }
        let mut wide = 0.0f64;
        // The deviation is largest at a corner of either curve; a corner of the service may lie beyond the grid.
        let corners: Vec<(f64, f64)> = beta.corners().collect();
        let reached = corners.iter().map(|&(_, work)| reaches(&alpha, work));
        let at_corners = corners.iter().map(|&(time, _)| time).chain(reached);
        for u in grid().chain(alpha.vertices().iter().map(|v| v.duration)).chain(at_corners) {
            wide = wide.max(beta.time_for(alpha.work_within(u), false) - u);
        }
        prop_assert!(across >= wide - 1e-12);
        prop_assert!(across <= wide + 0.5, "{} {}", across, wide);
    }

    #[test]
    fn output_is_the_deconvolution(alpha in any_arrivals(), beta in any_service()) {
        let Some(out) = output_curve(&alpha, &beta) else {
            prop_assert!(alpha.sustained_rate() > beta.rate());
            return Ok(());
        };
        for t in grid().step_by(40) {
            let corners = beta.corners().map(|c| c.0).chain(alpha.vertices().iter().map(|v| v.duration - t));
            let gap = |s: f64| alpha.work_within(t + s) - beta.work_within(s);
            let expected = corners.filter(|&s| s >= 0.0).chain([0.0]).map(gap).fold(0.0, f64::max);
            prop_assert!(close(out.work_within(t), expected), "{} {} {}", t, out.work_within(t), expected);
        }
    }

    #[test]
    fn the_minimum_of_limits_is_the_minimum(limits in prop::collection::vec((0.05..2.0f64, 0.01..2.0f64), 1..6)) {
        let curve = ArrivalCurve::from_limits(&limits);
        for t in grid() {
            let expected = limits.iter().map(|&(r, b)| b + r * t).fold(f64::INFINITY, f64::min);
            prop_assert!(close(curve.work_within(t), expected));
        }
    }
}
