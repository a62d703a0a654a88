//! Dividing the rate of a priority level among its workloads.

use calculus::ArrivalCurve;

/// Rates for each curve that add up to at most `total` and have the least possible sum of bursts.
///
/// At the optimum all curves are cut at one duration (the slope of their r-b curves there is equal);
/// curves with a vertex at that duration share what is left in proportion to their freedom. Rate that
/// lowers no burst stays unused. `total` must cover the sustained rates.
pub(super) fn share_rate(curves: &[&ArrivalCurve], total: f64) -> Vec<f64> {
    let mut durations: Vec<f64> = curves.iter().flat_map(|c| c.vertices()).map(|v| v.duration).collect();
    durations.sort_unstable_by(f64::total_cmp);
    durations.dedup();
    // The rate that is needed falls with the duration: the shortest duration that is affordable leaves least burst.
    let affordable =
        durations.partition_point(|&d| curves.iter().map(|c| c.slopes_at(d).0).sum::<f64>() > total);
    let Some(&duration) = durations.get(affordable) else {
        return curves.iter().map(|c| c.sustained_rate()).collect();
    };
    let slopes: Vec<(f64, f64)> = curves.iter().map(|c| c.slopes_at(duration)).collect();
    let base: f64 = slopes.iter().map(|s| s.0).sum();
    let freedom: f64 = slopes.iter().map(|s| s.1 - s.0).sum();
    let part =
        if freedom.is_finite() && freedom > 0.0 { ((total - base) / freedom).clamp(0.0, 1.0) } else { 0.0 };
    slopes
        .iter()
        .map(|(right, left)| if part > 0.0 { right + part * (left - right) } else { *right })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use calculus::CurveVertex;

    fn bucket(rate: f64, burst: f64, span: f64) -> ArrivalCurve {
        let vertices = vec![
            CurveVertex { duration: 0.0, work: burst },
            CurveVertex { duration: span, work: burst + rate * span },
        ];
        ArrivalCurve::new(vertices, 0.0).unwrap()
    }

    #[test]
    fn steep_curves_get_the_rate_first() {
        // One second of 0.5 costs 0.5 of burst if refused; ten seconds of 0.2 cost 2.
        let short = bucket(0.5, 0.1, 1.0);
        let long = bucket(0.2, 0.1, 10.0);
        let rates = share_rate(&[&short, &long], 0.3);
        assert!((rates[1] - 0.2).abs() < 1e-12 && (rates[0] - 0.1).abs() < 1e-12, "{rates:?}");
    }

    #[test]
    fn rate_that_lowers_no_burst_stays_unused() {
        assert!((share_rate(&[&bucket(0.2, 0.1, 1.0)], 0.9)[0] - 0.2).abs() < 1e-12);
    }

    #[test]
    fn burst_of_the_shares_is_the_burst_of_the_sum() {
        let curves = [bucket(0.3, 0.05, 2.0), bucket(0.1, 0.2, 7.0), bucket(0.25, 0.0, 0.5)];
        let refs: Vec<&ArrivalCurve> = curves.iter().collect();
        let sum = ArrivalCurve::sum(&curves);
        for total in [0.0, 0.05, 0.2, 0.35, 0.5, 0.64, 0.65, 0.8] {
            let rates = share_rate(&refs, total);
            let bursts: f64 = curves.iter().zip(&rates).map(|(c, r)| c.burst(*r)).sum();
            assert!(rates.iter().sum::<f64>() <= total + 1e-12);
            assert!((bursts - sum.burst(total)).abs() < 1e-12, "{total}: {bursts} {}", sum.burst(total));
        }
    }
}
