//! Which traces were recorded together.

use crate::assumptions::stream::RecordedStream;
use confidence::WINDOWS_MIN;
use units::Nanos;

/// The share of the shortest member that all members of a recording have in common, at least.
const COMMON_SHARE: f64 = 0.8;
/// The most windows that the common time is cut into.
const WINDOWS_MAX: usize = 1 << 16;
/// The shortest window, nanoseconds.
const WINDOW_NS_MIN: u64 = 1_000_000;

/// Traces that were recorded at the same time, and the time that they have in common.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The indices of the streams.
    pub members: Vec<usize>,
    /// When the common time begins by the common clock.
    pub from: Nanos,
    /// When the common time ends.
    pub until: Nanos,
}

/// The recordings of streams whose instants count from the same origin: in order of their beginnings, each stream joins the
/// first recording with which it has enough time in common.
pub(super) fn recordings(streams: &[RecordedStream]) -> Vec<Recording> {
    let mut order: Vec<usize> =
        (0..streams.len()).filter(|&at| streams[at].recorded_from.is_some()).collect();
    order.sort_by_key(|&at| streams[at].span());
    let mut recordings: Vec<Recording> = Vec::new();
    for stream in order {
        let joined = recordings.iter_mut().find_map(|recording| {
            let wider = recording.joined_by(stream, streams)?;
            *recording = wider;
            Some(())
        });
        if joined.is_none() {
            let (from, until) = streams[stream].span();
            recordings.push(Recording { members: vec![stream], from: Nanos(from), until: Nanos(until) });
        }
    }
    recordings.iter_mut().for_each(|recording| recording.members.sort_unstable());
    recordings
}

impl Recording {
    /// The recording with another member, if that leaves all members enough time in common.
    fn joined_by(&self, stream: usize, streams: &[RecordedStream]) -> Option<Self> {
        let (from, until) = streams[stream].span();
        let from = from.max(self.from.0);
        let until = until.min(self.until.0);
        let members: Vec<usize> = self.members.iter().copied().chain([stream]).collect();
        let lengths = members.iter().map(|&member| {
            let (first, last) = streams[member].span();
            last - first
        });
        let shortest = lengths.min()?;
        let common = until.checked_sub(from)?;
        (common as f64 >= COMMON_SHARE * shortest as f64 && common > 0).then_some(Self {
            members,
            from: Nanos(from),
            until: Nanos(until),
        })
    }

    /// Into how many windows the common time is cut; `None` where it is too short for any test.
    pub(super) fn windows(&self) -> Option<usize> {
        let most = (self.until.0 - self.from.0) / WINDOW_NS_MIN;
        let windows = usize::try_from(most).unwrap_or(WINDOWS_MAX).min(WINDOWS_MAX);
        let power = if windows == 0 { 0 } else { 1 << windows.ilog2() };
        (power >= WINDOWS_MIN).then_some(power)
    }

    /// The shortest time that can be tested, seconds.
    pub(super) fn seconds_min() -> f64 {
        Nanos(WINDOW_NS_MIN * WINDOWS_MIN as u64).as_secs()
    }

    /// Returns the time common to all members, seconds.
    pub fn seconds(&self) -> f64 {
        Nanos(self.until.0 - self.from.0).as_secs()
    }

    /// The work of a stream in each of the windows, and how many of its requests are in them.
    pub(super) fn work_by_window(&self, stream: &RecordedStream, windows: usize) -> (Vec<f64>, usize) {
        let mut work = vec![0.0; windows];
        let mut requests = 0;
        let per_ns = windows as f64 / (self.until.0 - self.from.0) as f64;
        for (at, amount) in stream.work().filter(|(at, _)| (self.from.0..=self.until.0).contains(at)) {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "below the count, or at it"
            )]
            let window = ((at - self.from.0) as f64 * per_ns) as usize;
            work[window.min(windows - 1)] += amount;
            requests += 1;
        }
        (work, requests)
    }
}
