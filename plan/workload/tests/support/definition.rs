//! The definition of a burst curve as a judge: all intervals, one by one.

use units::{Nanos, Work};
use workload::burst::{BurstEnvelope, EnvelopeVertex, StageArrival};

/// Every interval as (duration, work).
pub(crate) fn intervals(arrivals: &[StageArrival]) -> impl Iterator<Item = EnvelopeVertex> {
    arrivals.iter().enumerate().flat_map(|(i, from)| {
        arrivals[i..].iter().scan(Work::ZERO, move |work, to| {
            *work += to.work;
            Some(EnvelopeVertex { duration: to.at - from.at, work: *work })
        })
    })
}

/// The hull is the only strictly concave chain whose corners are intervals and that lies above them all.
pub(crate) fn is_the_hull_of_all_intervals(envelope: &BurstEnvelope, arrivals: &[StageArrival]) {
    let vertices = envelope.vertices();
    assert_eq!(vertices[0].duration, Nanos::ZERO);
    for v in vertices.windows(2) {
        assert!(v[0].duration < v[1].duration && v[0].work < v[1].work, "{v:?}");
    }
    let slope = |a: EnvelopeVertex, b: EnvelopeVertex| {
        (i128::from(b.work.0 - a.work.0), i128::from((b.duration - a.duration).0))
    };
    for v in vertices.windows(3) {
        let (rise, run) = slope(v[0], v[1]);
        let (next_rise, next_run) = slope(v[1], v[2]);
        assert!(rise * next_run > next_rise * run, "{v:?}");
    }
    let mut found = vec![false; vertices.len()];
    for interval in intervals(arrivals) {
        assert!(interval.work <= envelope.work_within(interval.duration), "{interval:?} above {vertices:?}");
        if let Ok(k) = vertices.binary_search_by_key(&interval.duration, |v| v.duration) {
            found[k] |= vertices[k] == interval;
        }
        let edge = vertices.windows(2).find(|v| (v[0].duration..v[1].duration).contains(&interval.duration));
        if let Some(&[a, b]) = edge {
            // work_within rounds up: the exact comparison as well.
            let (rise, run) = slope(a, b);
            let r = i128::from(interval.work.0) - i128::from(a.work.0);
            let d = interval.duration - a.duration;
            assert!(r * run <= rise * i128::from(d.0));
        }
    }
    assert!(found.iter().all(|&f| f), "corners that are no intervals: {found:?} {vertices:?}");
}
