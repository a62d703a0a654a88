//! When a server is observed, so that observing costs no more than a share of one CPU on average.
//!
//! Time is divided into periods. Each has one window of constant length in which everything is observed, at a random
//! place; in the rest of it nothing is attached. The length of a period follows from what all windows until then have cost
//! on average, and not from the last one: after a window of a busy second, a longer pause would make quiet seconds more
//! likely to be seen than busy ones. The mean follows a rising load too late: then no period begins before what was spent is
//! paid for. The random place keeps windows from going along with what happens periodically.
//!
//! Most servers can be observed all the time at that cost: a window goes on as long as the mean of all observed time says
//! so. Attaching for the first time costs as much as thousands of requests, but only once, and does not end a window.

use std::time::Duration;

/// How long everything is observed before requests count: threads and connections become known, and the cost is measured.
pub(crate) const WARM_UP: Duration = Duration::from_millis(100);

/// The part of a window whose requests count.
pub(crate) const COUNTED: Duration = Duration::from_secs(1);

/// How long is waited at most for the answers to requests that count.
pub(crate) const TAIL_MAX: Duration = Duration::from_secs(1);

/// What the kernel spends on a run of a program beyond the time that it measures, in nanoseconds.
const CALL_NS: u64 = 60;

/// What observing may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostLimit {
    /// The share of one CPU, on average.
    pub share: f64,
    /// The seed of the places of windows.
    pub seed: u64,
}

/// What an observation in windows came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampledTime {
    /// The number of windows.
    pub windows: u64,
    /// For how long requests counted that arrived.
    pub counted: Duration,
    /// True if the server was not observed for some of the time.
    pub has_pauses: bool,
    /// What observing cost until now, in nanoseconds of CPU time over all CPUs: programs and the calling thread.
    pub cost_ns: u64,
    /// The part of `cost_ns` that attaching took for the first time.
    pub first_attaching_ns: u64,
    /// What it might cost.
    pub limit: CostLimit,
    /// Requests that counted and were still open when their window ended.
    pub cut_off: u64,
}

/// What programs cost while that was measured, at the beginning of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MeasuredBeginning {
    pub(crate) run_ns: u64,
    pub(crate) runs: u64,
    pub(crate) events: u64,
    pub(crate) duration: Duration,
}

impl MeasuredBeginning {
    /// What the programs have cost in a whole window: as much as in the beginning for each event, or each second if that is
    /// more.
    pub(crate) fn cost_of(self, events: u64, duration: Duration) -> u64 {
        let measured = u128::from(self.run_ns + self.runs * CALL_NS);
        let by_time = measured * duration.as_nanos() / self.duration.as_nanos().max(1);
        let by_events = measured * u128::from(events) / u128::from(self.events.max(1));
        // A beginning with hardly an event says nothing about one.
        let by_events = if self.events < EVENTS_MIN { by_time } else { by_events };
        u64::try_from(by_time.max(by_events)).unwrap_or(u64::MAX)
    }
}

/// Below so many events the cost of one is not known.
const EVENTS_MIN: u64 = 100;

/// Cost of a window until now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WindowCost {
    /// CPU time of attaching and detaching, in nanoseconds.
    pub(crate) attaching_ns: u64,
    /// CPU time of programs and of joining since then, in nanoseconds.
    pub(crate) running_ns: u64,
    /// The time since it was attached.
    pub(crate) took: Duration,
}

impl WindowCost {
    fn ns(self) -> u64 {
        self.attaching_ns + self.running_ns
    }

    /// The cost of as much of this window as the shortest one has.
    fn of_shortest(self) -> Self {
        let took = self.took.min(SHORTEST);
        let running_ns = u128::from(self.running_ns) * took.as_nanos() / self.took.as_nanos().max(1);
        Self { running_ns: u64::try_from(running_ns).unwrap_or(self.running_ns), took, ..self }
    }
}

/// The length of a window that does not go on, without the wait for late answers.
const SHORTEST: Duration = WARM_UP.saturating_add(COUNTED);

/// Where the windows are.
#[derive(Debug)]
pub(crate) struct WindowPlan {
    /// The share of one CPU that observing may take.
    limit: f64,
    random: u64,
    windows: u64,
    cost_ns: u64,
    first_attaching_ns: u64,
    /// The cost of all windows without attaching, and their length.
    running: (u64, Duration),
    /// The cost of all windows as if each had been one of the shortest, in nanoseconds.
    shortest_ns: u64,
    /// The end of the period of the last window.
    period_end: Duration,
}

impl WindowPlan {
    /// A plan whose first window begins at once.
    pub(crate) fn new(CostLimit { share, seed }: CostLimit) -> Self {
        Self {
            limit: share,
            random: seed,
            windows: 0,
            cost_ns: 0,
            first_attaching_ns: 0,
            running: (0, Duration::ZERO),
            shortest_ns: 0,
            period_end: Duration::ZERO,
        }
    }

    /// Returns true if the window may go on at this time since the beginning, of an observation that has so much time
    /// left: its mean cost is below the limit, and what was spent ahead is paid for at the end.
    pub(crate) fn may_go_on(&self, now: Duration, left: Duration, window: WindowCost) -> bool {
        let running_s = (self.running.0 + window.running_ns) as f64 / 1e9;
        let rate = running_s / (self.running.1 + window.took).as_secs_f64().max(f64::MIN_POSITIVE);
        let once_ns = if self.windows == 0 { window.attaching_ns } else { self.first_attaching_ns };
        let ahead_s = (self.cost_ns + window.ns() - once_ns) as f64 / 1e9 - self.limit * now.as_secs_f64();
        rate < self.limit && ahead_s <= (self.limit - rate) * left.as_secs_f64()
    }

    /// A window ended at this time since the beginning and cost so much; when the next one begins.
    pub(crate) fn next(&mut self, now: Duration, window: WindowCost) -> Duration {
        self.windows += 1;
        self.cost_ns += window.ns();
        self.running = (self.running.0 + window.running_ns, self.running.1 + window.took);
        // A window that went on makes those after it no rarer.
        let shortest = window.of_shortest();
        self.shortest_ns += shortest.ns();
        let mean_s = self.shortest_ns as f64 / 1e9 / self.windows as f64;
        let period = Duration::try_from_secs_f64(mean_s / self.limit).unwrap_or(Duration::MAX);
        let period = period.max(shortest.took);
        if self.windows == 1 {
            self.first_attaching_ns = window.attaching_ns;
            // The first window is at the beginning of its period, of which nothing was known.
            self.period_end = (now - window.took) + period;
        }
        let paid =
            Duration::try_from_secs_f64(self.cost_ns as f64 / 1e9 / self.limit).unwrap_or(Duration::MAX);
        let begin = self.period_end.max(now).max(paid);
        self.period_end = begin.saturating_add(period);
        begin.saturating_add((period - shortest.took).mul_f64(self.uniform()))
    }

    /// Returns the cost of attaching for the first time, in nanoseconds.
    pub(crate) fn first_attaching_ns(&self) -> u64 {
        self.first_attaching_ns
    }

    /// What all windows have cost, in nanoseconds.
    pub(crate) fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    /// How many windows there were.
    pub(crate) fn windows(&self) -> u64 {
        self.windows
    }

    /// From 0 to below 1, by SplitMix64.
    fn uniform(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "the seconds are few")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WINDOW: Duration = Duration::from_millis(700);

    /// How many seconds a pause would take that follows from the cost of the last window, if that was busy.
    const CHASING_S: u64 = 7;

    /// A window that cost this much, all of it for attaching.
    fn attached(attaching_ns: u64) -> WindowCost {
        WindowCost { attaching_ns, running_ns: 0, took: WINDOW }
    }

    /// The beginnings of windows of a server whose windows cost this much.
    fn windows(
        share: f64,
        seed: u64,
        until: Duration,
        cost: impl Fn(Duration) -> u64,
    ) -> (Vec<Duration>, u64) {
        let mut plan = WindowPlan::new(CostLimit { share, seed });
        let mut begins = Vec::new();
        let mut begin = Duration::ZERO;
        while begin < until {
            begins.push(begin);
            begin = plan.next(begin + WINDOW, attached(cost(begin)));
        }
        assert_eq!(plan.windows(), begins.len() as u64);
        (begins, plan.cost_ns())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever windows cost: they do not overlap, and the cost is the limit in the long run.
        #[test]
        fn the_cost_is_below_the_limit(
            limit in 0.005f64..0.2,
            costs in prop::collection::vec(1_000_000u64..400_000_000, 1..20),
            seed: u64,
        ) {
            let until = Duration::from_secs(40_000);
            let (begins, cost) = windows(limit, seed, until, |at| costs[at.as_secs() as usize / 7 % costs.len()]);
            prop_assert!(begins.windows(2).all(|pair| pair[1] >= pair[0] + WINDOW));
            let mean_s = cost as f64 / 1e9 / begins.len() as f64;
            // Half a window's cost may be ahead of its period; the mean needs windows to settle.
            let allowed = limit * until.as_secs_f64() * 1.1 + 4.0 * 0.4;
            prop_assert!(cost as f64 / 1e9 <= allowed, "{} of {allowed}", cost as f64 / 1e9);
            if mean_s / limit > 2.0 * WINDOW.as_secs_f64() {
                prop_assert!(cost as f64 / 1e9 >= limit * until.as_secs_f64() * 0.85 - 4.0 * 0.4);
            }
        }

        /// A load that rises, once or all the time, costs no more than the limit either.
        #[test]
        fn a_rising_load_is_paid_for(limit in 0.01f64..0.1, low in 5u64..50, factor in 2u64..30, seed: u64) {
            let until = Duration::from_secs(7200);
            let rising = |at: Duration| low * 1_000_000 * (1 + (factor - 1) * at.as_secs() / until.as_secs());
            let stepped = |at: Duration| low * 1_000_000 * if at < until / 2 { 1 } else { factor };
            for cost in [&rising as &dyn Fn(Duration) -> u64, &stepped] {
                let (_, spent) = windows(limit, seed, until, cost);
                let allowed = limit * until.as_secs_f64() + cost(until) as f64 / 1e9;
                prop_assert!(spent as f64 / 1e9 <= allowed, "{} of {allowed}", spent as f64 / 1e9);
            }
        }

        /// Busy and quiet times of different lengths are seen in proportion, although windows of busy times cost 20 times as
        /// much. A pause that follows from the cost of the last window sees the quiet ones far more often.
        #[test]
        fn busy_times_are_seen_as_often_as_they_are(seconds in 3u64..200, seed: u64) {
            let is_busy = |at: Duration| (at.as_secs() / seconds).is_multiple_of(2);
            let cost = |at: Duration| if is_busy(at) { 200_000_000 } else { 10_000_000 };
            let until = Duration::from_secs(100_000);
            let (begins, _) = windows(0.03, seed, until, cost);
            let busy = begins.iter().filter(|at| is_busy(**at)).count() as f64 / begins.len() as f64;
            prop_assert!((0.45..0.55).contains(&busy), "{busy}");
            // Where these times are hardly longer than that pause, it may go along with them and see each in turn.
            if seconds <= CHASING_S {
                return Ok(());
            }
            let mut chased = Vec::new();
            let mut at = Duration::ZERO;
            while at < until {
                chased.push(at);
                at += Duration::from_secs_f64(cost(at) as f64 / 1e9 / 0.03).max(WINDOW);
            }
            let busy = chased.iter().filter(|at| is_busy(**at)).count() as f64 / chased.len() as f64;
            prop_assert!(busy < 0.45, "the judge tells them apart: {busy}");
        }
    }

    /// Returns the time that an observation of this length saw, in seconds, and its cost after attaching for the first
    /// time, in seconds of CPU time, at a load that costs `rate` of a CPU.
    fn lived(limit: f64, length: Duration, attaching_ns: u64, rate: impl Fn(Duration) -> f64) -> (f64, f64) {
        const SECOND: Duration = Duration::from_secs(1);
        let mut plan = WindowPlan::new(CostLimit { share: limit, seed: 3 });
        let mut begin = Duration::ZERO;
        let mut seen_s = 0.0;
        while begin < length {
            let mut window = WindowCost { attaching_ns, ..WindowCost::default() };
            loop {
                window.running_ns += (rate(begin + window.took) * 1e9) as u64;
                window.took += SECOND;
                let now = begin + window.took;
                if now >= length || !plan.may_go_on(now, length - now, window) {
                    break;
                }
            }
            seen_s += window.took.as_secs_f64();
            begin = plan.next(begin + window.took, window);
        }
        (seen_s, (plan.cost_ns() - plan.first_attaching_ns()) as f64 / 1e9)
    }

    #[test]
    fn a_server_below_the_limit_is_observed_all_the_time() {
        for seconds in [2, 10, 3600] {
            let (seen_s, cost_s) = lived(0.03, Duration::from_secs(seconds), 70_000_000, |_| 0.02);
            assert_eq!(seen_s, seconds as f64, "a window that went on has no pause");
            assert!((cost_s - 0.02 * seconds as f64).abs() < 1e-6);
        }
    }

    /// Busy hours after quiet ones, and the other way round: the limit is kept, and after some hours that everything was
    /// observed a second of the busy ones is as likely to be seen as before.
    #[test]
    fn a_window_that_went_on_keeps_the_limit_and_the_places_of_later_ones() {
        let hour = Duration::from_secs(3600);
        for (first, then) in [(0.005, 0.2), (0.2, 0.005), (0.029, 0.031), (0.1, 0.1)] {
            let rate = |at: Duration| if at < hour { first } else { then };
            let (seen_s, cost_s) = lived(0.03, 2 * hour, 70_000_000, rate);
            let limit_s = 0.03 * 7200.0;
            assert!(cost_s <= limit_s + 0.3, "{first}, {then}: {cost_s} of {limit_s}");
            // The mean remembers a busier hour.
            let share = |rate: f64| if rate < 0.03 { 1.0 } else { 0.03 / (rate + 0.07) };
            let expected_s = 3600.0 * (share(first) + share(first.max(then)));
            assert!(seen_s >= 0.9 * expected_s, "{first}, {then}: {seen_s} of {expected_s}");
        }
    }

    #[test]
    fn a_seed_says_where_windows_are() {
        let begins = |seed| windows(0.03, seed, Duration::from_secs(600), |_| 50_000_000).0;
        assert_eq!(begins(7), begins(7));
        assert_ne!(begins(7), begins(8));
    }

    #[test]
    fn what_was_measured_is_scaled_by_events_and_time() {
        let ms = Duration::from_millis;
        let beginning = MeasuredBeginning { run_ns: 4000, runs: 100, events: 200, duration: ms(100) };
        assert_eq!(beginning.cost_of(200, ms(100)), 10_000);
        assert_eq!(beginning.cost_of(200, ms(600)), 60_000);
        assert_eq!(beginning.cost_of(2000, ms(600)), 100_000);
        let quiet = MeasuredBeginning { events: 1, ..beginning };
        assert_eq!(quiet.cost_of(2000, ms(200)), 20_000);
        assert_eq!(MeasuredBeginning::default().cost_of(5, ms(5)), 0);
    }
}
