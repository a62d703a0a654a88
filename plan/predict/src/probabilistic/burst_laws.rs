//! The laws of what one stream does to requests that it overtakes or precedes, when no other stream matters.

use super::shares::{SHARES, nanos_up};
use calculus::tail::LawAtom;
use std::sync::OnceLock;
use workload::windows::{CircularWork, JointBacklogs, WorkDistribution};

/// The number of atoms that are kept of a law.
pub(super) const ATOMS: usize = 32;
/// The number of atoms that are kept of the laws of backlogs and delays, of which only tails are asked for.
const TAIL_ATOMS: usize = 128;
/// The shares of the queue that a stream may be given while it is the only one that matters.
pub(super) const BURST_SHARES: [f64; 6] = [0.9, 0.8, 0.65, 0.5, 0.3, 0.15];
/// The number of shares, the first of [`SHARES`], at which a request's own stream counts here.
pub(super) const OWN_SHARES: usize = 8;
/// The octaves of other work for which delays are tabulated, as exponents of seconds.
const OCTAVES: (i32, i32) = (-20, 10);
/// The number of amounts of other work per octave.
const PER_OCTAVE: i32 = 8;
/// The octaves of windows, as exponents of seconds.
const WINDOW_OCTAVES: (i32, i32) = (-24, 14);
/// The number of windows per octave.
const WINDOWS_PER_OCTAVE: i32 = 16;

type Law = OnceLock<Option<Vec<LawAtom>>>;

/// The laws of one stream, computed from its trace where they are first needed.
#[derive(Debug)]
pub(super) struct BurstLaws {
    stream: CircularWork,
    /// The backlog over time at each share.
    backlogs: [Law; BURST_SHARES.len()],
    /// The delay over time at each share, for each amount of other work.
    delays: [Vec<Law>; BURST_SHARES.len()],
    /// The work in each of the windows, all rounded to the same values.
    windows: Vec<OnceLock<Vec<LawAtom>>>,
    /// What its requests find of their own stream at each share of [`OWN_SHARES`].
    own: OnceLock<Vec<JointBacklogs<OWN_SHARES>>>,
}

impl BurstLaws {
    pub(super) fn new(stream: CircularWork) -> Self {
        let amounts = (OCTAVES.1 - OCTAVES.0) * PER_OCTAVE + 1;
        let delays = std::array::from_fn(|_| (0..amounts).map(|_| Law::new()).collect());
        let windows = (WINDOW_OCTAVES.1 - WINDOW_OCTAVES.0) * WINDOWS_PER_OCTAVE + 1;
        let windows = (0..windows).map(|_| OnceLock::new()).collect();
        Self { stream, backlogs: std::array::from_fn(|_| Law::new()), delays, windows, own: OnceLock::new() }
    }

    /// The largest allowance of any window, seconds.
    pub(super) fn allowance(&self) -> f64 {
        self.stream.allowance()
    }

    /// A bound on the probability that the backlog at a share reaches `work` seconds.
    pub(super) fn backlog_tail(&self, share: usize, work: f64) -> f64 {
        let law =
            self.backlogs[share].get_or_init(|| reduced(self.stream.backlog_over_time(BURST_SHARES[share])));
        tail(law.as_deref(), work)
    }

    /// A bound on the probability that the stream is large: that some window has more than `burst` seconds beyond what the
    /// share serves, where the window goes on for `more` seconds that do not count as served.
    pub(super) fn large(&self, share: usize, burst: f64, more: f64) -> f64 {
        self.backlog_tail(share, burst - BURST_SHARES[share] * more - self.allowance())
    }

    /// A bound on the probability that the stream at a share delays an amount of other work, that with this index, by
    /// `latency` seconds.
    pub(super) fn delay_tail(&self, share: usize, amount: usize, latency: f64) -> f64 {
        let law = self.delays[share][amount]
            .get_or_init(|| reduced(self.stream.delay_over_time(BURST_SHARES[share], self::amount(amount))));
        tail(law.as_deref(), latency)
    }

    /// The law of the work in the window with this index, rounded up to values that are the same for all windows.
    pub(super) fn in_window(&self, index: usize) -> &[LawAtom] {
        self.windows[index]
            .get_or_init(|| atoms(&self.stream.work_in_window_by_bins(nanos_up(window(index) * 1e9))))
    }

    /// What the requests of the stream find of it at each of the first [`OWN_SHARES`] shares.
    pub(super) fn own(&self) -> &[JointBacklogs<OWN_SHARES>] {
        self.own.get_or_init(|| {
            self.stream.joint_backlogs_at_arrivals(std::array::from_fn(|share| SHARES[share]))
        })
    }

    /// The memory that the trace and the laws so far occupy, bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        let laws = self.backlogs.iter().chain(self.delays.iter().flatten());
        let atoms: usize = laws.filter_map(|law| law.get()?.as_ref()).map(|law| size_of_val(&law[..])).sum();
        let windows = self.windows.iter().filter_map(|law| law.get());
        let in_windows: usize = windows.map(|law| size_of_val(&law[..])).sum();
        let own = self.own.get().map_or(0, |own| size_of_val(&own[..]));
        atoms + in_windows + own + self.stream.heap_bytes()
    }
}

/// The index of the least tabulated amount of other work that is at least so many seconds; `None` beyond the last.
pub(super) fn amount_above(work: f64) -> Option<usize> {
    let position = (work.max(1e-9).log2() - f64::from(OCTAVES.0)) * f64::from(PER_OCTAVE);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative; `as` saturates"
    )]
    let index = (position - 1e-9).ceil().max(0.0) as usize;
    #[allow(clippy::cast_sign_loss, reason = "the octaves ascend")]
    let last = ((OCTAVES.1 - OCTAVES.0) * PER_OCTAVE) as usize;
    (index <= last).then_some(index)
}

/// The tabulated amount of other work with this index, seconds.
pub(super) fn amount(index: usize) -> f64 {
    (f64::from(OCTAVES.0) + index as f64 / f64::from(PER_OCTAVE)).exp2()
}

/// The index of the first tabulated window of at least so many seconds; `None` beyond the last.
pub(super) fn window_from(length: f64) -> Option<usize> {
    let last = (WINDOW_OCTAVES.1 - WINDOW_OCTAVES.0) * WINDOWS_PER_OCTAVE;
    let position = (length.max(1e-9).log2() - f64::from(WINDOW_OCTAVES.0)) * f64::from(WINDOWS_PER_OCTAVE);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative; `as` saturates"
    )]
    let mut index = position.ceil().max(0.0) as usize;
    // What rounding in the logarithm has lost.
    while window(index) < length {
        index += 1;
    }
    #[allow(clippy::cast_sign_loss, reason = "the octaves ascend")]
    let last = last as usize;
    (index <= last).then_some(index)
}

/// The tabulated window with this index, seconds.
pub(super) fn window(index: usize) -> f64 {
    (f64::from(WINDOW_OCTAVES.0) + index as f64 / f64::from(WINDOWS_PER_OCTAVE)).exp2()
}

/// The atoms of a distribution as tables take them.
pub(super) fn atoms(law: &WorkDistribution) -> Vec<LawAtom> {
    law.atoms().iter().map(|atom| LawAtom { work: atom.work, probability: atom.probability }).collect()
}

fn reduced(law: Option<WorkDistribution>) -> Option<Vec<LawAtom>> {
    Some(atoms(&law?.reduced(TAIL_ATOMS)))
}

/// The probability of at least so much; 1 without a law.
fn tail(law: Option<&[LawAtom]>, work: f64) -> f64 {
    let Some(law) = law else { return 1.0 };
    if work <= 0.0 {
        return 1.0;
    }
    let from = law.partition_point(|atom| atom.work < work);
    law[from..].iter().map(|atom| atom.probability).sum()
}
