//! Servers that take requests by calls that are not seen: no verdict comes from the others.

use super::*;

/// A load of which some requests are taken by unseen calls.
struct HalfSeen<'a> {
    seen: &'a Mutex<SeenRequests>,
    /// Growth each time the load is polled in a period of each arm.
    growth: [ReadCoverage; 2],
    arm: usize,
}

impl ExperimentHost for HalfSeen<'_> {
    fn has_load(&mut self) -> bool {
        let growth = self.growth[self.arm];
        let mut seen = lock(self.seen);
        (0..growth.observed).for_each(|_| seen.window.add(now(), 1_000));
        seen.coverage.observed += growth.observed;
        seen.coverage.unseen += growth.unseen;
        seen.coverage.multipath += growth.multipath;
        true
    }

    fn begin_period(&mut self, arm: usize) -> Result<(), OperationError> {
        self.arm = arm;
        Ok(())
    }

    fn round_done(&mut self, _: ExperimentProgress) {}
}

/// Plays three rounds after so many requests that were all seen.
fn played(earlier: u64, growth: [ReadCoverage; 2]) -> Result<ExperimentReport, OperationError> {
    let settings = ExperimentSettings {
        ports: BTreeSet::from([80]),
        rounds_max: 3,
        ..settings(Duration::from_millis(1))
    };
    let arms = [KnobArm { label: "knob".into(), plan: Box::new(|| Ok(Vec::new())) }];
    let store = Refusing { value: "off".into(), refusals: 0, others: None };
    let mut switch = KnobSwitch::new(store, NoFile, Journal::default(), "boot");
    let never = AtomicBool::new(false);
    let seen = Mutex::new(SeenRequests::default());
    lock(&seen).coverage.observed = earlier;
    let mut host = HalfSeen { seen: &seen, growth, arm: 0 };
    let mut play = RoundPlay::new(&settings, &arms, &mut switch, &mut host, [&never, &never], &seen);
    let end = play.all();
    let report = play.report(end);
    assert!(switch.is_off());
    report
}

fn coverage(observed: u64, unseen: u64, multipath: u64) -> ReadCoverage {
    ReadCoverage { observed, unseen, multipath }
}

#[test]
fn rounds_with_unseen_requests_are_not_judged() {
    let plain = coverage(500, 0, 0);
    for (growth, kind) in [
        ([coverage(9, 3, 0); 2], "splice or sockmap"),
        // The setting itself makes reads unseen.
        ([plain, coverage(9, 50, 0)], "splice or sockmap"),
        ([plain, coverage(9, 50, 50)], "MPTCP"),
    ] {
        // However many requests were seen before.
        let error = played(1_000_000, growth).expect_err("no round can be judged");
        assert!(error.message.starts_with("port 80: no verdict"), "{error}");
        assert!(error.hint.as_deref().is_some_and(|hint| hint.contains(kind)), "{error}");
    }
}

#[test]
fn few_unseen_requests_spoil_no_round() {
    let report = played(0, [coverage(500, 1, 0); 2]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((report.end, report.tally.rounds().len()), (ExperimentEnd::RoundsUsed, 3));
}

#[test]
fn the_whole_observation_counts_at_the_end() {
    let played = || super::played(&[ON], 0);
    let ports = BTreeSet::from([80, 81]);
    for (unseen, is_refused) in [(1, false), (2, false), (200, true)] {
        let totals = ObservedTotals { coverage: coverage(1000, unseen, 0), ..ObservedTotals::default() };
        let report = joined(Ok(totals), Some(played()), &ports);
        assert_eq!(report.is_err(), is_refused, "{unseen}");
    }
    let totals = ObservedTotals { coverage: coverage(0, 7, 0), ..ObservedTotals::default() };
    let error = joined(Ok(totals), Some(super::played(&[ON], 2)), &ports).expect_err("nothing was seen");
    let message =
        "port 80,81: no verdict, because the server took 7 of 7 requests by calls that are not seen";
    assert_eq!(error.message, format!("{message}; /knob was not undone: refused"));
}

/// Without any observed request the reason is named, not a load that is missing.
#[test]
fn unseen_requests_are_not_called_absent() {
    let settings = ExperimentSettings { ports: BTreeSet::from([80]), ..settings(Duration::from_millis(1)) };
    let arms = [KnobArm { label: "knob".into(), plan: Box::new(|| Ok(Vec::new())) }];
    let store = Refusing { value: "off".into(), refusals: 0, others: None };
    let mut switch = KnobSwitch::new(store, NoFile, Journal::default(), "boot");
    let never = AtomicBool::new(false);
    let seen = Mutex::new(SeenRequests::default());
    let mut host = Steady;
    let play = RoundPlay::new(&settings, &arms, &mut switch, &mut host, [&never, &never], &seen);
    let without_load = play.nothing_arrives(Duration::from_secs(10));
    assert_eq!(without_load.message, "no request arrived at port 80 in 10 s");
    lock(&seen).coverage = coverage(0, 9, 9);
    let unseen = play.nothing_arrives(Duration::from_secs(10));
    assert!(unseen.message.contains("took 9 of 9 requests"), "{unseen}");
}
