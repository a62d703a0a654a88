use super::*;
use model::{Job, PerStage};
use proptest::prelude::*;
use units::Nanos;

fn job(at: u64, works: [u64; 3]) -> Job {
    let mut works = works.into_iter();
    Job { arrival: Nanos(at), work: PerStage::from_fn(|_| Nanos(works.next().unwrap_or(0))) }
}

fn any_stream() -> impl Strategy<Value = (Vec<Job>, u64)> {
    let job_at = (0..60u64, [0..9u64, 0..9u64, 0..9u64]);
    (prop::collection::vec(job_at, 1..9), 60..90u64).prop_map(|(mut jobs, period)| {
        jobs.sort_by_key(|job| job.0);
        (jobs.into_iter().map(|(at, works)| job(at, works)).collect(), period)
    })
}

/// Work and allowance of jobs, from the definition.
fn demand(jobs: &[&Job]) -> u64 {
    let works: Vec<[u64; 3]> = jobs.iter().map(|job| job.work.map(|w| w.0).into_array()).collect();
    let most = |of: &dyn Fn(&[u64; 3]) -> u64| works.iter().map(of).max().unwrap_or(0);
    let largest = |w: &[u64; 3]| *w.iter().max().unwrap();
    let both = most(&|w| w.iter().sum::<u64>() - largest(w));
    let apart = most(&|w| w[0].min(w[1])) + most(&|w| w[1].min(w[2]));
    works.iter().map(largest).sum::<u64>() + both.max(apart)
}

/// Instants of all rounds that matter with their jobs.
fn unrolled(jobs: &[Job], period: u64, rounds: u64) -> Vec<(u64, &Job)> {
    (0..rounds).flat_map(|r| jobs.iter().map(move |job| (job.arrival.0 + r * period, job))).collect()
}

/// Every value must be within a bin above the true one (exact below 32).
fn agrees(law: &WorkDistribution, mut values: Vec<u64>) {
    values.sort_unstable();
    let count = values.len() as f64;
    let mut cumulated = 0.0;
    for atom in law.atoms() {
        let reached = values.iter().filter(|v| **v as f64 <= atom.work * 1e9 + 0.5).count() as f64 / count;
        cumulated += atom.probability;
        assert!((reached - cumulated).abs() < 1e-9, "{law:?} {values:?}");
    }
    assert!((cumulated - 1.0).abs() < 1e-9);
    assert!((law.max() * 1e9 - values[values.len() - 1] as f64).abs() < 1e-3);
}

proptest! {
    #[test]
    fn a_window_sees_what_counting_sees((jobs, period) in any_stream(), window in 0..200u64) {
        let stream = CircularWork::new(&jobs, Nanos(period));
        let all = unrolled(&jobs, period, 5);
        let value = |start: u64| {
            let inside: Vec<&Job> =
                all.iter().filter(|(at, _)| (start..=start + window).contains(at)).map(|(_, job)| *job).collect();
            // Whole rounds allow for every job of the trace.
            demand(&inside)
        };
        agrees(&stream.work_in_window(Nanos(window)), (0..period).map(value).collect());
    }

    #[test]
    fn rounding_to_bins_is_the_same_for_all_windows((jobs, period) in any_stream(), window in 0..200u64) {
        // Works of up to eight million, so that bins are wide.
        let scaled = |job: &Job| Job { work: job.work.map(|work| Nanos(work.0 * 999_983)), ..*job };
        let stream = CircularWork::new(&jobs.iter().map(scaled).collect::<Vec<_>>(), Nanos(period));
        let law = stream.work_in_window_by_bins(Nanos(window));
        let longer = stream.work_in_window_by_bins(Nanos(window + 1));
        let exact = stream.work_in_window(Nanos(window));
        prop_assert_eq!(law.atoms().len(), exact.atoms().len());
        for (rounded, exact) in law.atoms().iter().zip(exact.atoms()) {
            prop_assert!(rounded.probability == exact.probability);
            prop_assert!((exact.work..=exact.work * (1.0 + 1.0 / 16.0)).contains(&rounded.work));
            // The next longer window of the same stream has at least as much, and rounds what is in the same bin alike.
            prop_assert!(longer.tail(rounded.work) >= law.tail(rounded.work) - 1e-9);
            let alike = longer.atoms().iter().filter(|atom| (atom.work / rounded.work - 1.0).abs() < 1.0 / 40.0);
            for atom in alike {
                prop_assert_eq!(atom.work, rounded.work);
            }
        }
    }

    #[test]
    fn joint_backlogs_have_the_laws_of_each_service((jobs, period) in any_stream()) {
        let stream = CircularWork::new(&jobs, Nanos(period));
        let services = [1.0, 0.6, 0.3];
        let joint = stream.joint_backlogs_at_arrivals(services);
        prop_assert!((joint.iter().map(|part| part.probability).sum::<f64>() - 1.0).abs() < 1e-9);
        for (index, service) in services.into_iter().enumerate() {
            let Some(law) = stream.backlog_at_arrivals(service) else {
                prop_assert!(joint.iter().all(|part| part.works[index] == f64::INFINITY));
                continue;
            };
            for atom in law.atoms() {
                let above = joint.iter().filter(|part| part.works[index] >= atom.work);
                let tail: f64 = above.map(|part| part.probability).sum();
                // The largest of a bin may be that of another part of the requests in the same bin.
                prop_assert!(tail <= law.tail(atom.work) + 1e-9);
                let lower = atom.work * (1.0 - 1.0 / 16.0);
                let above = joint.iter().filter(|part| part.works[index] >= lower);
                prop_assert!(above.map(|part| part.probability).sum::<f64>() >= law.tail(atom.work) - 1e-9);
            }
        }
        // More service leaves less behind.
        prop_assert!(joint.iter().all(|part| part.works.is_sorted()));
    }

    #[test]
    fn a_cell_sees_the_most_of_its_windows_beyond_the_rate(
        (jobs, period) in any_stream(),
        shortest in 1..40u64,
        more in 0..20u64,
    ) {
        let stream = CircularWork::new(&jobs, Nanos(period));
        let law = stream.work_beyond_rate(Nanos(shortest), Nanos(shortest + more)).expect("within the period");
        let all = unrolled(&jobs, period, 3);
        let work = |end: u64, length: u64| -> u64 {
            let inside = all.iter().filter(|(at, _)| (end - length..=end).contains(at));
            inside.map(|(_, job)| job.work.iter().map(|(_, work)| work.0).max().unwrap()).sum()
        };
        let beyond = |end: u64, length: u64| work(end, length) as f64 - stream.rate() * (length - shortest) as f64;
        let most = |end: u64| (shortest..=shortest + more).map(|length| beyond(end, length)).fold(0.0, f64::max);
        let allowance = stream.allowance as f64;
        let counted = |least: f64| (2 * period..3 * period).filter(|end| most(*end) + allowance >= least).count();
        for least in 0..40 {
            let least = f64::from(least);
            let exact = counted(least) as f64 / period as f64;
            let tail = law.tail((least - 1e-3) * 1e-9);
            prop_assert!(tail >= exact - 1e-9, "at {least}: {tail} below {exact}");
            // Rounded up by a bin, a closed window and the largest of a piece: at most three nanoseconds.
            let looser = counted(least - 3.0 - least / 16.0) as f64 / period as f64;
            prop_assert!(tail <= looser + 1e-9, "at {least}: {tail} above {looser}");
        }
    }

    #[test]
    fn a_request_finds_the_worst_window_that_it_ends((jobs, period) in any_stream()) {
        let stream = CircularWork::new(&jobs, Nanos(period));
        let all = unrolled(&jobs, period, 12);
        prop_assume!(stream.rate() < 0.9);
        let from = jobs.len() * 11;
        let value = |end: usize| {
            let supremum = |start: usize| {
                let inside: Vec<&Job> = all[start..=end].iter().map(|(_, job)| *job).collect();
                demand(&inside) as i64 - (all[end].0 - all[start].0) as i64
            };
            u64::try_from((0..=end).map(supremum).max().unwrap()).unwrap()
        };
        let law = stream.backlog_at_arrivals(1.0).unwrap();
        let exact: Vec<u64> = (from..from + jobs.len()).map(value).collect();
        // Rounding up by a billionth reaches the next nanosecond.
        let exact_tail = |work: f64| exact.iter().filter(|v| **v as f64 >= work).count() as f64 / exact.len() as f64;
        for atom in law.atoms() {
            prop_assert!(law.tail(atom.work) >= exact_tail(atom.work * 1e9) - 1e-9);
            prop_assert!(law.tail(atom.work) <= exact_tail((atom.work * 1e9 - 1.0) * (1.0 - 1.0 / 16.0)) + 1e-9);
        }
    }

    #[test]
    fn delays_and_backlogs_over_time_are_those_of_every_instant(
        (jobs, period) in any_stream(),
        service in prop::sample::select(vec![0.5, 0.75, 1.0]),
        begun in 0..20u64,
    ) {
        let stream = CircularWork::new(&jobs, Nanos(period));
        prop_assume!(stream.rate() < 0.9 * service);
        let all = unrolled(&jobs, period, 60);
        let work = |from: u64, to: u64| -> f64 {
            let inside = all.iter().filter(|(at, _)| (from..=to).contains(at));
            inside.map(|(_, job)| job.work.iter().map(|(_, work)| work.0).max().unwrap()).sum::<u64>() as f64
        };
        let backlog = |t: u64| {
            let starts = all.iter().map(|(at, _)| *at).filter(|at| *at <= t);
            starts.map(|start| work(start, t) - service * (t - start) as f64).fold(0.0, f64::max)
        };
        let delay = |t: u64| {
            let mut end = backlog(t) + begun as f64;
            loop {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole instants")]
                let until = t + end as u64;
                let more = backlog(t) + begun as f64 + work(t + 1, until);
                if more <= end { return end; }
                end = more;
            }
        };
        let instants: Vec<u64> = (20 * period..21 * period).collect();
        let judged = [
            (stream.backlog_over_time(service).expect("stable"), instants.iter().map(|t| backlog(*t)).collect::<Vec<f64>>()),
            (stream.delay_over_time(service, begun as f64 * 1e-9).expect("stable"), instants.iter().map(|t| delay(*t)).collect()),
        ];
        for (law, exact) in judged {
            let share = |least: f64| exact.iter().filter(|value| **value >= least).count() as f64 / period as f64;
            for least in 0..100 {
                let least = f64::from(least);
                let tail = law.tail((least - 1e-3) * 1e-9);
                prop_assert!(tail >= share(least) - 1e-9, "at {least}: {tail} below {}", share(least));
            }
        }
        // Not much above either: with nothing in between two jobs, a delay is what was begun.
        let mean = |law: &WorkDistribution| law.atoms().iter().map(|atom| atom.work * atom.probability).sum::<f64>() * 1e9;
        let exact = instants.iter().map(|t| backlog(*t)).sum::<f64>() / period as f64;
        let found = mean(&stream.backlog_over_time(service).expect("stable"));
        prop_assert!(found <= exact * (1.0 + 1.0 / 16.0) + 2.0, "{found} instead of {exact}");
    }

    #[test]
    fn no_window_exceeds_burst_and_rate((jobs, period) in any_stream(), window in 0..400u64) {
        let stream = CircularWork::new(&jobs, Nanos(period));
        let most = stream.work_in_window(Nanos(window)).max();
        prop_assert!(most <= stream.burst() + stream.rate() * ((window + 1) as f64 * 1e-9) * (1.0 + 1e-9) + 1e-15);
    }

    #[test]
    fn reduction_dominates(values in prop::collection::vec((1..1000u32, 1..50u32), 1..60), count in 2..20usize) {
        let mut bins = distribution::DistributionBins::new();
        values.iter().for_each(|&(value, weight)| bins.add(value.into(), weight.into()));
        let law = bins.distribution();
        let reduced = law.reduced(count);
        prop_assert!(reduced.atoms().len() <= count.max(2) && reduced.max() == law.max());
        for atom in law.atoms() {
            prop_assert!(reduced.tail(atom.work) >= law.tail(atom.work) - 1e-12);
        }
    }
}

#[test]
fn a_stream_that_asks_for_more_than_its_share_has_no_backlog_law() {
    let stream = CircularWork::new(&[job(0, [5, 0, 0])], Nanos(10));
    assert!(stream.backlog_at_arrivals(0.4).is_none());
    assert_eq!(stream.backlog_at_arrivals(0.5).unwrap().atoms().len(), 1);
}
